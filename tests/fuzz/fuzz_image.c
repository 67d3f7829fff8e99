/* fuzz_image.c - any bytes as a picture. */
#include "codecs/image.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sn_status begin(void *ctx, int64_t width, int64_t height, uint8_t **rgb, sn_error *err) {
    uint8_t **memory = ctx;
    size_t n = (size_t)(width * height) * 3;
    if (n > 16 << 20) return sni_fail(err, SN_LIMIT, "%zu bytes", n);
    *memory = *rgb = malloc(n);
    return *rgb ? SN_OK : sni_fail_memory(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *memory = NULL;
    sni_budget budget = {.limit = 64 << 20};
    sni_image_target target = {begin, &memory, &budget};
    sn_error err;
    if (sni_image_decode(data, size, &target, &err) == SN_OK && !memory) abort();
    if (atomic_load(&budget.used) != 0) abort();
    free(memory);
    return 0;
}
