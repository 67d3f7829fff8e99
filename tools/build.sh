#!/bin/bash
# build.sh release|asan|tsan [TARGET...] - configures and builds one kind in build-test/KIND.
#   release  as it is shipped, with tests
#   asan     with the address and undefined sanitizers, and instrumented for the fuzzers
#   tsan     with the thread sanitizer
# Says nothing when it succeeds; what the compilers said is in build-test/KIND.log.
cd "$(dirname "$0")/.." || exit 1
kind=$1
folder=build-test/$kind
log=$folder.log
shift
case "$kind" in
release) options=(-DCMAKE_BUILD_TYPE=Release) ;;
asan) options=(-DSINTER_SANITIZE=address,undefined -DSINTER_FUZZ=ON) ;;
tsan) options=(-DSINTER_SANITIZE=thread) ;;
*) echo "usage: $0 release|asan|tsan [TARGET...]" >&2; exit 2 ;;
esac
[ "$kind" = release ] ||
    options+=(-DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER=clang -DCMAKE_C_FLAGS=-O1)
generator="Unix Makefiles"
command -v ninja >/dev/null && generator=Ninja
command -v ccache >/dev/null && options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)

mkdir -p build-test
if ! { cmake -S . -B "$folder" -G "$generator" -DSINTER_WERROR=ON "${options[@]}" &&
    cmake --build "$folder" -j "${JOBS:-$(nproc 2>/dev/null || echo 2)}" ${1:+--target "$@"}; } >"$log" 2>&1; then
    grep -E 'error|warning|FAILED|undefined' "$log" | head -40
    echo "the $kind build failed; see $log"
    exit 1
fi
