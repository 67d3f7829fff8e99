/* external.c - where the contents of a weight lie in a file. */
#include "ort/ort.h"

#include <stdlib.h>

struct OrtExternalInitializerInfo {
    char *path;
    int64_t offset;
    size_t size;
};

OrtStatusPtr ort_CreateExternalInitializerInfo(const char *filepath, int64_t file_offset,
                                               size_t byte_size, OrtExternalInitializerInfo **out) {
    NEED(filepath);
    NEED(out);
    OrtExternalInitializerInfo *info = calloc(1, sizeof *info);
    if (!info || !ort_replace_text(&info->path, filepath)) {
        free(info);
        return ort_fail_memory();
    }
    info->offset = file_offset;
    info->size = byte_size;
    *out = info;
    return NULL;
}

void ort_ReleaseExternalInitializerInfo(OrtExternalInitializerInfo *input) {
    if (!input) return;
    free(input->path);
    free(input);
}

const char *ort_ExternalInitializerInfo_GetFilePath(const OrtExternalInitializerInfo *info) {
    return info ? info->path : "";
}

int64_t ort_ExternalInitializerInfo_GetFileOffset(const OrtExternalInitializerInfo *info) {
    return info ? info->offset : 0;
}

size_t ort_ExternalInitializerInfo_GetByteSize(const OrtExternalInitializerInfo *info) {
    return info ? info->size : 0;
}
