/* QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear; and the first two of com.microsoft,
 * which had 16-bit types earlier.
 *
 * Scales and zero points count for the whole tensor, for each slice along an axis, or for each
 * block of `block_size` slices. All arithmetic is float: it holds every quantized value and zero
 * point exactly. NaN becomes the lowest integer. */
#include "base/threadpool.h"
#include "ops/core/convert.h"
#include "ops/core/op.h"
#include "ops/quant/quant.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <inttypes.h>
#include <math.h>

enum {
    BLOCK = 512,  /* elements converted at a time */
    GRAIN = 8192, /* elements worth a thread */
};

typedef struct quant_params {
    int64_t axis, block_size, output_dtype, precision, saturate;
} quant_params;

/* What scales the elements: that of element (o, a, i) of x, seen as (outer, axis, inner), is number
 * o * outer_step + a / block * axis_step + i * inner_step. */
typedef struct grid {
    int64_t axis, inner, block;
    int64_t outer_step, axis_step, inner_step;
    const float *scale, *zero; /* zero NULL: all 0 */
} grid;

typedef struct job {
    grid grid;
    const sni_tensor *x;
    sni_tensor *y;
    bool quantize;
    float low, high; /* of an integer output of Quantize */
    sn_dtype
        precision; /* Quantize: a narrow float that x and quotients are rounded to, or FLOAT32 */
    sni_convert_mode mode;
} job;

/* ---- Which scale goes with which element ---- */

static sn_status plan_blocks(sni_kernel *k, const sni_tensor *x, const sni_tensor *scale, int axis,
                             int64_t block, grid *g) {
    if (scale->rank != x->rank)
        return SNI_KERNEL_FAIL(k, "blocked scales have rank %d and the input %d", scale->rank,
                               x->rank);
    for (int i = 0; i < x->rank; i++) {
        int64_t size = x->dims[i];
        if (i == axis) size = size / block + (size % block != 0);
        if (scale->dims[i] != size)
            return SNI_KERNEL_FAIL(k,
                                   "scales have size %" PRId64 " along axis %d where %" PRId64
                                   " are needed (blocks of %" PRId64 ")",
                                   scale->dims[i], i, size, block);
    }
    g->block = block;
    g->outer_step = scale->dims[axis] * g->inner;
    g->axis_step = g->inner;
    g->inner_step = 1;
    return SN_OK;
}

static sn_status plan_grid(sni_kernel *k, const sni_tensor *x, const sni_tensor *scale,
                           const sni_tensor *zero, grid *g) {
    const quant_params *p = k->params;
    if (zero && zero->count != scale->count)
        return SNI_KERNEL_FAIL(k, "%" PRId64 " zero points for %" PRId64 " scales", zero->count,
                               scale->count);
    *g = (grid){.axis = 1, .inner = x->count, .block = 1};
    if (scale->count != 1 || (p->block_size > 0 && scale->rank > 1)) {
        int64_t axis = 0;
        SN_TRY(sni_wrap_index(k, "axis", p->axis, x->rank, &axis));
        g->axis = x->dims[axis];
        g->inner = sni_tensor_span(x, (int)axis + 1, x->rank);
        if (p->block_size > 0) {
            SN_TRY(plan_blocks(k, x, scale, (int)axis, p->block_size, g));
        } else {
            if (scale->rank != 1 || scale->count != g->axis)
                return SNI_KERNEL_FAIL(k, "%" PRId64 " scales (rank %d) for %" PRId64 " slices",
                                       scale->count, scale->rank, g->axis);
            g->axis_step = 1;
        }
    }
    SN_TRY(sni_as_f32(k, scale, &g->scale));
    return zero ? sni_as_f32(k, zero, &g->zero) : SN_OK;
}

/* The run of elements from number `at` on whose scales follow each other with a stride of 0 or 1;
 * *first is that of the first. */
static int64_t scale_run(const grid *g, int64_t at, int64_t *first, int64_t *stride) {
    int64_t i = at % g->inner, a = at / g->inner % g->axis, o = at / g->inner / g->axis;
    *first = o * g->outer_step + a / g->block * g->axis_step + i * g->inner_step;
    *stride = g->inner_step;
    if (g->inner > 1) return g->inner - i;
    if (g->block == 1) {
        *stride = g->axis_step;
        return g->axis - a;
    }
    *stride = 0;
    int64_t n = g->block - a % g->block;
    return n < g->axis - a ? n : g->axis - a;
}

/* ---- Arithmetic on a run of at most BLOCK elements ---- */

/* Floats brought to what a narrow type can hold. */
static void round_to(sn_dtype dtype, float *v, size_t n) {
    uint16_t narrow[BLOCK];
    if (dtype == SN_FLOAT32) return;
    sni_convert(SN_FLOAT32, v, dtype, narrow, n, NULL);
    sni_convert(dtype, narrow, SN_FLOAT32, v, n, NULL);
}

/* v = v / scale, rounded and shifted for integers. */
static void quantize_run(const job *j, float *v, int64_t n, int64_t first, int64_t stride) {
    const float *scale = j->grid.scale + first;
    const float *zero = j->grid.zero ? j->grid.zero + first : NULL;
    round_to(j->precision, v, (size_t)n);
    for (int64_t i = 0; i < n; i++) v[i] /= scale[i * stride];
    round_to(j->precision, v, (size_t)n);
    if (sni_dtype_get(j->y->dtype)->cls == SNI_CLASS_S) {
        for (int64_t i = 0; zero && i < n; i++) v[i] += zero[i * stride];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        v[i] = sni_round_shift(v[i], zero ? zero[i * stride] : 0, j->low, j->high);
}

static void dequantize_run(const job *j, float *v, int64_t n, int64_t first, int64_t stride) {
    const float *scale = j->grid.scale + first;
    const float *zero = j->grid.zero ? j->grid.zero + first : NULL;
    for (int64_t i = 0; zero && i < n; i++) v[i] -= zero[i * stride];
    for (int64_t i = 0; i < n; i++) v[i] *= scale[i * stride];
}

static void quant_piece(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    float v[BLOCK];
    size_t x_width = sni_dtype_width(j->x->dtype), y_width = sni_dtype_width(j->y->dtype);
    for (int64_t at = begin; at < end;) {
        int64_t first, stride, n = scale_run(&j->grid, at, &first, &stride);
        if (n > end - at) n = end - at;
        if (n > BLOCK) n = BLOCK;
        sni_convert(j->x->dtype, sni_element(j->x->data, at, x_width), SN_FLOAT32, v, (size_t)n,
                    NULL);
        if (j->quantize)
            quantize_run(j, v, n, first, stride);
        else
            dequantize_run(j, v, n, first, stride);
        sni_convert(SN_FLOAT32, v, j->y->dtype, sni_element(j->y->data, at, y_width), (size_t)n,
                    &j->mode);
        at += n;
    }
}

static void integer_range(sn_dtype dtype, float *low, float *high) {
    const sni_dtype_facts *f = sni_dtype_get(dtype);
    bool has_sign = f->cls == SNI_CLASS_I;
    *low = has_sign ? -(float)(1u << (f->bits - 1)) : 0;
    *high = (float)((1u << (f->bits - has_sign)) - 1);
}

/* ---- QuantizeLinear ---- */

#define QUANTIZED                                                                            \
    (SNI_T(SN_INT8) | SNI_T(SN_UINT8) | SNI_T(SN_INT16) | SNI_T(SN_UINT16) | SNI_T_SUBBYTE | \
     SNI_T_FLOAT8)
#define REALS (SNI_T_HALVES | SNI_T(SN_FLOAT32))

/* An attribute that names a type; UNDEFINED if it is 0. */
static sn_status type_attr(sni_infer *c, const char *name, int64_t v, sni_types allowed,
                           sn_dtype *out) {
    if (v < 0 || v >= SNI_DTYPE_COUNT || (v && !(SNI_T(v) & allowed)))
        return SNI_INFER_FAIL(c, "'%s' is %" PRId64 ", which is no type for it", name, v);
    *out = (sn_dtype)v;
    return SN_OK;
}

static sn_status quantize_infer(sni_infer *c) {
    const quant_params *p = c->params;
    sn_dtype dtype = SN_UNDEFINED, precision = SN_UNDEFINED;
    SN_TRY(type_attr(c, "output_dtype", p->output_dtype, QUANTIZED, &dtype));
    SN_TRY(type_attr(c, "precision", p->precision, REALS | SNI_T(SN_FLOAT64), &precision));
    if (p->block_size < 0) return SNI_INFER_FAIL(c, "'block_size' is %" PRId64, p->block_size);
    if (sni_infer_given(c, 2)) {
        sn_dtype zero = c->in[2]->dtype;
        if (dtype && zero && dtype != zero)
            return SNI_INFER_FAIL(c, "'output_dtype' is %s and the zero point %s",
                                  sn_dtype_name(dtype), sn_dtype_name(zero));
        dtype = zero;
    } else if (!dtype) {
        dtype = SN_UINT8;
    }
    if (dtype) SN_TRY(sni_infer_set_type(c, 0, dtype));
    return sni_infer_same(c);
}

static sn_status quantize_ref(sni_kernel *k) {
    const quant_params *p = k->params;
    const sni_tensor *scale = sni_in(k, 1);
    job j = {.x = sni_in(k, 0), .y = sni_out(k, 0), .quantize = true, .precision = SN_FLOAT32};
    sn_dtype precision = p->precision ? (sn_dtype)p->precision : scale->dtype;
    if (SNI_T(precision) & SNI_T_HALVES) j.precision = precision;
    j.mode.saturate = p->saturate != 0;
    integer_range(j.y->dtype, &j.low, &j.high);
    if (j.x->count == 0) return SN_OK;
    SN_TRY(plan_grid(k, j.x, scale, sni_in(k, 2), &j.grid));
    sni_parallel_for(k->threads, j.x->count, GRAIN, quant_piece, &j);
    return SN_OK;
}

#define PARAM(field, value) \
    { #field, SNI_ATTR_INT, offsetof(quant_params, field), .number = (value) }

const sni_op sni_op_QuantizeLinear = {
    .name = "QuantizeLinear",
    .versions = SNI_VERSIONS(10, 13, 19, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"x", "T1"}, {"y_scale", "T2"}, {"y_zero_point", "T3", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"y", "T3"}),
    .types =
        SNI_TYPE_VARS({"T1", REALS | SNI_T(SN_INT32)},
                      {"T2", REALS | SNI_T(SN_INT32) | SNI_T(SN_FLOAT8E8M0)}, {"T3", QUANTIZED}),
    .params = SNI_PARAMS(PARAM(axis, 1), PARAM(block_size, 0), PARAM(output_dtype, 0),
                         PARAM(precision, 0), PARAM(saturate, 1)),
    .params_size = sizeof(quant_params),
    .infer = quantize_infer,
    .ref = quantize_ref,
};

/* ---- DequantizeLinear ---- */

static sn_status dequantize_infer(sni_infer *c) {
    const quant_params *p = c->params;
    sn_dtype dtype = SN_UNDEFINED;
    SN_TRY(type_attr(c, "output_dtype", p->output_dtype, REALS, &dtype));
    if (p->block_size < 0) return SNI_INFER_FAIL(c, "'block_size' is %" PRId64, p->block_size);
    if (!dtype) dtype = c->in[1]->dtype == SN_FLOAT8E8M0 ? SN_FLOAT32 : c->in[1]->dtype;
    if (dtype) SN_TRY(sni_infer_set_type(c, 0, dtype));
    return sni_infer_same(c);
}

static sn_status dequantize_ref(sni_kernel *k) {
    job j = {.x = sni_in(k, 0), .y = sni_out(k, 0), .mode = {.saturate = true}};
    if (j.x->count == 0) return SN_OK;
    SN_TRY(plan_grid(k, j.x, sni_in(k, 1), sni_in(k, 2), &j.grid));
    sni_parallel_for(k->threads, j.x->count, GRAIN, quant_piece, &j);
    return SN_OK;
}

const sni_op sni_op_DequantizeLinear = {
    .name = "DequantizeLinear",
    .versions = SNI_VERSIONS(10, 13, 19, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"x", "T1"}, {"x_scale", "T2"}, {"x_zero_point", "T1", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"y", "T3"}),
    .types = SNI_TYPE_VARS({"T1", QUANTIZED | SNI_T(SN_INT32)},
                           {"T2", REALS | SNI_T(SN_FLOAT8E8M0)}, {"T3", REALS}),
    .params = SNI_PARAMS(PARAM(axis, 1), PARAM(block_size, 0), PARAM(output_dtype, 0)),
    .params_size = sizeof(quant_params),
    .infer = dequantize_infer,
    .ref = dequantize_ref,
};

/* ---- DynamicQuantizeLinear ---- */

static sn_status dynamic_infer(sni_infer *c) {
    SN_TRY(sni_infer_set_shape(c, 1, 0, NULL));
    SN_TRY(sni_infer_set_shape(c, 2, 0, NULL));
    return sni_infer_same(c);
}

sni_dynamic_scale sni_dynamic_scale_of(const float *v, int64_t n) {
    float least = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        if (v[i] < least) least = v[i];
        if (v[i] > most) most = v[i];
    }
    float scale = most == least ? 1 : (most - least) / 255;
    float zero = nearbyintf(-least / scale);
    return (sni_dynamic_scale){scale, zero > 255 ? 255 : zero > 0 ? zero : 0};
}

void sni_dynamic_round(const float *v, float *out, int64_t n) {
    sni_dynamic_scale s = sni_dynamic_scale_of(v, n);
    for (int64_t i = 0; i < n; i++)
        out[i] = (sni_round_shift(v[i] / s.scale, s.zero, 0, 255) - s.zero) * s.scale;
}

static sn_status dynamic_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    sni_dynamic_scale s = sni_dynamic_scale_of(x->data, x->count);
    sni_tensor *y = sni_out(k, 0), *scale_out = sni_out(k, 1), *zero_out = sni_out(k, 2);
    if (scale_out) *(float *)scale_out->data = s.scale;
    if (zero_out) *(uint8_t *)zero_out->data = (uint8_t)s.zero;
    if (y) sni_dynamic_quantize(k, x, &s, y->data);
    return SN_OK;
}

void sni_dynamic_quantize(sni_kernel *k, const sni_tensor *x, const sni_dynamic_scale *s,
                          uint8_t *out) {
    sni_tensor y = *x;
    y.dtype = SN_UINT8;
    y.data = out;
    job j = {
        .x = x,
        .y = &y,
        .quantize = true,
        .precision = SN_FLOAT32,
        .high = 255,
        .grid = {.axis = 1, .inner = x->count, .block = 1, .scale = &s->scale, .zero = &s->zero}};
    sni_parallel_for(k->threads, x->count, GRAIN, quant_piece, &j);
}

const sni_op sni_op_DynamicQuantizeLinear = {
    .name = "DynamicQuantizeLinear",
    .versions = SNI_VERSIONS(11),
    .inputs = SNI_FORMALS({"x", "float32"}),
    .outputs = SNI_FORMALS({"y", "uint8"}, {"y_scale", "float32"}, {"y_zero_point", "uint8"}),
    .infer = dynamic_infer,
    .ref = dynamic_ref,
};

/* ---- com.microsoft ---- */

/* The operator of ai.onnx of the same name; without an axis there is one scale, which needs none.
 */
static sn_status same_name_upgrade(sni_upgrade *u) {
    int32_t in[3], n = u->node->n_in;
    const sni_attr *given = sni_node_attr(u->node, "axis");
    sni_attr axis = sni_attr_of_int("axis", given ? given->u.i : 1);
    for (int32_t i = 0; i < n; i++) in[i] = u->node->in[i];
    return sni_upgrade_become(u, u->node->op->name, in, n, &axis, 1);
}

#define MS_QUANTIZED                                                                          \
    (SNI_T(SN_INT8) | SNI_T(SN_UINT8) | SNI_T(SN_INT16) | SNI_T(SN_UINT16) | SNI_T(SN_INT4) | \
     SNI_T(SN_UINT4))
#define MS_REALS (SNI_T(SN_FLOAT16) | SNI_T(SN_FLOAT32))

const sni_op sni_op_ms_QuantizeLinear = {
    .name = "QuantizeLinear",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"x", "T1"}, {"y_scale", "T1"}, {"y_zero_point", "T2", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"y", "T2"}),
    .types = SNI_TYPE_VARS({"T1", MS_REALS}, {"T2", MS_QUANTIZED}),
    .params = SNI_PARAMS(PARAM(axis, 1)),
    .params_size = sizeof(quant_params),
    .flags = SNI_OP_REWRITES,
    .upgrade = same_name_upgrade,
};

const sni_op sni_op_ms_DequantizeLinear = {
    .name = "DequantizeLinear",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"x", "T1"}, {"x_scale", "T2"}, {"x_zero_point", "T1", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"y", "T2"}),
    .types = SNI_TYPE_VARS({"T1", MS_QUANTIZED | SNI_T(SN_INT32)}, {"T2", MS_REALS}),
    .params = SNI_PARAMS(PARAM(axis, 1)),
    .params_size = sizeof(quant_params),
    .flags = SNI_OP_REWRITES,
    .upgrade = same_name_upgrade,
};
