#!/bin/bash
# generate.sh - has python3-onnx write its test cases to onnx-suite in the folder of generated data,
# unless it did before. numpy 1.24 dropped aliases that onnx 1.12 still uses: they are put back first.
. "$(dirname "$0")/../common.sh"
folder=$data/onnx-suite
[ -f "$folder/.complete" ] && exit 0
need_python onnx numpy
(
    mkdir -p "$folder"
    flock 9
    [ -f "$folder/.complete" ] && exit 0
    /usr/bin/python3 -W ignore - "$folder" <<'PYTHON' >"$folder.log" 2>&1 && touch "$folder/.complete"
import sys
import numpy as np
for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
    setattr(np, name, kind)
sys.argv = ["generate", "generate-data", "-o", sys.argv[1]]
from onnx.backend.test.cmd_tools import main
main()
PYTHON
) 9>"$folder.lock"
