/* kv_rows.c - rows of keys or values as floats. */
#include "cpu/attention/kv_rows.h"

#include "cpu/attention/attend.h"
#include "cpu/core/kernels.h"

#include <string.h>

const float *sni_cpu_kv_rows(const sni_kv_rows *r, int64_t at, int64_t n, int64_t *step) {
    const sni_heads *h = r->heads;
    const sni_attend_kernels *kernels = sni_cpu_kernels_get()->attend;
    const size_t width = sni_dtype_width(h->stored ? h->stored : SN_FLOAT32);
    const float *scale = h->scale ? h->scale + r->head * r->size : NULL;
    *step = h->row;
    if (sni_heads_plain(h)) return (const float *)h->data + sni_heads_at(h, r->b, r->head, at);
    *step = r->size;
    for (int64_t i = 0; i < n; i++) {
        const unsigned char *row = h->data;
        row += sni_heads_at(h, r->b, r->head, at + i) * (int64_t)width;
        if (h->stored)
            kernels->load_stored(h->stored, row, scale, r->size, r->room + i * r->size);
        else if (r->size)
            memcpy(r->room + i * r->size, row, (size_t)r->size * sizeof *r->room);
    }
    return r->room;
}
