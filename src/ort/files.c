/* files.c - whole files in memory. */
#include "ort/graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

OrtStatus *ort_file_read(const char *path, ort_file_bytes *out) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return ort_fail(errno == ENOENT ? ORT_NO_SUCHFILE : ORT_FAIL, "'%s' cannot be read: %s",
                        path, strerror(errno));
    ort_sink all = {0};
    char piece[65536];
    size_t n;
    bool good = true;
    while (good && (n = fread(piece, 1, sizeof piece, f)) > 0)
        good = ort_sink_write(&all, piece, n) == 0;
    bool failed = ferror(f) != 0;
    fclose(f);
    if (good && !failed) {
        *out = (ort_file_bytes){all.bytes, all.size};
        return NULL;
    }
    free(all.bytes);
    return good ? ort_fail(ORT_FAIL, "'%s' cannot be read", path) : ort_fail_memory();
}

void ort_file_free(ort_file_bytes *file) {
    free(file->p);
    *file = (ort_file_bytes){0};
}
