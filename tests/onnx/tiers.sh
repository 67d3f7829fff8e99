#!/bin/bash
# tiers.sh PROGRAM FOLDER - runs ONNX's own test suite and the real models on the lower tiers of kernels, with
# one thread and with two. FOLDER is that of conformance.sh, with models/ in it.
. "$(dirname "$0")/../common.sh"
program=$1 folder=$2

# run NAME COMMAND...: prints the last line, all of it if COMMAND fails.
run() {
    local output status
    output=$("${@:2}") && { echo "$1: ${output##*$'\n'}"; return; }
    status=$?
    printf '%s\n' "$output" | tail -30
    echo "$1: failed"
    exit $status
}

for tier in baseline avx2; do
    for threads in 1 2; do
        export SINTER_ISA=$tier
        name="$tier, $threads thread(s)"
        run "$name, conformance" tests/onnx/conformance.sh "$program" "$folder" --threads $threads
        run "$name, models" tests/onnx/suite.sh "$program" "$folder/models" tests/onnx/expected_failures_models.txt \
            --threads $threads
    done
done
