/* MatMulNBits and MatMulBnb4: products of floats with weights that are stored in few bits. */
#include "base/checked.h"
#include "ops/core/compute.h"
#include "ops/matmul/matmul_core.h"
#include "ops/quant/nbits.h"
#include "ops/core/tensor_util.h"

#define FLOATS (SNI_T(SN_FLOAT32) | SNI_T_HALVES)

static bool power_of_two(int64_t v) {
    return v > 0 && (v & (v - 1)) == 0;
}

/* Checks K, N and the size of blocks; output 0 is A with `columns` instead of its last axis, which
 * has `depth`. */
static sn_status infer_product(sni_infer *c, int64_t depth, int64_t columns) {
    const sni_nbits_params *p = c->params;
    sni_dim dims[SN_MAX_RANK];
    int64_t elements;
    if (p->k < 1 || p->n < 1 || !sni_mul_i64(p->k, p->n, &elements) || elements > INT64_MAX / 16)
        return SNI_INFER_FAIL(c, "K is %lld and N %lld", (long long)p->k, (long long)p->n);
    if (!power_of_two(p->block_size) || p->block_size < 16 || p->block_size > INT32_MAX)
        return SNI_INFER_FAIL(c, "block_size is %lld, not a power of two from 16 on",
                              (long long)p->block_size);
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank == 0) return SNI_INFER_FAIL(c, "A is a scalar");
    for (int i = 0; i < rank; i++) dims[i] = sni_infer_dim(c, 0, i);
    if (sni_dim_differ(dims[rank - 1], depth))
        return SNI_INFER_FAIL(c, "a matrix of %lld columns times one of %lld rows",
                              (long long)dims[rank - 1], (long long)depth);
    dims[rank - 1] = columns;
    return sni_infer_set_shape(c, 0, rank, dims);
}

static int64_t product_macs(const sni_infer *c) {
    const sni_nbits_params *p = c->params;
    int64_t rows, macs;
    if (!sni_infer_shaped(c, 0) || sni_infer_rank(c, 0) == 0 ||
        !sni_shape_count(sni_infer_rank(c, 0) - 1, c->in[0]->dims, &rows) ||
        !sni_mul_i64(rows, p->k, &macs) || !sni_mul_i64(macs, p->n, &macs))
        return -1;
    return macs;
}

/* Input i, if given, has `count` elements. */
static sn_status expect_count(sni_kernel *k, int i, const char *what, int64_t count) {
    const sni_tensor *t = sni_in(k, i);
    if (t && t->count != count)
        return SNI_KERNEL_FAIL(k, "%s has %lld elements, not %lld", what, (long long)t->count,
                               (long long)count);
    return SN_OK;
}

/* ---- MatMulNBits ---- */

static sn_status nbits_infer(sni_infer *c) {
    const sni_nbits_params *p = c->params;
    if (p->bits != 2 && p->bits != 4 && p->bits != 8)
        return SNI_INFER_FAIL(c, "bits is %lld, not 2, 4 or 8", (long long)p->bits);
    if (p->weight_prepacked)
        return sni_fail(c->err, SN_UNSUPPORTED, "weights are packed for another device");
    return infer_product(c, p->k, p->n);
}

/* Zero points: packed like the weights, or numbers. */
static sn_status read_zeros(sni_kernel *k, sni_nbits *w) {
    const sni_tensor *zeros = sni_in(k, 3);
    if (!zeros) return SN_OK;
    if (zeros->dtype != SN_UINT8) {
        const void *v;
        SN_TRY(expect_count(k, 3, "zero_points", w->n * w->blocks));
        SN_TRY(sni_in_as(k, zeros, SN_FLOAT32, &v));
        w->zeros = v;
        return SN_OK;
    }
    int64_t row_bytes = (w->blocks * w->bits + 7) / 8;
    float *v = NULL;
    SN_TRY(expect_count(k, 3, "zero_points", w->n * row_bytes));
    SN_TRY(sni_unpacked(k, zeros->data, w->bits, w->n, w->blocks, &v));
    w->zeros = v;
    return SN_OK;
}

static sn_status read_groups(sni_kernel *k, sni_nbits *w) {
    const sni_tensor *group = sni_in(k, 4);
    if (!group) return SN_OK;
    if (group->count != w->k && group->count != w->blocks * w->block)
        return SNI_KERNEL_FAIL(k, "g_idx has %lld elements for K = %lld", (long long)group->count,
                               (long long)w->k);
    w->group = group->data;
    return sni_nbits_check_groups(w->group, w->k, w->blocks, k->err);
}

static sn_status read_weights(sni_kernel *k, sni_nbits *w) {
    const sni_nbits_params *p = k->params;
    const void *scales;
    *w = (sni_nbits){.bits = (int)p->bits, .n = p->n, .k = p->k, .block = p->block_size};
    w->blocks = (p->k - 1) / p->block_size + 1;
    int64_t size;
    if (!sni_mul_i64(w->blocks, p->block_size / 8 * p->bits, &w->row_bytes) ||
        !sni_mul_i64(w->row_bytes, w->n, &size))
        return SNI_KERNEL_FAIL(k, "the weights are too large");
    SN_TRY(expect_count(k, 1, "B", size));
    SN_TRY(expect_count(k, 2, "scales", w->n * w->blocks));
    SN_TRY(expect_count(k, 5, "bias", w->n));
    SN_TRY(sni_in_as(k, sni_in(k, 2), SN_FLOAT32, &scales));
    w->q = sni_in(k, 1)->data;
    w->scales = scales;
    SN_TRY(read_zeros(k, w));
    return read_groups(k, w);
}

static sn_status nbits_ref(sni_kernel *k) {
    const sni_tensor *a = sni_in(k, 0), *bias = sni_in(k, 5);
    sni_tensor *y = sni_out(k, 0);
    const void *x, *b;
    void *out;
    sni_nbits w;
    SN_TRY(read_weights(k, &w));
    SN_TRY(sni_in_as(k, a, SN_FLOAT32, &x));
    SN_TRY(sni_in_as(k, bias, SN_FLOAT32, &b));
    SN_TRY(sni_out_as(k, y, SN_FLOAT32, &out));
    int64_t m = y->count / w.n;
    for (int64_t i = 0; b && i < m; i++)
        sni_copy_bytes((float *)out + i * w.n, b, (size_t)w.n * sizeof(float));
    SN_TRY(sni_nbits_multiply(k, &w, m, x, out, b != NULL));
    sni_out_done(k, y, SN_FLOAT32, out);
    return SN_OK;
}

#define FIELD(f) offsetof(sni_nbits_params, f)

const sni_op sni_op_ms_MatMulNBits = {
    .name = "MatMulNBits",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"A", "T1"}, {"B", "uint8"}, {"scales", "T1"},
                          {"zero_points", "T3", SNI_OPTIONAL}, {"g_idx", "int32", SNI_OPTIONAL},
                          {"bias", "T1", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T1"}),
    .types = SNI_TYPE_VARS({"T1", FLOATS}, {"T3", FLOATS | SNI_T(SN_UINT8)}),
    .params = SNI_PARAMS({"K", SNI_ATTR_INT, FIELD(k), .required = true},
                         {"N", SNI_ATTR_INT, FIELD(n), .required = true},
                         {"bits", SNI_ATTR_INT, FIELD(bits), .number = 4},
                         {"block_size", SNI_ATTR_INT, FIELD(block_size), .required = true},
                         {"accuracy_level", SNI_ATTR_INT, FIELD(accuracy_level)},
                         {"weight_prepacked", SNI_ATTR_INT, FIELD(weight_prepacked)}),
    .params_size = sizeof(sni_nbits_params),
    .infer = nbits_infer,
    .ref = nbits_ref,
    .macs = product_macs,
};

/* ---- MatMulBnb4 ---- */

const float sni_bnb4_codes[2][16] = {
    {0.0f, 0.0052083333f, 0.66666667f, 1.0f, 0.33333333f, 0.5f, 0.16666667f, 0.25f, -0.0f,
     -0.0052083333f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f},
    {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
     -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
     0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
     0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f},
};

/* Weights (N, K) as one row of codes, the first in the high bits, and a scale for each block. */
typedef struct bnb_weights {
    const uint8_t *q;
    const float *code, *scales;
    int64_t k, block;
    bool transposed; /* the product's right operand is the transpose */
} bnb_weights;

static void fill_bnb(const void *ctx, int64_t product, int64_t k0, int64_t rows, int64_t n0,
                     int64_t cols, void *panel, int64_t stride) {
    const bnb_weights *w = ctx;
    (void)product;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            int64_t at = w->transposed ? (n0 + j) * w->k + k0 + i : (k0 + i) * w->k + n0 + j;
            int code = at % 2 ? w->q[at / 2] & 15 : w->q[at / 2] >> 4;
            ((float *)panel)[i * stride + j] = w->code[code] * w->scales[at / w->block];
        }
}

static sn_status bnb_infer(sni_infer *c) {
    const sni_nbits_params *p = c->params;
    if (p->quant_type != 0 && p->quant_type != 1)
        return SNI_INFER_FAIL(c, "quant_type is %lld, not 0 or 1", (long long)p->quant_type);
    return p->trans_b ? infer_product(c, p->k, p->n) : infer_product(c, p->n, p->k);
}

static sn_status bnb_ref(sni_kernel *k) {
    const sni_nbits_params *p = k->params;
    sni_tensor *y = sni_out(k, 0);
    const void *scales;
    int64_t count = p->n * p->k;
    SN_TRY(expect_count(k, 1, "B", (count + 1) / 2));
    SN_TRY(expect_count(k, 2, "absmax", (count - 1) / p->block_size + 1));
    SN_TRY(sni_in_as(k, sni_in(k, 2), SN_FLOAT32, &scales));
    bnb_weights w = {.q = sni_in(k, 1)->data,
                     .code = sni_bnb4_codes[p->quant_type],
                     .scales = scales,
                     .k = p->k,
                     .block = p->block_size,
                     .transposed = p->trans_b != 0};
    sni_gemm g = {.n = p->trans_b ? p->n : p->k,
                  .k = p->trans_b ? p->k : p->n,
                  .a_col = 1,
                  .fill = fill_bnb,
                  .fill_ctx = &w};
    g.m = y->count / g.n;
    g.a_row = g.k;
    g.c_row = g.n;
    SN_TRY(sni_in_as(k, sni_in(k, 0), SN_FLOAT32, &g.a));
    SN_TRY(sni_out_as(k, y, SN_FLOAT32, &g.c));
    SN_TRY(sni_gemm_run(k, SN_FLOAT32, &g));
    sni_out_done(k, y, SN_FLOAT32, g.c);
    return SN_OK;
}

const sni_op sni_op_ms_MatMulBnb4 = {
    .name = "MatMulBnb4",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"A", "T1"}, {"B", "uint8"}, {"absmax", "T1"}),
    .outputs = SNI_FORMALS({"Y", "T1"}),
    .types = SNI_TYPE_VARS({"T1", FLOATS}),
    .params = SNI_PARAMS({"K", SNI_ATTR_INT, FIELD(k), .required = true},
                         {"N", SNI_ATTR_INT, FIELD(n), .required = true},
                         {"block_size", SNI_ATTR_INT, FIELD(block_size), .required = true},
                         {"quant_type", SNI_ATTR_INT, FIELD(quant_type), .required = true},
                         {"transB", SNI_ATTR_INT, FIELD(trans_b), .number = 1},
                         {"training_mode", SNI_ATTR_INT, FIELD(training_mode)}),
    .params_size = sizeof(sni_nbits_params),
    .infer = bnb_infer,
    .ref = bnb_ref,
    .macs = product_macs,
};
