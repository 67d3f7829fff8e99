#!/bin/bash
# check_format.sh - C files are as clang-format writes them. Versions differ: only 14 is asked.
. "$(dirname "$0")/source_files.sh"

formatter=$(command -v clang-format-14 || command -v clang-format) || exit 77
"$formatter" --version | grep -q 'version 14\.' || exit 77
source_files '*.c' '*.h' | xargs "$formatter" --dry-run -Werror
