#!/bin/bash
# check_exports.sh LIBRARY - the shared library shows functions named sn_* and nothing else.
nm -D --defined-only "$1" | awk '
    $3 !~ /^sn_/ { print "exported: " $3; bad = 1 }
    $3 ~ /^sn_/ { good++ }
    END { if (good < 20) { print "only " good + 0 " functions exported"; bad = 1 } exit bad }'
