/* inner_product.c - blocking around the tiles of Winograd's inner product
 * (cpu/gemm/inner_product.h).
 *
 * A is packed, some row panels at a time, and meets all panels of B's columns. Where B is small it
 * stays in the second-level cache and one row panel after the other passes by; else as many row
 * panels do as fill half of it, and B passes by. */
#include "cpu/gemm/inner_product.h"

#include "base/work_stealing.h"
#include "base/threadpool.h"
#include "cpu/costs/costs.h"
#include "cpu/gemm/gemm_blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD = 32,         /* floats before a packed row panel: what is too much, and factors back */
    FACTORS = 16,      /* where the latter begin */
    MOST_PANELS = 64,  /* of rows in a block */
    MANY_PANELS = 8,   /* of rows for each thread that are worth reading all of B for, */
    UNEVEN = 20,       /* even if one thread has one twentieth more to do */
    ROWS_TOGETHER = 2, /* panels of rows that a thread takes at a time */
    SPREAD = 8         /* how many times larger or smaller than others a column may be */
};

bool sni_inner_product_is_quicker(void) {
    return sni_costs_get()->gemm.inner_gain > 0 && sni_inner_product_most() > 0;
}

int sni_inner_product_most(void) {
    return sni_cpu_kernels_get()->inner_product->most;
}

double sni_inner_product_gain(int64_t n, int64_t k, const sni_gemm_costs *c) {
    double terms = (double)k, panels = (double)n / (double)sni_cpu_kernels_get()->nr;
    return panels * (2 * c->inner_gain * terms * c->vector - c->inner_end) - c->inner_pack * terms;
}

bool sni_inner_product_suits(int64_t m, int64_t n, int64_t k) {
    return m > sni_inner_product_most() && k % SNI_LEFT_STEPS == 0 &&
           sni_inner_product_gain(n, k, &sni_costs_get()->gemm) > 0;
}

/* ---- The right operand ---- */

/* The numbers are: the square of a row's size, then for each k-block what is too much in the sums
 * of columns, then their factors if they are scaled, each up to whole panels. */
static int64_t padded(int64_t n) {
    return sni_round_up(n, sni_cpu_kernels_get()->nr);
}

static int64_t k_blocks(int64_t k) {
    return sni_ceil_div(k, sni_gemm_depth(k));
}

size_t sni_inner_product_numbers(int64_t k, int64_t n, bool scaled) {
    return (size_t)(HEAD + (k_blocks(k) + scaled) * padded(n));
}

size_t sni_inner_product_flags(int64_t n) {
    return (size_t)(padded(n) / sni_cpu_kernels_get()->nr);
}

static const float *column_less(const sni_inner_product_b *b, int64_t block, int64_t j) {
    return b->numbers + HEAD + block * padded(b->n) + j;
}

/* NULL: they are 1. */
static const float *column_factors(const sni_inner_product_b *b) {
    return b->scaled ? column_less(b, k_blocks(b->k), 0) : NULL;
}

typedef struct measure_job {
    float *panels, *numbers;
    uint8_t *tame;
    double *squares;
    int64_t k, n;
} measure_job;

static bool is_tame(double square) {
    return square > 0x1p-80 && square < 0x1p80;
}

/* Rows [*p, ...) of the panel's next k-block, and how many there are; NULL: it has no more. */
static float *next_block(const sni_inner_product_panel *panel, int64_t *p, int64_t *rows) {
    int nr = sni_cpu_kernels_get()->nr;
    if (*p >= panel->k) return NULL;
    *rows = sni_min(panel->depth, panel->k - *p);
    float *at = panel->panels + *p * sni_round_up(panel->n, nr) + panel->j * *rows;
    *p += *rows;
    return at;
}

/* The greatest number of column i, without its sign; NaN if it has one. */
static float column_most(const sni_inner_product_panel *panel, int i) {
    int nr = sni_cpu_kernels_get()->nr;
    int64_t p = 0, rows;
    float most = 0, *at;
    while ((at = next_block(panel, &p, &rows)) != NULL)
        for (int64_t r = 0; r < rows; r++) {
            float size = fabsf(at[r * nr + i]);
            if (!(size <= most)) most = size;
            if (isnan(most)) return most;
        }
    return most;
}

/* The power of two that brings column i to length 1, about, or one whose squares do not tell its
 * size closer to it. *back leads back, 0 for zeros. False: it has to be multiplied plainly. */
static bool column_power(const sni_inner_product_panel *panel, int i, double square, float *back,
                         int *power) {
    enum { NEAR = 40 };
    float most = is_tame(square) ? 1 : column_most(panel, i);
    *power = 0;
    if (is_tame(square))
        *power = -(int)floor(log2(square) / 2);
    else if (isfinite(most) && most > 0)
        *power = (most > 1 ? NEAR : -NEAR) - ilogbf(most);
    *back = most == 0 ? 0 : ldexpf(1, -*power);
    return is_tame(square) || most == 0;
}

static void scale_column(const sni_inner_product_panel *panel, int i, int power) {
    int nr = sni_cpu_kernels_get()->nr;
    int64_t p = 0, rows;
    float by = ldexpf(1, power), *at, *less = panel->less + i;
    for (; (at = next_block(panel, &p, &rows)) != NULL; less += panel->less_step) {
        for (int64_t r = 0; r < rows; r++) at[r * nr + i] *= by;
        *less *= by * by;
    }
}

/* Adds the squares of a panel's columns, and writes what is too much in their sums. */
static void measure_panel(const sni_inner_product_panel *panel, double *squares) {
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    int64_t p = 0, rows;
    float *at, *to = panel->less;
    for (; (at = next_block(panel, &p, &rows)) != NULL; to += panel->less_step) {
        double less[SNI_MAX_NR] = {0};
        k->inner_product->columns(rows, at, squares, less);
        for (int i = 0; i < k->nr; i++) to[i] = (float)less[i];
    }
}

bool sni_inner_product_scale_panel(const sni_inner_product_panel *panel) {
    double squares[SNI_MAX_NR] = {0};
    bool tame = true;
    measure_panel(panel, squares);
    for (int i = 0; i < sni_cpu_kernels_get()->nr; i++) {
        int power;
        tame &= column_power(panel, i, squares[i], &panel->factors[i], &power);
        if (power) scale_column(panel, i, power);
    }
    return tame;
}

static sni_inner_product_panel panel_of(const measure_job *m, int64_t i) {
    int64_t columns = padded(m->n), j = i * sni_cpu_kernels_get()->nr;
    float *less = m->numbers + HEAD + j;
    return (sni_inner_product_panel){.panels = m->panels,
                                     .k = m->k,
                                     .n = m->n,
                                     .depth = sni_gemm_depth(m->k),
                                     .j = j,
                                     .less = less,
                                     .less_step = columns,
                                     .factors = less + k_blocks(m->k) * columns};
}

static void measure_panels(void *ctx, int64_t begin, int64_t end) {
    const measure_job *m = ctx;
    for (int64_t i = begin; i < end; i++) {
        sni_inner_product_panel panel = panel_of(m, i);
        measure_panel(&panel, m->squares + panel.j);
    }
}

static void scale_panels(void *ctx, int64_t begin, int64_t end) {
    const measure_job *m = ctx;
    for (int64_t i = begin; i < end; i++) {
        sni_inner_product_panel panel = panel_of(m, i);
        m->tame[i] = sni_inner_product_scale_panel(&panel);
    }
}

/* Of columns that stay as they are: those that are not much larger or smaller than others are tame.
 * Returns the mean square. */
static double compare_columns(const measure_job *m) {
    int nr = sni_cpu_kernels_get()->nr;
    double sum = 0, count = 0;
    for (int64_t j = 0; j < m->n; j++) {
        if (!is_tame(m->squares[j])) continue;
        sum += log2(m->squares[j]);
        count++;
    }
    double mean = count > 0 ? exp2(sum / count) : 1;
    for (int64_t j = 0; j < m->n; j++) {
        double ratio = m->squares[j] / mean;
        if (j % nr == 0) m->tame[j / nr] = 1;
        m->tame[j / nr] &= ratio <= SPREAD * SPREAD && ratio * SPREAD * SPREAD >= 1;
    }
    return mean;
}

void sni_inner_product_measure(float *panels, int64_t k, int64_t n, bool scaled, float *numbers,
                               uint8_t *tame) {
    int64_t count = (int64_t)sni_inner_product_flags(n);
    measure_job m = {.panels = panels, .numbers = numbers, .tame = tame, .k = k, .n = n};
    double square = 1;
    memset(tame, 0, sni_inner_product_flags(n));
    if (scaled) {
        sni_parallel_for(0, count, 1, scale_panels, &m);
    } else {
        m.squares = calloc((size_t)padded(n), sizeof *m.squares);
        if (!m.squares) return; /* no panel is tame: slower, and as right */
        sni_parallel_for(0, count, 1, measure_panels, &m);
        square = compare_columns(&m);
        free(m.squares);
    }
    numbers[0] = (float)(square / (double)k_blocks(k));
}

/* ---- Products ---- */

/* What the threads of a product have in common. */
typedef struct job {
    const sni_product *p;
    const sni_inner_product_b *b;
    const sni_cpu_kernels *kernels;
    int64_t depth;
    int64_t a_step;       /* from line to line of packed rows */
    bool near;            /* B stays in the second-level cache */
    const float *factors; /* of columns; NULL: 1 */
    int64_t col_panels;
    int parts;
    bool by_rows;
    float *scratch;
    size_t scratch_part;
    sni_stealing stealing;
} job;

/* Row panels [i0, i1) and columns [n0, n1) of C. */
typedef struct share {
    int64_t i0, i1, n0, n1;
} share;

/* Row panels that are packed, over kc terms from p on, and the columns that they meet. */
typedef struct block {
    int64_t first, count, end; /* `end` of the rows that are packed after them */
    int64_t p, kc, n0, n1;
    int64_t size; /* floats of one */
    const float *a;
    bool tame[MOST_PANELS];
    sni_product_rows rows[MOST_PANELS];
} block;

static int64_t panel_size(const sni_cpu_kernels *k, int64_t kc) {
    return HEAD + sni_gemm_left_panel(k, kc);
}

/* Whether B stays in the second-level cache. */
static bool is_near(const sni_inner_product_b *b) {
    int64_t bytes = sni_gemm_depth(b->k) * padded(b->n) * (int64_t)sizeof(float);
    return bytes <= (int64_t)sni_cpu_cache(2) / 4;
}

/* Row panels of a block. */
static int64_t block_panels(const sni_inner_product_b *b) {
    int64_t floats = panel_size(sni_cpu_kernels_get(), sni_gemm_depth(b->k));
    int64_t most = (int64_t)(sni_cpu_cache(2) / 2 / sizeof(float)) / floats;
    return is_near(b) ? 1 : sni_max(1, sni_min(most, MOST_PANELS));
}

static void pack_block(const job *j, float *scratch, block *b) {
    sni_product_part parts[SNI_PRODUCT_PARTS];
    const sni_product *p = j->p;
    int64_t line = b->p / SNI_LEFT_STEPS, lines = b->kc / SNI_LEFT_STEPS;
    b->size = panel_size(j->kernels, b->kc);
    b->a = scratch;
    for (int64_t i = 0; i < b->count; i++) {
        float *to = scratch + i * b->size;
        int count = p->left(p->ctx, b->first + i, line, lines, parts);
        b->rows[i] = p->rows(p->ctx, b->first + i);
        b->tame[i] =
            j->kernels->inner_product->left(b->rows[i].count, count, parts, j->b->numbers[0],
                                            to + HEAD, j->a_step, to, to + FACTORS) == 0;
    }
}

/* The sums of a tile without pairs. */
static void sum_plainly(const sni_cpu_kernels *k, int rows, const sni_inner_product_tile *t,
                        float *sums) {
    k->gemm_tile[rows](t->k, t->a, t->b, NULL, sums, k->nr, false, NULL, NULL, 0);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < k->nr; j++)
            sums[i * k->nr + j] = sums[i * k->nr + j] *
                                  (t->column_factors ? t->column_factors[j] : 1) *
                                  t->row_factors[i];
}

/* One tile; `t` is all but its end. */
static void run_tile(const job *j, const sni_product_place *place, bool tame,
                     sni_inner_product_tile *t) {
    const sni_cpu_kernels *k = j->kernels;
    const sni_product *p = j->p;
    _Alignas(64) float sums[SNI_MAX_MR * SNI_MAX_NR];
    bool half = 2 * place->columns == k->nr, whole = half || place->columns == k->nr;
    bool more = false;
    if (tame && whole)
        more = p->end(p->ctx, place, &t->end);
    else
        t->end = (sni_product_end){.y = sums, .row = k->nr, .vector = k->nr / 2};
    if (tame)
        (half ? k->inner_product->half : k->inner_product->tile)[place->rows.count](t);
    else
        sum_plainly(k, place->rows.count, t, sums);
    if (more || !tame || !whole) p->finish(p->ctx, place, more ? NULL : sums);
}

/* Has the tiles of a block and a panel of columns fetch what comes next: a panel of B after this
 * one, or where B stays near, while the first panel of its columns is met, rows of A. */
static void plan_fetch(const job *j, const block *a, int64_t column, sni_inner_product_tile *t) {
    const sni_product *product = j->p;
    const sni_inner_product_b *b = j->b;
    int nr = j->kernels->nr;
    t->each = t->fetch_step = 0;
    t->fetch = t->b;
    if (!j->near && column + nr < a->n1) {
        t->fetch = sni_gemm_packed_panel(b->panels, b->n, nr, a->p, t->k, column + nr);
        t->each = sni_ceil_div(nr, a->count);
        t->fetch_step = t->each * 16;
    } else if (j->near && column == a->n0 && product->prefetch && a->first + a->count < a->end) {
        t->fetch = product->prefetch(product->ctx, a->first + a->count, a->p / SNI_LEFT_STEPS,
                                     &t->fetch_step);
        t->each = a->rows[0].count;
    }
}

/* A block by one panel of columns. */
static void run_panel(const job *j, const block *a, int64_t column) {
    const sni_inner_product_b *b = j->b;
    int nr = j->kernels->nr;
    sni_product_place place = {.column = column,
                               .columns = sni_min(nr, a->n1 - column),
                               .first = a->p == 0,
                               .last = a->p + a->kc == b->k};
    sni_inner_product_tile t = {.k = a->kc,
                                .a_step = j->a_step,
                                .b =
                                    sni_gemm_packed_panel(b->panels, b->n, nr, a->p, a->kc, column),
                                .column_less = column_less(b, a->p / j->depth, column),
                                .column_factors = j->factors ? j->factors + column : NULL};
    plan_fetch(j, a, column, &t);
    for (int64_t i = 0; i < a->count; i++) {
        const float *left = a->a + i * a->size;
        place.rows = a->rows[i];
        t.a = left + HEAD;
        t.row_less = left;
        t.row_factors = left + FACTORS;
        run_tile(j, &place, a->tame[i] && b->tame[column / nr], &t);
        t.fetch += t.fetch_step * (a->kc / SNI_LEFT_STEPS);
    }
}

static bool stops(const job *j) {
    return j->p->stop && j->p->stop(j->p->stop_ctx);
}

/* Row panels of a share that meet one k-block of B. */
typedef struct stretch {
    const share *s;
    int64_t p, kc;
} stretch;

/* Where a k-block of B is near: one row panel after the other meets all of its columns. */
static void run_rows(const job *j, const stretch *r, int64_t from, int64_t to, float *scratch) {
    for (int64_t i = from; i < to && !stops(j); i++) {
        block a = {.first = i, .count = 1, .end = r->s->i1, .p = r->p, .kc = r->kc};
        a.n0 = r->s->n0;
        a.n1 = r->s->n1;
        pack_block(j, scratch, &a);
        for (int64_t n = a.n0; n < a.n1; n += j->kernels->nr) run_panel(j, &a, n);
    }
}

/* Where it is not: many row panels are packed, and it passes by. */
static void run_blocks(job *j, int part, const stretch *r, float *scratch) {
    const share *s = r->s;
    int64_t rows = s->i1 - s->i0, blocks = sni_ceil_div(rows, block_panels(j->b));
    for (int64_t q = 0; q < blocks && !stops(j); q++) {
        block a = {.first = s->i0 + rows * q / blocks, .p = r->p, .kc = r->kc};
        a.count = s->i0 + rows * (q + 1) / blocks - a.first;
        a.n0 = s->n0;
        a.n1 = s->n1;
        pack_block(j, scratch, &a);
        sni_stealing_do(&j->stealing, part, &a, sni_ceil_div(s->n1 - s->n0, j->kernels->nr));
    }
}

/* One k-block after the other, which meets all rows. */
static void run_share(job *j, int part, const share *s, float *scratch) {
    for (int64_t p = 0; p < j->b->k && !stops(j); p += j->depth) {
        stretch r = {.s = s, .p = p, .kc = sni_min(j->depth, j->b->k - p)};
        if (j->near)
            sni_stealing_do(&j->stealing, part, &r, sni_ceil_div(s->i1 - s->i0, ROWS_TOGETHER));
        else
            run_blocks(j, part, &r, scratch);
    }
}

/* ---- Threads ---- */

static float *scratch_of(const job *j, int part) {
    return j->scratch + (size_t)part * j->scratch_part;
}

/* A unit of a stretch: some of its row panels. */
static void help_rows(void *ctx, int part, const void *work, int64_t unit) {
    const job *j = ctx;
    const stretch *r = work;
    int64_t from = r->s->i0 + unit * ROWS_TOGETHER;
    run_rows(j, r, from, sni_min(from + ROWS_TOGETHER, r->s->i1), scratch_of(j, part));
}

/* A unit of a block: a panel of columns. */
static void help_columns(void *ctx, int part, const void *work, int64_t unit) {
    const job *j = ctx;
    const block *a = work;
    (void)part;
    run_panel(j, a, a->n0 + unit * j->kernels->nr);
}

static size_t part_size(const sni_product *p, const sni_inner_product_b *b) {
    int64_t size = panel_size(sni_cpu_kernels_get(), sni_gemm_depth(b->k));
    return (size_t)(sni_min(block_panels(b), p->panels) * size);
}

size_t sni_inner_product_scratch_size(const sni_product *p, const sni_inner_product_b *b,
                                      int threads) {
    return part_size(p, b) * (size_t)(threads < 1 ? 1 : threads);
}

/* Rows where there are many, so that each is packed once; else the side that gives the most equal
 * parts, columns if both do. */
static void cut(job *j, int threads) {
    int64_t rows = j->p->panels, columns = j->col_panels;
    int64_t parts = sni_min(threads, SNI_MAX_PARTS);
    int64_t by_rows = sni_ceil_div(rows, sni_min(parts, rows)) * columns;
    int64_t by_cols = sni_ceil_div(columns, sni_min(parts, columns)) * rows;
    bool even = by_rows * UNEVEN <= by_cols * (UNEVEN + 1);
    j->by_rows = rows >= MANY_PANELS * parts ? even : by_rows < by_cols;
    j->parts = (int)sni_min(parts, j->by_rows ? rows : columns);
}

static void run_parts(void *ctx, int64_t begin, int64_t end) {
    job *j = ctx;
    int64_t units = j->by_rows ? j->p->panels : j->col_panels, n = j->b->n;
    for (int part = (int)begin; part < (int)end; part++) {
        int64_t from = part * units / j->parts, to = (part + 1) * units / j->parts;
        share s = {.i0 = j->by_rows ? from : 0,
                   .i1 = j->by_rows ? to : j->p->panels,
                   .n0 = j->by_rows ? 0 : from * j->kernels->nr,
                   .n1 = j->by_rows ? n : sni_min(to * j->kernels->nr, n)};
        run_share(j, part, &s, scratch_of(j, part));
        sni_stealing_help(&j->stealing, part);
    }
}

void sni_inner_product_run(const sni_product *p, const sni_inner_product_b *b, int threads,
                           float *scratch) {
    const sni_cpu_kernels *kernels = sni_cpu_kernels_get();
    job j; /* work stealing keeps much, most of which is not used */
    j.p = p;
    j.b = b;
    j.kernels = kernels;
    j.depth = sni_gemm_depth(b->k);
    j.a_step = sni_gemm_left_panel(kernels, SNI_LEFT_STEPS);
    j.near = is_near(b);
    j.factors = column_factors(b);
    j.col_panels = (int64_t)sni_inner_product_flags(b->n);
    j.scratch = scratch;
    j.scratch_part = part_size(p, b);
    cut(&j, threads < 1 ? 1 : threads);
    sni_stealing_init(&j.stealing, j.parts, j.near ? help_rows : help_columns, &j);
    sni_parallel_for(j.parts, j.parts, 1, run_parts, &j);
}
