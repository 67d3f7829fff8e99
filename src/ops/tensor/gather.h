/* gather.h - rows by their places, and attributes of GatherND. */
#ifndef SNI_OPS_TENSOR_GATHER_H
#define SNI_OPS_TENSOR_GATHER_H

#include <stddef.h>
#include <stdint.h>

/* Rows of `row` bytes copied from places that are known by now: row i of the output comes from
 * byte from[i % period] + (i / period) * step of `src`. */
typedef struct sni_rows {
    const unsigned char *src;
    unsigned char *dst;
    const int64_t *from;
    int64_t period, step;
    size_t row;
} sni_rows;

/* Copies the first `count` of them. */
void sni_copy_rows(int threads, const sni_rows *rows, int64_t count);

typedef struct sni_gather_nd_params {
    int64_t batch_dims;
} sni_gather_nd_params;

#endif
