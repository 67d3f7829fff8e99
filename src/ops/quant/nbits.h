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

/* Attributes of MatMulNBits and MatMulBnb4. */
typedef struct sni_nbits_params {
    int64_t k, n, bits, block_size, accuracy_level, weight_prepacked;
    int64_t quant_type, trans_b, training_mode; /* MatMulBnb4 */
} sni_nbits_params;

/* The 4-bit types of bitsandbytes: FP4, whose highest bit is the sign, and NF4. */
extern const float sni_bnb4_codes[2][16];

/* Fails if one of g_idx's k numbers names none of the groups. */
sn_status sni_nbits_check_groups(const int32_t *group, int64_t k, int64_t groups, sn_error *err);

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
