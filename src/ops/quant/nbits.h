/* nbits.h - matrices whose elements are stored in 2, 4 or 8 bits with a scale for each block. */
#ifndef SNI_OPS_QUANT_NBITS_H
#define SNI_OPS_QUANT_NBITS_H

#include "ops/core/op.h"

/* A matrix of n rows and k columns: element (i, j) is (q - zero) * scale, where q is number j of
 * row i's packed elements (low bits first) and zero and scale are those of block j / block (or
 * group[j]) of that row. */
typedef struct sni_nbits {
    int bits;
    int64_t n, k, block, blocks; /* `blocks` of each row */
    int64_t row_bytes;
    const uint8_t *q;     /* (n, row_bytes) */
    const float *scales;  /* (n, blocks) */
    const float *zeros;   /* (n, blocks); NULL: 2^(bits - 1) */
    const int32_t *group; /* (k), each below `blocks`; NULL: by position */
} sni_nbits;

/* Number i of packed elements. */
static inline int sni_packed_at(const uint8_t *q, int bits, int64_t i) {
    int per_byte = 8 / bits;
    return q[i / per_byte] >> (int)(i % per_byte) * bits & ((1 << bits) - 1);
}

/* Packed numbers of `rows` rows of `columns`, each row starting on a byte, as floats in scratch. */
sn_status sni_unpacked(sni_kernel *k, const uint8_t *q, int bits, int64_t rows, int64_t columns,
                       float **out);

/* y (m, w->n) = x (m, w->k) times the transpose of w. With `add`, y += that. */
sn_status sni_nbits_multiply(sni_kernel *k, const sni_nbits *w, int64_t m, const float *x, float *y,
                             bool add);

#endif
