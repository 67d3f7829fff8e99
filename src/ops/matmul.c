/* MatMul: matrix product of stacks of matrices. */
#include "ops/matmul.h"

#include "base/checked.h"
#include "ops/compute.h"
#include "ops/tensor_util.h"

/* The shape of an operand with vectors as matrices, and its stack. */
typedef struct operand {
    int stack; /* axes before the matrix */
    sni_dim rows, columns;
} operand;

static operand operand_of(int rank, const sni_dim *dims, bool left) {
    if (rank == 1) return (operand){0, left ? 1 : dims[0], left ? dims[0] : 1};
    return (operand){rank - 2, dims[rank - 2], dims[rank - 1]};
}

sn_status sni_infer_matmul(sni_infer *c, int a, int b) {
    if (!sni_infer_shaped(c, a) || !sni_infer_shaped(c, b)) return SN_OK;
    const sni_type *ta = c->in[a], *tb = c->in[b];
    if (ta->rank == 0 || tb->rank == 0) return SNI_INFER_FAIL(c, "an operand is a scalar");
    operand x = operand_of(ta->rank, ta->dims, true), y = operand_of(tb->rank, tb->dims, false);
    if (sni_dim_known(x.columns) && sni_dim_known(y.rows) && x.columns != y.rows)
        return SNI_INFER_FAIL(c, "a matrix of %lld columns times one of %lld rows",
                              (long long)x.columns, (long long)y.rows);
    int rank = x.stack > y.stack ? x.stack : y.stack;
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int ia = i - (rank - x.stack), ib = i - (rank - y.stack);
        bool ok = true;
        dims[i] = sni_dim_broadcast(c->symbols, ia < 0 ? 1 : ta->dims[ia],
                                    ib < 0 ? 1 : tb->dims[ib], &ok);
        if (!ok)
            return SNI_INFER_FAIL(c, "stacks of %lld and %lld matrices along axis %d",
                                  (long long)ta->dims[ia], (long long)tb->dims[ib], i);
    }
    if (ta->rank > 1) dims[rank++] = x.rows;
    if (tb->rank > 1) dims[rank++] = y.columns;
    return sni_infer_set_shape(c, 0, rank, dims);
}

int64_t sni_matmul_macs(const sni_infer *c, int a, int b) {
    int64_t outputs, macs;
    if (!sni_infer_shaped(c, a) || !sni_infer_shaped(c, b) || !c->out[0].has_shape) return -1;
    sni_dim depth = sni_infer_dim(c, a, sni_infer_rank(c, a) - 1);
    if (!sni_shape_count(c->out[0].rank, c->out[0].dims, &outputs) || !sni_dim_known(depth) ||
        !sni_mul_i64(outputs, depth, &macs))
        return -1;
    return macs;
}

void sni_matmul_init(sni_matmul *mm, const sni_tensor *a, const sni_tensor *b) {
    operand x = operand_of(a->rank, a->dims, true), y = operand_of(b->rank, b->dims, false);
    mm->m = x.rows;
    mm->n = y.columns;
    mm->k = x.columns;
    mm->rank = x.stack > y.stack ? x.stack : y.stack;
    mm->count = 1;
    int64_t a_step = mm->m * mm->k, b_step = mm->k * mm->n;
    for (int i = mm->rank - 1; i >= 0; i--) {
        int ia = i - (mm->rank - x.stack), ib = i - (mm->rank - y.stack);
        int64_t da = ia < 0 ? 1 : a->dims[ia], db = ib < 0 ? 1 : b->dims[ib];
        mm->dims[i] = da == 1 ? db : da;
        mm->a_strides[i] = da == 1 ? 0 : a_step;
        mm->b_strides[i] = db == 1 ? 0 : b_step;
        a_step *= da;
        b_step *= db;
        mm->count *= mm->dims[i];
    }
    /* One matrix on the right: the stack on the left is one tall matrix. */
    if (mm->count > 1 && b_step == mm->k * mm->n && y.stack == 0) {
        mm->m *= mm->count;
        mm->count = 1;
        mm->rank = 0;
    }
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

void sni_matmul_run(const sni_matmul *mm, sn_dtype dtype, const void *a, const void *b, void *c,
                    int threads) {
    sni_gemm g = {.m = mm->m,
                  .n = mm->n,
                  .k = mm->k,
                  .a_row = mm->k,
                  .a_col = 1,
                  .b_row = mm->n,
                  .b_col = 1,
                  .c_row = mm->n};
    matmul_job job = {.mm = mm, .a = a, .b = b, .c = c, .width = sni_dtype_width(dtype)};
    sni_gemm_batch(dtype, &g, mm->count, matmul_locate, &job, threads);
}

static sn_status matmul_infer(sni_infer *c) {
    return sni_infer_matmul(c, 0, 1);
}

static int64_t matmul_macs(const sni_infer *c) {
    return sni_matmul_macs(c, 0, 1);
}

static sn_status matmul_ref(sni_kernel *k) {
    const sni_tensor *a = sni_in(k, 0), *b = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sni_compute_dtype(a->dtype);
    const void *left, *right;
    void *out;
    sni_matmul mm;
    sni_matmul_init(&mm, a, b);
    SN_TRY(sni_in_as(k, a, dtype, &left));
    SN_TRY(sni_in_as(k, b, dtype, &right));
    SN_TRY(sni_out_as(k, y, dtype, &out));
    sni_matmul_run(&mm, dtype, left, right, out, k->threads);
    sni_out_done(k, y, dtype, out);
    return SN_OK;
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
