#!/bin/bash
# levels.sh PROGRAM FOLDER - runs ONNX's own test suite at the lower levels of optimisation, and at the
# highest with samples of passes and rules switched off. FOLDER is that of conformance.sh.
. "$(dirname "$0")/../common.sh"

run() {
    local line
    line=$(tests/onnx/conformance.sh "$program" "$folder" "$@") || {
        local status=$?
        [ $status -eq 77 ] && { echo "$line"; exit 77; }
        printf '%s\n' "$line" | tail -20
        echo "with $*"
        exit 1
    }
    echo "${line##*$'\n'} with ${*:1:4} ..."
}

program=$1 folder=$2
for level in 0 1 2; do run -O $level; done
mapfile -t rules < <(awk -F'`' '/^\| (pass|rule) \|/ { on = 1 } !NF { on = 0 } on && NF > 1 { print $2 }' \
    docs/OPTIMISER.md)
[ ${#rules[@]} -gt 50 ] || { echo "no rules in docs/OPTIMISER.md"; exit 1; }
for part in 0 1 2 3; do
    off=()
    for ((i = part; i < ${#rules[@]}; i += 4)); do off+=(--disable-rule "${rules[i]}"); done
    run "${off[@]}"
done
