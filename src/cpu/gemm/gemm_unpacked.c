/* gemm_unpacked.c - products too narrow for packing to be worth it: operands are read unpacked. */
#include "cpu/gemm/gemm_blocks.h"

#include "base/threadpool.h"

enum {
    MANY_ROWS = 16,      /* of A that are worth taking a packed B apart for */
    FEW_ROWS = 16,       /* for which B is not packed however wide it is, */
    DEEP = 64,           /* but taken so many rows at a time: those of few pages */
    NARROW_COLUMNS = 64, /* for which A is not packed, */
    NEAR = 1 << 15,      /* with so many floats of B, which stay in the second-level cache; */
    NEARER = 1 << 14,    /* with so many, few of which are far, whatever the columns */
    FAR = 1024,          /* floats: rows so far apart share their places in the cache */
    LONG = 1 << 24,      /* multiply-accumulates after which to ask whether to stop */
    PIECE = 1 << 15,     /* multiply-accumulates that are worth a thread's while */
    GROUP_ROWS = 8,      /* that are dealt out together, */
    GROUP_COLUMNS = 32   /* or columns */
};

static bool is_line(int64_t step, int64_t length) {
    return step == 1 || length == 1;
}

/* True if B is taken a few rows at a time; else in the blocks of a packed one, which give the same
 * sums. */
static bool is_shallow(const sni_gemm_f32 *g) {
    return !g->packed_b && g->m <= FEW_ROWS;
}

/* Products that may be computed so, whatever their sizes. */
static bool may(const sni_gemm_f32 *g) {
    return g->may_stay_unpacked && g->m >= 1 && g->n >= 1 && g->k >= 1 && !g->packed_a &&
           !g->compressed_b && !g->half_b && !g->emulated && !g->fill &&
           !(g->packed_b && g->m == 1);
}

bool sni_gemm_can_go_across(const sni_gemm_f32 *g) {
    if (!may(g) || (!g->packed_b && !is_line(g->b_col, g->n))) return false;
    if (is_shallow(g)) return true;
    int nr = sni_cpu_kernels_get()->nr;
    bool near = g->n <= NARROW_COLUMNS ? g->k <= NEAR / g->n : g->k <= NEARER / g->n;
    return near && (!g->packed_b || g->n <= nr) && g->a_row % FAR != 0;
}

bool sni_gemm_has_row_dots(const sni_gemm_f32 *g) {
    return may(g) && g->n <= SNI_DOT_COLUMNS && is_line(g->a_col, g->k) &&
           (!g->packed_b || g->m >= MANY_ROWS);
}

bool sni_gemm_has_column_dots(const sni_gemm_f32 *g) {
    return may(g) && !g->packed_b && g->m <= SNI_DOT_COLUMNS && is_line(g->b_row, g->k) &&
           !is_line(g->b_col, g->n);
}

/* Whether the few lines have to be copied to be lines. */
static bool has_copy(const sni_gemm_f32 *g, sni_gemm_along along) {
    if (along == SNI_GEMM_ROW_DOTS) return g->packed_b || !is_line(g->b_row, g->k);
    return along == SNI_GEMM_COLUMN_DOTS && !is_line(g->a_col, g->k);
}

size_t sni_gemm_unpacked_size(const sni_gemm_f32 *g, sni_gemm_along along) {
    return has_copy(g, along) ? (size_t)(g->k * (along == SNI_GEMM_ROW_DOTS ? g->n : g->m)) : 0;
}

/* Step p of k of all columns of B, `*step` elements apart. */
static const float *row_of_b(const sni_gemm_f32 *g, int64_t p, int64_t *step) {
    *step = g->b_col;
    if (!g->packed_b) return g->b + p * g->b_row;
    int nr = sni_cpu_kernels_get()->nr;
    int64_t depth = sni_gemm_depth(g->k), first = p / depth * depth;
    int64_t kc = sni_min(depth, g->k - first);
    *step = 1;
    return sni_gemm_packed_panel(g->packed_b, g->n, nr, first, kc, 0) + (p - first) * nr;
}

/* Column after column of B, or row after row of A. */
static void copy_lines(const sni_gemm_f32 *g, sni_gemm_along along, float *to) {
    bool rows = along == SNI_GEMM_ROW_DOTS;
    int64_t lines = rows ? g->n : g->m, step = g->a_row;
    for (int64_t p = 0; p < g->k; p++) {
        const float *from = rows ? row_of_b(g, p, &step) : g->a + p * g->a_col;
        for (int64_t j = 0; j < lines; j++) to[j * g->k + p] = from[j * step];
    }
}

typedef struct job {
    const sni_gemm_f32 *g;
    const sni_cpu_kernels *kernels;
    sni_gemm_along along;
    const float *few; /* the few lines */
    int64_t few_step;
    bool by_rows;
    int64_t step; /* groups between which the product may be stopped */
} job;

/* Rows [i0, i1) and columns [j0, j1) of C. */
static void run_across(const job *j, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    const sni_gemm_f32 *g = j->g;
    sni_unpacked_product x = {.m = i1 - i0,
                              .n = j1 - j0,
                              .k = g->k,
                              .a = g->a + i0 * g->a_row,
                              .a_row = g->a_row,
                              .a_col = g->a_col,
                              .b = g->b ? g->b + j0 : NULL, /* NULL: packed */
                              .b_row = g->packed_b ? j->kernels->nr : g->b_row,
                              .b_col = 1,
                              .c = g->c + i0 * g->c_row + j0,
                              .c_row = g->c_row,
                              .c_col = 1,
                              .add = g->add};
    if (g->m == 1) {
        x.b_row = g->b_row;
        j->kernels->gemm_along(&x);
        return;
    }
    int64_t depth = is_shallow(g) ? DEEP : sni_gemm_depth(g->k);
    for (int64_t p = 0; p < g->k; p += depth) {
        x.k = sni_min(depth, g->k - p);
        x.a = g->a + i0 * g->a_row + p * g->a_col;
        x.b = g->packed_b ? sni_gemm_packed_panel(g->packed_b, g->n, j->kernels->nr, p, x.k, 0) + j0
                          : g->b + p * g->b_row + j0;
        x.add = p > 0 || g->add;
        j->kernels->gemm_across(&x);
    }
}

/* Dot products of the few lines with rows [begin, end) of A, or with so many columns of B. */
static void run_dots(const job *j, int64_t begin, int64_t end) {
    const sni_gemm_f32 *g = j->g;
    bool rows = j->along == SNI_GEMM_ROW_DOTS;
    int64_t step = rows ? g->a_row : g->b_col, out = rows ? g->c_row : 1;
    sni_unpacked_product x = {.m = end - begin,
                              .n = rows ? g->n : g->m,
                              .k = g->k,
                              .a = (rows ? g->a : g->b) + begin * step,
                              .a_row = step,
                              .a_col = 1,
                              .b = j->few,
                              .b_row = 1,
                              .b_col = j->few_step,
                              .c = g->c + begin * out,
                              .c_row = out,
                              .c_col = rows ? 1 : g->c_row,
                              .add = g->add};
    j->kernels->gemm_dots(&x);
}

/* A piece of C: [i0, i1) x [j0, j1). */
static void run_piece(const job *j, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    const sni_gemm_f32 *g = j->g;
    sni_gemm_share s = {.g = g, .kernels = j->kernels};
    if (j->along == SNI_GEMM_ACROSS)
        run_across(j, i0, i1, j0, j1);
    else if (j->along == SNI_GEMM_ROW_DOTS)
        run_dots(j, i0, i1);
    else
        run_dots(j, j0, j1);
    sni_gemm_finish(&s, i0, i1 - i0, j0, j1 - j0);
}

/* Items are groups of rows or of columns. */
static void run_items(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    const sni_gemm_f32 *g = j->g;
    for (int64_t next; begin < end; begin = next) {
        if (g->stop && g->stop(g->stop_ctx)) return;
        next = sni_min(begin + j->step, end);
        if (j->by_rows)
            run_piece(j, begin * GROUP_ROWS, sni_min(next * GROUP_ROWS, g->m), 0, g->n);
        else
            run_piece(j, 0, g->m, begin * GROUP_COLUMNS, sni_min(next * GROUP_COLUMNS, g->n));
    }
}

void sni_gemm_run_unpacked(const sni_gemm_f32 *g, sni_gemm_along along, int threads,
                           float *scratch) {
    job j = {.g = g, .kernels = sni_cpu_kernels_get(), .along = along};
    bool narrow = along == SNI_GEMM_ROW_DOTS;
    j.by_rows = narrow || (along == SNI_GEMM_ACROSS && g->m > FEW_ROWS);
    j.few = narrow ? g->b : g->a;
    j.few_step = narrow ? g->b_col : g->a_row;
    if (has_copy(g, along)) {
        copy_lines(g, along, scratch);
        j.few = scratch;
        j.few_step = g->k;
    }
    int64_t items = j.by_rows ? sni_ceil_div(g->m, GROUP_ROWS) : sni_ceil_div(g->n, GROUP_COLUMNS);
    int64_t each = g->k * (j.by_rows ? GROUP_ROWS * g->n : GROUP_COLUMNS * g->m);
    j.step = sni_max(LONG / (each + 1), 1);
    if (threads == 1 || each * items < PIECE) {
        run_items(&j, 0, items);
        return;
    }
    int64_t shares = j.by_rows ? 4 * threads : threads; /* columns: rows of B are read in one go */
    int64_t grain = sni_max(PIECE / (each + 1), sni_ceil_div(items, shares));
    sni_parallel_for(threads, items, grain, run_items, &j);
}
