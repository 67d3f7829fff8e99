/* quantize.c - QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear with one scale,
 * QLinearAdd and QLinearMul. */
#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/int8/integer.h"
#include "ops/core/compute.h"
#include "ops/core/elementwise.h"
#include "ops/quant/qlinear.h"

#include <string.h>

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

/* Rows of `width` bytes that all meet the same row of the other operand, for each of several
 * images. Short rows are repeated side by side, so that a call has enough to do. */
typedef struct row_pairs {
    const sni_int_pair *p;
    const uint8_t *many, *one; /* one: `repeats` copies of each image's row */
    uint8_t *y;
    int64_t width, rows, repeats; /* rows of an image */
    bool swapped;                 /* `one` is the first operand */
} row_pairs;

/* Groups of `repeats` rows [begin, end), counted over all images. */
static void run_row_pairs(void *ctx, int64_t begin, int64_t end) {
    const row_pairs *j = ctx;
    const sni_requantize_kernels *kernels = sni_requantize_kernels_get();
    int64_t groups = sni_ceil_div(j->rows, j->repeats);
    for (int64_t i = begin; i < end; i++) {
        int64_t image = i / groups, row = i % groups * j->repeats;
        int64_t n = sni_min(j->repeats, j->rows - row) * j->width;
        const uint8_t *many = j->many + (image * j->rows + row) * j->width;
        const uint8_t *one = j->one + image * j->repeats * j->width;
        uint8_t *y = j->y + (image * j->rows + row) * j->width;
        if (j->swapped)
            kernels->pair(j->p, one, 1, many, 1, y, n);
        else
            kernels->pair(j->p, many, 1, one, 1, y, n);
    }
}

/* True if operand t of a result y is such a row for each image: (N or 1, 1, ..., 1, C...). */
static bool is_row(const sni_tensor *t, const sni_tensor *y, int64_t *images, int64_t *width) {
    int axis = y->rank - 1, lead = y->rank - t->rank;
    *width = *images = 1;
    while (axis >= lead && t->dims[axis - lead] == y->dims[axis]) *width *= y->dims[axis--];
    while (axis > 0 && (axis < lead || t->dims[axis - lead] == 1)) axis--;
    if (axis == 0 && lead == 0 && t->dims[0] != 1) *images = t->dims[0];
    return axis <= 0 && *images * *width == t->count && *width > 1 && t->count < y->count &&
           (*images == 1 || *images == y->dims[0]);
}

/* Runs a pair of which one operand is rows; *is: it was one. */
static sn_status pair_rows(sni_kernel *k, const sni_int_pair *p, bool *is) {
    enum { ENOUGH = 1024 };
    const sni_tensor *a = sni_in(k, 0), *b = sni_in(k, 3), *y = sni_out(k, 0);
    row_pairs j = {.p = p, .y = y->data, .swapped = a->count < b->count};
    const sni_tensor *one = j.swapped ? a : b, *many = j.swapped ? b : a;
    int64_t images;
    void *copies;
    *is = y->count > 0 && many->count == y->count && is_row(one, y, &images, &j.width);
    if (!*is) return SN_OK;
    j.many = many->data;
    j.rows = y->count / images / j.width;
    j.repeats = sni_min(j.rows, sni_ceil_div(ENOUGH, j.width));
    SN_TRY(sni_scratch_matrix(k, images * j.repeats, j.width, 1, &copies));
    for (int64_t i = 0; i < images * j.repeats; i++)
        memcpy((uint8_t *)copies + i * j.width,
               (const uint8_t *)one->data + i / j.repeats * j.width, (size_t)j.width);
    j.one = copies;
    sni_parallel_for(k->threads, images * sni_ceil_div(j.rows, j.repeats),
                     GRAIN / (j.repeats * j.width) + 1, run_row_pairs, &j);
    return SN_OK;
}

static sn_status run_pair(sni_kernel *k, bool product) {
    bool is;
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
    SN_TRY(pair_rows(k, &p, &is));
    if (!is) sni_qpair_run(k, pair_piece, &p);
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
