#!/bin/bash
# suite.sh PROGRAM FOLDER EXPECTED [OPTION...] - runs a folder of backend-test cases that lies beside the
# checkout, if it is there, against the list of failures that are expected.
. "$(dirname "$0")/../common.sh"
[ -d "$2" ] || { echo "no $2 beside the checkout"; exit 77; }
exec "$1" test --timeout 300 --expect-fail "$3" "${@:4}" "$2"
