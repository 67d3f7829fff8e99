/* quantize.c - QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear with one scale,
 * QLinearAdd and QLinearMul. */
#include "base/threadpool.h"
#include "cpu/int8/integer.h"
#include "ops/core/elementwise.h"
#include "ops/quant/qlinear.h"

enum { GRAIN = 32768 }; /* elements worth a thread */

/* ---- Rows ---- */

typedef struct row_job {
    const sni_requantize_kernels *kernels;
    const void *x;
    void *y;
    bool is_signed;
    float scale, zero, low;
} row_job;

static void quantize_piece(void *ctx, int64_t begin, int64_t end) {
    const row_job *j = ctx;
    j->kernels->quantize((const float *)j->x + begin, end - begin, j->scale, j->zero, j->low,
                         (uint8_t *)j->y + begin);
}

static void dequantize_piece(void *ctx, int64_t begin, int64_t end) {
    const row_job *j = ctx;
    j->kernels->dequantize((const uint8_t *)j->x + begin, end - begin, j->is_signed, j->zero,
                           j->scale, (float *)j->y + begin);
}

void sni_int_quantize(const sni_kernel *k, const sni_tensor *x, float scale, float zero, float low,
                      uint8_t *out) {
    row_job j = {.kernels = sni_requantize_kernels_get(),
                 .x = x->data,
                 .y = out,
                 .scale = scale,
                 .zero = zero,
                 .low = low};
    if (x->count) sni_parallel_for(k->threads, x->count, GRAIN, quantize_piece, &j);
}

enum {
    PARTS = 64
}; /* parts whose ranges are found separately; fixed, but the result is the same */

typedef struct range_job {
    const sni_requantize_kernels *kernels;
    const float *x;
    int64_t n;
    float ends[2 * PARTS]; /* minimum and maximum of each part */
} range_job;

static void range_piece(void *ctx, int64_t begin, int64_t end) {
    range_job *j = ctx;
    for (int64_t p = begin; p < end; p++) {
        int64_t from = p * j->n / PARTS, to = (p + 1) * j->n / PARTS;
        if (to > from)
            j->kernels->range(j->x + from, to - from, &j->ends[2 * p], &j->ends[2 * p + 1]);
    }
}

sni_dynamic_scale sni_int_dynamic_scale(const sni_kernel *k, const sni_tensor *x) {
    range_job j = {.kernels = sni_requantize_kernels_get(), .x = x->data, .n = x->count};
    if (x->count)
        sni_parallel_for(k->threads, PARTS, GRAIN * PARTS / x->count + 1, range_piece, &j);
    return sni_dynamic_scale_of(j.ends, 2 * PARTS);
}

/* ---- QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear ---- */

static bool has_attr(const sni_choice *c, const char *name) {
    const sni_attr *a = sni_node_attr(c->node, name);
    return a && a->u.i != 0;
}

static bool has_one_scale(const sni_choice *c) {
    return sni_choice_is(c, 1, SN_FLOAT32) && sni_int_is_single(c, 1) && sni_int_is_single(c, 2) &&
           !has_attr(c, "block_size") && !has_attr(c, "output_dtype") && !has_attr(c, "precision");
}

static bool quantize_accepts(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32) && has_one_scale(c) &&
           (!sni_choice_given(c, 2) || sni_int_is_bytes(c, 2));
}

static bool dequantize_accepts(const sni_choice *c) {
    return sni_int_is_bytes(c, 0) && has_one_scale(c);
}

static sn_status quantize_run(sni_kernel *k) {
    sni_tensor *y = sni_out(k, 0);
    sni_int_quantize(k, sni_in(k, 0), *(const float *)sni_in(k, 1)->data,
                     (float)sni_zero_of(sni_in(k, 2)), y->dtype == SN_INT8 ? -128 : 0, y->data);
    return SN_OK;
}

static sn_status dequantize_run(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    row_job j = {.kernels = sni_requantize_kernels_get(),
                 .x = x->data,
                 .y = sni_out(k, 0)->data,
                 .is_signed = x->dtype == SN_INT8,
                 .scale = *(const float *)sni_in(k, 1)->data,
                 .zero = (float)sni_zero_of(sni_in(k, 2))};
    if (x->count) sni_parallel_for(k->threads, x->count, GRAIN, dequantize_piece, &j);
    return SN_OK;
}

static bool dynamic_accepts(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32);
}

static sn_status dynamic_run(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0), *scale = sni_out(k, 1), *zero = sni_out(k, 2);
    sni_dynamic_scale s = sni_int_dynamic_scale(k, x);
    if (scale) *(float *)scale->data = s.scale;
    if (zero) *(uint8_t *)zero->data = (uint8_t)s.zero;
    if (y) sni_int_quantize(k, x, s.scale, s.zero, 0, y->data);
    return SN_OK;
}

/* ---- QLinearAdd, QLinearMul ---- */

static bool pair_accepts(const sni_choice *c) {
    return sni_int_is_bytes(c, 0);
}

static void pair_piece(const void *a, const void *b, void *y, int64_t n, int64_t sa, int64_t sb,
                       const void *params) {
    sni_requantize_kernels_get()->pair(params, a, sa, b, sb, y, n);
}

static sn_status run_pair(sni_kernel *k, bool product) {
    sni_qpair q;
    SN_TRY(sni_qpair_get(k, &q));
    sni_int_pair p = {.is_signed = q.a.dtype == SN_INT8,
                      .product = product,
                      .a_zero = (float)q.a.zero,
                      .a_scale = q.a.scale / q.y.scale,
                      .b_zero = (float)q.b.zero,
                      .b_scale = q.b.scale / q.y.scale,
                      .scale = q.a.scale * q.b.scale / q.y.scale,
                      .zero = (float)q.y.zero,
                      .low = q.y.dtype == SN_INT8 ? -128 : 0};
    sni_qpair_run(k, pair_piece, &p);
    return SN_OK;
}

static sn_status add_run(sni_kernel *k) {
    return run_pair(k, false);
}

static sn_status mul_run(sni_kernel *k) {
    return run_pair(k, true);
}

#define IMPL(operator, space, accept, runs) \
    { .name = "rows_i8", .op = operator, .domain = space, .accepts = accept, .run = runs }

const sni_impl sni_cpu_quantised[] = {
    IMPL("QuantizeLinear", NULL, quantize_accepts, quantize_run),
    IMPL("DequantizeLinear", NULL, dequantize_accepts, dequantize_run),
    IMPL("DynamicQuantizeLinear", NULL, dynamic_accepts, dynamic_run),
    IMPL("QLinearAdd", "com.microsoft", pair_accepts, add_run),
    IMPL("QLinearMul", "com.microsoft", pair_accepts, mul_run),
    {0},
};
