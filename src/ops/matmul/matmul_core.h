/* matmul_core.h - the one matrix product of the reference kernels: Gemm, MatMul, convolutions,
 * recurrent networks and attention all come here. */
#ifndef SNI_OPS_MATMUL_MATMUL_CORE_H
#define SNI_OPS_MATMUL_MATMUL_CORE_H

#include "ops/core/op.h"

/* Writes rows [k0, k0 + rows) and columns [n0, n0 + cols) of the right operand of product number
 * `product` to `panel`, whose rows are `stride` elements apart. Called from many threads. */
typedef void (*sni_panel_fn)(const void *ctx, int64_t product, int64_t k0, int64_t rows, int64_t n0,
                             int64_t cols, void *panel, int64_t stride);

/* C = A B, or C += A B: A is (m,k), B is (k,n), C is (m,n). Strides are in elements. Sums run over
 * k in blocks whose size is fixed, so the result does not depend on the number of threads. */
typedef struct sni_gemm {
    int64_t m, n, k;
    const void *a;
    int64_t a_row, a_col;
    const void *b; /* not used when `fill` is set */
    int64_t b_row, b_col;
    sni_panel_fn fill; /* makes B panel by panel instead of reading it from memory */
    const void *fill_ctx;
    int64_t product; /* for `fill`; set by sni_gemm_batch */
    void *c;
    int64_t c_row; /* columns of C are contiguous */
    bool add;      /* C += instead of C = */
} sni_gemm;

/* Parts of a product for one element type; integers of either sign are the unsigned ones. */
typedef struct sni_gemm_core {
    /* Rows [m0, m1) and columns [n0, n0 + cols) of C. */
    void (*block)(const sni_gemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t cols);
    /* One row of C over columns [n0, n1), straight from B. */
    void (*row)(const sni_gemm *g, int64_t i, int64_t n0, int64_t n1);
    void (*zero)(const sni_gemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1);
} sni_gemm_core;

/* `dtype` is FLOAT32, FLOAT64, INT32, UINT32, INT64 or UINT64; integers wrap. Uses the kernel's
 * threads; fails only when the run is to stop. */
sn_status sni_gemm_run(sni_kernel *k, sn_dtype dtype, const sni_gemm *g);

/* The same product `count` times over operands whose starts are given by `locate`, which sets
 * a, b and c in a copy of `g` for product i. */
typedef void (*sni_gemm_locate_fn)(const void *ctx, int64_t i, sni_gemm *g);
sn_status sni_gemm_batch(sni_kernel *k, sn_dtype dtype, const sni_gemm *g, int64_t count,
                         sni_gemm_locate_fn locate, const void *ctx);

#endif
