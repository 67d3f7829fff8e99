#!/bin/bash
# run_threads.sh PROGRAM - compares the bits that the zoo's small models, and the real ones beside the
# checkout if they are there, give with different numbers of threads.
. "$(dirname "$0")/source_files.sh"

models=${SINTER_TEST_DATA:-$top/build-test/data}/models-17
mkdir -p "$models"
/usr/bin/python3 -W ignore bench/zoo/export.py --small --opset 17 --out "$models" >"$models.threads.log" 2>&1
exec tests/models/threads.py "$1" "$models" "$top/../shared/models"
