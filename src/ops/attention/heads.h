/* heads.h - the layout of the heads of queries, keys and values. */
#ifndef SNI_OPS_ATTENTION_HEADS_H
#define SNI_OPS_ATTENTION_HEADS_H

#include "ops/core/op.h"

/* Element (b, h, s, i) is at b * batch + h * head + s * row + i, in elements.
 *
 * Keys and values that are read from a cache may be stored in another type than their attention is
 * computed in: float16, bfloat16, int8, or uint8, whose bytes are two neighbours of 4 bits each,
 * the first in the lower half, plus 8; strides are then bytes. Integers are multiplied by `scale`.
 */
typedef struct sni_heads {
    const void *data;
    int64_t batch, head, row;
    sn_dtype stored;    /* SN_UNDEFINED: the type that is computed with */
    const float *scale; /* (heads, size) of int8 and uint8; NULL: others */
    /* Row s of batch b is row s % page of page pages[b * batch_pages + s / page]; NULL: rows as
     * they come. */
    const int32_t *pages;
    int64_t page, batch_pages;
} sni_heads;

/* (batches, heads, length, size), dense. */
static inline sni_heads sni_heads_outer(const void *data, int64_t heads, int64_t length,
                                        int64_t size) {
    return (sni_heads){
        .data = data, .batch = heads * length * size, .head = length * size, .row = size};
}

/* (batches, length, width), of which a head is `size` elements. */
static inline sni_heads sni_heads_inner(const void *data, int64_t length, int64_t width,
                                        int64_t size) {
    return (sni_heads){.data = data, .batch = length * width, .head = size, .row = width};
}

/* Position of row s of batch b's head h, in elements. */
static inline int64_t sni_heads_at(const sni_heads *h, int64_t b, int64_t head, int64_t s) {
    if (h->pages) s = (int64_t)h->pages[b * h->batch_pages + s / h->page] * h->page + s % h->page;
    return b * h->batch + head * h->head + s * h->row;
}

/* True if rows are read as they stand. */
static inline bool sni_heads_plain(const sni_heads *h) {
    return !h->stored && !h->pages;
}

#endif
