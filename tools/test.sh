#!/bin/bash
# test.sh all|release|clients|asan|tsan - builds and runs the tests; the last line counts them.
#   release  everything, as it is shipped
#   clients  of that, what other languages and ONNX Runtime's clients do
#   asan     unit, operator and conformance tests with the address and undefined sanitizers
#   tsan     what runs threads, with the thread sanitizer
# Build folders and generated data stay in build-test/ for the next time.
cd "$(dirname "$0")/.." || exit 1
what=${1:-all}
out=build-test
export SINTER_TEST_DATA=${SINTER_TEST_DATA:-$PWD/$out/data}
jobs=$(nproc 2>/dev/null || echo 2)
mkdir -p "$out/results" "$SINTER_TEST_DATA"
rm -f "$out"/results/*.xml

tools/install-deps.sh build || exit 1
tools/install-deps.sh test || exit 1
tools/install-deps.sh export || echo "PyTorch is not there: tests that export models are skipped"
tools/install-deps.sh clients || echo "Go or Rust is not there: their examples are skipped"

generator="Unix Makefiles"
command -v ninja >/dev/null && generator=Ninja
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
broken=0

# run NAME LABELS CMAKE_OPTION... - builds one kind and runs the tests with these labels.
run() {
    local name=$1 labels=$2
    shift 2
    echo "== $name"
    if ! cmake -S . -B "$out/$name" -G "$generator" -DSINTER_WERROR=ON "${launcher[@]}" "$@" \
        >"$out/$name.log" 2>&1 ||
        ! cmake --build "$out/$name" -j "$jobs" >>"$out/$name.log" 2>&1; then
        grep -E 'error|warning|FAILED|undefined' "$out/$name.log" | head -40
        echo "the $name build failed; see $out/$name.log"
        broken=$((broken + 1))
        return
    fi
    (cd "$out/$name" && ctest -L "$labels" -j "$jobs" --timeout 1200 --output-on-failure \
        --test-output-size-passed 2000000 --test-output-size-failed 2000000 \
        --output-junit "$PWD/../results/$name.xml")
}

[ "$what" = all ] || [ "$what" = release ] &&
    run release '.' -DCMAKE_BUILD_TYPE=Release
[ "$what" = clients ] && run release clients -DCMAKE_BUILD_TYPE=Release
# Which functions of ONNX Runtime's table its clients called; their tests fail if one is not there.
[ -f "$out/results/release.xml" ] &&
    grep -hoE '[^<>]+ called [0-9]+ functions: [A-Za-z_0-9 ]+' "$out/results/release.xml" | fold -s -w 110
if command -v clang >/dev/null; then
    [ "$what" = all ] || [ "$what" = asan ] &&
        run asan 'unit|ops|conformance' -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER=clang \
            -DCMAKE_C_FLAGS=-O1 -DSINTER_SANITIZE=address,undefined
    [ "$what" = all ] || [ "$what" = tsan ] &&
        run tsan 'threads' -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER=clang \
            -DCMAKE_C_FLAGS=-O1 -DSINTER_SANITIZE=thread
else
    echo "clang is not there: the sanitizers were left out"
fi
if [ "$what" = all ] && [ "$CI" = true ] && ls tests/fuzz/fuzz_*.c >/dev/null 2>&1; then
    echo "== fuzz"
    tools/fuzz.sh || broken=$((broken + 1))
fi
shopt -s nullglob # a build that failed leaves no results
/usr/bin/python3 tools/count_tests.py "$broken" "$out"/results/*.xml
