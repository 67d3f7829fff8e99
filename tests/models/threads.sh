#!/bin/bash
# threads.sh PROGRAM - compares the bits that the zoo's small models, and the real ones beside the
# checkout if they are there, give with different numbers of threads.
. "$(dirname "$0")/../common.sh"
models=$(zoo 17) || missing "PyTorch"
exec tests/models/threads.py "$1" "$models" "$top/../shared/models"
