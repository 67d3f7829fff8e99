/* emulated.c - packing, blocks and threads around the tiles of emulated products
 * (cpu/gemm/emulated.h).
 *
 * Where B stays in the second-level cache, a thread takes a few panels of rows at a time, writes
 * their slices and has them meet all strips of columns. Else the slices of as many panels as fill
 * half of the cache are written by all threads together, and the strips pass by, each taken by one
 * thread. Who takes what makes no difference to bits. */
#include "cpu/gemm/emulated.h"

#include "base/lengths.h"
#include "base/work_stealing.h"
#include "base/threadpool.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum {
    MOST_TERMS = 1 << 15, /* whose sums fit 32 bits with ease */
    LEAST_TERMS = 48,
    MOST_PANELS = 64,      /* in a block */
    PANELS_TOGETHER = 2,   /* that a thread takes at a time */
    FEW_PANELS = 8,        /* for each thread that are worth reading all of B for, */
    MANY_PANELS = 16,      /* and as many that they are taken together */
    SMALL_SPLIT = 1 << 13, /* numbers that are not worth a second thread */
    LINE = 64              /* bytes that are fetched at once */
};

/* ---- Estimates ---- */

bool sni_emulated_can(int64_t k, int64_t n) {
    return sni_emulated_kernels_get() && sni_cpu_kernels_get()->nr >= SNI_EMULATED_COLUMNS &&
           k % SNI_LEFT_STEPS == 0 && k >= LEAST_TERMS && k <= MOST_TERMS &&
           n >= SNI_EMULATED_COLUMNS;
}

static double times_of(int64_t n, int64_t each) {
    return (double)(n / each + (n % each != 0));
}

/* As measured on Emerald Rapids, in cycles at which vectors multiply floats: a product of tiles
 * with what they are loaded with takes 9 and 1.5 for each row, finishing a tile's row 11, and
 * writing the slices of a number 0.9. What is read of B more than once comes from the third-level
 * cache. */
double sni_emulated_cost(int64_t m, int64_t n, int64_t k) {
    double panels = times_of(m, SNI_EMULATED_ROWS), rows = (double)m / panels;
    double tiles = panels * times_of(n, SNI_EMULATED_COLUMNS);
    double steps = times_of(k, SNI_EMULATED_TERMS);
    double together = floor((double)sni_cpu_cache(2) / 2 / (steps * SNI_EMULATED_STEP));
    double blocks = ceil(panels / fmin(fmax(together, 1), MOST_PANELS));
    double b = steps * SNI_EMULATED_STEP * times_of(n, SNI_EMULATED_COLUMNS);
    if (b <= (double)sni_cpu_cache(2) / 2) blocks = 1;
    return tiles * (steps * 6 * (9 + 1.5 * rows) + 11 * rows) + 0.9 * (double)m * (double)k +
           (blocks - 1) * b / 8;
}

bool sni_emulated_suits(int64_t m, int64_t n, int64_t k) {
    const double plain = 30; /* multiply-accumulates in floats of a cycle */
    return sni_emulated_can(k, n) &&
           sni_emulated_cost(m, n, k) < 0.9 * (double)m * (double)n * (double)k / plain;
}

/* ---- The right operand ---- */

static int64_t strips_of(int64_t n) {
    return sni_ceil_div(n, SNI_EMULATED_COLUMNS);
}

static int64_t steps_of(int64_t k) {
    return sni_ceil_div(k, SNI_EMULATED_TERMS);
}

/* Bytes of a strip, and of the slices of a panel of rows. */
static int64_t strip_size(int64_t k) {
    return steps_of(k) * SNI_EMULATED_STEP;
}

static int64_t float_strip_size(int64_t k) {
    return steps_of(k) * SNI_EMULATED_TERMS * SNI_EMULATED_COLUMNS * (int64_t)sizeof(float);
}

size_t sni_emulated_size(int64_t k, int64_t n, bool floats) {
    int64_t factors = SNI_EMULATED_COLUMNS * (int64_t)sizeof(float);
    return (size_t)(strips_of(n) * (floats ? float_strip_size(k) : strip_size(k) + factors));
}

sni_emulated_b sni_emulated_of(int64_t k, int64_t n, bool floats, const void *packed) {
    sni_emulated_b b = {.k = k, .n = n};
    if (floats) {
        b.floats = packed;
        return b;
    }
    b.strips = packed;
    b.factors = (const void *)(b.strips + strips_of(n) * strip_size(k));
    return b;
}

typedef struct pack_job {
    const sni_emulated_source *s;
    const sni_emulated_kernels *kernels;
    int32_t *sizes;
    const int32_t *known;
    bool floats;
    char *to;
    atomic_bool wild;
} pack_job;

/* One step of a strip, zeros beyond the matrix. */
static void fill_step(const sni_emulated_source *s, int64_t strip, int64_t step, float *to) {
    int64_t j = strip * SNI_EMULATED_COLUMNS, p = step * SNI_EMULATED_TERMS;
    int64_t rows = sni_min(SNI_EMULATED_TERMS, s->k - p);
    s->fill(s->ctx, p, rows, j, sni_min(SNI_EMULATED_COLUMNS, s->n - j), SNI_EMULATED_COLUMNS, to);
    memset(to + rows * SNI_EMULATED_COLUMNS, 0,
           (size_t)((SNI_EMULATED_TERMS - rows) * SNI_EMULATED_COLUMNS) * sizeof *to);
}

static void measure_strips(void *ctx, int64_t begin, int64_t end) {
    enum { NOT_FINITE = 255 << 23 }; /* as bits */
    pack_job *j = ctx;
    _Alignas(64) float numbers[SNI_EMULATED_TERMS * SNI_EMULATED_COLUMNS];
    for (int64_t strip = begin; strip < end; strip++) {
        _Alignas(64) int32_t sizes[SNI_EMULATED_COLUMNS] = {0};
        for (int64_t step = 0; step < steps_of(j->s->k); step++) {
            fill_step(j->s, strip, step, numbers);
            j->kernels->sizes(numbers, sizes);
        }
        for (int i = 0; i < SNI_EMULATED_COLUMNS; i++)
            if (sizes[i] >= NOT_FINITE) atomic_store(&j->wild, true);
        memcpy(j->sizes + strip * SNI_EMULATED_COLUMNS, sizes, sizeof sizes);
    }
}

bool sni_emulated_measure(const sni_emulated_source *s, int32_t *sizes) {
    pack_job j = {.s = s, .kernels = sni_emulated_kernels_get(), .sizes = sizes};
    atomic_init(&j.wild, false);
    sni_parallel_for(0, strips_of(s->n), 1, measure_strips, &j);
    return !atomic_load(&j.wild);
}

static void pack_strips(void *ctx, int64_t begin, int64_t end) {
    const pack_job *j = ctx;
    const int64_t k = j->s->k;
    _Alignas(64) float numbers[SNI_EMULATED_TERMS * SNI_EMULATED_COLUMNS];
    for (int64_t strip = begin; strip < end; strip++) {
        char *to = j->to + strip * (j->floats ? float_strip_size(k) : strip_size(k));
        _Alignas(64) int32_t sizes[SNI_EMULATED_COLUMNS];
        if (!j->floats) memcpy(sizes, j->known + strip * SNI_EMULATED_COLUMNS, sizeof sizes);
        for (int64_t step = 0; step < steps_of(k); step++) {
            fill_step(j->s, strip, step, numbers);
            if (j->floats)
                memcpy(to + step * (int64_t)sizeof numbers, numbers, sizeof numbers);
            else
                j->kernels->right(numbers, sizes, to + step * SNI_EMULATED_STEP);
        }
        if (j->floats) continue;
        float *factors = (float *)(void *)(j->to + strips_of(j->s->n) * strip_size(k));
        j->kernels->factors(sizes, factors + strip * SNI_EMULATED_COLUMNS);
    }
}

void sni_emulated_pack(const sni_emulated_source *s, const int32_t *sizes, bool floats, void *to) {
    pack_job j = {.s = s, .kernels = sni_emulated_kernels_get(), .known = sizes};
    j.floats = floats;
    j.to = to;
    sni_parallel_for(0, strips_of(s->n), 1, pack_strips, &j);
}

/* ---- Blocks ---- */

/* The slices of a panel of rows. */
typedef struct row_digits {
    uint32_t wild; /* rows that have to be multiplied plainly, a bit each, */
    uint32_t lost; /* and those of them that have NaN, as all of their results are then */
    _Alignas(64) float factors[SNI_EMULATED_ROWS];
} row_digits;

/* What the threads of a product have in common. */
typedef struct job {
    const sni_product *p;
    const sni_emulated_b *b;
    const sni_emulated_kernels *emulated;
    int nr; /* of sni_product.finish() */
    int64_t strips, steps, panel_size;
    int64_t together; /* panels that a thread takes at a time */
    bool near;        /* B stays in the second-level cache */
    int64_t most;     /* panels of a block */
    int parts;
    char *scratch; /* slices of a block, or of the panels that each part has in hand */
    sni_stealing stealing;
} job;

/* ---- Rows ---- */

enum { LINES_TOGETHER = SNI_PRODUCT_PARTS }; /* whose parts are asked for at once */

/* Lines [line, ...) of a panel's rows, LINES_TOGETHER or what is left of them. */
static int lines_at(const job *j, int64_t panel, int64_t line, sni_product_part *parts) {
    int64_t left = j->b->k / SNI_LEFT_STEPS - line;
    return j->p->left(j->p->ctx, panel, line, sni_min(left, LINES_TOGETHER), parts);
}

/* Which of these rows have NaN, by the sizes of their numbers. */
static uint32_t lost_rows(uint32_t wild, const int32_t *sizes) {
    enum { INFINITE = 255 << 23 }; /* as bits; greater ones are NaN */
    uint32_t lost = 0;
    for (int i = 0; wild && i < SNI_EMULATED_ROWS * SNI_LEFT_STEPS; i++)
        if (sizes[i] > INFINITE) lost |= 1u << i / SNI_LEFT_STEPS;
    return lost;
}

static void split_panel(const job *j, int64_t index, row_digits *p, char *to) {
    enum { BYTES = LINES_TOGETHER * SNI_LEFT_STEPS / SNI_EMULATED_TERMS * SNI_EMULATED_STEP };
    sni_product_part parts[SNI_PRODUCT_PARTS];
    _Alignas(64) int32_t sizes[SNI_EMULATED_ROWS * SNI_LEFT_STEPS] = {0};
    _Alignas(64) float powers[SNI_EMULATED_ROWS];
    int64_t lines = j->b->k / SNI_LEFT_STEPS;
    int rows = j->p->rows(j->p->ctx, index).count, count = 0;
    for (int64_t line = 0; line < lines; line += LINES_TOGETHER) {
        count = lines_at(j, index, line, parts);
        j->emulated->measure(rows, count, parts, sizes);
    }
    p->wild = j->emulated->powers(rows, sizes, powers, p->factors);
    p->lost = lost_rows(p->wild, sizes);
    for (int64_t line = 0; line < lines; line += LINES_TOGETHER, to += BYTES) {
        if (lines > LINES_TOGETHER) count = lines_at(j, index, line, parts);
        j->emulated->left(rows, count, parts, powers, to);
    }
}

/* ---- Tiles ---- */

/* A step of a strip in floats, in `buffer` if they are not there. */
static const float *floats_of(const job *j, int64_t strip, int64_t step, float *buffer) {
    const sni_emulated_b *b = j->b;
    if (b->floats)
        return b->floats + (strip * j->steps + step) * SNI_EMULATED_TERMS * SNI_EMULATED_COLUMNS;
    j->emulated->numbers(b->strips + strip * j->panel_size + step * SNI_EMULATED_STEP,
                         b->factors + strip * SNI_EMULATED_COLUMNS, buffer);
    return buffer;
}

/* A step's numbers of one row, zeros behind them. */
static void row_of(int count, const sni_product_part *parts, int row, float *to) {
    const float *end = to + SNI_EMULATED_TERMS;
    for (const sni_product_part *part = parts; part < parts + count; part++)
        for (int64_t line = 0; line < part->lines; line++, to += SNI_LEFT_STEPS)
            for (int q = 0; q < SNI_LEFT_STEPS; q++)
                to[q] = part->from[row][line * part->step[row] + q] *
                        (part->factors ? part->factors[line * SNI_LEFT_STEPS + q] : 1);
    while (to < end) *to++ = 0;
}

/* Adds a step of these rows of a panel and a strip to `sums`, without slices. */
static void add_plainly(const job *j, int64_t panel, uint32_t rows, int64_t strip, int64_t step,
                        float (*sums)[SNI_EMULATED_COLUMNS]) {
    enum { LINES = SNI_EMULATED_TERMS / SNI_LEFT_STEPS };
    sni_product_part parts[LINES];
    _Alignas(64) float left[SNI_EMULATED_TERMS], buffer[SNI_EMULATED_TERMS * SNI_EMULATED_COLUMNS];
    const float *right = floats_of(j, strip, step, buffer);
    int64_t lines = sni_min(LINES, j->b->k / SNI_LEFT_STEPS - step * LINES);
    int count = j->p->left(j->p->ctx, panel, step * LINES, lines, parts);
    for (int i = 0; i < SNI_EMULATED_ROWS; i++) {
        if (!(rows >> i & 1)) continue;
        row_of(count, parts, i, left);
        j->emulated->plain(left, right, sums[i]);
    }
}

/* Sums of these rows without slices; those of `lost` are NaN. */
static void sum_plainly(const job *j, int64_t panel, uint32_t rows, uint32_t lost, int64_t strip,
                        float (*sums)[SNI_EMULATED_COLUMNS]) {
    for (int i = 0; i < SNI_EMULATED_ROWS; i++)
        for (int c = 0; c < SNI_EMULATED_COLUMNS; c++) sums[i][c] = lost >> i & 1 ? NAN : 0;
    rows &= ~lost;
    for (int64_t step = 0; rows && step < j->steps; step++)
        add_plainly(j, panel, rows, strip, step, sums);
}

/* A tile of results, and where they go: if its columns are not whole, to sums, nr in a row. */
typedef struct tile {
    sni_product_place place;
    int64_t strip;
    bool whole, more; /* more is left to do to them when they are in place */
    sni_product_end end;
} tile;

static void find_tile(const job *j, int64_t panel, int64_t strip, float *sums, tile *t) {
    int64_t column = strip * SNI_EMULATED_COLUMNS;
    t->strip = strip;
    t->place.rows = j->p->rows(j->p->ctx, panel);
    t->place.column = column;
    t->place.columns = sni_min(SNI_EMULATED_COLUMNS, j->b->n - column);
    t->place.first = t->place.last = true;
    t->whole = t->place.columns == SNI_EMULATED_COLUMNS;
    t->more = false;
    if (t->whole)
        t->more = j->p->end(j->p->ctx, &t->place, &t->end);
    else
        t->end = (sni_product_end){.y = sums, .row = j->nr};
}

/* A panel's rows, of which some are multiplied plainly. */
static void finish_some(const job *j, int64_t index, const row_digits *p, const tile *t,
                        const sni_emulated_sums *sums) {
    float plain[SNI_EMULATED_ROWS][SNI_EMULATED_COLUMNS];
    int rows = t->place.rows.count;
    uint32_t wild = j->b->floats ? (1u << rows) - 1 : p->wild;
    sum_plainly(j, index, wild, p->lost, t->strip, plain);
    for (int i = 0; i < rows; i++) {
        if (wild >> i & 1)
            j->emulated->finish_row(i, plain[i], &t->end);
        else
            j->emulated->finish(i, i + 1, sums, p->factors,
                                j->b->factors + t->strip * SNI_EMULATED_COLUMNS, &t->end);
    }
}

/* A panel of rows that meets a strip; what is fetched meanwhile is as in sni_emulated_kernels. */
static void run_tile(const job *j, int64_t index, const row_digits *p, const char *emulated,
                     int64_t strip, const char *fetch, int64_t each) {
    sni_emulated_sums sums;
    float results[SNI_EMULATED_ROWS * SNI_MAX_NR];
    const sni_emulated_b *b = j->b;
    tile t;
    find_tile(j, index, strip, results, &t);
    if (!b->floats)
        j->emulated->product(j->steps, emulated, b->strips + strip * j->panel_size, fetch, each,
                             &sums);
    if (b->floats || p->wild)
        finish_some(j, index, p, &t, &sums);
    else
        j->emulated->finish(0, t.place.rows.count, &sums, p->factors,
                            b->factors + strip * SNI_EMULATED_COLUMNS, &t.end);
    if (!t.whole || t.more) j->p->finish(j->p->ctx, &t.place, t.whole ? NULL : results);
}

static bool stops(const job *j) {
    return j->p->stop && j->p->stop(j->p->stop_ctx);
}

/* ---- Threads, where B is near: each takes rows ---- */

static void run_group(void *ctx, int part, const void *work, int64_t unit) {
    const job *j = ctx;
    const int64_t *from = work; /* group of panels */
    int64_t first = (*from + unit) * j->together;
    int64_t count = sni_min(j->together, j->p->panels - first);
    char *emulated = j->scratch + part * j->together * j->panel_size;
    row_digits panels[PANELS_TOGETHER];
    if (stops(j)) return;
    for (int64_t i = 0; i < count; i++)
        split_panel(j, first + i, &panels[i], emulated + i * j->panel_size);
    const char *fetch = emulated;
    int64_t each = 0;
    if (unit == 0 && j->b->strips) { /* the next strip comes near */
        fetch = j->b->strips + j->panel_size;
        each = sni_ceil_div(SNI_EMULATED_STEP / LINE, count);
    }
    for (int64_t strip = 0; strip < j->strips; strip++)
        for (int64_t i = 0; i < count; i++, fetch += each * j->steps * LINE)
            run_tile(j, first + i, &panels[i], emulated + i * j->panel_size, strip, fetch, each);
}

/* ---- Threads, where it is not: each takes columns ---- */

/* Panels whose slices are there. */
typedef struct block {
    job *j;
    int64_t first, count;
    row_digits panels[MOST_PANELS];
} block;

/* Strips from `from` on, which they meet. */
typedef struct columns {
    const block *b;
    int64_t from;
} columns;

static void split_some(void *ctx, int64_t begin, int64_t end) {
    block *b = ctx;
    for (int64_t i = begin; i < end; i++)
        split_panel(b->j, b->first + i, &b->panels[i], b->j->scratch + i * b->j->panel_size);
}

static void run_strip(void *ctx, int part, const void *work, int64_t unit) {
    const job *j = ctx;
    const columns *s = work;
    const block *b = s->b;
    int64_t strip = s->from + unit, each = 0;
    const char *fetch = j->scratch;
    (void)part;
    if (stops(j)) return;
    if (strip + 1 < j->strips && j->b->strips) { /* the next one comes near */
        fetch = j->b->strips + (strip + 1) * j->panel_size;
        each = sni_ceil_div(SNI_EMULATED_STEP / LINE, b->count);
    }
    for (int64_t i = 0; i < b->count; i++, fetch += each * j->steps * LINE)
        run_tile(j, b->first + i, &b->panels[i], j->scratch + i * j->panel_size, strip, fetch,
                 each);
}

/* ---- Threads ---- */

static int64_t groups_of(const job *j) {
    return sni_ceil_div(j->p->panels, j->together);
}

static void begin_tiles(const job *j) {
    j->emulated->begin(j->p->rows(j->p->ctx, 0).count);
}

static void run_rows(void *ctx, int64_t begin, int64_t end) {
    job *j = ctx;
    int64_t units = groups_of(j);
    begin_tiles(j);
    for (int part = (int)begin; part < (int)end; part++) {
        int64_t from = part * units / j->parts;
        sni_stealing_do(&j->stealing, part, &from, (part + 1) * units / j->parts - from);
        sni_stealing_help(&j->stealing, part);
    }
    j->emulated->end();
}

static void run_columns(void *ctx, int64_t begin, int64_t end) {
    const block *b = ctx;
    job *j = b->j;
    begin_tiles(j);
    for (int part = (int)begin; part < (int)end; part++) {
        columns s = {.b = b, .from = part * j->strips / j->parts};
        sni_stealing_do(&j->stealing, part, &s, (part + 1) * j->strips / j->parts - s.from);
        sni_stealing_help(&j->stealing, part);
    }
    j->emulated->end();
}

static void run_block(block *b) {
    job *j = b->j;
    int64_t grain = sni_ceil_div(SMALL_SPLIT, j->b->k * SNI_EMULATED_ROWS);
    sni_parallel_for(j->parts, b->count, grain, split_some, b);
    sni_stealing_init(&j->stealing, j->parts, run_strip, j);
    sni_parallel_for(j->parts, j->parts, 1, run_columns, b);
}

/* All but the scratch and the team of a product. */
static void set_up(job *j, const sni_product *p, const sni_emulated_b *b, int threads) {
    int64_t cache = (int64_t)sni_cpu_cache(2), parts = threads < 1 ? 1 : threads;
    j->p = p;
    j->b = b;
    j->nr = sni_cpu_kernels_get()->nr;
    j->emulated = sni_emulated_kernels_get();
    j->strips = strips_of(b->n);
    j->steps = steps_of(b->k);
    j->panel_size = strip_size(b->k);
    j->near = j->strips * j->panel_size <= cache / 2 && p->panels >= FEW_PANELS * parts;
    j->together = p->panels >= MANY_PANELS * parts ? PANELS_TOGETHER : 1;
    j->most = sni_max(1, sni_min(cache / 2 / j->panel_size, MOST_PANELS));
    j->most = sni_min(j->most, p->panels);
    parts = sni_min(parts, SNI_MAX_PARTS);
    j->parts = (int)sni_min(parts, j->near ? groups_of(j) : j->strips);
}

size_t sni_emulated_scratch_size(const sni_product *p, const sni_emulated_b *b, int threads) {
    job j; /* work_stealing keeps much that is not used here */
    set_up(&j, p, b, threads);
    return (size_t)((j.near ? j.parts * j.together : j.most) * j.panel_size);
}

void sni_emulated_run(const sni_product *p, const sni_emulated_b *b, int threads, void *scratch) {
    job j;
    set_up(&j, p, b, threads);
    j.scratch = scratch;
    if (j.near) {
        sni_stealing_init(&j.stealing, j.parts, run_group, &j);
        sni_parallel_for(j.parts, j.parts, 1, run_rows, &j);
        return;
    }
    for (int64_t first = 0, n = sni_ceil_div(p->panels, j.most); first < p->panels && !stops(&j);) {
        block now = {.j = &j, .first = first};
        now.count = sni_min(sni_ceil_div(p->panels, n), p->panels - first);
        run_block(&now);
        first += now.count;
    }
}
