#!/bin/bash
# conformance.sh PROGRAM debian|FOLDER [OPTION...] - runs ONNX's own test suite, with further options of
# `sinter test`.
#   debian  the cases that Debian's python3-onnx generates (opset 17 and below)
#   FOLDER  the folder that holds conformance/{node,simple,...}, a copy of a newer suite
. "$(dirname "$0")/../common.sh"
program=$1

# With sanitizers each case is several times slower.
timeout=60
if nm "$program" 2>/dev/null | grep -q __asan_init; then timeout=300; fi

if [ "$2" = debian ]; then
    tests/onnx/generate.sh || missing "python3-onnx"
    folders=("$data/onnx-suite")
    expected=tests/onnx/expected_failures_debian.txt
else
    folders=()
    for kind in node simple light pytorch-converted pytorch-operator real; do
        [ -d "$2/conformance/$kind" ] && folders+=("$2/conformance/$kind")
    done
    [ ${#folders[@]} -gt 0 ] || { echo "no conformance suite beside the checkout"; exit 77; }
    expected=tests/onnx/expected_failures.txt
fi
exec "$program" test --timeout $timeout --expect-fail "$expected" "${@:3}" "${folders[@]}"
