/* dense.c - what all matrix products in float32 share: packed weights, stacks of products. */
#include "ep/cpu/dense.h"

#include "base/threadpool.h"

#include <stdlib.h>

enum { SMALL_WORK = 1 << 15 }; /* multiply-accumulates not worth a second thread */

/* ---- Weights ---- */

bool sni_dense_is_weight(const sni_choice *c, int i) {
    return i < c->n_in && c->constants[i] && c->constants[i]->tensor.rank == 2 &&
           c->constants[i]->tensor.dtype == SN_FLOAT32;
}

/* Weights that have been read. */
static void drop_weights(const void *loan, const void *from, size_t bytes) {
    sni_loan_done(loan, from, bytes);
}

sn_status sni_dense_pack(const sni_choice *c, int i, bool turned, float alpha, void **state,
                         sn_error *err) {
    const sni_tensor *w = &c->constants[i]->tensor;
    sni_dense p = {.k = w->dims[turned], .n = w->dims[!turned]};
    size_t size = sni_gemm_packed_b_size(p.k, p.n);
    bool filled;
    SN_TRY(sni_cpu_floats(c, size, &p.panels, &filled, err));
    if (!filled) {
        const sni_loan *loan;
        SN_TRY(sni_pack_borrow(c, i, true, &loan, err));
        int64_t row = turned ? 1 : p.n, col = turned ? p.k : 1;
        sni_gemm_stream_b(loan->tensor.data, row, col, p.k, p.n, p.panels, drop_weights, loan);
        for (size_t at = 0; alpha != 1.0f && at < size; at++) p.panels[at] *= alpha;
    }
    struct {
        sni_dense dense;
        atomic_uint turns;
    } *kept = malloc(sizeof *kept);
    if (!kept) return sni_fail_memory(err);
    kept->dense = p;
    kept->dense.turns = &kept->turns;
    atomic_init(&kept->turns, 0);
    *state = kept;
    return SN_OK;
}

/* ---- Products ---- */

static sn_status no_scratch(const sni_kernel *k) {
    return k->err ? k->err->status : SN_NO_MEMORY;
}

sn_status sni_dense_run(sni_kernel *k, const sni_gemm_f32 *g) {
    size_t size = sni_gemm_scratch_size(g, k->threads);
    float *scratch = size ? sni_scratch(k, size * sizeof *scratch) : NULL;
    if (size && !scratch) return no_scratch(k);
    sni_gemm_f32_run(g, k->threads, scratch);
    return SN_OK;
}

typedef struct stack_job {
    const sni_gemm_f32 *g;
    sni_dense_locate_fn locate;
    const void *ctx;
    float *scratch;
    size_t scratch_part;
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
            sni_gemm_f32_run(&g, 1,
                             j->scratch ? j->scratch + (size_t)part * j->scratch_part : NULL);
        }
    }
}

sn_status sni_dense_many(sni_kernel *k, const sni_gemm_f32 *g, int64_t count,
                         sni_dense_locate_fn locate, const void *ctx) {
    stack_job j = {.g = g, .locate = locate, .ctx = ctx, .count = count, .parts = k->threads};
    if (count <= 0 || g->m <= 0 || g->n <= 0) return SN_OK;
    if (count < k->threads) {
        for (int64_t i = 0; i < count; i++) {
            sni_gemm_f32 one = *g;
            locate(ctx, i, &one);
            SN_TRY(sni_dense_run(k, &one));
        }
        return SN_OK;
    }
    if (j.parts < 1) j.parts = 1;
    j.scratch_part = sni_gemm_scratch_size(g, 1);
    if (j.scratch_part) {
        j.scratch = sni_scratch(k, j.scratch_part * (size_t)j.parts * sizeof *j.scratch);
        if (!j.scratch) return no_scratch(k);
    }
    bool small = g->m * g->n * (g->k + 1) * count < SMALL_WORK;
    sni_parallel_for(small ? 1 : j.parts, j.parts, 1, run_parts, &j);
    return SN_OK;
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
                      .scale = scale,
                      .epilogue = *e};
    return sni_dense_many(k, &g, shape->count, stack_locate, shape);
}
