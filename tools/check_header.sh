#!/bin/bash
# check_header.sh COMPILER - headers for other programs stand alone as C11 and as C++17, without a
# warning.
. "$(dirname "$0")/source_files.sh"

strict="-Wall -Wextra -Wshadow -pedantic -Werror -fsyntax-only -Iinclude"
headers="include/*.h src/ort/ort_abi.h"
for header in $headers; do
    # shellcheck disable=SC2086
    "$1" $strict -std=c11 -x c "$header" || exit 1
done
command -v c++ >/dev/null || { echo "no C++ compiler: only C11 was checked"; exit 0; }
for header in $headers; do
    # shellcheck disable=SC2086
    c++ $strict -std=c++17 -x c++ "$header" || exit 1
done
