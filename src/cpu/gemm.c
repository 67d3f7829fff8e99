/* gemm.c - blocking and packing around the GEMM tile.
 *
 * B is cut into blocks of at most kc rows (of the tier) and NC columns, A into blocks of whole
 * panels and the same columns, so that a block of A stays in the second-level cache and a panel of
 * B in the first. A packed operand is a row of such k-blocks; each is a row of panels, k after k:
 * of A at most mr rows, as equal in number as can be, each panel in the room of mr; of B nr
 * columns. */
#include "cpu/gemm.h"

#include "base/threadpool.h"

#include <string.h>

enum {
    NC = 1024,            /* rounded down to whole panels */
    MANY_PANELS = 16,     /* of rows in a part that are worth reading all of B for */
    SMALL_WORK = 1 << 15, /* multiply-accumulates that are not worth a second thread */
    PACK_GRAIN = 1 << 15, /* elements to pack that are worth a thread */
    STREAM = 1 << 21      /* elements of a large operand that are packed at once */
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

/* Rows of a k-block: as equal as can be, in steps that the tile takes at once. The last may be
 * shorter. */
static int64_t block_depth(int64_t k) {
    return k ? round_up(ceil_div(k, ceil_div(k, sni_cpu_kernels_get()->kc)), 4) : 1;
}

/* First row of panel i when m rows are dealt out to `panels`. */
static int64_t panel_row(int64_t m, int64_t panels, int64_t i) {
    return m / panels * i + smaller(i, m % panels);
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
static void pack_panel(const sni_cpu_kernels *kernels, const sni_loose_float *from, int64_t step,
                       int64_t k_step, int64_t count, int width, int64_t k, float *to) {
    if (k_step == 1) {
        kernels->pack_turned(from, step, count, width, k, to);
    } else if (step == 1) {
        kernels->pack_straight(from, k_step, count, width, k, to);
    } else {
        for (int64_t p = 0; p < k; p++, from += k_step, to += width) {
            for (int64_t i = 0; i < count; i++) to[i] = from[i * step];
            for (int64_t i = count; i < width; i++) to[i] = 0;
        }
    }
}

/* Panels [first, last) of A's rows for one k-block that starts at `from`. */
static void pack_a_panels(const sni_cpu_kernels *kernels, const sni_loose_float *from, int64_t row,
                          int64_t col, int64_t m, int64_t first, int64_t last, int64_t kc,
                          float *to) {
    int64_t panels = ceil_div(m, kernels->mr);
    for (int64_t i = first; i < last; i++, to += kernels->mr * kc) {
        int64_t r = panel_row(m, panels, i);
        pack_panel(kernels, from + r * row, row, col, panel_row(m, panels, i + 1) - r, kernels->mr,
                   kc, to);
    }
}

/* Columns [0, n) of B for one k-block. */
static void pack_b_panels(const sni_cpu_kernels *kernels, const sni_loose_float *from, int64_t row,
                          int64_t col, int64_t n, int64_t kc, float *to) {
    int nr = kernels->nr;
    for (int64_t j = 0; j < n; j += nr, to += nr * kc)
        pack_panel(kernels, from + j * col, col, row, smaller(nr, n - j), nr, kc, to);
}

/* A whole operand to pack; pieces are pairs of a k-block and a panel. */
typedef struct pack_job {
    const sni_cpu_kernels *kernels;
    const sni_loose_float *from;
    int64_t row, col, k, kc, panels, side; /* side: m of A or n of B */
    bool left;
    bool
        panels_first; /* pieces are counted over the k-blocks of a panel, not the other way round */
    int64_t first;    /* piece */
    float *to;
} pack_job;

static void pack_pieces(void *ctx, int64_t begin, int64_t end) {
    const pack_job *j = ctx;
    const sni_cpu_kernels *kernels = j->kernels;
    int width = j->left ? kernels->mr : kernels->nr;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t at = j->first + piece, blocks = ceil_div(j->k, j->kc);
        int64_t p = (j->panels_first ? at % blocks : at / j->panels) * j->kc;
        int64_t i = j->panels_first ? at / blocks : at % j->panels;
        int64_t kc = smaller(j->kc, j->k - p);
        float *to = j->to + p * j->panels * width + i * width * kc;
        if (j->left)
            pack_a_panels(kernels, j->from + p * j->col, j->row, j->col, j->side, i, i + 1, kc, to);
        else
            pack_b_panels(kernels, j->from + p * j->row + i * width * j->col, j->row, j->col,
                          smaller(width, j->side - i * width), kc, to);
    }
}

/* Packs in the order in which the operand lies in memory. */
static void pack_all(pack_job *j, sni_gemm_done_fn done, const void *ctx) {
    int width = j->left ? j->kernels->mr : j->kernels->nr;
    int64_t k_step = j->left ? j->col : j->row, step = j->left ? j->row : j->col;
    j->panels = ceil_div(j->side, width);
    j->kc = block_depth(j->k);
    j->panels_first = k_step == 1 && step > 1;
    if (j->panels == 0 || j->k == 0) return;
    int64_t blocks = ceil_div(j->k, j->kc), grain = PACK_GRAIN / (width * j->kc) + 1;
    int64_t outer = j->panels_first ? j->panels : blocks, inner = j->panels * blocks / outer;
    int64_t line = j->panels_first ? width * step : j->kc * k_step; /* floats of an outer one */
    int64_t whole = j->panels_first ? j->side * step : j->k * k_step;
    int64_t some = done && line < STREAM ? STREAM / line : done ? 1 : outer;
    for (int64_t o = 0; o < outer; o += some) {
        int64_t end = smaller(outer, o + some);
        j->first = o * inner;
        sni_parallel_for(0, (end - o) * inner, grain, pack_pieces, j);
        if (done)
            done(ctx, j->from + o * line,
                 (size_t)(smaller(end * line, whole) - o * line) * sizeof(float));
    }
}

void sni_gemm_pack_a(const sni_loose_float *a, int64_t a_row, int64_t a_col, int64_t m, int64_t k,
                     float *to) {
    pack_all(&(pack_job){.kernels = sni_cpu_kernels_get(),
                         .from = a,
                         .row = a_row,
                         .col = a_col,
                         .k = k,
                         .side = m,
                         .left = true,
                         .to = to},
             NULL, NULL);
}

void sni_gemm_stream_b(const sni_loose_float *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n,
                       float *to, sni_gemm_done_fn done, const void *ctx) {
    pack_all(&(pack_job){.kernels = sni_cpu_kernels_get(),
                         .from = b,
                         .row = b_row,
                         .col = b_col,
                         .k = k,
                         .side = n,
                         .to = to},
             done, ctx);
}

void sni_gemm_pack_b(const sni_loose_float *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n,
                     float *to) {
    sni_gemm_stream_b(b, b_row, b_col, k, n, to, NULL, NULL);
}

/* ---- One thread's share ---- */

/* Row panels [i0, i1) and columns [n0, n1) of C; n0 is a multiple of nr. */
typedef struct share {
    const sni_gemm_f32 *g;
    const sni_cpu_kernels *kernels;
    int64_t panels, kc; /* row panels of A, rows of a k-block */
    int64_t i0, i1, n0, n1;
    float *a_block, *b_block; /* scratch; NULL for packed operands */
} share;

/* Most row panels of a block of A: as many as fill a quarter of the second-level cache. */
static int64_t block_panels(const sni_cpu_kernels *k) {
    int64_t most = (int64_t)(sni_cpu_cache(2) / 4 / ((size_t)k->kc * sizeof(float))) / k->mr;
    return most < 1 ? 1 : most;
}

static int64_t block_columns(const sni_cpu_kernels *k) {
    return NC / k->nr * k->nr;
}

/* Panels [i, i + count) of A from column p on. */
static const float *block_of_a(const share *s, int64_t i, int64_t count, int64_t p, int64_t kc) {
    const sni_gemm_f32 *g = s->g;
    int mr = s->kernels->mr;
    if (g->packed_a) return g->packed_a + p * s->panels * mr + i * mr * kc;
    pack_a_panels(s->kernels, g->a + p * g->a_col, g->a_row, g->a_col, g->m, i, i + count, kc,
                  s->a_block);
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
        pack_b_panels(s->kernels, g->b + p * g->b_row + j * g->b_col, g->b_row, g->b_col, nc, kc,
                      s->b_block);
    }
    return s->b_block;
}

/* Scale, bias, residual and activation on a finished tile. */
static void finish_tile(const share *s, int64_t i, int64_t rows, int64_t j, int64_t cols) {
    const sni_gemm_f32 *g = s->g;
    const sni_epilogue *e = &g->epilogue;
    float *c = g->c + i * g->c_row + j;
    if (g->scale != 0 && g->scale != 1) {
        sni_epilogue scale = {.act = SNI_ACT_AFFINE, .p0 = g->scale};
        s->kernels->finish_tile(&scale, c, g->c_row, i, rows, j, cols);
    }
    if (e->act == SNI_ACT_NONE && !e->row_bias && !e->column_bias && !e->residual) return;
    s->kernels->finish_tile(e, c, g->c_row, i, rows, j, cols);
}

/* What a tile is to fetch meanwhile. */
typedef struct fetch {
    const float *from;
    int64_t lines; /* of 64 bytes */
} fetch;

/* One tile; without `next`, A's single row is read where it lies. */
static void run_tile(const share *s, const float *a, const float *b, int64_t kc, int64_t i,
                     int64_t rows, int64_t j, int64_t cols, bool add, const fetch *next) {
    const sni_gemm_f32 *g = s->g;
    const sni_cpu_kernels *kernels = s->kernels;
    int nr = kernels->nr;
    float edge[SNI_MAX_MR * SNI_MAX_NR], *c = g->c + i * g->c_row + j;
    bool whole = cols == nr;
    if (!next)
        kernels->gemm_row(kc, a, b, whole ? c : edge, whole && add);
    else
        kernels->gemm_tile[rows](kc, a, b, whole ? c : edge, whole ? g->c_row : nr, whole && add,
                                 next->from, next->lines);
    if (whole) return;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t q = 0; q < cols; q++)
            c[r * g->c_row + q] = edge[r * nr + q] + (add ? c[r * g->c_row + q] : 0);
}

/* `count` row panels from panel i0 on, times columns [j0, j0 + nc), over one k-block. The tiles on
 * a panel of B fetch the one that comes after it, each a part; after the last one comes `after`. */
static void run_blocks(const share *s, int64_t i0, int64_t count, int64_t j0, int64_t nc, int64_t p,
                       int64_t kc, const float *a, const float *b, const float *after) {
    int mr = s->kernels->mr, nr = s->kernels->nr;
    bool last = p + kc == s->g->k;
    int64_t lines = nr * kc / 16;
    for (int64_t j = 0; j < nc; j += nr) {
        int64_t cols = smaller(nr, nc - j);
        const float *next = j + nr < nc ? b + (j + nr) * kc : after;
        for (int64_t i = 0; i < count; i++) {
            int64_t row = panel_row(s->g->m, s->panels, i0 + i);
            int64_t rows = panel_row(s->g->m, s->panels, i0 + i + 1) - row;
            int64_t from = i * lines / count, to = (i + 1) * lines / count;
            fetch part = {next ? next + from * 16 : NULL, next ? to - from : 0};
            run_tile(s, a + i * mr * kc, b + j * kc, kc, row, rows, j0 + j, cols,
                     p > 0 || s->g->add, &part);
            if (last) finish_tile(s, row, rows, j0 + j, cols);
        }
    }
}

/* The panel of B that is needed after block `b` (columns [j, j + nc), k-block p) when it is not the
 * rows' turn to go on. NULL: none, or not made yet. */
static const float *panel_after(const share *s, int64_t p, int64_t kc, int64_t j, int64_t nc) {
    const sni_gemm_f32 *g = s->g;
    int64_t n = round_up(g->n, s->kernels->nr);
    if (!g->packed_b) return NULL;
    if (p + kc < g->k) return g->packed_b + (p + kc) * n + j * smaller(s->kc, g->k - p - kc);
    return j + nc < s->n1 ? g->packed_b + (j + nc) * smaller(s->kc, g->k) : NULL;
}

static void run_share(const share *s) {
    const sni_gemm_f32 *g = s->g;
    int64_t blocks = ceil_div(s->i1 - s->i0, block_panels(s->kernels));
    int64_t nc_most = g->packed_b ? s->n1 - s->n0 : block_columns(s->kernels);
    for (int64_t j = s->n0; j < s->n1; j += nc_most) {
        int64_t nc = smaller(nc_most, s->n1 - j);
        for (int64_t p = 0; p < g->k; p += s->kc) {
            int64_t kc = smaller(s->kc, g->k - p);
            const float *b = block_of_b(s, p, kc, j, nc);
            for (int64_t q = 0; q < blocks; q++) {
                int64_t i = s->i0 + (s->i1 - s->i0) * q / blocks;
                int64_t count = s->i0 + (s->i1 - s->i0) * (q + 1) / blocks - i;
                const float *after = q + 1 < blocks ? b : panel_after(s, p, kc, j, nc);
                run_blocks(s, i, count, j, nc, p, kc, block_of_a(s, i, count, p, kc), b, after);
            }
        }
    }
}

/* A single row of A with packed B: reads B once from end to end and packs nothing. */
static void run_row(const share *s) {
    const sni_gemm_f32 *g = s->g;
    int nr = s->kernels->nr;
    int64_t panels = ceil_div(s->n1 - s->n0, nr);
    for (int64_t i = 0; i < panels; i++) {
        int64_t j = s->n0 + (g->backwards ? panels - 1 - i : i) * nr, cols = smaller(nr, s->n1 - j);
        for (int64_t p = 0; p < g->k; p += s->kc) {
            int64_t kc = smaller(s->kc, g->k - p);
            run_tile(s, g->a + p, g->packed_b + p * round_up(g->n, nr) + j * kc, kc, 0, 1, j, cols,
                     p > 0 || g->add, NULL);
        }
    }
    finish_tile(s, 0, 1, s->n0, s->n1 - s->n0);
}

static bool is_row(const sni_gemm_f32 *g) {
    return g->m == 1 && g->packed_b && !g->packed_a && (g->a_col == 1 || g->k == 1);
}

/* ---- Threads ---- */

/* How C is cut: into `parts` ranges of whole panels, of columns or of rows. */
typedef struct job {
    const sni_gemm_f32 *g;
    const sni_cpu_kernels *kernels;
    int64_t row_panels, col_panels;
    int parts;
    bool by_rows;
    float *scratch;
    size_t scratch_part; /* floats of one part */
} job;

static size_t a_block_size(const sni_gemm_f32 *g, const sni_cpu_kernels *k) {
    if (g->packed_a || is_row(g)) return 0;
    int64_t panels = smaller(ceil_div(g->m, k->mr), block_panels(k));
    return (size_t)round_up(panels * k->mr * block_depth(g->k), 16);
}

static size_t b_block_size(const sni_gemm_f32 *g, const sni_cpu_kernels *k) {
    if (g->packed_b) return 0;
    int64_t cols = smaller(round_up(g->n, k->nr), block_columns(k));
    return (size_t)round_up(cols * block_depth(g->k), 16);
}

size_t sni_gemm_scratch_size(const sni_gemm_f32 *g, int threads) {
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    return (a_block_size(g, k) + b_block_size(g, k)) * (size_t)(threads < 1 ? 1 : threads);
}

/* Cuts along the side that gives parts of most equal size. If they are equal: along the rows where
 * there are many, so that each is packed once, otherwise along the columns, so that each weight is
 * read once. */
static void cut(job *j, int threads) {
    const sni_gemm_f32 *g = j->g;
    int64_t parts = threads;
    j->row_panels = ceil_div(g->m, j->kernels->mr);
    j->col_panels = ceil_div(g->n, j->kernels->nr);
    if (g->m * g->n * g->k < SMALL_WORK) parts = 1;
    int64_t by_rows = ceil_div(j->row_panels, smaller(parts, j->row_panels)) * j->col_panels;
    int64_t by_cols = ceil_div(j->col_panels, smaller(parts, j->col_panels)) * j->row_panels;
    bool many = j->row_panels >= MANY_PANELS * parts && !g->packed_a;
    j->by_rows = many ? by_rows <= by_cols : by_rows < by_cols;
    j->parts = (int)smaller(parts, j->by_rows ? j->row_panels : j->col_panels);
}

static void run_parts(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    const sni_gemm_f32 *g = j->g;
    for (int64_t part = begin; part < end; part++) {
        int64_t panels = j->by_rows ? j->row_panels : j->col_panels;
        int64_t from = part * panels / j->parts, to = (part + 1) * panels / j->parts;
        float *scratch = j->scratch ? j->scratch + (size_t)part * j->scratch_part : NULL;
        share s = {.g = g,
                   .kernels = j->kernels,
                   .panels = j->row_panels,
                   .kc = block_depth(g->k),
                   .i0 = j->by_rows ? from : 0,
                   .i1 = j->by_rows ? to : j->row_panels,
                   .n0 = j->by_rows ? 0 : from * j->kernels->nr,
                   .n1 = j->by_rows ? g->n : smaller(to * j->kernels->nr, g->n),
                   .a_block = scratch,
                   .b_block = scratch ? scratch + a_block_size(g, j->kernels) : NULL};
        if (is_row(g))
            run_row(&s);
        else
            run_share(&s);
    }
}

/* A product over no terms: C is bias and activation of zeros. */
static void run_empty(const sni_gemm_f32 *g, const sni_cpu_kernels *kernels) {
    share s = {.g = g, .kernels = kernels};
    for (int64_t i = 0; i < g->m && !g->add; i++)
        memset(g->c + i * g->c_row, 0, (size_t)g->n * sizeof *g->c);
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
