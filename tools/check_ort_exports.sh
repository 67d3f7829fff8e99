#!/bin/bash
# check_ort_exports.sh LIBRARY - libonnxruntime.so.1 shows its two functions and nothing else, without
# versions, has the name that clients ask for, stays loaded, and needs the C library alone.
bad=0
names=$(nm -D --defined-only "$1" | awk '{ print $3 }' | sort | tr '\n' ' ')
[ "$names" = "OrtGetApiBase OrtSessionOptionsAppendExecutionProvider_CPU " ] ||
    { echo "exported: $names"; bad=1; }
facts=$(readelf -dV "$1")
grep -q 'SONAME.*\[libonnxruntime\.so\.1\]' <<<"$facts" || { echo "its SONAME is another"; bad=1; }
grep -q 'NODELETE' <<<"$facts" || { echo "it can be unloaded"; bad=1; }
grep -q 'Version definition' <<<"$facts" && { echo "its symbols have versions"; bad=1; }
grep NEEDED <<<"$facts" | grep -vE '\[(libc|libm|libpthread|libdl|ld-linux[^.]*)\.so' && bad=1
exit $bad
