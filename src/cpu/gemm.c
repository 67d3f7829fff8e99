/* gemm.c - blocking and packing around the GEMM tile.
 *
 * B is cut into blocks of KC rows and NC columns, A into blocks of MC rows and KC columns, so that
 * a block of A stays in the second-level cache and a panel of B in the first. A packed operand is a
 * row of such k-blocks; each is a row of panels of mr rows of A or nr columns of B, k after k. */
#include "cpu/gemm.h"

#include "base/threadpool.h"

#include <string.h>

enum {
    KC = 320,
    MC = 168,            /* rounded down to whole panels of the tier */
    NC = 1024,           /* rounded down to whole panels */
    SMALL_WORK = 1 << 15 /* multiply-accumulates that are not worth a second thread */
};

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t round_up(int64_t a, int64_t b) {
    return ceil_div(a, b) * b;
}

/* ---- Packing ---- */

size_t sni_gemm_packed_a_size(int64_t m, int64_t k) {
    return (size_t)(round_up(m, sni_cpu_kernels_get()->mr) * k);
}

size_t sni_gemm_packed_b_size(int64_t k, int64_t n) {
    return (size_t)(k * round_up(n, sni_cpu_kernels_get()->nr));
}

/* One panel: `count` (at most `width`) rows or columns of an operand, k after k, padded with
 * zeros. `step` leads to the next of them, `k_step` to the next k. */
static void pack_panel(const float *from, int64_t step, int64_t k_step, int64_t count, int width,
                       int64_t k, float *to) {
    for (int64_t p = 0; p < k; p++, from += k_step, to += width) {
        if (step == 1)
            memcpy(to, from, (size_t)count * sizeof *to);
        else
            for (int64_t i = 0; i < count; i++) to[i] = from[i * step];
        for (int64_t i = count; i < width; i++) to[i] = 0;
    }
}

/* Panels [first, first + count elements) of one k-block. */
static void pack_block(const float *from, int64_t step, int64_t k_step, int64_t count, int width,
                       int64_t k, float *to) {
    for (int64_t i = 0; i < count; i += width, to += width * k)
        pack_panel(from + i * step, step, k_step, smaller(width, count - i), width, k, to);
}

static void pack_all(const float *from, int64_t step, int64_t k_step, int64_t count, int width,
                     int64_t k, float *to) {
    int64_t padded = round_up(count, width);
    for (int64_t p = 0; p < k; p += KC) {
        int64_t kc = smaller(KC, k - p);
        pack_block(from + p * k_step, step, k_step, count, width, kc, to + p * padded);
    }
}

void sni_gemm_pack_a(const float *a, int64_t a_row, int64_t a_col, int64_t m, int64_t k,
                     float *to) {
    pack_all(a, a_row, a_col, m, sni_cpu_kernels_get()->mr, k, to);
}

void sni_gemm_pack_b(const float *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n,
                     float *to) {
    pack_all(b, b_col, b_row, n, sni_cpu_kernels_get()->nr, k, to);
}

/* ---- One thread's share ---- */

/* Rows [m0, m1) and columns [n0, n1) of C; starts are multiples of mr and nr. */
typedef struct share {
    const sni_gemm_f32 *g;
    const sni_cpu_kernels *kernels;
    int64_t m0, m1, n0, n1;
    float *a_block, *b_block; /* scratch; NULL for packed operands */
} share;

/* The block of A that starts at row i and column p. */
static const float *block_of_a(const share *s, int64_t i, int64_t mc, int64_t p, int64_t kc) {
    const sni_gemm_f32 *g = s->g;
    int mr = s->kernels->mr;
    if (g->packed_a) return g->packed_a + p * round_up(g->m, mr) + i * kc;
    pack_block(g->a + i * g->a_row + p * g->a_col, g->a_row, g->a_col, mc, mr, kc, s->a_block);
    return s->a_block;
}

static const float *block_of_b(const share *s, int64_t p, int64_t kc, int64_t j, int64_t nc) {
    const sni_gemm_f32 *g = s->g;
    int nr = s->kernels->nr;
    if (g->packed_b) return g->packed_b + p * round_up(g->n, nr) + j * kc;
    if (g->fill) {
        for (int64_t q = 0; q < nc; q += nr)
            g->fill(g->fill_ctx, p, kc, j + q, smaller(nr, nc - q), nr, s->b_block + q * kc);
    } else {
        pack_block(g->b + p * g->b_row + j * g->b_col, g->b_col, g->b_row, nc, nr, kc, s->b_block);
    }
    return s->b_block;
}

/* Scale, bias, residual and activation on a finished tile. */
static void finish_tile(const share *s, int64_t i, int64_t rows, int64_t j, int64_t cols) {
    const sni_gemm_f32 *g = s->g;
    const sni_epilogue *e = &g->epilogue;
    if (g->scale != 0 && g->scale != 1) {
        sni_epilogue scale = {.act = SNI_ACT_AFFINE, .p0 = g->scale};
        for (int64_t r = i; r < i + rows; r++)
            s->kernels->finish_row(&scale, g->c + r * g->c_row + j, 0, NULL, NULL, cols);
    }
    if (e->act == SNI_ACT_NONE && !e->row_bias && !e->column_bias && !e->residual) return;
    for (int64_t r = i; r < i + rows; r++)
        s->kernels->finish_row(e, g->c + r * g->c_row + j, e->row_bias ? e->row_bias[r] : 0,
                               e->column_bias ? e->column_bias + j : NULL,
                               e->residual ? e->residual + r * e->residual_row + j : NULL, cols);
}

static void run_tile(const share *s, const float *a, const float *b, int64_t kc, int64_t i,
                     int64_t rows, int64_t j, int64_t cols, bool add) {
    const sni_gemm_f32 *g = s->g;
    float *c = g->c + i * g->c_row + j;
    int nr = s->kernels->nr;
    if (cols == nr) {
        s->kernels->gemm_tile[rows](kc, a, b, c, g->c_row, add);
        return;
    }
    float edge[SNI_MAX_MR * SNI_MAX_NR];
    s->kernels->gemm_tile[rows](kc, a, b, edge, nr, false);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t q = 0; q < cols; q++)
            c[r * g->c_row + q] = edge[r * nr + q] + (add ? c[r * g->c_row + q] : 0);
}

static void run_blocks(const share *s, int64_t i0, int64_t mc, int64_t j0, int64_t nc, int64_t p,
                       int64_t kc, const float *a, const float *b) {
    int mr = s->kernels->mr, nr = s->kernels->nr;
    bool last = p + kc == s->g->k;
    for (int64_t j = 0; j < nc; j += nr) {
        int64_t cols = smaller(nr, nc - j);
        for (int64_t i = 0; i < mc; i += mr) {
            int64_t rows = smaller(mr, mc - i);
            run_tile(s, a + i * kc, b + j * kc, kc, i0 + i, rows, j0 + j, cols, p > 0);
            if (last) finish_tile(s, i0 + i, rows, j0 + j, cols);
        }
    }
}

static int64_t block_rows(const sni_cpu_kernels *k) {
    return MC / k->mr * k->mr;
}

static int64_t block_columns(const sni_cpu_kernels *k) {
    return NC / k->nr * k->nr;
}

static void run_share(const share *s) {
    const sni_gemm_f32 *g = s->g;
    int64_t mc_most = block_rows(s->kernels), nc_most = block_columns(s->kernels);
    for (int64_t j = s->n0; j < s->n1; j += nc_most) {
        int64_t nc = smaller(nc_most, s->n1 - j);
        for (int64_t p = 0; p < g->k; p += KC) {
            int64_t kc = smaller(KC, g->k - p);
            const float *b = block_of_b(s, p, kc, j, nc);
            for (int64_t i = s->m0; i < s->m1; i += mc_most) {
                int64_t mc = smaller(mc_most, s->m1 - i);
                run_blocks(s, i, mc, j, nc, p, kc, block_of_a(s, i, mc, p, kc), b);
            }
        }
    }
}

/* ---- Threads ---- */

/* How C is cut: into `parts` ranges of whole panels, of columns or of rows. */
typedef struct job {
    const sni_gemm_f32 *g;
    const sni_cpu_kernels *kernels;
    int parts;
    bool by_rows;
    float *scratch;
    size_t scratch_part; /* floats of one part */
} job;

static size_t a_block_size(const sni_gemm_f32 *g, const sni_cpu_kernels *k) {
    if (g->packed_a) return 0;
    int64_t rows = smaller(round_up(g->m, k->mr), block_rows(k));
    return (size_t)round_up(rows * smaller(g->k, KC), 16);
}

static size_t b_block_size(const sni_gemm_f32 *g, const sni_cpu_kernels *k) {
    if (g->packed_b) return 0;
    int64_t cols = smaller(round_up(g->n, k->nr), block_columns(k));
    return (size_t)round_up(cols * smaller(g->k, KC), 16);
}

size_t sni_gemm_scratch_size(const sni_gemm_f32 *g, int threads) {
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    return (a_block_size(g, k) + b_block_size(g, k)) * (size_t)(threads < 1 ? 1 : threads);
}

/* Cuts along the side that gives parts of most equal size; columns if equal. */
static void cut(job *j, int threads) {
    const sni_gemm_f32 *g = j->g;
    int64_t row_panels = ceil_div(g->m, j->kernels->mr),
            col_panels = ceil_div(g->n, j->kernels->nr);
    int64_t parts = threads;
    if (g->m * g->n * g->k < SMALL_WORK) parts = 1;
    int64_t by_rows = ceil_div(row_panels, smaller(parts, row_panels)) * col_panels;
    int64_t by_cols = ceil_div(col_panels, smaller(parts, col_panels)) * row_panels;
    j->by_rows = by_rows < by_cols;
    j->parts = (int)smaller(parts, j->by_rows ? row_panels : col_panels);
}

static void run_parts(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    const sni_gemm_f32 *g = j->g;
    for (int64_t part = begin; part < end; part++) {
        int width = j->by_rows ? j->kernels->mr : j->kernels->nr;
        int64_t size = j->by_rows ? g->m : g->n, panels = ceil_div(size, width);
        int64_t from = part * panels / j->parts * width;
        int64_t to = smaller((part + 1) * panels / j->parts * width, size);
        float *scratch = j->scratch + (size_t)part * j->scratch_part;
        share s = {.g = g,
                   .kernels = j->kernels,
                   .m0 = j->by_rows ? from : 0,
                   .m1 = j->by_rows ? to : g->m,
                   .n0 = j->by_rows ? 0 : from,
                   .n1 = j->by_rows ? g->n : to,
                   .a_block = scratch,
                   .b_block = scratch + a_block_size(g, j->kernels)};
        run_share(&s);
    }
}

/* A product over no terms: C is bias and activation of zeros. */
static void run_empty(const sni_gemm_f32 *g, const sni_cpu_kernels *kernels) {
    share s = {.g = g, .kernels = kernels};
    for (int64_t i = 0; i < g->m; i++) memset(g->c + i * g->c_row, 0, (size_t)g->n * sizeof *g->c);
    finish_tile(&s, 0, g->m, 0, g->n);
}

void sni_gemm_f32_run(const sni_gemm_f32 *g, int threads, float *scratch) {
    job j = {.g = g, .kernels = sni_cpu_kernels_get(), .scratch = scratch};
    if (g->m == 0 || g->n == 0) return;
    if (g->k == 0) {
        run_empty(g, j.kernels);
        return;
    }
    cut(&j, threads < 1 ? 1 : threads);
    j.scratch_part = a_block_size(g, j.kernels) + b_block_size(g, j.kernels);
    sni_parallel_for(j.parts, j.parts, 1, run_parts, &j);
}
