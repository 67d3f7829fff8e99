/* igemm.c - packing, blocking and threads of the int8 GEMM.
 *
 * A tile's sums stay in registers over all of k, so that C is written once, finished. Columns are
 * processed in blocks of panels that fill at most half of the second-level cache; within a block,
 * every panel of A meets every panel of B. Threads share rows or columns, whichever costs less. */
#include "cpu/int8/igemm.h"

#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/int8/nhwc.h"

#include <string.h>

enum { SMALL_WORK = 1 << 16 }; /* multiply-accumulates that are not worth a second thread */

/* The first row of panel i when m rows are divided evenly into `panels`. */
static int64_t panel_row(int64_t m, int64_t panels, int64_t i) {
    return m / panels * i + sni_min(i, m % panels);
}

/* ---- Packing ---- */

int64_t sni_int_units(int64_t k) {
    return sni_ceil_div(k, sni_int_kernels_get()->group);
}

size_t sni_igemm_packed_a_size(int64_t m, int64_t units) {
    int mr = sni_int_kernels_get()->mr;
    return (size_t)(sni_ceil_div(m, mr) * mr * units);
}

size_t sni_igemm_packed_b_size(int64_t n, int64_t units) {
    int nr = sni_int_kernels_get()->nr;
    return (size_t)(sni_ceil_div(n, nr) * nr * units);
}

/* Unit u of row or column i. */
static int32_t unit_at(const sni_int_kernels *kernels, sni_int_element_fn at, const void *ctx,
                       int64_t i, int64_t u) {
    uint32_t unit = 0;
    int width = 32 / kernels->group;
    uint32_t mask = (1u << width) - 1;
    for (int g = 0; g < kernels->group; g++)
        unit |= ((uint32_t)at(ctx, i, u * kernels->group + g) & mask) << (g * width);
    return (int32_t)unit;
}

int32_t sni_int_unit(sni_int_element_fn at, const void *ctx, int64_t i, int64_t u) {
    return unit_at(sni_int_kernels_get(), at, ctx, i, u);
}

void sni_igemm_pack_a(int64_t m, int64_t units, sni_int_element_fn at, const void *ctx,
                      int32_t *to) {
    const sni_int_kernels *kernels = sni_int_kernels_get();
    int64_t panels = sni_ceil_div(m, kernels->mr);
    for (int64_t p = 0; p < panels; p++, to += units * kernels->mr) {
        int64_t first = panel_row(m, panels, p), rows = panel_row(m, panels, p + 1) - first;
        for (int64_t u = 0; u < units; u++)
            for (int64_t r = 0; r < kernels->mr; r++)
                to[u * kernels->mr + r] = r < rows ? unit_at(kernels, at, ctx, first + r, u) : 0;
    }
}

void sni_igemm_pack_b(int64_t n, int64_t units, sni_int_element_fn at, const void *ctx,
                      int32_t *to) {
    const sni_int_kernels *kernels = sni_int_kernels_get();
    for (int64_t j = 0; j < n; j += kernels->nr)
        for (int64_t u = 0; u < units; u++)
            for (int64_t c = 0; c < kernels->nr; c++)
                *to++ = j + c < n ? unit_at(kernels, at, ctx, j + c, u) : 0;
}

void sni_int_fill_rows(const void *ctx, int64_t n0, int64_t cols, int32_t *panel) {
    const sni_int_rows *b = ctx;
    const sni_int_kernels *kernels = sni_int_kernels_get();
    uint8_t copies[SNI_INT_GROUP][SNI_INT_NR] = {{0}}, none[SNI_INT_NR];
    const uint8_t *rows[SNI_INT_GROUP];
    memset(none, b->flip, sizeof none);
    for (int64_t k = 0; k < b->k; k += kernels->group, panel += kernels->nr) {
        for (int g = 0; g < kernels->group; g++) {
            rows[g] = k + g < b->k ? b->b + (k + g) * b->row + n0 : none;
            if (cols == kernels->nr || rows[g] == none) continue;
            memcpy(copies[g], rows[g], (size_t)cols);
            rows[g] = copies[g];
        }
        kernels->interleave(rows, b->flip, b->is_signed, panel);
    }
}

/* True if rows of A are read where they lie, as the pixels of a convolution (cpu/int8/nhwc.h):
 * whole units of bytes by constant weights, requantised by column. */
static bool reads_in_place(const sni_igemm *g) {
    return sni_int_kernels_get()->group == 4 && g->kind == SNI_INT_BYTES && g->packed_b &&
           !g->a_signed && !g->packed_a && g->a && g->a_k == g->units * 4 && g->col_add &&
           g->col_scale && !g->row_add && !g->row_scale && !g->row_mul && !g->col_mul &&
           !g->col_bias;
}

/* ---- One thread's share ---- */

typedef struct share {
    const sni_igemm *g;
    const sni_int_kernels *kernels;
    const sni_requantize_kernels *requantize;
    int64_t row_panels;
    int64_t i0, i1, j0, j1; /* panels of rows and columns */
    bool direct;            /* whole tiles are requantised from registers: is_direct() */
    int32_t *a_block, *b_block, *sums;
} share;

/* The number of panels of `size` int32 that a block may have. */
static int64_t block_panels(int64_t size) {
    int64_t most = (int64_t)(sni_cpu_cache(2) / 2 / sizeof(int32_t)) / (size > 0 ? size : 1);
    return most < 1 ? 1 : most;
}

static int64_t a_panels(const sni_igemm *g, const sni_int_kernels *k, int64_t count) {
    return sni_min(count, block_panels(k->mr * g->units));
}

static int64_t b_panels(const sni_igemm *g, const sni_int_kernels *k, int64_t count) {
    return g->packed_b ? count : sni_min(count, block_panels(k->nr * g->units));
}

static const int32_t *block_of_a(const share *s, int64_t i, int64_t count) {
    const sni_igemm *g = s->g;
    int mr = s->kernels->mr;
    if (g->packed_a) return g->packed_a + i * mr * g->units;
    for (int64_t p = i; p < i + count; p++) {
        int64_t first = panel_row(g->m, s->row_panels, p);
        int64_t rows = panel_row(g->m, s->row_panels, p + 1) - first;
        for (int64_t r = 0; r < rows; r++)
            s->kernels->units(g->a + (first + r) * g->a_row, g->a_k, g->a_flip, g->a_signed,
                              s->a_block + (p - i) * mr * g->units + r, mr);
    }
    return s->a_block;
}

static const int32_t *block_of_b(const share *s, int64_t j, int64_t count) {
    const sni_igemm *g = s->g;
    int nr = s->kernels->nr;
    if (g->packed_b) return g->packed_b + j * nr * g->units;
    for (int64_t p = 0; p < count; p++) {
        int32_t *panel = s->b_block + p * nr * g->units;
        int64_t n0 = (j + p) * nr;
        g->fill(g->fill_ctx, n0, sni_min(nr, g->n - n0), panel);
        if (g->row_mul && !g->col_mul) s->kernels->column_sums(panel, g->units, s->sums + p * nr);
    }
    return s->b_block;
}

static void *at_element(const sni_igemm *g, int64_t i, int64_t j) {
    size_t width = g->kind == SNI_INT_BYTES ? 1 : 4;
    return (char *)g->c + (size_t)(i * g->c_row + j) * width;
}

/* One tile: panel i of A by the columns from n0 on. `sums` are the column sums of B, where needed.
 */
static void run_tile(const share *s, const int32_t *a, const int32_t *b, int64_t i, int64_t n0,
                     const int32_t *sums) {
    const sni_igemm *g = s->g;
    const sni_int_kernels *kernels = s->kernels;
    int32_t acc[SNI_INT_MR * SNI_INT_NR] __attribute__((aligned(64)));
    int64_t first = panel_row(g->m, s->row_panels, i);
    int64_t rows = panel_row(g->m, s->row_panels, i + 1) - first;
    if (s->direct && kernels->tile_bytes[rows] && g->n - n0 >= kernels->nr) {
        sni_int_bytes to = {g->row_add + first,
                            g->row_scale + first,
                            g->zero,
                            g->low,
                            at_element(g, first, n0),
                            g->c_row};
        kernels->tile_bytes[rows](g->units, a, b, &to);
        return;
    }
    kernels->tile[g->a_signed][rows](g->units, a, b, acc);
    sni_int_block block = {.rows = rows,
                           .n = sni_min(kernels->nr, g->n - n0),
                           .acc = acc,
                           .acc_step = kernels->nr,
                           .add_m = g->row_add ? g->row_add + first : NULL,
                           .mul_m = g->row_mul ? g->row_mul + first : NULL,
                           .scale_m = g->row_scale ? g->row_scale + first : NULL,
                           .m_step = 1,
                           .add_n = g->col_add ? g->col_add + n0 : NULL,
                           .mul_n = g->col_mul   ? g->col_mul + n0
                                    : g->row_mul ? sums
                                                 : NULL,
                           .scale_n = g->col_scale ? g->col_scale + n0 : NULL,
                           .bias_n = g->col_bias ? g->col_bias + n0 : NULL,
                           .zero = g->zero,
                           .low = g->low,
                           .y = at_element(g, first, n0),
                           .y_step = g->c_row};
    s->requantize->finish[g->kind](&block);
}

/* The same where rows of A are read in place. */
static void run_rows(const share *s, int64_t i, int64_t j) {
    const sni_igemm *g = s->g;
    const sni_nhwc_kernels *kernels = sni_nhwc_kernels_get();
    const sni_nhwc_finish how = {.zero = g->zero, .low = g->low, .is_signed = g->low < 0};
    int64_t first = panel_row(g->m, s->row_panels, i), n0 = j * kernels->nr;
    int64_t rows = panel_row(g->m, s->row_panels, i + 1) - first;
    const uint8_t *places[SNI_INT_MR];
    for (int64_t r = 0; r < rows; r++) places[r] = g->a + (first + r) * g->a_row;
    sni_nhwc_tile tile = {
        .x = places, .taps = 1, .units = g->units, .w = g->packed_b + j * kernels->nr * g->units};
    sni_nhwc_block block = {.how = &how,
                            .n = sni_min(kernels->nr, g->n - n0),
                            .add = g->col_add + n0,
                            .scale = g->col_scale + n0,
                            .y = at_element(g, first, n0),
                            .step = g->c_row};
    kernels->tile[g->a_flip != 0][block.n <= kernels->nr / 2][rows](&tile, &block);
}

/* Panels of B that fit the second-level cache meet one panel of A after the other. Larger ones are
 * read from memory once for each block of A's rows that fits. */
static void run_share_in_place(const share *s) {
    const sni_igemm *g = s->g;
    int64_t size = (s->j1 - s->j0) * s->kernels->nr * g->units, block = 1;
    if (size > block_panels(1)) block = block_panels(s->kernels->mr * g->units);
    for (int64_t i = s->i0; i < s->i1; i += block) {
        int64_t end = sni_min(i + block, s->i1);
        for (int64_t q = s->j0; q < s->j1; q++) {
            if (g->stop && g->stop(g->stop_ctx)) return;
            for (int64_t p = i; p < end; p++) run_rows(s, p, q);
        }
    }
}

static void run_share(const share *s) {
    const sni_igemm *g = s->g;
    int mr = s->kernels->mr, nr = s->kernels->nr;
    int64_t a_most = g->packed_a ? s->i1 - s->i0 : a_panels(g, s->kernels, s->i1 - s->i0);
    int64_t b_most = b_panels(g, s->kernels, s->j1 - s->j0);
    for (int64_t j = s->j0; j < s->j1; j += b_most) {
        int64_t columns = sni_min(b_most, s->j1 - j);
        const int32_t *b = block_of_b(s, j, columns);
        for (int64_t i = s->i0; i < s->i1; i += a_most) {
            int64_t count = sni_min(a_most, s->i1 - i);
            const int32_t *a = block_of_a(s, i, count);
            for (int64_t p = 0; p < count; p++) {
                if (g->stop && g->stop(g->stop_ctx)) return;
                for (int64_t q = 0; q < columns; q++)
                    run_tile(s, a + p * mr * g->units, b + q * nr * g->units, i + p, (j + q) * nr,
                             s->sums ? s->sums + q * nr : NULL);
            }
        }
    }
}

/* ---- Threads ---- */

typedef struct job {
    const sni_igemm *g;
    const sni_int_kernels *kernels;
    int64_t row_panels, col_panels;
    int parts;
    bool by_rows, direct;
    char *scratch;
    size_t part_bytes;
} job;

static size_t round_64(size_t n) {
    return (n + 63) / 64 * 64;
}

static size_t a_bytes(const sni_igemm *g, const sni_int_kernels *k) {
    if (g->packed_a || reads_in_place(g)) return 0;
    int64_t panels = a_panels(g, k, sni_ceil_div(g->m, k->mr));
    return round_64((size_t)(panels * k->mr * g->units) * sizeof(int32_t));
}

static size_t b_bytes(const sni_igemm *g, const sni_int_kernels *k) {
    if (g->packed_b) return 0;
    int64_t panels = b_panels(g, k, sni_ceil_div(g->n, k->nr));
    return round_64((size_t)(panels * k->nr * g->units) * sizeof(int32_t));
}

static size_t sums_bytes(const sni_igemm *g, const sni_int_kernels *k) {
    if (g->packed_b || !g->row_mul || g->col_mul) return 0;
    return round_64((size_t)(b_panels(g, k, sni_ceil_div(g->n, k->nr)) * k->nr) * sizeof(int32_t));
}

size_t sni_igemm_scratch_size(const sni_igemm *g, int threads) {
    const sni_int_kernels *k = sni_int_kernels_get();
    return (a_bytes(g, k) + b_bytes(g, k) + sums_bytes(g, k)) * (size_t)(threads < 1 ? 1 : threads);
}

static void run_parts(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    for (int64_t part = begin; part < end; part++) {
        int64_t panels = j->by_rows ? j->row_panels : j->col_panels;
        int64_t from = part * panels / j->parts, to = (part + 1) * panels / j->parts;
        char *a = j->part_bytes ? j->scratch + (size_t)part * j->part_bytes : NULL;
        char *b = a ? a + a_bytes(j->g, j->kernels) : NULL;
        share s = {.g = j->g,
                   .kernels = j->kernels,
                   .requantize = sni_requantize_kernels_get(),
                   .row_panels = j->row_panels,
                   .direct = j->direct,
                   .i0 = j->by_rows ? from : 0,
                   .i1 = j->by_rows ? to : j->row_panels,
                   .j0 = j->by_rows ? 0 : from,
                   .j1 = j->by_rows ? j->col_panels : to,
                   .a_block = (int32_t *)(void *)a,
                   .b_block = (int32_t *)(void *)b};
        if (sums_bytes(j->g, j->kernels))
            s.sums = (int32_t *)(void *)(b + b_bytes(j->g, j->kernels));
        (reads_in_place(j->g) ? run_share_in_place : run_share)(&s);
    }
}

/* True if tiles can be requantised as sni_int_bytes describes. */
static bool is_direct(const sni_igemm *g) {
    if (g->kind != SNI_INT_BYTES || !g->a_signed || !g->row_add || !g->row_scale || g->row_mul ||
        g->col_add || g->col_mul || g->col_scale || g->col_bias)
        return false;
    for (int64_t i = 0; i < g->m; i++)
        if (!(g->row_scale[i] > -1 && g->row_scale[i] < 1)) return false;
    return true;
}

/* The cost, in tiles, of the largest share when `split` panels are divided among threads and each
 * is multiplied by `whole` others. Unpacked panels are made by every thread that needs them, which
 * costs about a tile each. */
static int64_t share_cost(int64_t split, int64_t whole, int64_t parts, bool make_split,
                          bool make_whole) {
    int64_t mine = sni_ceil_div(split, sni_min(parts, split));
    return mine * whole + (make_split ? mine : 0) + (make_whole ? whole : 0);
}

void sni_igemm_run(const sni_igemm *g, int threads, void *scratch) {
    const sni_int_kernels *k = sni_int_kernels_get();
    job j = {.g = g, .kernels = k, .scratch = scratch};
    if (g->m <= 0 || g->n <= 0) return;
    j.row_panels = sni_ceil_div(g->m, k->mr);
    j.col_panels = sni_ceil_div(g->n, k->nr);
    j.part_bytes = a_bytes(g, k) + b_bytes(g, k) + sums_bytes(g, k);
    int64_t parts = threads < 1 ? 1 : threads;
    if ((double)g->m * (double)g->n * (double)((g->units + 1) * k->group) < SMALL_WORK) parts = 1;
    int64_t by_rows = share_cost(j.row_panels, j.col_panels, parts, !g->packed_a, !g->packed_b);
    int64_t by_cols = share_cost(j.col_panels, j.row_panels, parts, !g->packed_b, !g->packed_a);
    j.by_rows = by_rows < by_cols;
    j.direct = is_direct(g);
    j.parts = (int)sni_min(parts, j.by_rows ? j.row_panels : j.col_panels);
    sni_parallel_for(j.parts, j.parts, 1, run_parts, &j);
}
