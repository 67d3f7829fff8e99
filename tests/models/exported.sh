#!/bin/bash
# exported.sh PROGRAM [OPSET] - compares the zoo's small models, which PyTorch exports, with PyTorch's
# own results.
. "$(dirname "$0")/../common.sh"
models=$(zoo "${2:-17}") || missing "PyTorch"
exec "$1" test --timeout 300 "$models"
