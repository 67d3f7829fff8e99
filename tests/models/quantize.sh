#!/bin/bash
# quantize.sh PROGRAM - quantises and prunes networks trained on scikit-learn's digits, and runs the
# results here and in the real ONNX Runtime, where npm brings it.
. "$(dirname "$0")/../common.sh"
need_python onnx numpy sklearn
modules=
if command -v node npm >/dev/null && bench/versus/install-ort.sh "$data/onnxruntime" >/dev/null; then
    modules=$data/onnxruntime/node_modules
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
/usr/bin/python3 -W ignore tests/models/quantize.py "$1" "$folder" $modules
