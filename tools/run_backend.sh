#!/bin/bash
# run_backend.sh - ONNX's Python backend runner, over the cases that Debian's python3-onnx generates.
. "$(dirname "$0")/source_files.sh"
data=${SINTER_TEST_DATA:-$top/build-test/data}/onnx-suite
tools/generate_onnx_suite.sh "$data" || { echo "python3-onnx is not there"; exit 77; }
exec /usr/bin/python3 -W ignore tests/python/test_backend.py "$data"
