/* dense_pack.h - constant right operands of matrix products: the forms in which the algorithms of
 * matmul_algorithms.c want them, and packing them so. */
#ifndef SNI_CPU_GEMM_DENSE_PACK_H
#define SNI_CPU_GEMM_DENSE_PACK_H

#include "cpu/gemm/dense.h"

/* A constant matrix that is to be packed. */
typedef struct sni_dense_request {
    const sni_choice *c;
    int input;
    bool transposed; /* it is (n,k) */
    float alpha;     /* a factor of all of it */
    int64_t k, n;
    int64_t rows;      /* of the left operand as far as the graph knows; INT64_MAX: any number */
    int64_t few_rows;  /* the fewest that are worth thinking of */
    uint32_t numerics; /* families that it may be packed for */
    const sni_borrow *borrow; /* NULL: not borrowed yet */
} sni_dense_request;

/* sni_gemm_algorithm.can_pack, .pack_bytes and .pack of the rows. */
bool sni_dense_can_pack_any(sni_dense_request *r);
size_t sni_dense_float_bytes(int64_t k, int64_t n);
sn_status sni_dense_pack_floats(sni_dense_request *r, sni_dense *out, sn_error *err);
sn_status sni_dense_pack_strassen(sni_dense_request *r, sni_dense *out, sn_error *err);
sn_status sni_dense_pack_inner_product(sni_dense_request *r, sni_dense *out, sn_error *err);
size_t sni_dense_emulated_bytes(int64_t k, int64_t n);
sn_status sni_dense_pack_emulated(sni_dense_request *r, sni_dense *out, sn_error *err);
bool sni_dense_can_compress(sni_dense_request *r);
bool sni_dense_can_halve(sni_dense_request *r);
size_t sni_dense_half_bytes(int64_t k, int64_t n);
sn_status sni_dense_pack_half(sni_dense_request *r, sni_dense *out, sn_error *err);
sn_status sni_dense_pack_compressed(sni_dense_request *r, sni_dense *out, sn_error *err);

#endif
