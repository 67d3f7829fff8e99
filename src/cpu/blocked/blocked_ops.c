/* blocked_ops.c - what stands between convolutions, in blocked layout: pools, means of pictures,
 * scales by channel, indirect channels, and the conversions at the borders. */
#include "base/threadpool.h"
#include "cpu/blocked/blocked_kernels.h"
#include "cpu/conv/blocked.h"
#include "ops/core/compute.h"
#include "ops/core/long_work.h"
#include "ops/nn/pool.h"
#include "ops/math/reduce.h"

#include <string.h>

static const sni_blocked_kernels *kernels(void) {
    return sni_cpu_kernels_get()->blocked;
}

/* A float32 input of rank 5 whose last axis is a block. */
static bool is_blocked(const sni_choice *c, int i) {
    return sni_choice_is(c, i, SN_FLOAT32) && sni_choice_rank(c, i) == 5 &&
           c->in[i]->dims[4] == sni_cpu_kernels_get()->block;
}

/* ---- Pools ---- */

static bool pool_accepts(const sni_choice *c) {
    const sni_pool_params *p = c->params;
    sni_window w;
    return is_blocked(c, 0) && c->node->n_out == 1 &&
           sni_window_init(&w, &p->window, 3, NULL, NULL) == SN_OK && w.kernel[2] == 1 &&
           w.stride[2] == 1 && w.begin[2] == 0 && w.end[2] == 0 &&
           p->window.auto_pad <= SNI_PAD_SAME_LOWER;
}

typedef struct pool_job {
    sni_window window;
    const float *x;
    float *y;
    const float *columns; /* a mean: elements under each pixel's window along its row */
    const float *rows;    /* and along columns, by output row */
    int64_t block, blocks, parts;
    const sni_kernel *watch; /* NULL unless all of it takes long */
} pool_job;

/* Rows [from, to) of a plane of output. */
static void pool_rows(const pool_job *j, int64_t plane, int64_t from_row, int64_t to_row) {
    const sni_window *w = &j->window;
    for (int64_t o = from_row; o < to_row; o++) {
        if (j->watch && sni_stopping(j->watch)) return;
        int64_t top = o * w->stride[0] - w->begin[0], step = w->dilation[0];
        int64_t from = top >= 0 ? 0 : (-top + step - 1) / step;
        int64_t to = top >= w->in[0] ? 0 : (w->in[0] - top + step - 1) / step;
        if (to > w->kernel[0]) to = w->kernel[0];
        sni_pool_row r = {.rows = to > from ? to - from : 0,
                          .x_row = step * w->in[1] * j->block,
                          .in_w = w->in[1],
                          .out_w = w->out[1],
                          .taps = w->kernel[1],
                          .stride = w->stride[1],
                          .dilation = w->dilation[1],
                          .pad = w->begin[1],
                          .y = j->y + (plane * w->out[0] + o) * w->out[1] * j->block};
        int64_t first = r.rows ? top + from * step : 0;
        r.x = j->x + (plane * w->in[0] + first) * w->in[1] * j->block;
        if (j->columns) {
            r.divisor = j->rows[o];
            r.columns = j->columns;
        }
        kernels()->pool_row(&r);
    }
}

static void pool_parts(void *ctx, int64_t begin, int64_t end) {
    const pool_job *j = ctx;
    int64_t rows = j->window.out[0];
    for (int64_t i = begin; i < end; i++) {
        sni_blocked_share s = sni_blocked_share_of(i, j->blocks, j->parts);
        pool_rows(j, s.plane, s.part * rows / j->parts, (s.part + 1) * rows / j->parts);
    }
}

/* Sizes of windows along both axes, for means. */
static sn_status count_elements(sni_kernel *k, pool_job *j) {
    const sni_window *w = &j->window;
    bool padding = ((const sni_pool_params *)k->params)->count_include_pad != 0;
    void *buffer;
    SN_TRY(sni_scratch_matrix(k, 1, w->out[0] + w->out[1], sizeof(float), &buffer));
    float *columns = buffer, *rows = columns + w->out[1];
    for (int64_t o = 0; o < w->out[1]; o++) columns[o] = (float)sni_window_taps(w, 1, o, padding);
    for (int64_t o = 0; o < w->out[0]; o++) rows[o] = (float)sni_window_taps(w, 0, o, padding);
    j->columns = columns;
    j->rows = rows;
    return SN_OK;
}

static sn_status run_pool(sni_kernel *k, bool mean) {
    const sni_pool_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    const sni_tensor *y = sni_out(k, 0);
    pool_job j = {.x = x->data, .y = y->data, .block = x->dims[4], .blocks = x->dims[1]};
    if (y->count == 0) return SN_OK;
    SN_TRY(sni_window_at_run(k, &j.window, &p->window, x, y, NULL));
    if (mean) SN_TRY(count_elements(k, &j));
    int64_t pixels = j.window.out[0] * j.window.out[1];
    j.parts = sni_blocked_parts(k, x->dims[0], pixels, j.window.out[0]);
    double taps = (double)(j.window.kernel[0] * j.window.kernel[1]);
    if (sni_long_work(taps * (double)y->count / (double)j.block)) j.watch = k;
    sni_blocked_for(k, x->dims[0] * j.blocks * j.parts,
                    pixels * j.block * j.window.kernel[0] / j.parts, pool_parts, &j);
    return j.watch ? sni_poll(k) : SN_OK;
}

static sn_status max_pool_run(sni_kernel *k) {
    return run_pool(k, false);
}

static sn_status average_pool_run(sni_kernel *k) {
    return run_pool(k, true);
}

const sni_impl sni_cpu_blocked_max_pool = {
    .name = "max_pool_blocked_f32", .op = "MaxPool", .accepts = pool_accepts, .run = max_pool_run};

const sni_impl sni_cpu_blocked_average_pool = {.name = "average_pool_blocked_f32",
                                               .op = "AveragePool",
                                               .accepts = pool_accepts,
                                               .run = average_pool_run};

/* ---- A picture's mean and maximum ---- */

static bool picture_accepts(const sni_choice *c) {
    const sni_reduce_params *p = c->params;
    const sni_tensor *axes;
    if (!is_blocked(c, 0) || !p->keepdims || c->n_in < 2 || !c->constants[1] ||
        c->constants[1]->tensor.count != 2 || c->constants[1]->tensor.dtype != SN_INT64 ||
        sni_const_load(c->constants[1], &axes, NULL) != SN_OK)
        return false;
    const int64_t *v = axes->data;
    return (v[0] == 2 && v[1] == 3) || (v[0] == 3 && v[1] == 2);
}

typedef struct picture_job {
    void (*fn)(const float *x, float *y, int64_t pixels);
    const float *x;
    float *y;
    int64_t pixels, block;
} picture_job;

static void reduce_pictures(void *ctx, int64_t begin, int64_t end) {
    const picture_job *j = ctx;
    for (int64_t i = begin; i < end; i++)
        j->fn(j->x + i * j->pixels * j->block, j->y + i * j->block, j->pixels);
}

static void for_pictures(const sni_kernel *k, int64_t planes, picture_job *j) {
    j->block = sni_cpu_kernels_get()->block;
    sni_parallel_for(k->threads, planes, sni_cpu_grain(j->pixels * j->block), reduce_pictures, j);
}

void sni_blocked_means(const sni_kernel *k, const float *x, float *means, int64_t planes,
                       int64_t pixels) {
    for_pictures(k, planes,
                 &(picture_job){.fn = kernels()->mean, .x = x, .y = means, .pixels = pixels});
}

static sn_status reduce_run(sni_kernel *k, void (*fn)(const float *, float *, int64_t)) {
    const sni_tensor *x = sni_in(k, 0);
    picture_job j = {
        .fn = fn, .x = x->data, .y = sni_out(k, 0)->data, .pixels = x->dims[2] * x->dims[3]};
    for_pictures(k, x->dims[0] * x->dims[1], &j);
    return SN_OK;
}

static sn_status mean_run(sni_kernel *k) {
    return reduce_run(k, kernels()->mean);
}

static sn_status max_run(sni_kernel *k) {
    return reduce_run(k, kernels()->max);
}

const sni_impl sni_cpu_blocked_mean = {
    .name = "mean_blocked_f32", .op = "ReduceMean", .accepts = picture_accepts, .run = mean_run};

const sni_impl sni_cpu_blocked_max = {
    .name = "max_blocked_f32", .op = "ReduceMax", .accepts = picture_accepts, .run = max_run};

/* ---- A factor or term for each channel ---- */

/* True if `b` is (N or 1, blocks, 1, 1, block) beside `a` (N, blocks, H, W, block). */
static bool is_by_channel(const sni_type *a, const sni_type *b) {
    return b->dims[1] == a->dims[1] && b->dims[2] == 1 && b->dims[3] == 1 &&
           (b->dims[0] == 1 || b->dims[0] == a->dims[0]);
}

static bool channels_accepts(const sni_choice *c) {
    return is_blocked(c, 0) && is_blocked(c, 1) &&
           (is_by_channel(c->in[0], c->in[1]) || is_by_channel(c->in[1], c->in[0]));
}

typedef struct channels_job {
    void (*fn)(const float *x, const float *s, float *y, int64_t pixels);
    sni_blocked_scaling of;
    int64_t parts;
} channels_job;

static void scale_parts(void *ctx, int64_t begin, int64_t end) {
    const channels_job *j = ctx;
    const sni_blocked_scaling *of = &j->of;
    for (int64_t i = begin; i < end; i++) {
        sni_blocked_share s = sni_blocked_share_of(i, of->blocks, j->parts);
        int64_t first = s.part * of->pixels / j->parts;
        int64_t count = (s.part + 1) * of->pixels / j->parts - first;
        int64_t at = (s.plane * of->pixels + first) * of->block;
        j->fn(of->x + at, of->s + s.plane % of->factors * of->block, of->y + at, count);
    }
}

static void for_channels(const sni_kernel *k, channels_job *j) {
    const sni_blocked_scaling *of = &j->of;
    j->parts = sni_blocked_parts(k, of->images, of->pixels, of->pixels);
    sni_blocked_for(k, of->images * of->blocks * j->parts, of->pixels * of->block / j->parts,
                    scale_parts, j);
}

void sni_blocked_scale(const sni_kernel *k, const sni_blocked_scaling *s) {
    for_channels(k, &(channels_job){.fn = kernels()->scale, .of = *s});
}

static sn_status channels_run(sni_kernel *k,
                              void (*fn)(const float *, const float *, float *, int64_t)) {
    const sni_tensor *x = sni_in(k, 0), *s = sni_in(k, 1);
    const sni_tensor *y = sni_out(k, 0);
    if (x->count < s->count) {
        x = s;
        s = sni_in(k, 0);
    }
    channels_job j = {.fn = fn,
                      .of = {.x = x->data,
                             .s = s->data,
                             .y = y->data,
                             .images = y->dims[0],
                             .blocks = y->dims[1],
                             .pixels = y->dims[2] * y->dims[3],
                             .block = y->dims[4],
                             .factors = s->dims[0] * s->dims[1]}};
    if (y->count) for_channels(k, &j);
    return SN_OK;
}

static sn_status mul_run(sni_kernel *k) {
    return channels_run(k, kernels()->scale);
}

static sn_status add_run(sni_kernel *k) {
    return channels_run(k, kernels()->shift);
}

const sni_impl sni_cpu_blocked_mul = {
    .name = "mul_channels_f32", .op = "Mul", .accepts = channels_accepts, .run = mul_run};

const sni_impl sni_cpu_blocked_add = {
    .name = "add_channels_f32", .op = "Add", .accepts = channels_accepts, .run = add_run};
