#!/bin/bash
# check_exports.sh LIBRARY - the shared library shows functions named sn_* and nothing else, and needs
# the C library and nothing else.
set -o pipefail
nm -D --defined-only "$1" | awk '
    $3 !~ /^sn_/ { print "exported: " $3; bad = 1 }
    $3 ~ /^sn_/ { good++ }
    END { if (good < 20) { print "only " good + 0 " functions exported"; bad = 1 } exit bad }' || exit 1
readelf -d "$1" | awk -F '[][]' '
    /NEEDED/ && $2 !~ /^(libc|libm|libpthread|ld-linux[^.]*)\.so/ { print "needs " $2; bad = 1 }
    END { exit bad }'
