/* pool.c - the loop of all pools over their output rows. */
#include "ops/nn/pool.h"

#include "ops/core/compute.h"
#include "ops/core/long_work.h"

#include <math.h>

sn_status sni_infer_window_pool(sni_infer *c) {
    return sni_infer_pool(c, &((const sni_pool_params *)c->params)->window);
}

sn_status sni_infer_global_pool(sni_infer *c) {
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    sni_dim dims[SN_MAX_RANK];
    int rank = sni_infer_rank(c, 0);
    if (rank < 2) return SNI_INFER_FAIL(c, "an input of rank %d has no channels", rank);
    for (int i = 0; i < rank; i++) dims[i] = i < 2 ? sni_infer_dim(c, 0, i) : 1;
    return sni_infer_set_shape(c, 0, rank, dims);
}

/* The window of a global pool: one row of all elements of the plane. */
static void whole_plane(sni_window *w, const sni_tensor *x) {
    w->rank = 1;
    w->kernel[0] = w->in[0] = sni_tensor_span(x, 2, x->rank);
    w->stride[0] = w->dilation[0] = w->out[0] = 1;
    w->begin[0] = w->end[0] = 0;
}

typedef struct pool_job {
    sni_pool_window pool;
    sni_pool_fn fn; /* one of the two */
    sni_pool_rows_fn rows;
    bool means; /* tap_rows are wanted */
} pool_job;

static void pool_piece(void *ctx, int64_t begin, int64_t end) {
    const pool_job *j = ctx;
    if (j->rows) {
        j->rows(&j->pool, begin, end);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        j->fn(&j->pool, i / j->pool.out_rows, i % j->pool.out_rows);
}

/* How many taps of the axes before the last one count for the mean of an output row. */
static float tap_rows(const sni_pool_window *p, int64_t row) {
    float rows = 1;
    for (int i = p->window.rank - 2; i >= 0; i--) {
        int64_t size = p->window.out[i];
        rows *=
            (float)sni_window_taps(&p->window, i, row % size, p->params->count_include_pad != 0);
        row /= size;
    }
    return rows;
}

static sn_status count_rows(sni_kernel *k, sni_pool_window *p) {
    void *buffer = NULL;
    SN_TRY(sni_scratch_array(k, p->out_rows, sizeof *p->tap_rows, &buffer));
    float *rows = buffer;
    for (int64_t r = 0; r < p->out_rows; r++) rows[r] = tap_rows(p, r);
    p->tap_rows = rows;
    return SN_OK;
}

static sn_status find_spans(sni_kernel *k, sni_pool_window *p) {
    int64_t from, to;
    void *buffer = NULL;
    const sni_window *w = &p->window;
    int last = w->rank - 1;
    SN_TRY(sni_scratch_array(k, w->out[last], sizeof *p->taps, &buffer));
    float *taps = buffer;
    for (int64_t o = 0; o < w->out[last]; o++)
        taps[o] = (float)sni_window_taps(w, last, o, p->params->count_include_pad != 0);
    p->taps = taps;
    sni_window_last_taps(w, &from, &to);
    if (to <= from) return SN_OK;
    SN_TRY(sni_scratch_array(k, to - from, sizeof *p->spans, &buffer));
    sni_pool_span *spans = buffer;
    for (int64_t i = 0; i < to - from; i++)
        sni_window_span(&p->window, from + i, &spans[i].lo, &spans[i].hi, &spans[i].shift);
    p->spans = spans;
    p->n_spans = to - from;
    return SN_OK;
}

enum { TAPS_TO_SPLIT = 3 << 14 }; /* that are worth a thread */

static sn_status run_job(sni_kernel *k, pool_job *job, bool global, const sni_tensor *x,
                         const sni_tensor *y) {
    sni_pool_window *p = &job->pool;
    if (global)
        whole_plane(&p->window, x);
    else
        SN_TRY(sni_window_at_run(k, &p->window, &p->params->window, x, y, NULL));
    p->out_rows = sni_window_out_rows(&p->window);
    p->in_plane = sni_window_in_rows(&p->window) * p->window.in[p->window.rank - 1];
    if (y->count == 0) return SN_OK;
    if (!global) SN_TRY(find_spans(k, p));
    if (job->means) SN_TRY(count_rows(k, p));
    int last = p->window.rank - 1;
    int64_t work = sni_window_tap_rows(&p->window) * p->window.out[last];
    double row = (double)work * (double)p->window.kernel[last];
    int64_t grain = row > 0 && row < TAPS_TO_SPLIT ? (int64_t)(TAPS_TO_SPLIT / row) : 1;
    if (sni_long_work(row)) p->watch = k;
    return sni_long_for(k, x->dims[0] * x->dims[1] * p->out_rows, grain, row, pool_piece, job);
}

sn_status sni_pool_run_planes(sni_kernel *k, const sni_pool_planes *planes) {
    pool_job job = {.pool = {.params = k->params,
                             .x = planes->in,
                             .y = planes->out,
                             .indices = planes->indices},
                    .fn = planes->fn};
    return run_job(k, &job, planes->global, planes->x, planes->y);
}

sn_status sni_pool_run_rows(sni_kernel *k, sni_pool_rows_fn fn, bool means) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    pool_job job = {.pool = {.params = k->params}, .rows = fn, .means = means};
    void *out;
    SN_TRY(sni_in_as(k, x, SN_FLOAT32, &job.pool.x));
    SN_TRY(sni_out_as(k, y, SN_FLOAT32, &out));
    job.pool.y = out;
    SN_TRY(run_job(k, &job, false, x, y));
    if (y->count) sni_out_done(k, y, SN_FLOAT32, out);
    return SN_OK;
}

sn_status sni_pool_run(sni_kernel *k, const sni_pool_fn table[SNI_DTYPE_COUNT], bool global) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0), *indices = sni_out(k, 1);
    const sni_tensor *shape = y ? y : indices;
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    const void *in;
    void *out;
    SN_TRY(sni_in_as(k, x, dtype, &in));
    if (y)
        SN_TRY(sni_out_as(k, y, dtype, &out));
    else
        SN_TRY(sni_scratch_array(k, shape->count, sni_dtype_width(dtype), &out));
    SN_TRY(sni_pool_run_planes(k, &(sni_pool_planes){.fn = table[dtype],
                                                     .global = global,
                                                     .x = x,
                                                     .y = shape,
                                                     .in = in,
                                                     .out = out,
                                                     .indices = indices ? indices->data : NULL}));
    if (y && y->count) sni_out_done(k, y, dtype, out);
    return SN_OK;
}

sn_status sni_upgrade_lp_order(sni_upgrade *u) {
    const sni_attr *a = sni_node_attr(u->node, "p");
    if (u->from != 1 || !a || a->kind != SNI_ATTR_FLOAT) return SN_OK;
    if (!(a->u.f >= 1 && a->u.f < 65536) || a->u.f != floorf(a->u.f))
        return sni_fail(u->err, SN_UNSUPPORTED, "p is %g, not a whole number above 0",
                        (double)a->u.f);
    sni_attr p = sni_attr_of_int("p", (int64_t)a->u.f);
    return sni_node_set_attr(u->graph, u->node, &p, u->err);
}
