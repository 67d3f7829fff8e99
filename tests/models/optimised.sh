#!/bin/bash
# optimised.sh PROGRAM [--markdown] - counts what the optimiser leaves of the zoo's models, exported at
# opsets 13 and 17 in their small form, which keeps the structure.
. "$(dirname "$0")/../common.sh"
early=$(zoo 13) && late=$(zoo 17) || missing "PyTorch"
exec tests/models/optimised.py "$1" "$early" "$late" "${@:2}"
