#!/bin/bash
# install.sh BUILD - installs into a scratch folder, then builds and runs the example against
# what is installed: by pkg-config (shared and static) and by CMake's find_package.
. "$(dirname "$0")/../common.sh"
set -e

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$1" --prefix "$scratch/usr" >/dev/null
libdir=$(dirname "$(find "$scratch/usr" -name libsinter.a)")
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
cc=${CC:-cc}

expect() {
    "$@" demo/digits.onnx | tee "$scratch/said"
    grep -q "this is a 3" "$scratch/said"
}
# shellcheck disable=SC2046
$cc -std=c11 -Wall -Wextra -Werror examples/classify.c $(pkg-config --cflags --libs sinter) -o "$scratch/shared"
expect "$scratch/shared"
# shellcheck disable=SC2046
$cc -std=c11 examples/classify.c $(pkg-config --cflags sinter) "$libdir/libsinter.a" \
    $(pkg-config --static --libs sinter | sed 's/-lsinter//') -o "$scratch/static"
LD_LIBRARY_PATH='' expect "$scratch/static"

mkdir "$scratch/user"
cat >"$scratch/user/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(sinter REQUIRED)
add_executable(classify $top/examples/classify.c)
target_link_libraries(classify sinter::shared)
CMAKE
cmake -S "$scratch/user" -B "$scratch/user/build" -DCMAKE_PREFIX_PATH="$scratch/usr" >/dev/null
cmake --build "$scratch/user/build" >/dev/null
expect "$scratch/user/build/classify"
"$scratch/usr/bin/sinter" --version
