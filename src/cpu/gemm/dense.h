/* dense.h - matrix products in float32, whatever operator asks for them: Gemm, MatMul, Linear and
 * their fused relatives all run here. */
#ifndef SNI_CPU_GEMM_DENSE_H
#define SNI_CPU_GEMM_DENSE_H

#include "cpu/gemm/emulated.h"
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/half.h"
#include "cpu/gemm/inner_product.h"
#include "cpu/core/cpu_ep.h"
#include "ops/math/activation.h"
#include "ops/matmul/matmul.h"

#include <stdatomic.h>

/* A right operand (k,n) that is part of the model, packed. */
typedef struct sni_dense {
    int64_t k, n;
    float *panels;                     /* NULL: another form is in their place */
    const uint8_t *even;               /* as in sni_gemm_f32 */
    sni_inner_product_b inner_product; /* no panels: there is none */
    sni_emulated_b emulated;           /* no k: there is none */
    sni_compressed_b compressed;
    sni_half_b half;                      /* no panels: there is none */
    bool round_left;                      /* as in sni_gemm_f32 */
    const struct sni_gemm_algorithm *use; /* what tuning has chosen; NULL: estimates decide */
    atomic_uint *row_passes;       /* of single rows, which go through the columns to and fro */
    atomic_uint_least64_t *chosen; /* sni_gemm_f32's, for rows that lie side by side */
} sni_dense;

/* True if input i is a float32 matrix that is part of the model. */
bool sni_dense_is_weight(const sni_choice *c, int i);

/* A constant input that is to be packed: (n,k) if transposed, times alpha. */
typedef struct sni_dense_weight {
    int input;
    bool transposed;
    float alpha;
} sni_dense_weight;

/* Packs it for the algorithm of least estimated cycles, of plain sums and of these families
 * (ops/core/numerics.h), or the one that tuning has chosen. *state is a sni_dense, freed with
 * free(). */
sn_status sni_dense_pack(const sni_choice *c, const sni_dense_weight *weight, uint32_t numerics,
                         void **state, sn_error *err);

/* The algorithms that it could be packed for; sni_impl.variants. */
int sni_dense_variants(const sni_choice *c, const sni_dense_weight *weight, uint32_t *out);

/* The families that a product of these shapes uses of a sni_dense; sni_impl.uses. */
uint32_t sni_dense_uses(const sni_choice *c, const void *state);

/* Packs a right operand for emulated products. `open` is asked where it comes from, unless a
 * compiled model brings it finished. */
typedef struct sni_dense_origin {
    int64_t k, n;
    sn_status (*open)(void *ctx, sni_emulated_source *s, sn_error *err);
    void *ctx;
} sni_dense_origin;
sn_status sni_dense_emulated(const sni_choice *c, const sni_dense_origin *from, sni_emulated_b *out,
                             sn_error *err);

/* sni_impl.packed_bytes of a state that is a sni_dense. */
uint64_t sni_dense_bytes(const void *state);

/* Sets B of a product, its n and k. */
void sni_dense_right(const sni_dense *w, sni_gemm_f32 *g);

/* Runs one product on the kernel's threads. */
sn_status sni_dense_run(sni_kernel *k, const sni_gemm_f32 *g);

/* Runs `count` products that differ in where their operands lie: `locate` sets a, b and c (and
 * fill_ctx) of product i in a copy of g. */
typedef void (*sni_dense_locate_fn)(const void *ctx, int64_t i, sni_gemm_f32 *g);
sn_status sni_dense_many(sni_kernel *k, const sni_gemm_f32 *g, int64_t count,
                         sni_dense_locate_fn locate, const void *ctx);

/* Runs a stack of products: c = act(scale * a b), laid out as `shape` says. */
sn_status sni_dense_stack(sni_kernel *k, const sni_matmul *shape, const float *a, const float *b,
                          float *c, float scale, const sni_epilogue *e);

#endif
