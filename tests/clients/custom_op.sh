#!/bin/bash
# custom_op.sh PROGRAM - the example of a custom operator from end to end: PyTorch exports a model
# with an operator of its own, the C kernel is compiled, and both give the same numbers.
. "$(dirname "$0")/../common.sh"
program=$1
need_python torch onnx
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
/usr/bin/python3 -W ignore examples/custom_op/export.py "$work" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
${CC:-cc} -std=c11 -Wall -Wextra -Werror -shared -fPIC -O2 -Iinclude -o "$work/op.so" \
    examples/custom_op/shifted_gelu.c -lm || exit 1
if "$program" run "$work/model.onnx" -i "x=$work/x.npy" >"$work/log" 2>&1; then
    echo "the model ran without its operator"
    exit 1
fi
grep -q 'example.ops.ShiftedGelu' "$work/log" || { cat "$work/log"; exit 1; }
"$program" run "$work/model.onnx" --op-library "$work/op.so" -i "x=$work/x.npy" -o "$work/out" || exit 1
"$program" profile "$work/model.onnx" --op-library "$work/op.so" | grep -q ShiftedGelu ||
    { echo "the profile does not name the operator"; exit 1; }
/usr/bin/python3 - "$work" <<'END'
import sys
import numpy as np
got, want = np.load(sys.argv[1] + "/out/y.npy"), np.load(sys.argv[1] + "/y.npy")
assert got.shape == want.shape, (got.shape, want.shape)
np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
print("PyTorch and Sinter agree on", got.size, "numbers")
END
