/* dense.c - what all matrix products in float32 share: constant right operands, stacks of products.
 */
#include "cpu/gemm/dense.h"

#include "base/lengths.h"
#include "base/threadpool.h"

#include <stdlib.h>

enum {
    SMALL_WORK = 1 << 15 /* multiply-accumulates not worth a second thread */
};

/* Multiply-accumulates during which the time limit is looked at: some ten milliseconds. */
static const double LONG_WORK = 1e9;

/* ---- Weights ---- */

bool sni_dense_is_weight(const sni_choice *c, int i) {
    return i < c->n_in && c->constants[i] && c->constants[i]->tensor.rank == 2 &&
           c->constants[i]->tensor.dtype == SN_FLOAT32;
}

uint64_t sni_dense_bytes(const void *state) {
    const sni_dense *w = state;
    if (w->panels) return (uint64_t)w->k * (uint64_t)w->n * sizeof(float);
    if (w->half.panels) return (uint64_t)w->k * (uint64_t)w->n * sizeof(uint16_t);
    if (w->emulated.k) return sni_emulated_size(w->k, w->n, w->emulated.floats != NULL);
    return sni_gemm_compressed_b_size(w->k, w->n) + w->compressed.n_more;
}

void sni_dense_right(const sni_dense *w, sni_gemm_f32 *g) {
    g->n = w->n;
    g->k = w->k;
    g->packed_b = w->panels;
    g->even = w->even;
    g->inner_product = w->inner_product.panels ? &w->inner_product : NULL;
    g->emulated = w->emulated.k ? &w->emulated : NULL;
    g->use = w->use;
    g->half_b = w->half.panels ? &w->half : NULL;
    g->round_left = w->round_left;
    g->compressed_b = w->panels || g->emulated || g->half_b ? NULL : &w->compressed;
}

/* ---- Products ---- */

static bool stopping(const void *kernel) {
    return sni_stopping(kernel);
}

/* Lets `count` such products ask for the run's time limit if they take long. */
static sni_gemm_f32 watched(const sni_kernel *k, const sni_gemm_f32 *g, int64_t count) {
    sni_gemm_f32 w = *g;
    if ((double)g->m * (double)g->n * (double)g->k * (double)count < LONG_WORK) return w;
    w.stop = stopping;
    w.stop_ctx = k;
    return w;
}

static sn_status no_scratch(const sni_kernel *k) {
    return k->err ? k->err->status : SN_NO_MEMORY;
}

sn_status sni_dense_run(sni_kernel *k, const sni_gemm_f32 *g) {
    sni_gemm_call call = sni_gemm_plan(g, k->threads);
    float *scratch = call.scratch ? sni_scratch(k, call.scratch * sizeof *scratch) : NULL;
    if (call.scratch && !scratch) return no_scratch(k);
    sni_gemm_f32 w = watched(k, g, 1);
    sni_gemm_call_run(&call, &w, scratch);
    return w.stop ? sni_poll(k) : SN_OK;
}

typedef struct stack_job {
    const sni_gemm_f32 *g;
    sni_dense_locate_fn locate;
    const void *ctx;
    sni_gemm_call call; /* of each product: the choice goes by sizes and strides */
    float *scratch;
    int64_t count;
    int parts;
} stack_job;

/* Each part runs its products on one thread. */
static void run_parts(void *ctx, int64_t begin, int64_t end) {
    const stack_job *j = ctx;
    for (int64_t part = begin; part < end; part++) {
        int64_t to = (part + 1) * j->count / j->parts;
        for (int64_t i = part * j->count / j->parts; i < to; i++) {
            sni_gemm_f32 g = *j->g;
            j->locate(j->ctx, i, &g);
            sni_gemm_call_run(&j->call, &g,
                              j->scratch ? j->scratch + (size_t)part * j->call.scratch : NULL);
        }
    }
}

sn_status sni_dense_many(sni_kernel *k, const sni_gemm_f32 *g, int64_t count,
                         sni_dense_locate_fn locate, const void *ctx) {
    sni_gemm_f32 w = watched(k, g, count);
    stack_job j = {.g = &w, .locate = locate, .ctx = ctx, .count = count, .parts = k->threads};
    if (count <= 0 || g->m <= 0 || g->n <= 0) return SN_OK;
    if (count < k->threads) {
        j.call = sni_gemm_plan(g, k->threads);
        size_t size = j.call.scratch;
        j.scratch = size ? sni_scratch(k, size * sizeof *j.scratch) : NULL;
        if (size && !j.scratch) return no_scratch(k);
        for (int64_t i = 0; i < count; i++) {
            sni_gemm_f32 one = w;
            locate(ctx, i, &one);
            sni_gemm_call_run(&j.call, &one, j.scratch);
        }
        return w.stop ? sni_poll(k) : SN_OK;
    }
    if (j.parts < 1) j.parts = 1;
    j.call = sni_gemm_plan(g, 1);
    if (j.call.scratch) {
        j.scratch = sni_scratch(k, j.call.scratch * (size_t)j.parts * sizeof *j.scratch);
        if (!j.scratch) return no_scratch(k);
    }
    bool small = g->m * g->n * (g->k + 1) * count < SMALL_WORK;
    sni_parallel_for(small ? 1 : j.parts, j.parts, 1, run_parts, &j);
    return w.stop ? sni_poll(k) : SN_OK;
}

static void stack_locate(const void *ctx, int64_t i, sni_gemm_f32 *g) {
    int64_t a, b;
    sni_matmul_offsets(ctx, i, &a, &b);
    g->a += a;
    g->b += b;
    g->c += i * g->m * g->n;
}

sn_status sni_dense_stack(sni_kernel *k, const sni_matmul *shape, const float *a, const float *b,
                          float *c, float scale, const sni_epilogue *e) {
    sni_gemm_f32 g = {.m = shape->m,
                      .n = shape->n,
                      .k = shape->k,
                      .a = a,
                      .a_row = shape->a_row,
                      .a_col = shape->a_col,
                      .b = b,
                      .b_row = shape->b_row,
                      .b_col = shape->b_col,
                      .c = c,
                      .c_row = shape->n,
                      .may_stay_unpacked = true,
                      .scale = scale,
                      .epilogue = *e};
    return sni_dense_many(k, &g, shape->count, stack_locate, shape);
}
