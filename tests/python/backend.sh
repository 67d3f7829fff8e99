#!/bin/bash
# backend.sh - ONNX's Python backend runner, over the cases that Debian's python3-onnx generates.
. "$(dirname "$0")/../common.sh"
tests/onnx/generate.sh || missing "python3-onnx"
exec /usr/bin/python3 -W ignore tests/python/test_backend.py "$data/onnx-suite"
