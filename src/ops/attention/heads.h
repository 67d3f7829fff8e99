/* heads.h - the layout of the heads of queries, keys and values. */
#ifndef SNI_OPS_ATTENTION_HEADS_H
#define SNI_OPS_ATTENTION_HEADS_H

#include "ops/core/op.h"

/* Element (b, h, s, i) is at b * batch + h * head + s * row + i, in elements. */
typedef struct sni_heads {
    const void *data;
    int64_t batch, head, row;
} sni_heads;

/* (batches, heads, length, size), dense. */
static inline sni_heads sni_heads_outer(const void *data, int64_t heads, int64_t length,
                                        int64_t size) {
    return (sni_heads){data, heads * length * size, length * size, size};
}

/* (batches, length, width), of which a head is `size` elements. */
static inline sni_heads sni_heads_inner(const void *data, int64_t length, int64_t width,
                                        int64_t size) {
    return (sni_heads){data, length * width, size, width};
}

#endif
