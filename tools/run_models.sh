#!/bin/bash
# run_models.sh PROGRAM [OPSET] - compares the zoo's small models, which PyTorch exports, with PyTorch's
# own results.
. "$(dirname "$0")/source_files.sh"

opset=${2:-17}
models=${SINTER_TEST_DATA:-$top/build-test/data}/models-$opset
mkdir -p "$models"
/usr/bin/python3 -W ignore bench/zoo/export.py --small --opset "$opset" --out "$models" >"$models.log" 2>&1
[ -d "$models/resnet50" ] || { echo "PyTorch is not there"; exit 77; }
exec "$1" test --timeout 300 "$models"
