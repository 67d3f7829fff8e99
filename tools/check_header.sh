#!/bin/bash
# check_header.sh COMPILER - sinter.h stands alone as C11 and as C++17, without a warning.
. "$(dirname "$0")/source_files.sh"

strict="-Wall -Wextra -Wshadow -pedantic -Werror -fsyntax-only -Iinclude"
# shellcheck disable=SC2086
"$1" $strict -std=c11 -x c include/sinter.h || exit 1
command -v c++ >/dev/null || { echo "no C++ compiler: only C11 was checked"; exit 0; }
# shellcheck disable=SC2086
c++ $strict -std=c++17 -x c++ include/sinter.h
