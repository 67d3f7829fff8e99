#!/bin/bash
# check_length.sh - files of 800 lines and functions of 60 lines at most. Tables (*.def) are exempt.
. "$(dirname "$0")/source_files.sh"

source_files '*.c' '*.h' | xargs awk '
    FNR == 1 { start = body = 0 }
    FNR == 801 { print FILENAME ": more than 800 lines"; bad = 1 }
    /^}/ {
        if (body && FNR - body - 1 > 60) {
            print FILENAME ":" start ": a function of " FNR - body - 1 " lines"; bad = 1
        }
        start = body = 0
    }
    /^[A-Za-z_]/ && !body { start = FNR; head = "" }
    start && !body {
        head = head $0
        if ($0 ~ /\{$/) { if (head ~ /\(/ && head !~ /=/) body = FNR; else start = 0 }
        if ($0 ~ /;$/) start = 0
    }
    END { exit bad }'
