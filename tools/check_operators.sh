#!/bin/bash
# check_operators.sh PROGRAM - docs/OPERATORS.md is what the program says of itself.
. "$(dirname "$0")/source_files.sh"

diff -u docs/OPERATORS.md <("$1" ops --markdown) || {
    echo "docs/OPERATORS.md is not up to date: sinter ops --markdown > docs/OPERATORS.md"
    exit 1
}
