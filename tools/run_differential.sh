#!/bin/bash
# run_differential.sh PROGRAM - random graphs in Sinter and in the real ONNX Runtime, which npm
# brings; skipped where there is no Node.js or no npm registry.
. "$(dirname "$0")/source_files.sh"
data=${SINTER_TEST_DATA:-$top/build-test/data}
command -v node >/dev/null && command -v npm >/dev/null || { echo "Node.js is not there"; exit 77; }
modules=$data/onnxruntime/node_modules
bench/versus/install-ort.sh "$data/onnxruntime" >/dev/null || exit 77
/usr/bin/python3 -c 'import onnx, numpy' 2>/dev/null || { echo "python3-onnx is not there"; exit 77; }
exec /usr/bin/python3 -W ignore tests/differential/differential.py "$1" -n "${DIFFERENTIAL_COUNT:-100}" \
    -o "$data/differential" --node-modules "$modules"
