#!/bin/bash
# make_seeds.sh RUN_OPS - makes the fuzzers' corpora anew from the models of the operator tests:
# as text, and as the files that the text reader makes of them.
set -e
cd "$(dirname "$0")"
models=$(mktemp -d)
trap 'rm -rf "$models"' EXIT
"$1" --export "$models" ../ops
for fuzzer in fuzz_text:txt fuzz_load:onnx; do
    folder=corpus/${fuzzer%:*}
    rm -rf "$folder"
    mkdir -p "$folder"
    cp "$models"/*."${fuzzer#*:}" "$folder"
done
ln -sfn fuzz_load corpus/fuzz_run
# Compiled models come from make_compiled_seeds.py, which needs the program and Python.
