/* matmul.c - Gemm, MatMul, Linear and the fused forms of com.microsoft in float32. */
#include "cpu/gemm/dense.h"

#include "ops/nn/fused.h"

#include <stdlib.h>

static sn_status run_by_weight(sni_kernel *k, const sni_dense *w, const sni_epilogue *e) {
    const sni_tensor *a = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sni_gemm_f32 g = {.m = w->n ? y->count / w->n : 0,
                      .a = a->data,
                      .a_row = w->k,
                      .a_col = 1,
                      .c = y->data,
                      .c_row = w->n,
                      .may_stay_unpacked = true,
                      .epilogue = *e};
    sni_dense_right(w, &g);
    g.chosen = w->chosen;
    if (g.m == 1)
        g.backwards = atomic_fetch_add_explicit(w->row_passes, 1, memory_order_relaxed) & 1;
    return sni_dense_run(k, &g);
}

/* The families that operators of a file may use: those that keep every bit. What is allowed to
 * round otherwise is what the optimiser has made. */
static uint32_t exact(const sni_choice *c) {
    return c->numerics & SNI_NUMERICS_COMPRESSED;
}

static const float *floats_of(const sni_tensor *t) {
    return t ? t->data : NULL;
}

/* ---- Gemm and FusedGemm ---- */

/* C as something a product ends with: left out, or one row. */
static bool is_row_bias(const sni_choice *c, const sni_gemm_params *p) {
    if (!sni_choice_given(c, 2) || p->beta == 0) return true;
    if (p->beta != 1.0f || sni_choice_rank(c, 2) < 1) return false;
    const sni_type *t = c->in[2];
    int64_t n = c->constants[1]->tensor.dims[p->trans_b ? 0 : 1];
    return t->dims[t->rank - 1] == n && (t->rank == 1 || (t->rank == 2 && t->dims[0] == 1));
}

static bool gemm_accepts(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32) && sni_dense_is_weight(c, 1) &&
           is_row_bias(c, c->params);
}

static bool fused_gemm_accepts(const sni_choice *c) {
    const sni_fused_gemm_params *p = c->params;
    sni_epilogue e = {0};
    return gemm_accepts(c) && sni_cpu_act(&p->activation, &e.act, &e.p0, &e.p1);
}

static sn_status gemm_prepare(const sni_choice *c, void **state, sn_error *err) {
    const sni_gemm_params *p = c->params;
    return sni_dense_pack(c, &(sni_dense_weight){1, p->trans_b != 0, p->alpha}, exact(c), state,
                          err);
}

static sn_status run_gemm(sni_kernel *k, sni_epilogue e) {
    const sni_gemm_params *p = k->params;
    const sni_dense *w = k->state;
    const sni_tensor *a = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    bool transposed = p->trans_a != 0;
    e.column_bias = p->beta != 0 ? floats_of(sni_in(k, 2)) : NULL;
    if (!transposed) return run_by_weight(k, w, &e);
    sni_gemm_f32 g = {.m = y->dims[0],
                      .a = a->data,
                      .a_row = 1,
                      .a_col = a->dims[1],
                      .c = y->data,
                      .c_row = w->n,
                      .may_stay_unpacked = true,
                      .epilogue = e};
    sni_dense_right(w, &g);
    return sni_dense_run(k, &g);
}

static sn_status gemm_run(sni_kernel *k) {
    return run_gemm(k, (sni_epilogue){0});
}

static sn_status fused_gemm_run(sni_kernel *k) {
    const sni_fused_gemm_params *p = k->params;
    sni_epilogue e = {0};
    sni_cpu_act(&p->activation, &e.act, &e.p0, &e.p1);
    return run_gemm(k, e);
}

const sni_impl sni_cpu_gemm = {
    .name = "gemm_f32",
    .op = "Gemm",
    .accepts = gemm_accepts,
    .prepare = gemm_prepare,
    .release = free,
    .packs = 1u << 1,
    .packed_bytes = sni_dense_bytes,
    .run = gemm_run,
};

const sni_impl sni_cpu_fused_gemm = {
    .name = "gemm_f32",
    .op = "FusedGemm",
    .domain = "com.microsoft",
    .accepts = fused_gemm_accepts,
    .prepare = gemm_prepare,
    .release = free,
    .packs = 1u << 1,
    .packed_bytes = sni_dense_bytes,
    .run = fused_gemm_run,
};

/* ---- MatMul ---- */

static bool matmul_accepts(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32) && sni_choice_is(c, 1, SN_FLOAT32);
}

static sn_status matmul_prepare(const sni_choice *c, void **state, sn_error *err) {
    return sni_dense_is_weight(c, 1)
               ? sni_dense_pack(c, &(sni_dense_weight){1, false, 1}, exact(c), state, err)
               : SN_OK;
}

static sn_status matmul_run(sni_kernel *k) {
    const sni_dense *w = k->state;
    const sni_tensor *a = sni_in(k, 0), *b = sni_in(k, 1);
    sni_epilogue none = {0};
    if (w) return run_by_weight(k, w, &none);
    sni_matmul shape;
    sni_matmul_init(&shape, a, b);
    return sni_dense_stack(k, &shape, a->data, b->data, sni_out(k, 0)->data, 1, &none);
}

const sni_impl sni_cpu_matmul = {
    .name = "matmul_f32",
    .op = "MatMul",
    .accepts = matmul_accepts,
    .prepare = matmul_prepare,
    .release = free,
    .packs = 1u << 1,
    .packed_bytes = sni_dense_bytes,
    .run = matmul_run,
};

/* ---- FusedMatMul ---- */

/* A weight on the right that every row of the left is multiplied by. */
static bool has_plain_weight(const sni_choice *c) {
    const sni_fused_matmul_params *p = c->params;
    return sni_dense_is_weight(c, 1) && !p->trans_a && !p->batch_a && !p->batch_b;
}

static bool fused_matmul_accepts(const sni_choice *c) {
    const sni_fused_matmul_params *p = c->params;
    sni_epilogue e = {0};
    return matmul_accepts(c) && sni_cpu_act(&p->activation, &e.act, &e.p0, &e.p1);
}

static sn_status fused_matmul_prepare(const sni_choice *c, void **state, sn_error *err) {
    const sni_fused_matmul_params *p = c->params;
    if (!has_plain_weight(c)) return SN_OK;
    return sni_dense_pack(c, &(sni_dense_weight){1, p->trans_b != 0, p->alpha}, exact(c), state,
                          err);
}

static sn_status fused_matmul_run(sni_kernel *k) {
    const sni_fused_matmul_params *p = k->params;
    const sni_dense *w = k->state;
    const sni_tensor *a = sni_in(k, 0), *b = sni_in(k, 1);
    sni_epilogue e = {0};
    sni_cpu_act(&p->activation, &e.act, &e.p0, &e.p1);
    if (w) return run_by_weight(k, w, &e);
    sni_matmul shape;
    sni_matmul_transposed(&shape, a, (sni_transposition){p->trans_a != 0, p->batch_a != 0}, b,
                          (sni_transposition){p->trans_b != 0, p->batch_b != 0});
    return sni_dense_stack(k, &shape, a->data, b->data, sni_out(k, 0)->data, p->alpha, &e);
}

#define FUSED_MATMUL(symbol, type)       \
    const sni_impl symbol = {            \
        .name = "matmul_f32",            \
        .op = type,                      \
        .domain = "com.microsoft",       \
        .accepts = fused_matmul_accepts, \
        .prepare = fused_matmul_prepare, \
        .release = free,                 \
        .packs = 1u << 1,                \
        .packed_bytes = sni_dense_bytes, \
        .run = fused_matmul_run,         \
    }
FUSED_MATMUL(sni_cpu_fused_matmul, "FusedMatMul");
FUSED_MATMUL(sni_cpu_fused_matmul_activation, "FusedMatMulActivation");
FUSED_MATMUL(sni_cpu_transpose_matmul, "TransposeMatMul");

/* ---- Linear ---- */

static bool linear_accepts(const sni_choice *c) {
    const sni_linear_params *p = c->params;
    sni_epilogue e = {0};
    return matmul_accepts(c) && sni_cpu_act(&p->activation, &e.act, &e.p0, &e.p1);
}

static sni_dense_weight linear_weight(const sni_choice *c) {
    const sni_linear_params *p = c->params;
    return (sni_dense_weight){1, p->trans_w != 0, 1};
}

static uint32_t linear_variant(const sni_choice *c) {
    return c->variant;
}

/* A matrix that no file knows is never packed. */
static int linear_variants(const sni_choice *c, uint32_t *out) {
    sni_dense_weight w = linear_weight(c);
    out[0] = 0;
    return sni_dense_is_weight(c, 1) ? sni_dense_variants(c, &w, out) : 1;
}

static sn_status linear_prepare(const sni_choice *c, void **state, sn_error *err) {
    if (!sni_dense_is_weight(c, 1)) return SN_OK;
    sni_dense_weight w = linear_weight(c);
    return sni_dense_pack(c, &w, c->numerics, state, err);
}

static sn_status linear_run(sni_kernel *k) {
    const sni_linear_params *p = k->params;
    const sni_dense *w = k->state;
    const sni_tensor *a = sni_in(k, 0), *b = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    bool transposed = p->trans_w != 0;
    int64_t n = b->dims[!transposed];
    sni_epilogue e = {.column_bias = floats_of(sni_in(k, 2)),
                      .residual = floats_of(sni_in(k, 3)),
                      .residual_row = n};
    sni_cpu_act(&p->activation, &e.act, &e.p0, &e.p1);
    e.column_slopes = floats_of(sni_in(k, 4));
    if (e.column_slopes) e.act = SNI_ACT_LEAKY_RELU;
    if (w) return run_by_weight(k, w, &e);
    sni_gemm_f32 g = {.m = n ? y->count / n : 0,
                      .n = n,
                      .k = b->dims[transposed],
                      .a = a->data,
                      .a_row = b->dims[transposed],
                      .a_col = 1,
                      .b = b->data,
                      .b_row = transposed ? 1 : n,
                      .b_col = transposed ? b->dims[transposed] : 1,
                      .c = y->data,
                      .c_row = n,
                      .may_stay_unpacked = true,
                      .epilogue = e};
    return sni_dense_run(k, &g);
}

static uint32_t linear_uses(const sni_choice *c, const void *state) {
    return state ? sni_dense_uses(c, state) : 0;
}

const sni_impl sni_cpu_linear = {
    .name = "linear_f32",
    .op = "Linear",
    .domain = "ai.sinter",
    .accepts = linear_accepts,
    .variant = linear_variant,
    .variants = linear_variants,
    .uses = linear_uses,
    .prepare = linear_prepare,
    .release = free,
    .packs = 1u << 1,
    .packed_bytes = sni_dense_bytes,
    .run = linear_run,
};
