/* qmatmul.c - matrix products of bytes with constant weights: QLinearMatMul, QGemm, MatMulInteger,
 * MatMulIntegerToFloat and DynamicQuantizeMatMul. */
#include "cpu/int8/integer.h"
#include "ops/matmul/matmul.h"
#include "ops/quant/qgemm.h"
#include "ops/quant/quant.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <stdlib.h>

/* The indices of the operator's inputs; -1: it has none. */
typedef struct places {
    int a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, bias;
} places;

static const places linear = {0, 1, 2, 3, 4, 5, 6, 7, -1};
static const places gemm = {0, 1, 2, 3, 4, 5, 7, 8, 6};
static const places integer = {0, -1, 2, 1, -1, 3, -1, -1, -1};
static const places to_float = {0, 2, 4, 1, 3, 5, -1, -1, 6};
static const places dynamic = {0, -1, -1, 1, 2, 3, -1, -1, 4};

/* ---- Weights ---- */

static bool is_scale(const sni_choice *c, int i) {
    return !sni_choice_given(c, i) || sni_choice_is(c, i, SN_FLOAT32);
}

/* True if B is a constant matrix, with one scale and zero point or one per column. */
static bool accepts(const sni_choice *c, const places *p, bool transposed) {
    if (p->b >= c->n_in || !sni_int_is_bytes(c, p->b) || !c->constants[p->b]) return false;
    const sni_tensor *b = &c->constants[p->b]->tensor;
    if (b->rank != 2) return false;
    int64_t n = b->dims[!transposed];
    if (!sni_int_is_constant(c, p->b_zero, n)) return false;
    if (p->a_zero >= 0 && (!sni_int_is_bytes(c, p->a) || !sni_int_is_single(c, p->a_zero)))
        return false;
    if (p->a_scale >= 0 && (!is_scale(c, p->a_scale) || !sni_int_is_single(c, p->a_scale)))
        return false;
    if (p->b_scale >= 0 && (!is_scale(c, p->b_scale) || !sni_int_is_constant(c, p->b_scale, n)))
        return false;
    return p->y_scale < 0 || (is_scale(c, p->y_scale) && sni_int_is_single(c, p->y_scale) &&
                              sni_int_is_single(c, p->y_zero));
}

typedef struct weight_view {
    const uint8_t *b;
    uint8_t flip;
    int64_t k, k_step, n_step;
} weight_view;

static int weight_at(const void *ctx, int64_t i, int64_t p) {
    const weight_view *v = ctx;
    return p < v->k ? (int8_t)(v->b[i * v->n_step + p * v->k_step] ^ v->flip) : 0;
}

static sn_status prepare(const sni_choice *c, const places *at, bool transposed, void **state,
                         sn_error *err) {
    const sni_tensor *b = &c->constants[at->b]->tensor;
    sni_int_weights w = {.n = b->dims[!transposed], .k = b->dims[transposed]};
    bool filled;
    w.units = sni_int_units(w.k);
    w.size = sni_igemm_packed_b_size(w.n, w.units);
    SN_TRY(sni_int_weights_alloc(c, at->b, at->b_zero, 1, &w, &filled, err));
    if (!filled && b->count) {
        SN_TRY(sni_cpu_weight(c, at->b, &b, err));
        weight_view v = {b->data, sni_int_flip(b->dtype, true), w.k, transposed ? 1 : w.n,
                         transposed ? w.k : 1};
        sni_igemm_pack_b(w.n, w.units, weight_at, &v, w.panels);
        for (int64_t i = 0; i < w.n; i++)
            for (int64_t p = 0; p < w.k; p++) w.sums[i] += weight_at(&v, i, p);
    }
    return sni_cpu_keep(&w, sizeof w, state, err);
}

/* ---- Running ---- */

/* One product by packed weights. */
typedef struct call {
    const uint8_t *a;
    sn_dtype a_type;
    int32_t a_zero;
    float a_scale, y_scale;
    const sni_tensor *b_scale; /* NULL: the result is the sums */
    const int32_t *added;      /* for each column; NULL: nothing */
    const float *bias;         /* FLOATS; NULL: none */
    sni_int_kind kind;
    float zero, low;
} call;

static sn_status row_sums(sni_kernel *k, const call *c, const sni_int_weights *w, int64_t m,
                          const int32_t **out) {
    const sni_int_kernels *kernels = sni_int_kernels_get();
    uint8_t flip = sni_int_flip(c->a_type, false);
    void *sums;
    SN_TRY(sni_scratch_array(k, m, sizeof(int32_t), &sums));
    for (int64_t i = 0; i < m; i++)
        ((int32_t *)sums)[i] = (int32_t)(uint32_t)kernels->byte_sum(c->a + i * w->k, w->k, flip);
    *out = sums;
    return SN_OK;
}

static sn_status run_packed(sni_kernel *k, const call *c) {
    const sni_int_weights *w = k->state;
    sni_tensor *y = sni_out(k, 0);
    void *adds, *zeros = NULL, *scales = NULL;
    if (y->count == 0) return SN_OK;
    if (w->k == 0) return k->node->op->ref(k);
    sni_igemm g = {.m = y->count / w->n,
                   .n = w->n,
                   .units = w->units,
                   .a = c->a,
                   .a_row = w->k,
                   .a_k = w->k,
                   .a_flip = sni_int_flip(c->a_type, false),
                   .packed_b = w->panels,
                   .kind = c->kind,
                   .col_bias = c->bias,
                   .zero = c->zero,
                   .low = c->low,
                   .c = y->data,
                   .c_row = w->n};
    SN_TRY(sni_scratch_array(k, w->n, sizeof(int32_t), &adds));
    sni_int_corrections(w, sni_int_moved(c->a_zero, c->a_type, false), c->added, adds);
    g.col_add = adds;
    if (w->has_zero) {
        SN_TRY(sni_scratch_array(k, w->n, sizeof(int32_t), &zeros));
        for (int64_t i = 0; i < w->n; i++) ((int32_t *)zeros)[i] = sni_int_less(0, w->zeros[i]);
        g.col_mul = zeros;
        SN_TRY(row_sums(k, c, w, g.m, &g.row_mul));
    }
    if (c->b_scale) {
        SN_TRY(sni_scratch_array(k, w->n, sizeof(float), &scales));
        sni_int_scales(c->a_scale, c->b_scale, c->y_scale, w->n, scales);
        g.col_scale = scales;
    }
    size_t size = sni_igemm_scratch_size(&g, k->threads);
    void *scratch = size ? sni_scratch(k, size) : NULL;
    if (size && !scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    sni_int_watch(k, &g, 1);
    sni_igemm_run(&g, k->threads, scratch);
    return g.stop ? sni_poll(k) : SN_OK;
}

static call call_of(sni_kernel *k, const places *at) {
    const sni_tensor *a = sni_in(k, at->a);
    call c = {.a = a->data, .a_type = a->dtype, .a_scale = 1, .y_scale = 1};
    if (at->a_zero >= 0) c.a_zero = sni_zero_of(sni_in(k, at->a_zero));
    if (at->a_scale >= 0) c.a_scale = *(const float *)sni_in(k, at->a_scale)->data;
    if (at->b_scale >= 0) c.b_scale = sni_in(k, at->b_scale);
    c.kind = c.b_scale ? SNI_INT_FLOATS : SNI_INT_SUMS;
    if (at->y_scale >= 0 && sni_in(k, at->y_scale)) {
        c.y_scale = *(const float *)sni_in(k, at->y_scale)->data;
        c.zero = (float)sni_zero_of(sni_in(k, at->y_zero));
        c.low = sni_out(k, 0)->dtype == SN_INT8 ? -128 : 0;
        c.kind = SNI_INT_BYTES;
    }
    return c;
}

/* ---- The operators ---- */

static bool linear_accepts(const sni_choice *c) {
    return accepts(c, &linear, false);
}

static sn_status linear_prepare(const sni_choice *c, void **state, sn_error *err) {
    return prepare(c, &linear, false, state, err);
}

static sn_status linear_run(sni_kernel *k) {
    call c = call_of(k, &linear);
    return run_packed(k, &c);
}

static bool integer_accepts(const sni_choice *c) {
    return accepts(c, &integer, false);
}

static sn_status integer_prepare(const sni_choice *c, void **state, sn_error *err) {
    return prepare(c, &integer, false, state, err);
}

static sn_status integer_run(sni_kernel *k) {
    call c = call_of(k, &integer);
    return run_packed(k, &c);
}

static bool is_bias(const sni_choice *c, const places *at) {
    return !sni_choice_given(c, at->bias) || sni_choice_is(c, at->bias, SN_FLOAT32);
}

static bool to_float_accepts(const sni_choice *c) {
    return accepts(c, &to_float, false) && is_bias(c, &to_float);
}

static sn_status to_float_prepare(const sni_choice *c, void **state, sn_error *err) {
    return prepare(c, &to_float, false, state, err);
}

/* A bias of the wrong shape is left to the reference kernel, which fails with a message. */
static sn_status run_floats(sni_kernel *k, const places *at, call *c) {
    const sni_int_weights *w = k->state;
    const sni_tensor *bias = sni_in(k, at->bias);
    if (bias && (bias->rank != 1 || bias->count != w->n)) return k->node->op->ref(k);
    c->bias = bias ? bias->data : NULL;
    return run_packed(k, c);
}

static sn_status to_float_run(sni_kernel *k) {
    call c = call_of(k, &to_float);
    return run_floats(k, &to_float, &c);
}

static bool dynamic_accepts(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32) && accepts(c, &dynamic, false) && is_bias(c, &dynamic);
}

static sn_status dynamic_prepare(const sni_choice *c, void **state, sn_error *err) {
    return prepare(c, &dynamic, false, state, err);
}

static sn_status dynamic_run(sni_kernel *k) {
    const sni_tensor *a = sni_in(k, 0);
    void *bytes;
    SN_TRY(sni_scratch_array(k, a->count, 1, &bytes));
    sni_dynamic_scale s = sni_int_dynamic_scale(k, a);
    sni_int_quantize(k, a, s.scale, s.zero, 0, bytes);
    call c = call_of(k, &dynamic);
    c.a = bytes;
    c.a_type = SN_UINT8;
    c.a_zero = (int32_t)s.zero;
    c.a_scale = s.scale;
    return run_floats(k, &dynamic, &c);
}

static bool gemm_accepts(const sni_choice *c) {
    const sni_qgemm_params *p = c->params;
    return !p->trans_a && accepts(c, &gemm, p->trans_b != 0);
}

static sn_status gemm_prepare(const sni_choice *c, void **state, sn_error *err) {
    const sni_qgemm_params *p = c->params;
    return prepare(c, &gemm, p->trans_b != 0, state, err);
}

static sn_status gemm_run(sni_kernel *k) {
    const sni_int_weights *w = k->state;
    const sni_qgemm_params *p = k->params;
    const sni_tensor *added = sni_in(k, gemm.bias);
    bool by_column =
        !added || (added->count == w->n && added->rank > 0 && added->dims[added->rank - 1] == w->n);
    if (!by_column) return k->node->op->ref(k);
    call c = call_of(k, &gemm);
    c.a_scale *= p->alpha;
    c.added = added ? added->data : NULL;
    return run_packed(k, &c);
}

#define IMPL(id, operator, space, prefix)                       \
    const sni_impl sni_cpu_##id = {.name = "gemm_i8",           \
                                   .op = operator,              \
                                   .domain = space,             \
                                   .accepts = prefix##_accepts, \
                                   .prepare = prefix##_prepare, \
                                   .release = free,             \
                                   .run = prefix##_run}

IMPL(qlinear_matmul, "QLinearMatMul", NULL, linear);
IMPL(matmul_integer, "MatMulInteger", NULL, integer);
IMPL(qgemm, "QGemm", "com.microsoft", gemm);
IMPL(matmul_integer_to_float, "MatMulIntegerToFloat", "com.microsoft", to_float);
IMPL(dynamic_quantize_matmul, "DynamicQuantizeMatMul", "com.microsoft", dynamic);
