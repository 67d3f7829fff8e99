#!/bin/bash
# differential.sh PROGRAM - random graphs in Sinter and in the real ONNX Runtime, which npm brings.
. "$(dirname "$0")/../common.sh"
need node npm
need_python onnx numpy
bench/versus/install-ort.sh "$data/onnxruntime" >/dev/null || missing "ONNX Runtime of npm"
exec /usr/bin/python3 -W ignore tests/differential/differential.py "$1" -n "${DIFFERENTIAL_COUNT:-100}" \
    -o "$data/differential" --node-modules "$data/onnxruntime/node_modules"
