#!/bin/bash
# written.sh PROGRAM - files that `sinter optimize` writes, in the real ONNX Runtime, which npm brings.
# Models of the zoo take part.
. "$(dirname "$0")/../common.sh"
need node npm
need_python onnx numpy
bench/versus/install-ort.sh "$data/onnxruntime" >/dev/null || missing "ONNX Runtime of npm"
zoo=()
for opset in 13 17; do
    folder=$(zoo $opset) || missing "PyTorch"
    zoo+=("$folder")
done
exec /usr/bin/python3 -W ignore tests/clients/written.py "$1" "$data/written" "${zoo[@]}" \
    --node-modules "$data/onnxruntime/node_modules"
