/* Linear of ai.sinter: a dense layer in one node, Y = activation(X W + B + residual). X is (...,K),
 * W is (K,N), or (N,K) with trans_w; B is (N); the residual and Y are (...,N); slopes (N) are those
 * of a PRelu in the activation's place. The optimiser makes it of MatMul or Gemm and what follows.
 */
#include "ops/core/compute.h"
#include "ops/nn/fused.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

enum { X, W, B, RESIDUAL, SLOPES };

static sn_status linear_prepare(void *params, sni_arena *arena, sn_error *err) {
    sni_linear_params *p = params;
    (void)arena;
    return sni_fused_activation_list(p->name, &p->coefficients, &p->activation, err);
}

static sn_status check_bias(sni_infer *c, sni_dim columns) {
    if (!sni_infer_shaped(c, B)) return SN_OK;
    if (sni_infer_rank(c, B) != 1 || sni_dim_differ(sni_infer_dim(c, B, 0), columns))
        return SNI_INFER_FAIL(c, "B is not a vector of %lld elements", (long long)columns);
    return SN_OK;
}

static sn_status linear_infer(sni_infer *c) {
    const sni_linear_params *p = c->params;
    if (!sni_infer_shaped(c, X) || !sni_infer_shaped(c, W)) return SN_OK;
    int rank = sni_infer_rank(c, X);
    if (rank < 1 || sni_infer_rank(c, W) != 2)
        return SNI_INFER_FAIL(c, "X and W have ranks %d and %d, not 1 or more and 2", rank,
                              sni_infer_rank(c, W));
    bool transposed = p->trans_w != 0;
    sni_dim depth = sni_infer_dim(c, X, rank - 1), rows = sni_infer_dim(c, W, transposed);
    sni_dim dims[SN_MAX_RANK], columns = sni_infer_dim(c, W, !transposed);
    if (sni_dim_differ(depth, rows))
        return SNI_INFER_FAIL(c, "rows of %lld elements times a matrix of %lld rows",
                              (long long)depth, (long long)rows);
    SN_TRY(check_bias(c, columns));
    SN_TRY(sni_infer_slopes(c, SLOPES, columns, &p->activation));
    for (int i = 0; i < rank - 1; i++) dims[i] = sni_infer_dim(c, X, i);
    dims[rank - 1] = columns;
    if (sni_infer_shaped(c, RESIDUAL)) {
        if (sni_infer_rank(c, RESIDUAL) != rank)
            return SNI_INFER_FAIL(c, "the residual has rank %d and the product %d",
                                  sni_infer_rank(c, RESIDUAL), rank);
        for (int i = 0; i < rank; i++)
            SN_TRY(sni_infer_join_dim(c, "the residual and the product", i, dims[i],
                                      sni_infer_dim(c, RESIDUAL, i), &dims[i]));
    }
    return sni_infer_set_shape(c, 0, rank, dims);
}

static int64_t linear_macs(const sni_infer *c) {
    return sni_matmul_macs(c, X, W);
}

static sn_status linear_ref(sni_kernel *k) {
    const sni_linear_params *p = k->params;
    const sni_tensor *x = sni_in(k, X), *w = sni_in(k, W), *b = sni_in(k, B);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sni_compute_dtype(y->dtype);
    size_t width = sni_dtype_width(dtype);
    bool transposed = p->trans_w != 0;
    sni_gemm g = {.n = w->dims[!transposed], .k = w->dims[transposed], .add = b != NULL};
    const void *bias, *more, *slopes;
    g.m = g.n ? y->count / g.n : 0;
    g.a_row = g.k;
    g.a_col = 1;
    g.b_row = transposed ? 1 : g.n;
    g.b_col = transposed ? g.k : 1;
    g.c_row = g.n;
    SN_TRY(sni_in_as(k, x, dtype, &g.a));
    SN_TRY(sni_in_as(k, w, dtype, &g.b));
    SN_TRY(sni_in_as(k, b, dtype, &bias));
    SN_TRY(sni_in_as(k, sni_in(k, RESIDUAL), dtype, &more));
    SN_TRY(sni_in_as(k, sni_in(k, SLOPES), dtype, &slopes));
    SN_TRY(sni_out_as(k, y, dtype, &g.c));
    for (int64_t i = 0; bias && i < g.m; i++)
        sni_copy_strided(sni_element(g.c, i * g.n, width), 1, bias, 1, g.n, width);
    SN_TRY(sni_gemm_run(k, dtype, &g));
    sni_activate(&p->activation, dtype, g.c, more, y->count, k->threads);
    if (slopes) sni_fused_bend(dtype, g.c, slopes, g.m, g.n, 1);
    sni_out_done(k, y, dtype, g.c);
    return SN_OK;
}

#define FIELD(f) offsetof(sni_linear_params, f)

const sni_op sni_op_sinter_Linear = {
    .name = "Linear",
    .domain = "ai.sinter",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"W", "T"}, {"B", "T", SNI_OPTIONAL},
                          {"residual", "T", SNI_OPTIONAL}, {"slopes", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(
        {"trans_w", SNI_ATTR_INT, FIELD(trans_w)}, {"activation", SNI_ATTR_STRING, FIELD(name)},
        {"activation_params", SNI_ATTR_FLOATS, FIELD(coefficients)},
        /* of files that were written when nodes said how they may be computed */
        {"strassen", SNI_ATTR_INT, .ignored = true}, {"paired", SNI_ATTR_INT, .ignored = true},
        {"digits", SNI_ATTR_INT, .ignored = true}),
    .params_size = sizeof(sni_linear_params),
    .flags = SNI_OP_SPELLED,
    .prepare = linear_prepare,
    .infer = linear_infer,
    .ref = linear_ref,
    .macs = linear_macs,
};
