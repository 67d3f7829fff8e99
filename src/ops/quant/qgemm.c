/* QGemm: the product of 8-bit matrices plus a 32-bit one, scaled to floats or to bytes. */
#include "ops/quant/qgemm.h"

#include "ops/matmul/matmul.h"
#include "ops/quant/qlinear.h"
#include "ops/quant/quant.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO };

static sn_status qgemm_infer(sni_infer *c) {
    const sni_qgemm_params *p = c->params;
    bool zero = sni_infer_given(c, Y_ZERO);
    if (zero != sni_infer_given(c, Y_SCALE))
        return SNI_INFER_FAIL(c, "of the output's scale and zero point one is missing");
    if (!zero)
        SN_TRY(sni_infer_set_type(c, 0, SN_FLOAT32));
    else if (c->in[Y_ZERO]->dtype)
        SN_TRY(sni_infer_set_type(c, 0, c->in[Y_ZERO]->dtype));
    return sni_infer_gemm(c, (const int[3]){A, B, C}, p->trans_a != 0, p->trans_b != 0);
}

static int64_t qgemm_macs(const sni_infer *c) {
    const sni_qgemm_params *p = c->params;
    return sni_transposed_macs(c, A, (sni_transposition){p->trans_a != 0, false}, B);
}

/* The sums, C included. */
static sn_status accumulate(sni_kernel *k, int32_t *acc) {
    const sni_qgemm_params *p = k->params;
    const sni_tensor *a = sni_in(k, A), *b = sni_in(k, B), *c = sni_in(k, C), *y = sni_out(k, 0);
    const int32_t *left, *right;
    int64_t strides[2];
    sni_matmul mm;
    SN_TRY(sni_centered(k, a, sni_in(k, A_ZERO), SNI_QUANT_ROWS, &left));
    SN_TRY(sni_centered(k, b, sni_in(k, B_ZERO), p->trans_b ? SNI_QUANT_ROWS : SNI_QUANT_COLUMNS,
                        &right));
    sni_matmul_transposed(&mm, a, (sni_transposition){p->trans_a != 0, false}, b,
                          (sni_transposition){p->trans_b != 0, false});
    SN_TRY(sni_matmul_run(k, &mm, SN_INT32, left, right, acc));
    if (!c) return SN_OK;
    sni_broadcast_strides(c, 2, y->dims, strides);
    for (int64_t i = 0; i < y->count; i++) {
        int64_t at = i / mm.n * strides[0] + i % mm.n * strides[1];
        acc[i] = (int32_t)((uint32_t)acc[i] + (uint32_t)((const int32_t *)c->data)[at]);
    }
    return SN_OK;
}

static sn_status qgemm_ref(sni_kernel *k) {
    const sni_qgemm_params *p = k->params;
    const sni_tensor *a_scale = sni_in(k, A_SCALE), *b_scale = sni_in(k, B_SCALE);
    sni_tensor *y = sni_out(k, 0);
    sni_qscale q = {.scale = 1};
    void *acc = NULL;
    int64_t n = y->dims[1];
    if (a_scale->count != 1 || sni_in(k, A_ZERO)->count != 1)
        return SNI_KERNEL_FAIL(k, "A has more than one scale or zero point");
    if (b_scale->count != 1 && (b_scale->rank != 1 || b_scale->count != n))
        return SNI_KERNEL_FAIL(k, "%lld scales for %lld columns", (long long)b_scale->count,
                               (long long)n);
    if (sni_in(k, Y_SCALE)) SN_TRY(sni_qscale_get(k, Y_SCALE, y->dtype, &q));
    SN_TRY(sni_scratch_array(k, y->count, sizeof(int32_t), &acc));
    if (y->count == 0) return SN_OK;
    SN_TRY(accumulate(k, acc));
    for (int64_t i = 0; i < y->count; i++) {
        float scale = p->alpha * *(const float *)a_scale->data *
                      ((const float *)b_scale->data)[b_scale->count == 1 ? 0 : i % n];
        float v = (float)((const int32_t *)acc)[i] * (scale / q.scale);
        if (y->dtype == SN_FLOAT32)
            ((float *)y->data)[i] = v;
        else
            ((uint8_t *)y->data)[i] = sni_requantize_fast(v, q.zero, y->dtype);
    }
    return SN_OK;
}

#define FIELD(f) offsetof(sni_qgemm_params, f)

const sni_op sni_op_ms_QGemm = {
    .name = "QGemm",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs =
        SNI_FORMALS({"A", "TA"}, {"a_scale", "float32"}, {"a_zero_point", "TA"}, {"B", "TB"},
                    {"b_scale", "float32"}, {"b_zero_point", "TB"}, {"C", "int32", SNI_OPTIONAL},
                    {"y_scale", "float32", SNI_OPTIONAL}, {"y_zero_point", "TYZ", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "TY"}),
    .types = SNI_TYPE_VARS({"TA", SNI_T_BYTES}, {"TB", SNI_T_BYTES}, {"TYZ", SNI_T_BYTES},
                           {"TY", SNI_T_BYTES | SNI_T(SN_FLOAT32)}),
    .params = SNI_PARAMS({"alpha", SNI_ATTR_FLOAT, FIELD(alpha), .number = 1},
                         {"transA", SNI_ATTR_INT, FIELD(trans_a)},
                         {"transB", SNI_ATTR_INT, FIELD(trans_b)}),
    .params_size = sizeof(sni_qgemm_params),
    .infer = qgemm_infer,
    .ref = qgemm_ref,
    .macs = qgemm_macs,
};
