/* MatMulInteger and QLinearMatMul: products of 8-bit matrices, summed exactly. MatMulIntegerToFloat
 * and DynamicQuantizeMatMul scale the sums to floats; MatMulInteger16 is of 16 bits. */
#include "base/floats.h"
#include "ops/core/compute.h"
#include "ops/matmul/matmul.h"
#include "ops/quant/quant.h"
#include "ops/core/tensor_util.h"

static sn_status integer_infer(sni_infer *c) {
    return sni_infer_matmul(c, 0, 1);
}

static int64_t integer_macs(const sni_infer *c) {
    return sni_matmul_macs(c, 0, 1);
}

static sn_status integer_ref(sni_kernel *k) {
    const sni_tensor *a = sni_in(k, 0), *b = sni_in(k, 1);
    const int32_t *left, *right;
    sni_matmul mm;
    SN_TRY(sni_centered(k, a, sni_in(k, 2), SNI_QUANT_ROWS, &left));
    SN_TRY(sni_centered(k, b, sni_in(k, 3), SNI_QUANT_COLUMNS, &right));
    sni_matmul_init(&mm, a, b);
    return sni_matmul_run(k, &mm, SN_INT32, left, right, sni_out(k, 0)->data);
}

static sn_status linear_infer(sni_infer *c) {
    return sni_infer_matmul(c, 0, 3);
}

static int64_t linear_macs(const sni_infer *c) {
    return sni_matmul_macs(c, 0, 3);
}

/* The elements of a float8 tensor minus its zero point, in scratch. */
static sn_status centered_floats(sni_kernel *k, const sni_tensor *t, const sni_tensor *zero,
                                 sni_quant_axis axis, const void **out) {
    int64_t strides[SN_MAX_RANK], own[SN_MAX_RANK];
    SN_TRY(sni_in_as(k, t, SN_FLOAT32, out));
    if (t->count == 0) return SN_OK;
    float *v = (float *)(uintptr_t)*out; /* scratch: the types differ */
    SN_TRY(sni_quant_strides(k, "the zero point", zero, t->rank, t->dims, axis, strides));
    sni_strides(t->rank, t->dims, own);
    sni_walk w;
    sni_walk_init(&w, t->rank, t->dims, 2, (const int64_t *[]){own, strides});
    do {
        v[w.offset[0]] -= (float)sni_number_at(zero, w.offset[1]);
    } while (sni_walk_next(&w));
    return SN_OK;
}

/* Shape of a stack of products: a vector counts as a matrix of one row or column. */
static int product_shape(const sni_matmul *mm, const sni_tensor *a, const sni_tensor *b,
                         const sni_tensor *y, int64_t *dims) {
    int n = 0, kept = y->rank - (a->rank > 1) - (b->rank > 1);
    for (int i = 0; i < kept; i++) dims[n++] = y->dims[i];
    dims[n++] = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    dims[n++] = mm->n;
    return n;
}

/* y = acc * (a_scale * b_scale / y_scale), rounded to y's type around its zero point. Scales are
 * multiplied in float32 in this order, as in ONNX Runtime, whose users expect the same bytes. */
static sn_status store_quantized(sni_kernel *k, const sni_matmul *mm, const void *acc,
                                 bool floats) {
    const sni_tensor *scale[3] = {sni_in(k, 1), sni_in(k, 4), sni_in(k, 6)}, *zero = sni_in(k, 7);
    sni_tensor *y = sni_out(k, 0);
    static const sni_quant_axis axes[3] = {SNI_QUANT_ROWS, SNI_QUANT_COLUMNS, SNI_QUANT_ROWS};
    int64_t dims[SN_MAX_RANK + 2], strides[4][SN_MAX_RANK + 2];
    if (y->count == 0) return SN_OK;
    int rank = product_shape(mm, sni_in(k, 0), sni_in(k, 3), y, dims);
    if (rank > SN_MAX_RANK) return SNI_KERNEL_FAIL(k, "rank %d is too large", rank);
    for (int i = 0; i < 3; i++)
        SN_TRY(sni_quant_strides(k, "a scale", scale[i], rank, dims, axes[i], strides[i]));
    SN_TRY(sni_quant_strides(k, "the zero point", zero, rank, dims, SNI_QUANT_ROWS, strides[3]));
    sni_walk w;
    sni_walk_init(&w, rank, dims, 4,
                  (const int64_t *[]){strides[0], strides[1], strides[2], strides[3]});
    int64_t i = 0;
    do {
        float s = (float)sni_number_at(scale[0], w.offset[0]) *
                  (float)sni_number_at(scale[1], w.offset[1]) /
                  (float)sni_number_at(scale[2], w.offset[2]);
        float v = s * (floats ? ((const float *)acc)[i] : (float)((const int32_t *)acc)[i]);
        float z = (float)sni_number_at(zero, w.offset[3]);
        if (floats)
            sni_narrow(y->dtype, &(float){v + z}, sni_element(y->data, i, 1), 1, true);
        else
            ((uint8_t *)y->data)[i] = sni_requantize_fast(v, (int32_t)z, y->dtype);
        i++;
    } while (sni_walk_next(&w));
    return SN_OK;
}

static sn_status linear_ref(sni_kernel *k) {
    const sni_tensor *a = sni_in(k, 0), *b = sni_in(k, 3);
    bool floats = sni_dtype_get(a->dtype)->cls == SNI_CLASS_S;
    sn_dtype dtype = floats ? SN_FLOAT32 : SN_INT32;
    const void *left, *right;
    const int32_t *l, *r;
    void *acc = NULL;
    sni_matmul mm;
    if (floats) {
        SN_TRY(centered_floats(k, a, sni_in(k, 2), SNI_QUANT_ROWS, &left));
        SN_TRY(centered_floats(k, b, sni_in(k, 5), SNI_QUANT_COLUMNS, &right));
    } else {
        SN_TRY(sni_centered(k, a, sni_in(k, 2), SNI_QUANT_ROWS, &l));
        SN_TRY(sni_centered(k, b, sni_in(k, 5), SNI_QUANT_COLUMNS, &r));
        left = l;
        right = r;
    }
    SN_TRY(sni_scratch_array(k, sni_out(k, 0)->count, sni_dtype_width(dtype), &acc));
    sni_matmul_init(&mm, a, b);
    SN_TRY(sni_matmul_run(k, &mm, dtype, left, right, acc));
    return store_quantized(k, &mm, acc, floats);
}

#define BYTES (SNI_T(SN_INT8) | SNI_T(SN_UINT8))

const sni_op sni_op_MatMulInteger = {
    .name = "MatMulInteger",
    .versions = SNI_VERSIONS(10),
    .inputs = SNI_FORMALS({"A", "T1"}, {"B", "T2"}, {"a_zero_point", "T1", SNI_OPTIONAL},
                          {"b_zero_point", "T2", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "int32"}),
    .types = SNI_TYPE_VARS({"T1", BYTES}, {"T2", BYTES}),
    .infer = integer_infer,
    .ref = integer_ref,
    .macs = integer_macs,
};

#define SCALES (SNI_T(SN_FLOAT32) | SNI_T_HALVES)

const sni_op sni_op_QLinearMatMul = {
    .name = "QLinearMatMul",
    .versions = SNI_VERSIONS(10, 21),
    .inputs = SNI_FORMALS({"a", "T1"}, {"a_scale", "TS"}, {"a_zero_point", "T1"}, {"b", "T2"},
                          {"b_scale", "TS"}, {"b_zero_point", "T2"}, {"y_scale", "TS"},
                          {"y_zero_point", "T3"}),
    .outputs = SNI_FORMALS({"y", "T3"}),
    .types = SNI_TYPE_VARS({"TS", SCALES}, {"T1", BYTES | SNI_T_FLOAT8},
                           {"T2", BYTES | SNI_T_FLOAT8}, {"T3", BYTES | SNI_T_FLOAT8}),
    .infer = linear_infer,
    .ref = linear_ref,
    .macs = linear_macs,
};

/* ---- com.microsoft ---- */

/* y = acc * (a_scale * b_scale) + bias, where b_scale is one or one for each column, and bias has
 * one element for each column or is NULL. */
static sn_status store_floats(sni_kernel *k, const sni_matmul *mm, const int32_t *acc,
                              float a_scale, const sni_tensor *b_scale, const sni_tensor *bias) {
    sni_tensor *y = sni_out(k, 0);
    const void *scales, *add;
    void *out;
    int64_t dims[SN_MAX_RANK + 2], strides[SN_MAX_RANK + 2];
    if (bias && (bias->rank != 1 || bias->count != mm->n))
        return SNI_KERNEL_FAIL(k, "a bias of %lld elements for %lld columns",
                               (long long)bias->count, (long long)mm->n);
    if (y->count == 0) return SN_OK;
    int rank = product_shape(mm, sni_in(k, 0), sni_in(k, 1), y, dims);
    if (rank > SN_MAX_RANK) return SNI_KERNEL_FAIL(k, "rank %d is too large", rank);
    SN_TRY(sni_quant_strides(k, "b_scale", b_scale, rank, dims, SNI_QUANT_COLUMNS, strides));
    SN_TRY(sni_in_as(k, b_scale, SN_FLOAT32, &scales));
    SN_TRY(sni_in_as(k, bias, SN_FLOAT32, &add));
    SN_TRY(sni_out_as(k, y, SN_FLOAT32, &out));
    sni_walk w;
    sni_walk_init(&w, rank, dims, 1, (const int64_t *[]){strides});
    int64_t i = 0;
    do {
        float v = (float)acc[i] * (a_scale * ((const float *)scales)[w.offset[0]]);
        ((float *)out)[i] = add ? v + ((const float *)add)[i % mm->n] : v;
        i++;
    } while (sni_walk_next(&w));
    sni_out_done(k, y, SN_FLOAT32, out);
    return SN_OK;
}

static sn_status run_to_float(sni_kernel *k, const sni_tensor *a, const sni_tensor *a_zero,
                              float a_scale, const int in[3]) {
    const sni_tensor *b = sni_in(k, 1);
    const int32_t *left, *right;
    void *acc = NULL;
    sni_matmul mm;
    SN_TRY(sni_centered(k, a, a_zero, SNI_QUANT_ROWS, &left));
    SN_TRY(sni_centered(k, b, sni_in(k, in[1]), SNI_QUANT_COLUMNS, &right));
    SN_TRY(sni_scratch_array(k, sni_out(k, 0)->count, sizeof(int32_t), &acc));
    sni_matmul_init(&mm, a, b);
    SN_TRY(sni_matmul_run(k, &mm, SN_INT32, left, right, acc));
    return store_floats(k, &mm, acc, a_scale, sni_in(k, in[0]), sni_in(k, in[2]));
}

static sn_status to_float_ref(sni_kernel *k) {
    const sni_tensor *scale = sni_in(k, 2);
    if (scale->count != 1)
        return SNI_KERNEL_FAIL(k, "a_scale has %lld elements, not 1", (long long)scale->count);
    return run_to_float(k, sni_in(k, 0), sni_in(k, 4), (float)sni_number_at(scale, 0),
                        (const int[3]){3, 5, 6});
}

const sni_op sni_op_ms_MatMulIntegerToFloat = {
    .name = "MatMulIntegerToFloat",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"A", "T1"}, {"B", "T2"}, {"a_scale", "T3"}, {"b_scale", "T3"},
                          {"a_zero_point", "T1", SNI_OPTIONAL},
                          {"b_zero_point", "T2", SNI_OPTIONAL}, {"bias", "T3", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T3"}),
    .types =
        SNI_TYPE_VARS({"T1", BYTES}, {"T2", BYTES}, {"T3", SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT16)}),
    .infer = integer_infer,
    .ref = to_float_ref,
    .macs = integer_macs,
};

/* A becomes bytes with a scale of its own for each call. */
static sn_status dynamic_ref(sni_kernel *k) {
    const sni_tensor *a = sni_in(k, 0);
    sni_tensor bytes = *a;
    SN_TRY(sni_scratch_array(k, a->count, 1, &bytes.data));
    bytes.dtype = SN_UINT8;
    sni_dynamic_scale s = sni_dynamic_scale_of(a->data, a->count);
    sni_dynamic_quantize(k, a, &s, bytes.data);
    uint8_t zero = (uint8_t)s.zero;
    sni_tensor zero_point = {.dtype = SN_UINT8, .count = 1, .data = &zero};
    return run_to_float(k, &bytes, &zero_point, s.scale, (const int[3]){2, 3, 4});
}

const sni_op sni_op_ms_DynamicQuantizeMatMul = {
    .name = "DynamicQuantizeMatMul",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"A", "float32"}, {"B", "T2"}, {"b_scale", "float32"},
                          {"b_zero_point", "T2", SNI_OPTIONAL}, {"bias", "float32", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "float32"}),
    .types = SNI_TYPE_VARS({"T2", BYTES}),
    .infer = integer_infer,
    .ref = dynamic_ref,
    .macs = integer_macs,
};

/* The result is unsigned where both operands are. */
static sn_status wide_infer(sni_infer *c) {
    sn_dtype a = c->in[0]->dtype, b = c->in[1]->dtype;
    if (a && b)
        SN_TRY(sni_infer_set_type(c, 0, a == SN_UINT16 && b == SN_UINT16 ? SN_UINT32 : SN_INT32));
    return sni_infer_matmul(c, 0, 1);
}

static sn_status wide_ref(sni_kernel *k) {
    const sni_tensor *a = sni_in(k, 0), *b = sni_in(k, 1);
    const void *left, *right;
    sni_matmul mm;
    sni_matmul_init(&mm, a, b);
    SN_TRY(sni_in_as(k, a, SN_INT32, &left));
    SN_TRY(sni_in_as(k, b, SN_INT32, &right));
    return sni_matmul_run(k, &mm, SN_INT32, left, right, sni_out(k, 0)->data);
}

#define SHORTS (SNI_T(SN_INT16) | SNI_T(SN_UINT16))

const sni_op sni_op_ms_MatMulInteger16 = {
    .name = "MatMulInteger16",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"A", "T1"}, {"B", "T2"}),
    .outputs = SNI_FORMALS({"Y", "T3"}),
    .types =
        SNI_TYPE_VARS({"T1", SHORTS}, {"T2", SHORTS}, {"T3", SNI_T(SN_INT32) | SNI_T(SN_UINT32)}),
    .infer = wide_infer,
    .ref = wide_ref,
    .macs = integer_macs,
};
