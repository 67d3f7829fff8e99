#!/bin/bash
# generate_onnx_suite.sh FOLDER - has python3-onnx write its test cases there, unless it did before.
# numpy 1.24 dropped aliases that onnx 1.12 still uses: they are put back first.
[ -f "$1/.complete" ] && exit 0
mkdir -p "$(dirname "$1")"
(
    mkdir -p "$1"
    flock 9
    [ -f "$1/.complete" ] && exit 0
    /usr/bin/python3 -W ignore - "$1" <<'PYTHON' >/dev/null 2>&1 && touch "$1/.complete"
import sys
import numpy as np
for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
    setattr(np, name, kind)
sys.argv = ["generate", "generate-data", "-o", sys.argv[1]]
from onnx.backend.test.cmd_tools import main
main()
PYTHON
) 9>"$1.lock"
