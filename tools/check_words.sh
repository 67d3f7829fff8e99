#!/bin/bash
# check_words.sh - nothing unfinished is left in the source, and no path of one machine.
. "$(dirname "$0")/source_files.sh"

words='TODO|FIXME|HACK|XXX|not implemented yet|for now'
paths='/(root|work|home/[a-z]+|Users)/'
source_files '*.c' '*.h' '*.def' '*.py' '*.sh' '*.md' '*.txt' '*.cmake' '*.in' Makefile run |
    grep -v '^tools/check_words.sh$' | xargs grep -nE "\\b($words)\\b|(^|[^A-Za-z0-9_.}])$paths"
[ $? -ne 0 ]
