#!/bin/bash
# run_models.sh PROGRAM - compares models that PyTorch exports with PyTorch's own results.
. "$(dirname "$0")/source_files.sh"

models=${SINTER_TEST_DATA:-$top/build-test/data}/models
mkdir -p "$(dirname "$models")"
flock "$models.lock" /usr/bin/python3 -W ignore tools/export_models.py "$models" >"$models.log" 2>&1
[ -d "$models/resnet50" ] || { echo "PyTorch is not there"; exit 77; }
exec "$1" test --timeout 300 "$models"
