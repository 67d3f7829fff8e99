/* reduce.c - the driver of the reductions: threads, and the order in which memory is read. */
#include "ops/math/reduce.h"

#include "base/floats.h"
#include "base/threadpool.h"
#include "ops/core/axes.h"
#include "ops/core/tensor_util.h"

enum {
    BLOCK = 256,   /* accumulators, and narrow elements converted, at a time */
    GRAIN = 32768, /* elements read that are worth a thread, ... */
    PARTS = 4,     /* ... and how many parts of it they are dealt out in */
};

typedef struct reduce_job {
    const sni_reducer *reducer;
    const sni_tensor *x;
    sni_tensor *y;
    bool narrow;
    sni_axes axes;
} reduce_job;

/* ---- Axes ---- */

/* Marks the axes that go. `axes` NULL or empty: all, or none with noop_with_empty_axes. */
static sn_status mark_axes(const sni_reduce_params *p, const sni_tensor *axes, int rank,
                           bool reduced[SN_MAX_RANK], sn_error *err) {
    bool all = (!axes || axes->count == 0) && !p->noop_with_empty_axes;
    for (int i = 0; i < rank; i++) reduced[i] = all;
    if (!axes) return SN_OK;
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = sni_index_at(axes, i);
        if (axis < -rank || axis >= rank)
            return sni_fail(err, SN_BAD_DATA, "axis %lld is outside a tensor of rank %d",
                            (long long)axis, rank);
        if (axis < 0) axis += rank;
        if (reduced[axis])
            return sni_fail(err, SN_BAD_DATA, "axis %lld is given twice", (long long)axis);
        reduced[axis] = true;
    }
    return SN_OK;
}

static sn_status fresh_shape(sni_infer *c, int rank) {
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        dims[i] = sni_dim_fresh(c->symbols);
        if (dims[i] == SNI_DIM_FAIL) return sni_fail_memory(c->err);
    }
    return sni_infer_set_shape(c, 0, rank, dims);
}

sn_status sni_reduce_infer(sni_infer *c) {
    const sni_reduce_params *p = c->params;
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    const sni_tensor *axes = NULL;
    if (sni_infer_given(c, 1)) {
        SN_TRY(sni_infer_known(c, 1, &axes));
        if (!axes) {
            if (p->keepdims) return fresh_shape(c, rank);
            if (!sni_infer_shaped(c, 1) || sni_infer_rank(c, 1) != 1) return SN_OK;
            sni_dim n = sni_infer_dim(c, 1, 0);
            if (!sni_dim_known(n) || n == 0 || n > rank) return SN_OK;
            return fresh_shape(c, rank - (int)n);
        }
    }
    bool reduced[SN_MAX_RANK];
    SN_TRY(mark_axes(p, axes, rank, reduced, c->err));
    sni_dim dims[SN_MAX_RANK];
    int n = 0;
    for (int i = 0; i < rank; i++) {
        if (!reduced[i])
            dims[n++] = sni_infer_dim(c, 0, i);
        else if (p->keepdims)
            dims[n++] = 1;
    }
    return sni_infer_set_shape(c, 0, n, dims);
}

/* ---- Reading ---- */

static const void *element(const reduce_job *j, int64_t offset) {
    return (const unsigned char *)j->x->data + (size_t)offset * sni_dtype_width(j->x->dtype);
}

static void fold(const reduce_job *j, void *acc, int64_t offset, int64_t n) {
    void (*fn)(void *, const void *, int64_t) =
        j->axes.run_kept ? j->reducer->col : j->reducer->row;
    if (!j->narrow) {
        fn(acc, element(j, offset), n);
        return;
    }
    float block[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) { /* a kept run never has more than BLOCK */
        int64_t m = n - i < BLOCK ? n - i : BLOCK;
        sni_widen(j->x->dtype, element(j, offset + i), block, (size_t)m);
        fn(acc, block, m);
    }
}

/* Folds n elements of the run from `offset` on, at `rows` positions that are `step` apart. */
static void fold_rows(const reduce_job *j, void *acc, int64_t offset, int64_t n, int64_t rows,
                      int64_t step) {
    if (j->axes.run_kept && !j->narrow && j->reducer->cols) {
        j->reducer->cols(acc, element(j, offset), n, rows, step);
        return;
    }
    for (int64_t r = 0; r < rows; r++) fold(j, acc, offset + r * step, n);
}

/* What a walk of reduced positions folds. */
typedef struct fold_walk {
    const reduce_job *job;
    void *acc;
    int64_t n;
} fold_walk;

static void fold_place(void *ctx, int64_t at, int64_t rows, int64_t step) {
    const fold_walk *w = ctx;
    fold_rows(w->job, w->acc, at, w->n, rows, step);
}

static void finish(const reduce_job *j, const void *acc, int64_t at, int64_t n) {
    unsigned char *y = (unsigned char *)j->y->data + (size_t)at * sni_dtype_width(j->y->dtype);
    if (!j->narrow) {
        j->reducer->finish(acc, y, n, j->axes.count);
        if (j->y->dtype == SN_BOOL)
            for (int64_t i = 0; i < n; i++) y[i] = y[i] != 0;
        return;
    }
    float block[BLOCK];
    j->reducer->finish(acc, block, n, j->axes.count);
    sni_narrow(j->y->dtype, block, y, (size_t)n, true);
}

/* True if the reduced elements of each result are contiguous, one result after the other. */
static bool plain_rows(const reduce_job *j) {
    const sni_axes *a = &j->axes;
    return !j->narrow && !a->run_kept && a->count > 0 && a->red_rank == 0 &&
           (a->kept_rank == 0 || (a->kept_rank == 1 && a->kept_strides[0] == a->run));
}

static void reduce_rows(const reduce_job *j, unsigned char *acc, int64_t begin, int64_t end) {
    size_t bytes = (size_t)j->axes.run * sni_dtype_width(j->x->dtype);
    const unsigned char *row = (const unsigned char *)j->x->data + (size_t)begin * bytes;
    for (int64_t at = begin; at < end; at += BLOCK) {
        int64_t n = end - at < BLOCK ? end - at : BLOCK;
        j->reducer->init(acc, n);
        for (int64_t i = 0; i < n; i++, row += bytes)
            j->reducer->row(acc + (size_t)i * j->reducer->acc_size, row, j->axes.run);
        finish(j, acc, at, n);
    }
}

/* Results [begin, end). */
static void reduce_piece(void *ctx, int64_t begin, int64_t end) {
    const reduce_job *j = ctx;
    _Alignas(16) unsigned char acc[BLOCK * SNI_REDUCE_ACC_MAX];
    int64_t width = j->axes.run_kept ? j->axes.run : 1;
    if (plain_rows(j)) {
        reduce_rows(j, acc, begin, end);
        return;
    }
    for (int64_t at = begin; at < end;) {
        int64_t column = at % width;
        int64_t n = width - column < BLOCK ? width - column : BLOCK;
        if (n > end - at) n = end - at;
        j->reducer->init(acc, n);
        if (j->axes.count) {
            fold_walk walk = {j, acc, j->axes.run_kept ? n : j->axes.run};
            sni_axes_walk(&j->axes, sni_axes_offset(&j->axes, at / width) + column, fold_place,
                          &walk);
        }
        finish(j, acc, at, n);
        at += n;
    }
}

/* ---- The whole ---- */

sn_status sni_reduce_run(sni_kernel *k, const sni_reducer *const table[SNI_DTYPE_COUNT]) {
    const sni_tensor *x = sni_in(k, 0);
    sn_dtype dtype = x->dtype == SN_BOOL ? SN_UINT8 : x->dtype;
    reduce_job job = {.x = x, .y = sni_out(k, 0)};
    job.narrow = sni_dtype_get(dtype)->cls == SNI_CLASS_S;
    job.reducer = table[job.narrow ? SN_FLOAT32 : dtype];
    if (!job.reducer)
        return sni_fail(k->err, SN_UNSUPPORTED, "no kernel for %s", sn_dtype_name(x->dtype));
    bool reduced[SN_MAX_RANK];
    SN_TRY(mark_axes(k->params, sni_in(k, 1), x->rank, reduced, k->err));
    int64_t results = 1;
    for (int i = 0; i < x->rank; i++)
        if (!reduced[i]) results *= x->dims[i];
    if (results != job.y->count)
        return sni_fail(k->err, SN_INTERNAL, "%lld results for an output of %lld elements",
                        (long long)results, (long long)job.y->count);
    if (results == 0) return SN_OK;
    job.axes = sni_axes_lay_out(x, reduced);
    int64_t grain = GRAIN / (job.axes.count > 0 ? job.axes.count : 1);
    if (results >= 2 * grain) grain /= PARTS; /* so that threads end together */
    sni_parallel_for(k->threads, results, grain > 0 ? grain : 1, reduce_piece, &job);
    return SN_OK;
}
