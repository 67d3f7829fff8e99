/* dense.c - what all matrix products in float32 share: packed weights, stacks of products. */
#include "cpu/gemm/dense.h"

#include "base/checked.h"
#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/gemm/gemm_blocks.h"

#include <stdlib.h>
#include <string.h>

enum {
    SMALL_WORK = 1 << 15,  /* multiply-accumulates not worth a second thread */
    CODE_LEAST = 1 << 20,  /* bytes of weights that are worth it */
    CODE_MODEL = 64 << 20, /* bytes of the model's matrices that no cache keeps */
    STRASSEN_SIDE = 128    /* rows and columns of weights that Strassen's method has a use for */
};

/* Most weights without a code: each takes 16 bits more. */
static const double CODE_ESCAPES = 0.06;

/* Multiply-accumulates during which the time limit is looked at: some ten milliseconds. */
static const double LONG_WORK = 1e9;

/* ---- Weights ---- */

bool sni_dense_is_weight(const sni_choice *c, int i) {
    return i < c->n_in && c->constants[i] && c->constants[i]->tensor.rank == 2 &&
           c->constants[i]->tensor.dtype == SN_FLOAT32;
}

/* Weights that have been read. */
static void drop_weights(const void *borrow, const void *from, size_t bytes) {
    sni_borrow_done(borrow, from, bytes);
}

/* The weights; *loan NULL: not borrowed yet. */
static sn_status borrow_matrix(const sni_choice *c, int i, const sni_borrow **borrow,
                               sn_error *err) {
    return *borrow ? SN_OK : sni_pack_borrow(c, i, true, borrow, err);
}

static sn_status pack_floats(const sni_choice *c, int i, bool transposed, float alpha,
                             const sni_borrow *borrow, sni_dense *p, sn_error *err) {
    size_t size = sni_gemm_packed_b_size(p->k, p->n);
    bool filled;
    SN_TRY(sni_cpu_floats(c, size, &p->panels, &filled, err));
    if (filled) return SN_OK;
    SN_TRY(borrow_matrix(c, i, &borrow, err));
    sni_gemm_stream_b(borrow->tensor.data, transposed ? 1 : p->n, transposed ? p->k : 1, p->k, p->n,
                      p->panels, drop_weights, borrow);
    for (size_t at = 0; alpha != 1.0f && at < size; at++) p->panels[at] *= alpha;
    return SN_OK;
}

/* ---- Coded weights ---- */

/* Rows of a left operand of this type as far as they are known; a great number if they are not. */
static int64_t rows_of(const sni_type *t, int64_t k) {
    int64_t rows = 1;
    if (!t || !t->has_shape || t->rank < 1 || k == 0) return INT64_MAX;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] < 0 || !sni_mul_i64(rows, t->dims[i], &rows)) return INT64_MAX;
    return rows / k;
}

/* Whether the left operand can have so few rows or fewer in another run: that some dimension can be
 * any number, and those that are known do not make it more. */
static bool may_have(const sni_choice *c, int64_t k, int64_t rows) {
    const sni_type *t = c->left;
    int64_t least = 1;
    bool any = false;
    if (!t || !t->has_shape) return false;
    for (int i = 0; i < t->rank; i++) {
        any |= t->dims[i] < 0;
        if (t->dims[i] >= 0 && !sni_mul_i64(least, t->dims[i], &least)) return false;
    }
    return any && least / k <= rows;
}

/* Codes pay where weights come from memory, if that takes much longer than decoding: for few rows,
 * and where the model has more weights than caches keep. More rows lose at most 4 % by them, so
 * weights that may meet few rows later are coded whatever comes first. A compiled model has decided
 * it. */
static sn_status decide(const sni_choice *c, int i, float alpha, uint32_t numerics,
                        const sni_dense *p, bool *compressed, const sni_borrow **borrow,
                        sn_error *err) {
    size_t size = sni_gemm_compressed_b_size(p->k, p->n), given = sni_pack_given(c);
    size_t floats = sni_gemm_packed_b_size(p->k, p->n) * sizeof(float);
    *compressed = size && given == size;
    int64_t rows = rows_of(c->in[0], p->k), few = sni_compressed_kernels_get()->rows;
    if (!(numerics & SNI_NUMERICS_COMPRESSED) || given || !size || alpha != 1.0f ||
        floats < CODE_LEAST || c->matrix_bytes < CODE_MODEL)
        return SN_OK;
    if (rows > few && (rows == INT64_MAX || !may_have(c, p->k, few))) return SN_OK;
    if (!sni_compressed_pays()) return SN_OK;
    SN_TRY(borrow_matrix(c, i, borrow, err));
    *compressed = sni_gemm_uncompressed_part((*borrow)->tensor.data, p->k * p->n) < CODE_ESCAPES;
    return SN_OK;
}

/* The list of exponents; `coded` says that the codes were finished. */
static sn_status keep_more(const sni_choice *c, const uint8_t *room, bool compressed, sni_dense *p,
                           sn_error *err) {
    void *data;
    bool filled;
    SN_TRY(sni_pack_alloc(c, p->compressed.n_more, &data, &filled, err));
    if (filled != compressed)
        return sni_fail(err, SN_INVALID_MODEL,
                        "packed weights: a list of %zu exponents without its codes",
                        p->compressed.n_more);
    if (room && p->compressed.n_more) memcpy(data, room, p->compressed.n_more);
    p->compressed.more = data;
    return SN_OK;
}

static sn_status pack_compressed(const sni_choice *c, int i, bool transposed,
                                 const sni_borrow *borrow, sni_dense *p, sn_error *err) {
    size_t size = sni_gemm_compressed_b_size(p->k, p->n);
    uint8_t *room;
    void *data;
    bool filled;
    SN_TRY(sni_pack_alloc(c, size, &data, &filled, err));
    p->compressed.compressed = data;
    if (filled) {
        p->compressed.n_more = sni_pack_given(c);
        if (!p->compressed.n_more)
            return sni_fail(err, SN_INVALID_MODEL, "packed weights: codes without their list");
        return keep_more(c, NULL, true, p, err);
    }
    SN_TRY(borrow_matrix(c, i, &borrow, err));
    room = malloc(sni_gemm_compress_capacity(p->k, p->n));
    if (!room) return sni_fail_memory(err);
    p->compressed.n_more =
        sni_gemm_compress_b(borrow->tensor.data, transposed ? 1 : p->n, transposed ? p->k : 1, p->k,
                            p->n, data, room, drop_weights, borrow);
    sn_status status = keep_more(c, room, false, p, err);
    free(room);
    return status;
}

/* Which columns may be added up. */
static sn_status pack_even(const sni_choice *c, sni_dense *p, sn_error *err) {
    size_t size = sni_gemm_even_size(p->k, p->n);
    void *even;
    bool filled;
    if (!size) return SN_OK;
    SN_TRY(sni_pack_alloc(c, size, &even, &filled, err));
    if (!filled) sni_gemm_find_even(p->panels, p->k, p->n, even);
    p->even = even;
    return SN_OK;
}

/* What products by pairs need to know. */
static sn_status pack_inner_product(const sni_choice *c, sni_dense *p, sn_error *err) {
    size_t sizes[2] = {sni_inner_product_numbers(p->k, p->n, false) * sizeof(float),
                       sni_inner_product_flags(p->n)};
    void *pieces[2];
    bool filled;
    SN_TRY(sni_pack_alloc_all(c, 2, sizes, pieces, &filled, err));
    if (!filled) sni_inner_product_measure(p->panels, p->k, p->n, false, pieces[0], pieces[1]);
    p->inner_product = (sni_inner_product_b){
        .k = p->k, .n = p->n, .panels = p->panels, .numbers = pieces[0], .tame = pieces[1]};
    return SN_OK;
}

/* Which columns may be added up, or paired. */
static sn_status pack_ways(const sni_choice *c, uint32_t numerics, sni_dense *p, sn_error *err) {
    bool suits = sni_inner_product_pays() && sni_inner_product_suits(INT64_MAX, p->n, p->k) &&
                 rows_of(c->left, p->k) > sni_inner_product_most(); /* as far as the graph knows */
    if (numerics & SNI_NUMERICS_INNER_PRODUCT && suits) return pack_inner_product(c, p, err);
    bool large = p->k >= STRASSEN_SIDE && p->n >= STRASSEN_SIDE;
    return numerics & SNI_NUMERICS_STRASSEN && large ? pack_even(c, p, err) : SN_OK;
}

/* ---- Digits ---- */

/* Packs what `s` gives, of which a compiled model has brought nothing. */
static sn_status make_digits(const sni_choice *c, const sni_emulated_source *s, sni_emulated_b *out,
                             sn_error *err) {
    int32_t *sizes = malloc((size_t)sni_round_up(s->n, SNI_EMULATED_COLUMNS) * sizeof *sizes);
    void *data;
    bool filled;
    if (!sizes) return sni_fail_memory(err);
    bool floats = !sni_emulated_measure(s, sizes);
    sn_status status =
        sni_pack_alloc(c, sni_emulated_size(s->k, s->n, floats), &data, &filled, err);
    if (status == SN_OK) {
        if (!filled) sni_emulated_pack(s, sizes, floats, data);
        *out = sni_emulated_of(s->k, s->n, floats, data);
    }
    free(sizes);
    return status;
}

sn_status sni_dense_emulated(const sni_choice *c, const sni_dense_origin *from, sni_emulated_b *out,
                             sn_error *err) {
    size_t given = sni_pack_given(c);
    bool floats = given == sni_emulated_size(from->k, from->n, true), filled;
    void *data;
    if (floats || given == sni_emulated_size(from->k, from->n, false)) {
        SN_TRY(sni_pack_alloc(c, given, &data, &filled, err));
        if (!filled) return sni_fail(err, SN_INTERNAL, "packed weights: digits that were there");
        *out = sni_emulated_of(from->k, from->n, floats, data);
        return SN_OK;
    }
    sni_emulated_source s = {.k = from->k, .n = from->n};
    SN_TRY(from->open(from->ctx, &s, err));
    return make_digits(c, &s, out, err);
}

/* A matrix of the model. */
typedef struct matrix {
    const sni_choice *c;
    int i;
    bool transposed;
    const sni_borrow *borrow;
    int64_t k, n;
} matrix;

static void fill_matrix(const void *ctx, int64_t k0, int64_t rows, int64_t n0, int64_t cols, int nr,
                        float *panel) {
    const matrix *m = ctx;
    const sni_unaligned_float *w = m->borrow->tensor.data;
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    if (m->transposed)
        k->pack_transposed(w + n0 * m->k + k0, m->k, cols, nr, rows, panel);
    else
        k->pack_straight(w + k0 * m->n + n0, m->n, cols, nr, rows, panel);
}

static sn_status open_matrix(void *ctx, sni_emulated_source *s, sn_error *err) {
    matrix *m = ctx;
    s->fill = fill_matrix;
    s->ctx = m;
    return sni_pack_borrow(m->c, m->i, true, &m->borrow, err);
}

/* Few rows, if there are never more, read floats quicker where caches keep all of them. A compiled
 * model has decided it. */
static bool suits_emulated(const sni_choice *c, const sni_dense *p) {
    enum { FEW_ROWS = 4 };
    size_t given = sni_pack_given(c);
    if (!sni_emulated_can(p->k, p->n)) return false;
    if (given)
        return given == sni_emulated_size(p->k, p->n, false) ||
               given == sni_emulated_size(p->k, p->n, true);
    return rows_of(c->left, p->k) > FEW_ROWS || c->matrix_bytes > 2 * sni_cpu_cache(2);
}

static sn_status pack_emulated(const sni_choice *c, int i, bool transposed, sni_dense *p,
                               sn_error *err) {
    matrix m = {.c = c, .i = i, .transposed = transposed, .k = p->k, .n = p->n};
    sni_dense_origin from = {p->k, p->n, open_matrix, &m};
    SN_TRY(sni_dense_emulated(c, &from, &p->emulated, err));
    if (m.borrow)
        drop_weights(m.borrow, m.borrow->tensor.data, (size_t)(p->k * p->n) * sizeof(float));
    return SN_OK;
}

/* ---- All of them ---- */

static sn_status pack_any(const sni_choice *c, int i, bool transposed, float alpha,
                          uint32_t numerics, sni_dense *p, sn_error *err) {
    const sni_borrow *borrow = NULL;
    bool compressed;
    if (numerics & SNI_NUMERICS_EMULATED && alpha == 1.0f && suits_emulated(c, p))
        return pack_emulated(c, i, transposed, p, err);
    SN_TRY(decide(c, i, alpha, numerics, p, &compressed, &borrow, err));
    if (compressed) return pack_compressed(c, i, transposed, borrow, p, err);
    SN_TRY(pack_floats(c, i, transposed, alpha, borrow, p, err));
    return pack_ways(c, numerics, p, err);
}

sn_status sni_dense_pack(const sni_choice *c, int i, bool transposed, float alpha,
                         uint32_t numerics, void **state, sn_error *err) {
    const sni_tensor *w = &c->constants[i]->tensor;
    sni_dense p = {.k = w->dims[transposed], .n = w->dims[!transposed]};
    SN_TRY(pack_any(c, i, transposed, alpha, numerics, &p, err));
    struct {
        sni_dense dense;
        atomic_uint row_passes;
    } *kept = malloc(sizeof *kept);
    if (!kept) return sni_fail_memory(err);
    kept->dense = p;
    kept->dense.row_passes = &kept->row_passes;
    atomic_init(&kept->row_passes, 0);
    *state = kept;
    return SN_OK;
}

uint32_t sni_dense_uses(const sni_choice *c, const void *state) {
    const sni_dense *w = state;
    sni_gemm_f32 g = {.m = rows_of(c->in[0], w->k), .a_row = w->k, .a_col = 1};
    sni_dense_right(w, &g);
    if (g.emulated) return SNI_NUMERICS_EMULATED;
    if (g.compressed_b) return SNI_NUMERICS_COMPRESSED;
    if (g.m == INT64_MAX) return 0;
    if (sni_gemm_is_inner_product(&g)) return SNI_NUMERICS_INNER_PRODUCT;
    return sni_gemm_is_strassen(&g) ? SNI_NUMERICS_STRASSEN : 0;
}

uint64_t sni_dense_bytes(const void *state) {
    const sni_dense *w = state;
    if (w->panels) return (uint64_t)w->k * (uint64_t)w->n * sizeof(float);
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
    g->compressed_b = w->panels || g->emulated ? NULL : &w->compressed;
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
    size_t size = sni_gemm_scratch_size(g, k->threads);
    float *scratch = size ? sni_scratch(k, size * sizeof *scratch) : NULL;
    if (size && !scratch) return no_scratch(k);
    sni_gemm_f32 w = watched(k, g, 1);
    sni_gemm_f32_run(&w, k->threads, scratch);
    return w.stop ? sni_poll(k) : SN_OK;
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
    sni_gemm_f32 w = watched(k, g, count);
    stack_job j = {.g = &w, .locate = locate, .ctx = ctx, .count = count, .parts = k->threads};
    if (count <= 0 || g->m <= 0 || g->n <= 0) return SN_OK;
    if (count < k->threads) {
        size_t size = sni_gemm_scratch_size(g, k->threads);
        j.scratch = size ? sni_scratch(k, size * sizeof *j.scratch) : NULL;
        if (size && !j.scratch) return no_scratch(k);
        for (int64_t i = 0; i < count; i++) {
            sni_gemm_f32 one = w;
            locate(ctx, i, &one);
            sni_gemm_f32_run(&one, k->threads, j.scratch);
        }
        return w.stop ? sni_poll(k) : SN_OK;
    }
    if (j.parts < 1) j.parts = 1;
    j.scratch_part = sni_gemm_scratch_size(g, 1);
    if (j.scratch_part) {
        j.scratch = sni_scratch(k, j.scratch_part * (size_t)j.parts * sizeof *j.scratch);
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
