/* Gemm: Y = alpha * A' B' + beta * C, where A' and B' are A and B or their transposes; and
 * FusedGemm, which applies an activation to that. */
#include "base/checked.h"
#include "ops/core/compute.h"
#include "ops/nn/fused.h"
#include "ops/core/tensor_util.h"

#define BODY "ops/matmul/gemm.inc.c"
#include "ops/core/each_float.inc.h"
#define LOW (double)INT32_MIN
#define HIGH (double)INT32_MAX
#define TYPE SNI_TYPE_I32
#include "ops/core/one_type.inc.h"
#undef LOW
#undef HIGH
#define LOW 0.0
#define HIGH (double)UINT32_MAX
#define TYPE SNI_TYPE_U32
#include "ops/core/one_type.inc.h"
#undef LOW
#undef HIGH
#define LOW (double)INT64_MIN
#define HIGH 9223372036854774784.0 /* the largest double below 2^63 */
#define TYPE SNI_TYPE_I64
#include "ops/core/one_type.inc.h"
#undef LOW
#undef HIGH
#define LOW 0.0
#define HIGH 18446744073709549568.0 /* the largest double below 2^64 */
#define TYPE SNI_TYPE_U64
#include "ops/core/one_type.inc.h"
#undef LOW
#undef HIGH
#undef BODY

sn_status sni_infer_gemm(sni_infer *c, const int in[3], bool trans_a, bool trans_b) {
    int a = in[0], b = in[1], bias = in[2];
    if (!sni_infer_shaped(c, a) || !sni_infer_shaped(c, b)) return SN_OK;
    if (sni_infer_rank(c, a) != 2 || sni_infer_rank(c, b) != 2)
        return SNI_INFER_FAIL(c, "A and B have ranks %d and %d, not 2", sni_infer_rank(c, a),
                              sni_infer_rank(c, b));
    sni_dim depth = sni_infer_dim(c, a, !trans_a), other = sni_infer_dim(c, b, trans_b);
    sni_dim dims[2] = {sni_infer_dim(c, a, trans_a), sni_infer_dim(c, b, !trans_b)};
    if (sni_dim_differ(depth, other))
        return SNI_INFER_FAIL(c, "a matrix of %lld columns times one of %lld rows",
                              (long long)depth, (long long)other);
    if (sni_infer_shaped(c, bias)) {
        int rank = sni_infer_rank(c, bias);
        if (rank > 2) return SNI_INFER_FAIL(c, "C has rank %d, more than 2", rank);
        for (int i = 0; i < rank; i++) {
            sni_dim d = sni_infer_dim(c, bias, i), y = dims[2 - rank + i];
            if (d != 1 && sni_dim_differ(d, y))
                return SNI_INFER_FAIL(c, "C has size %lld where the product has %lld", (long long)d,
                                      (long long)y);
        }
    }
    return sni_infer_set_shape(c, 0, 2, dims);
}

static sn_status gemm_infer(sni_infer *c) {
    const sni_gemm_params *p = c->params;
    return sni_infer_gemm(c, (const int[3]){0, 1, 2}, p->trans_a != 0, p->trans_b != 0);
}

static int64_t gemm_macs(const sni_infer *c) {
    const sni_gemm_params *p = c->params;
    if (!sni_infer_shaped(c, 0) || !c->out[0].has_shape) return -1;
    int64_t dims[3] = {c->out[0].dims[0], c->out[0].dims[1], sni_infer_dim(c, 0, !p->trans_a)};
    int64_t macs;
    return sni_shape_count(3, dims, &macs) ? macs : -1;
}

typedef void (*finish_fn)(void *, const void *, int64_t, int64_t, float, float);

/* Y = alpha * Y + beta * C, row by row. */
static void finish(const sni_gemm_params *p, sn_dtype dtype, sni_gemm *g, const void *c,
                   const int64_t *strides) {
    static const finish_fn fns[SNI_DTYPE_COUNT] = {
        SNI_EACH_FLOAT(finish), [SN_INT32] = finish_i32, [SN_UINT32] = finish_u32,
        [SN_INT64] = finish_i64, [SN_UINT64] = finish_u64};
    size_t width = sni_dtype_width(dtype);
    for (int64_t i = 0; i < g->m; i++)
        fns[dtype](sni_element(g->c, i * g->n, width),
                   c ? sni_element(c, i * strides[0], width) : NULL, strides[1], g->n, p->alpha,
                   p->beta);
}

static sn_status run_gemm(sni_kernel *k, const sni_activation *f) {
    const sni_gemm_params *p = k->params;
    const sni_tensor *a = sni_in(k, 0), *b = sni_in(k, 1), *c = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sni_compute_dtype(y->dtype);
    int ta = p->trans_a != 0, tb = p->trans_b != 0;
    sni_gemm g = {.m = y->dims[0], .n = y->dims[1], .k = a->dims[!ta], .c_row = y->dims[1]};
    g.a_row = ta ? 1 : g.k;
    g.a_col = ta ? g.m : 1;
    g.b_row = tb ? 1 : g.n;
    g.b_col = tb ? g.k : 1;
    int64_t strides[2] = {0, 0};
    const void *bias;
    SN_TRY(sni_in_as(k, a, dtype, &g.a));
    SN_TRY(sni_in_as(k, b, dtype, &g.b));
    SN_TRY(sni_in_as(k, c, dtype, &bias));
    SN_TRY(sni_out_as(k, y, dtype, &g.c));
    if (c) sni_broadcast_strides(c, 2, y->dims, strides);
    if (p->beta == 0) bias = NULL;
    if (p->alpha == 1 && p->beta == 1 && bias) { /* exact for integers: C first, then add to it */
        size_t width = sni_dtype_width(dtype);
        for (int64_t i = 0; i < g.m; i++)
            sni_copy_strided(sni_element(g.c, i * g.n, width), 1,
                             sni_element(bias, i * strides[0], width), strides[1], g.n, width);
        g.add = true;
    }
    SN_TRY(sni_gemm_run(k, dtype, &g));
    if (!g.add && (bias || p->alpha != 1)) finish(p, dtype, &g, bias, strides);
    sni_activate(f, dtype, g.c, NULL, y->count, k->threads);
    sni_out_done(k, y, dtype, g.c);
    return SN_OK;
}

static sn_status gemm_ref(sni_kernel *k) {
    return run_gemm(k, &(sni_activation){.kind = SNI_FN_NONE});
}

static sn_status gemm_upgrade(sni_upgrade *u) {
    /* Before opset 7 an attribute allowed C to be broadcast, by the same rule as now. */
    if (u->from < 7) sni_node_remove_attr(u->node, "broadcast");
    return SN_OK;
}

#define GEMM_FIELDS                                                             \
    {"alpha", SNI_ATTR_FLOAT, offsetof(sni_gemm_params, alpha), .number = 1},   \
        {"beta", SNI_ATTR_FLOAT, offsetof(sni_gemm_params, beta), .number = 1}, \
        {"transA", SNI_ATTR_INT, offsetof(sni_gemm_params, trans_a)}, {         \
        "transB", SNI_ATTR_INT, offsetof(sni_gemm_params, trans_b)              \
    }

const sni_op sni_op_Gemm = {
    .name = "Gemm",
    .versions = SNI_VERSIONS(1, 6, 7, 9, 11, 13),
    .inputs = SNI_FORMALS({"A", "T"}, {"B", "T"}, {"C", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS | SNI_T_INDEX | SNI_T(SN_UINT32) | SNI_T(SN_UINT64)}),
    .params = SNI_PARAMS(GEMM_FIELDS),
    .params_size = sizeof(sni_gemm_params),
    .upgrade = gemm_upgrade,
    .infer = gemm_infer,
    .ref = gemm_ref,
    .macs = gemm_macs,
};

static sn_status fused_prepare(void *params, sni_arena *arena, sn_error *err) {
    sni_fused_gemm_params *p = params;
    (void)arena;
    const float *beta = p->has_gamma ? &p->gamma : p->has_beta ? &p->beta : NULL;
    return sni_fused_activation(p->name, p->has_alpha ? &p->alpha : NULL, beta, &p->activation,
                                err);
}

static sn_status fused_ref(sni_kernel *k) {
    const sni_fused_gemm_params *p = k->params;
    return run_gemm(k, &p->activation);
}

#define FIELD(f) offsetof(sni_fused_gemm_params, f)

const sni_op sni_op_ms_FusedGemm = {
    .name = "FusedGemm",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"A", "T"}, {"B", "T"}, {"C", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(
        GEMM_FIELDS, {"activation", SNI_ATTR_STRING, FIELD(name)},
        {"activation_alpha", SNI_ATTR_FLOAT, FIELD(alpha), .present = FIELD(has_alpha) + 1},
        {"activation_beta", SNI_ATTR_FLOAT, FIELD(beta), .present = FIELD(has_beta) + 1},
        {"activation_gamma", SNI_ATTR_FLOAT, FIELD(gamma), .present = FIELD(has_gamma) + 1}),
    .params_size = sizeof(sni_fused_gemm_params),
    .prepare = fused_prepare,
    .infer = gemm_infer,
    .ref = fused_ref,
    .macs = gemm_macs,
};
