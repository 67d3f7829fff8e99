/* MatMul: products of batches of matrices. FusedMatMul and its relatives: operands may be
 * transposed and the product is scaled. */
#include "base/checked.h"
#include "ops/core/compute.h"
#include "ops/nn/fused.h"
#include "ops/core/tensor_util.h"

/* The shape of an operand with vectors as matrices, and its stack. */
typedef struct operand {
    int stack; /* axes before the matrix */
    sni_dim rows, columns;
    sni_dim dims[SN_MAX_RANK]; /* all axes, transposed ... */
    int axes[SN_MAX_RANK];     /* ... and which each of them was */
} operand;

static operand operand_of(int rank, const sni_dim *dims, bool left, sni_transposition transpose) {
    operand o = {0};
    int last = rank - 1;
    for (int i = 0; i < rank; i++) o.axes[i] = i;
    if (transpose.batch && rank > 2) {
        for (int i = 0; i < last - 1; i++) o.axes[i] = i + 1;
        o.axes[last - 1] = 0;
    }
    if (transpose.trans && rank > 1) {
        int row = o.axes[last - 1];
        o.axes[last - 1] = o.axes[last];
        o.axes[last] = row;
    }
    for (int i = 0; i < rank; i++) o.dims[i] = dims[o.axes[i]];
    if (rank == 1) {
        o.rows = left ? 1 : dims[0];
        o.columns = left ? dims[0] : 1;
    } else {
        o.stack = rank - 2;
        o.rows = o.dims[rank - 2];
        o.columns = o.dims[rank - 1];
    }
    return o;
}

sn_status sni_infer_transposed(sni_infer *c, int a, sni_transposition transpose_a, int b,
                               sni_transposition transpose_b) {
    if (!sni_infer_shaped(c, a) || !sni_infer_shaped(c, b)) return SN_OK;
    const sni_type *ta = c->in[a], *tb = c->in[b];
    if (ta->rank == 0 || tb->rank == 0) return SNI_INFER_FAIL(c, "an operand is a scalar");
    operand x = operand_of(ta->rank, ta->dims, true, transpose_a);
    operand y = operand_of(tb->rank, tb->dims, false, transpose_b);
    if (sni_dim_differ(x.columns, y.rows))
        return SNI_INFER_FAIL(c, "a matrix of %lld columns times one of %lld rows",
                              (long long)x.columns, (long long)y.rows);
    int rank = x.stack > y.stack ? x.stack : y.stack;
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int ia = i - (rank - x.stack), ib = i - (rank - y.stack);
        bool ok = true;
        dims[i] =
            sni_dim_broadcast(c->symbols, ia < 0 ? 1 : x.dims[ia], ib < 0 ? 1 : y.dims[ib], &ok);
        if (!ok)
            return SNI_INFER_FAIL(c, "stacks of %lld and %lld matrices along axis %d",
                                  (long long)x.dims[ia], (long long)y.dims[ib], i);
    }
    if (ta->rank > 1) dims[rank++] = x.rows;
    if (tb->rank > 1) dims[rank++] = y.columns;
    return sni_infer_set_shape(c, 0, rank, dims);
}

sn_status sni_infer_matmul(sni_infer *c, int a, int b) {
    return sni_infer_transposed(c, a, (sni_transposition){0}, b, (sni_transposition){0});
}

int64_t sni_transposed_macs(const sni_infer *c, int a, sni_transposition transpose_a, int b) {
    int64_t outputs, macs;
    if (!sni_infer_shaped(c, a) || !sni_infer_shaped(c, b) || !c->out[0].has_shape) return -1;
    const sni_type *ta = c->in[a];
    sni_dim depth = operand_of(ta->rank, ta->dims, true, transpose_a).columns;
    if (!sni_shape_count(c->out[0].rank, c->out[0].dims, &outputs) || !sni_dim_known(depth) ||
        !sni_mul_i64(outputs, depth, &macs))
        return -1;
    return macs;
}

int64_t sni_matmul_macs(const sni_infer *c, int a, int b) {
    return sni_transposed_macs(c, a, (sni_transposition){0}, b);
}

/* Strides of the matrix and of the stack's axes, seen as `rank` axes of which those with size 1
 * stand still. */
static void place_operand(const operand *o, const sni_tensor *t, bool left, int rank,
                          int64_t *strides, int64_t *row, int64_t *col) {
    int64_t own[SN_MAX_RANK];
    sni_strides(t->rank, t->dims, own);
    *row = t->rank > 1 ? own[o->axes[t->rank - 2]] : left ? o->columns : 1;
    *col = t->rank > 1 ? own[o->axes[t->rank - 1]] : 1;
    for (int i = 0; i < rank; i++) {
        int at = i - (rank - o->stack);
        strides[i] = at < 0 || o->dims[at] == 1 ? 0 : own[o->axes[at]];
    }
}

void sni_matmul_transposed(sni_matmul *mm, const sni_tensor *a, sni_transposition transpose_a,
                           const sni_tensor *b, sni_transposition transpose_b) {
    operand x = operand_of(a->rank, a->dims, true, transpose_a);
    operand y = operand_of(b->rank, b->dims, false, transpose_b);
    mm->m = x.rows;
    mm->n = y.columns;
    mm->k = x.columns;
    mm->rank = x.stack > y.stack ? x.stack : y.stack;
    mm->count = 1;
    place_operand(&x, a, true, mm->rank, mm->a_strides, &mm->a_row, &mm->a_col);
    place_operand(&y, b, false, mm->rank, mm->b_strides, &mm->b_row, &mm->b_col);
    for (int i = 0; i < mm->rank; i++) {
        int ia = i - (mm->rank - x.stack), ib = i - (mm->rank - y.stack);
        int64_t da = ia < 0 ? 1 : x.dims[ia], db = ib < 0 ? 1 : y.dims[ib];
        mm->dims[i] = da == 1 ? db : da;
        mm->count *= mm->dims[i];
    }
    /* One matrix on the right: the stack on the left is one tall matrix. */
    if (mm->count > 1 && y.stack == 0 && !transpose_a.trans && !transpose_a.batch) {
        mm->m *= mm->count;
        mm->count = 1;
        mm->rank = 0;
    }
}

void sni_matmul_init(sni_matmul *mm, const sni_tensor *a, const sni_tensor *b) {
    sni_matmul_transposed(mm, a, (sni_transposition){0}, b, (sni_transposition){0});
}

typedef struct matmul_job {
    const sni_matmul *mm;
    const void *a, *b;
    void *c;
    size_t width;
} matmul_job;

void sni_matmul_offsets(const sni_matmul *mm, int64_t i, int64_t *a, int64_t *b) {
    *a = *b = 0;
    for (int axis = mm->rank - 1; axis >= 0; axis--) {
        int64_t x = i % mm->dims[axis];
        i /= mm->dims[axis];
        *a += x * mm->a_strides[axis];
        *b += x * mm->b_strides[axis];
    }
}

static void matmul_locate(const void *ctx, int64_t i, sni_gemm *g) {
    const matmul_job *j = ctx;
    int64_t at_a, at_b;
    sni_matmul_offsets(j->mm, i, &at_a, &at_b);
    g->a = sni_element(j->a, at_a, j->width);
    g->b = sni_element(j->b, at_b, j->width);
    g->c = sni_element(j->c, i * j->mm->m * j->mm->n, j->width);
}

sn_status sni_matmul_run(sni_kernel *k, const sni_matmul *mm, sn_dtype dtype, const void *a,
                         const void *b, void *c) {
    sni_gemm g = {.m = mm->m,
                  .n = mm->n,
                  .k = mm->k,
                  .a_row = mm->a_row,
                  .a_col = mm->a_col,
                  .b_row = mm->b_row,
                  .b_col = mm->b_col,
                  .c_row = mm->n};
    matmul_job job = {.mm = mm, .a = a, .b = b, .c = c, .width = sni_dtype_width(dtype)};
    return sni_gemm_batch(k, dtype, &g, mm->count, matmul_locate, &job);
}

static sn_status matmul_infer(sni_infer *c) {
    return sni_infer_matmul(c, 0, 1);
}

static int64_t matmul_macs(const sni_infer *c) {
    return sni_matmul_macs(c, 0, 1);
}

/* y = f(alpha * a b), with both operands transposed. */
static sn_status run_matmul(sni_kernel *k, sni_transposition transpose_a,
                            sni_transposition transpose_b, float alpha, const sni_activation *f) {
    const sni_tensor *a = sni_in(k, 0), *b = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sni_compute_dtype(a->dtype);
    const void *left, *right;
    void *out;
    sni_matmul mm;
    sni_matmul_transposed(&mm, a, transpose_a, b, transpose_b);
    SN_TRY(sni_in_as(k, a, dtype, &left));
    SN_TRY(sni_in_as(k, b, dtype, &right));
    SN_TRY(sni_out_as(k, y, dtype, &out));
    SN_TRY(sni_matmul_run(k, &mm, dtype, left, right, out));
    sni_activation scale = {SNI_FN_AFFINE, alpha, 0};
    if (alpha != 1) sni_activate(&scale, dtype, out, NULL, y->count, k->threads);
    sni_activate(f, dtype, out, NULL, y->count, k->threads);
    sni_out_done(k, y, dtype, out);
    return SN_OK;
}

static sn_status matmul_ref(sni_kernel *k) {
    sni_transposition none = {0};
    return run_matmul(k, none, none, 1, &(sni_activation){.kind = SNI_FN_NONE});
}

const sni_op sni_op_MatMul = {
    .name = "MatMul",
    .versions = SNI_VERSIONS(1, 9, 13),
    .inputs = SNI_FORMALS({"A", "T"}, {"B", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS | SNI_T_INDEX | SNI_T(SN_UINT32) | SNI_T(SN_UINT64)}),
    .infer = matmul_infer,
    .ref = matmul_ref,
    .macs = matmul_macs,
};

/* ---- com.microsoft ---- */

static sni_transposition transpose_a(const sni_fused_matmul_params *p) {
    return (sni_transposition){p->trans_a != 0, p->batch_a != 0};
}

static sni_transposition transpose_b(const sni_fused_matmul_params *p) {
    return (sni_transposition){p->trans_b != 0, p->batch_b != 0};
}

static sn_status fused_prepare(void *params, sni_arena *arena, sn_error *err) {
    sni_fused_matmul_params *p = params;
    (void)arena;
    const float *beta = p->has_gamma ? &p->act_gamma : p->has_beta ? &p->act_beta : NULL;
    return sni_fused_activation(p->name, p->has_alpha ? &p->act_alpha : NULL, beta, &p->activation,
                                err);
}

static sn_status fused_infer(sni_infer *c) {
    return sni_infer_transposed(c, 0, transpose_a(c->params), 1, transpose_b(c->params));
}

static int64_t fused_macs(const sni_infer *c) {
    return sni_transposed_macs(c, 0, transpose_a(c->params), 1);
}

static sn_status fused_ref(sni_kernel *k) {
    const sni_fused_matmul_params *p = k->params;
    return run_matmul(k, transpose_a(p), transpose_b(p), p->alpha, &p->activation);
}

#define FIELD(f) offsetof(sni_fused_matmul_params, f)
#define TRANSPOSE_FIELDS                                  \
    {"alpha", SNI_ATTR_FLOAT, FIELD(alpha), .number = 1}, \
        {"transA", SNI_ATTR_INT, FIELD(trans_a)}, {       \
        "transB", SNI_ATTR_INT, FIELD(trans_b)            \
    }
#define TURN_FIELDS                                                    \
    TRANSPOSE_FIELDS, {"transBatchA", SNI_ATTR_INT, FIELD(batch_a)}, { \
        "transBatchB", SNI_ATTR_INT, FIELD(batch_b)                    \
    }

const sni_op sni_op_ms_FusedMatMul = {
    .name = "FusedMatMul",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"A", "T"}, {"B", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(TURN_FIELDS),
    .params_size = sizeof(sni_fused_matmul_params),
    .infer = fused_infer,
    .ref = fused_ref,
    .macs = fused_macs,
};

const sni_op sni_op_ms_FusedMatMulActivation = {
    .name = "FusedMatMulActivation",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"A", "T"}, {"B", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(
        TURN_FIELDS, {"activation", SNI_ATTR_STRING, FIELD(name), .required = true},
        {"activation_alpha", SNI_ATTR_FLOAT, FIELD(act_alpha), .present = FIELD(has_alpha) + 1},
        {"activation_beta", SNI_ATTR_FLOAT, FIELD(act_beta), .present = FIELD(has_beta) + 1},
        {"activation_gamma", SNI_ATTR_FLOAT, FIELD(act_gamma), .present = FIELD(has_gamma) + 1},
        {"activation_axis", SNI_ATTR_INT, FIELD(axis)}),
    .params_size = sizeof(sni_fused_matmul_params),
    .prepare = fused_prepare,
    .infer = fused_infer,
    .ref = fused_ref,
    .macs = fused_macs,
};

const sni_op sni_op_ms_TransposeMatMul = {
    .name = "TransposeMatMul",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"A", "T"}, {"B", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(TRANSPOSE_FIELDS),
    .params_size = sizeof(sni_fused_matmul_params),
    .infer = fused_infer,
    .ref = fused_ref,
    .macs = fused_macs,
};
