#!/bin/bash
# test.sh all|check|release|clients|asan|tsan - builds and runs the tests; the last line counts them.
#   check    checks of the source, unit, operator and conformance tests of the release build: a minute
#            after a small change; without lower tiers, the program and the server
#   release  everything, as it is shipped
#   clients  of that, what other languages and ONNX Runtime's clients do
#   asan     unit, operator and conformance tests with the address and undefined sanitizers
#   tsan     what runs threads, with the thread sanitizer
#   all      release, asan and tsan, and with CI=true the fuzzers
# Build folders and generated data stay in build-test/ for the next time. With CI=true whatever is
# missing is a failure; otherwise tests that need it are skipped.
cd "$(dirname "$0")/.." || exit 1
what=${1:-all}
out=build-test
export SINTER_TEST_DATA=${SINTER_TEST_DATA:-$PWD/$out/data}
jobs=$(nproc 2>/dev/null || echo 2)
mkdir -p "$out/results" "$SINTER_TEST_DATA"
rm -f "$out"/results/*.xml
broken=0

# install JOB WHAT - its Debian packages; WHAT is skipped without them, except in CI.
install() {
    tools/install-deps.sh "$1" && return
    [ "$CI" = true ] && { echo "cannot install what the tests need ($1)"; exit 1; }
    echo "not all is there: $2 are skipped"
}
tools/install-deps.sh build || exit 1
tools/install-deps.sh test || exit 1
if [ "$what" != check ]; then
    install export "tests that export models"
    install clients "examples in other languages and pages in a browser"
fi

# programs LABEL... - the targets that tests with these labels need.
programs() {
    printf 'programs_%s ' "$@"
}

# tests KIND LABELS [CTEST_OPTION...] - runs the tests of a build with these labels.
tests() {
    local kind=$1 labels=$2
    shift 2
    echo "== $kind"
    (cd "$out/$kind" && ctest -L "$labels" -j "$jobs" --timeout 1200 --output-on-failure \
        --test-output-size-passed 2000000 --test-output-size-failed 2000000 "$@" \
        --output-junit "$PWD/../results/$kind.xml")
}

# begin_build KIND [TARGET...] - builds beside the tests that run; finish_build waits for it.
begin_build() {
    nice -n 10 tools/build.sh "$@" &
    building=$!
}

finish_build() {
    wait "$building"
}

# tests_if STATUS KIND LABELS [CTEST_OPTION...] - the tests of a build, which failed unless STATUS is 0.
tests_if() {
    if [ "$1" = 0 ]; then tests "${@:2}"; else broken=$((broken + 1)); fi
}

run_one() { # KIND LABELS CTEST_OPTIONS TARGET...
    tools/build.sh "$1" "${@:4}"
    # shellcheck disable=SC2086
    tests_if $? "$1" "$2" $3
}

# Each build is made while the tests of the one before run: their waiting costs nothing then.
run_all() {
    local built sanitizers=yes
    [ "$CI" = true ] || command -v clang >/dev/null || sanitizers=no
    tools/build.sh release
    built=$?
    # shellcheck disable=SC2046
    [ $sanitizers = yes ] && begin_build asan $(programs unit ops conformance attack) fuzzers
    tests_if $built release .
    [ $sanitizers = no ] && { echo "clang is not there: the sanitizers were left out"; return; }
    finish_build
    built=$?
    # shellcheck disable=SC2046
    begin_build tsan $(programs threads)
    tests_if $built asan 'unit|ops|conformance|attack'
    finish_build
    tests_if $? tsan threads
    if [ "$CI" = true ] && [ $built = 0 ]; then
        echo "== fuzz"
        tools/fuzz.sh || broken=$((broken + 1))
    fi
}

# shellcheck disable=SC2046
case "$what" in
all) run_all ;;
check) run_one release 'quick|unit|ops|conformance' '-LE tier|cli|server' $(programs quick unit ops conformance) ;;
release) run_one release . '' ;;
clients) run_one release clients '' ;;
asan) run_one asan 'unit|ops|conformance|attack' '' $(programs unit ops conformance attack) ;;
tsan) run_one tsan threads '' $(programs threads) ;;
*) echo "usage: $0 all|check|release|clients|asan|tsan" >&2; exit 2 ;;
esac
# Which functions of ONNX Runtime's table its clients called; their tests fail if one is not there.
[ -f "$out/results/release.xml" ] &&
    grep -hoE '[^<>]+ called [0-9]+ functions: [A-Za-z_0-9 ]+' "$out/results/release.xml" | fold -s -w 110
shopt -s nullglob # a build that failed leaves no results
/usr/bin/python3 tests/count.py "$broken" "$out"/results/*.xml
