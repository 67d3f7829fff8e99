/* matmul.c - MatMul and Gemm in float32 on packed panels. */
#include "base/threadpool.h"
#include "cpu/gemm.h"
#include "ep/cpu/cpu_ep.h"
#include "ops/matmul.h"

#include <stdlib.h>

/* ---- Weights ---- */

/* A right operand that is part of the model, packed; for Gemm already times alpha. */
typedef struct packed_b {
    int64_t k, n;
    float *panels;
} packed_b;

static sn_status pack_weight(const sni_choice *c, bool transposed, float alpha, void **state,
                             sn_error *err) {
    const sni_tensor *w = &c->constants[1]->tensor;
    packed_b p = {.k = w->dims[transposed], .n = w->dims[!transposed]};
    size_t size = sni_gemm_packed_b_size(p.k, p.n);
    bool filled;
    SN_TRY(sni_cpu_floats(c, size, &p.panels, &filled, err));
    if (!filled) {
        SN_TRY(sni_cpu_weight(c, 1, &w, err));
        int64_t row = transposed ? 1 : p.n, col = transposed ? p.k : 1;
        sni_gemm_pack_b(w->data, row, col, p.k, p.n, p.panels);
        for (size_t i = 0; alpha != 1.0f && i < size; i++) p.panels[i] *= alpha;
    }
    packed_b *kept = malloc(sizeof *kept);
    if (!kept) return sni_fail_memory(err);
    *kept = p;
    *state = kept;
    return SN_OK;
}

static bool is_matrix_constant(const sni_choice *c, int i) {
    return c->constants[i] && c->constants[i]->tensor.rank == 2;
}

static sn_status run_gemm(sni_kernel *k, const sni_gemm_f32 *g) {
    float *scratch = sni_scratch(k, sni_gemm_scratch_size(g, k->threads) * sizeof *scratch);
    if (!scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    sni_gemm_f32_run(g, k->threads, scratch);
    return SN_OK;
}

/* ---- Gemm ---- */

static bool gemm_accepts(const sni_choice *c) {
    const sni_gemm_params *p = c->params;
    if (!sni_choice_is(c, 0, SN_FLOAT32) || !is_matrix_constant(c, 1)) return false;
    if (!sni_choice_given(c, 2)) return true;
    /* A bias that is one row. */
    if (p->beta != 1.0f || sni_choice_rank(c, 2) < 1) return false;
    const sni_type *t = c->in[2];
    int64_t n = c->constants[1]->tensor.dims[p->trans_b ? 0 : 1];
    return t->dims[t->rank - 1] == n && (t->rank == 1 || (t->rank == 2 && t->dims[0] == 1));
}

static sn_status gemm_prepare(const sni_choice *c, void **state, sn_error *err) {
    const sni_gemm_params *p = c->params;
    return pack_weight(c, p->trans_b != 0, p->alpha, state, err);
}

static sn_status gemm_run(sni_kernel *k) {
    const sni_gemm_params *p = k->params;
    const packed_b *w = k->state;
    const sni_tensor *a = sni_in(k, 0), *bias = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    bool ta = p->trans_a != 0;
    sni_gemm_f32 g = {.m = y->dims[0],
                      .n = w->n,
                      .k = w->k,
                      .a = a->data,
                      .a_row = ta ? 1 : a->dims[1],
                      .a_col = ta ? a->dims[1] : 1,
                      .packed_b = w->panels,
                      .c = y->data,
                      .c_row = w->n};
    if (bias) g.epilogue.column_bias = bias->data;
    return run_gemm(k, &g);
}

const sni_impl sni_cpu_gemm = {
    .name = "gemm_f32",
    .op = "Gemm",
    .accepts = gemm_accepts,
    .prepare = gemm_prepare,
    .release = free,
    .run = gemm_run,
};

/* ---- MatMul ---- */

static bool matmul_accepts(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32) && sni_choice_is(c, 1, SN_FLOAT32);
}

static sn_status matmul_prepare(const sni_choice *c, void **state, sn_error *err) {
    return is_matrix_constant(c, 1) ? pack_weight(c, false, 1.0f, state, err) : SN_OK;
}

/* All rows of A, over all its leading axes, times one matrix. */
static sn_status multiply_by_weight(sni_kernel *k, const packed_b *w) {
    const sni_tensor *a = sni_in(k, 0);
    sni_gemm_f32 g = {.m = w->k ? a->count / w->k : 0,
                      .n = w->n,
                      .k = w->k,
                      .a = a->data,
                      .a_row = w->k,
                      .a_col = 1,
                      .packed_b = w->panels,
                      .c = sni_out(k, 0)->data,
                      .c_row = w->n};
    return run_gemm(k, &g);
}

typedef struct batch_job {
    sni_gemm_f32 g;
    const sni_matmul *shape;
    const float *a, *b;
    float *c, *scratch;
    size_t scratch_part;
    int64_t count;
    int parts;
} batch_job;

/* Each part runs its products on one thread. */
static void run_batch(void *ctx, int64_t begin, int64_t end) {
    const batch_job *j = ctx;
    for (int64_t part = begin; part < end; part++) {
        sni_gemm_f32 g = j->g;
        for (int64_t i = part * j->count / j->parts; i < (part + 1) * j->count / j->parts; i++) {
            int64_t a, b;
            sni_matmul_offsets(j->shape, i, &a, &b);
            g.a = j->a + a;
            g.b = j->b + b;
            g.c = j->c + i * g.m * g.n;
            sni_gemm_f32_run(&g, 1, j->scratch + (size_t)part * j->scratch_part);
        }
    }
}

static sn_status multiply_batches(sni_kernel *k) {
    sni_matmul shape;
    const sni_tensor *a = sni_in(k, 0), *b = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    sni_matmul_init(&shape, a, b);
    batch_job j = {.shape = &shape, .a = a->data, .b = b->data, .c = y->data, .count = shape.count};
    j.g = (sni_gemm_f32){.m = shape.m,
                         .n = shape.n,
                         .k = shape.k,
                         .a_row = shape.k,
                         .a_col = 1,
                         .b_row = shape.n,
                         .b_col = 1,
                         .c_row = shape.n};
    if (y->count == 0) return SN_OK;
    if (shape.count < k->threads) {
        for (int64_t i = 0; i < shape.count; i++) {
            int64_t at_a, at_b;
            sni_matmul_offsets(&shape, i, &at_a, &at_b);
            j.g.a = j.a + at_a;
            j.g.b = j.b + at_b;
            j.g.c = j.c + i * shape.m * shape.n;
            SN_TRY(run_gemm(k, &j.g));
        }
        return SN_OK;
    }
    j.parts = k->threads;
    j.scratch_part = sni_gemm_scratch_size(&j.g, 1);
    j.scratch = sni_scratch(k, j.scratch_part * (size_t)j.parts * sizeof *j.scratch);
    if (!j.scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    sni_parallel_for(j.parts, j.parts, 1, run_batch, &j);
    return SN_OK;
}

static sn_status matmul_run(sni_kernel *k) {
    const packed_b *w = k->state;
    return w && sni_in(k, 0)->rank >= 2 ? multiply_by_weight(k, w) : multiply_batches(k);
}

const sni_impl sni_cpu_matmul = {
    .name = "matmul_f32",
    .op = "MatMul",
    .accepts = matmul_accepts,
    .prepare = matmul_prepare,
    .release = free,
    .run = matmul_run,
};
