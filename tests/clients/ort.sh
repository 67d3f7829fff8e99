#!/bin/bash
# ort.sh c|letter|cxx|node|provider|robust BUILD - programs that know ONNX Runtime's interface, on Sinter's
# libonnxruntime.so.1. Prints the functions that each one called; none may be one that this library
# does not have. Where npm can bring the real ONNX Runtime, the C program must print the same on it.
. "$(dirname "$0")/../common.sh"
what=$1
build=$(realpath "$2")
library=$(realpath "$2/libonnxruntime.so.1") || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-Wall -Wextra -Werror -Isrc/ort"
cc=${CC:-cc}

need_python onnx
/usr/bin/python3 -W ignore tests/clients/make_models.py "$work" || exit 1

# called NAME - the functions that SINTER_ORT_TRACE recorded.
called() {
    [ -s "$work/trace" ] || { echo "$1: no calls were recorded"; exit 1; }
    echo "$1 called $(cut -f 2 "$work/trace" | sort -u | wc -l) functions:" \
        "$(cut -f 2 "$work/trace" | sort -u | tr '\n' ' ')"
    if grep -P '\tstub$' "$work/trace"; then
        echo "$1 called functions that this library does not have"
        exit 1
    fi
    rm -f "$work/trace"
}
export SINTER_ORT_TRACE=$work/trace

run_c() {
    $cc $flags -std=gnu11 -o "$work/client" tests/clients/client.c -ldl -lpthread || exit 1
    $cc $flags -std=gnu11 -shared -fPIC -o "$work/custom.so" tests/clients/custom_ops_ort.c || exit 1
    "$work/client" "$library" "$work" "$work/custom.so" >"$work/ours" || { cat "$work/ours"; exit 1; }
    called "the C program"
    grep '^#' "$work/ours"
    need npm
    real=$(bench/versus/install-ort.sh "$data/onnxruntime") || unreachable "ONNX Runtime"
    "$work/client" "$real" "$work" "$work/custom.so" >"$work/real" || exit 1
    diff <(grep -v '^#' "$work/real") <(grep -v '^#' "$work/ours") || exit 1
    echo "$(grep -vc '^#' "$work/ours") lines are the same on ONNX Runtime"
}

# What differs from the usual path: the same on both libraries, in every line that is not for people.
run_letter() {
    $cc $flags -std=gnu11 -o "$work/letter" tests/clients/letter.c -ldl || exit 1
    "$work/letter" "$library" "$work" >"$work/ours" || { cat "$work/ours"; exit 1; }
    called "the program to the letter"
    need npm
    real=$(bench/versus/install-ort.sh "$data/onnxruntime") || unreachable "ONNX Runtime"
    "$work/letter" "$real" "$work" >"$work/real" || exit 1
    diff <(grep -v '^#' "$work/real") <(grep -v '^#' "$work/ours") || exit 1
    echo "$(grep -vc '^#' "$work/ours") lines are the same on ONNX Runtime"
}

run_cxx() {
    need c++
    # shellcheck disable=SC2086
    c++ $flags -std=c++17 -o "$work/client" tests/clients/client.cpp -ldl -lpthread || exit 1
    "$work/client" "$library" "$work" || exit 1
    called "the C++ program"
}

run_node() {
    need node npm
    for version in 1.16.3 1.21.0 1.30.0; do
        folder=$data/onnxruntime-$version
        real=$(ORT_VERSION=$version bench/versus/install-ort.sh "$folder" 2>&1) || unreachable "onnxruntime-node $version: $real"
        modules=$work/node-$version/node_modules
        mkdir "$work/node-$version" && cp -r "$folder/node_modules" "$modules"
        find "$modules/onnxruntime-node/bin" -name 'libonnxruntime.so*' -delete
        for place in "$modules"/onnxruntime-node/bin/napi-v*/linux/*/; do
            cp "$library" "$place/libonnxruntime.so.1"
            ln -s libonnxruntime.so.1 "$place/libonnxruntime.so.$version"
        done
        # The older bindings crash in worker threads by themselves, with any library.
        workers=""
        [ "$version" = 1.30.0 ] && workers=workers
        node tests/clients/node_client.js "$modules" "$work" $workers || exit 1
        called "onnxruntime-node $version"
    done
}

# Models built in code, and a plug-in with three providers.
run_provider() {
    # shellcheck disable=SC2086
    $cc $flags -Isrc -std=gnu11 -o "$work/provider" tests/clients/provider.c -ldl || exit 1
    # shellcheck disable=SC2086
    $cc $flags -Isrc -std=gnu11 -shared -fPIC -o "$work/plugin.so" tests/clients/plugin*.c || exit 1
    "$work/provider" "$library" "$work/plugin.so" >"$work/ours" || { cat "$work/ours"; exit 1; }
    called "the program and its providers"
    need npm
    real=$(bench/versus/install-ort.sh "$data/onnxruntime") || unreachable "ONNX Runtime"
    "$work/provider" "$real" "$work/plugin.so" >"$work/real" || { cat "$work/real"; exit 1; }
    diff "$work/real" "$work/ours" || exit 1
    echo "$(wc -l <"$work/ours") lines are the same on ONNX Runtime"
}

run_robust() {
    unset SINTER_ORT_TRACE
    "$build/ort_robust" "$library" "$work" "${ROBUST_CYCLES:-300}" "${ROBUST_SECONDS:-2}"
}

"run_$what"
