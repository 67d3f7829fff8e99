#!/bin/bash
# check_length.sh - files of 800 lines and functions of 60 lines at most; in tests, which are mostly
# lists, 1000 and 90. Tables (*.def) are exempt.
. "$(dirname "$0")/source_files.sh"

source_files '*.c' '*.h' | xargs awk '
    FNR == 1 {
        start = body = 0
        test = FILENAME ~ /^tests\//
        lines = test ? 1000 : 800
        most = test ? 90 : 60
    }
    FNR == lines + 1 { print FILENAME ": more than " lines " lines"; bad = 1 }
    /^}/ {
        if (body && FNR - body - 1 > most) {
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
