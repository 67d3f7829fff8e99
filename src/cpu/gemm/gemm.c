/* gemm.c - blocking around the GEMM tile.
 *
 * B is cut into blocks of at most kc rows (of the tier) and NC columns, A into blocks of whole
 * panels and the same columns, so that a block of A stays in the second-level cache and a panel of
 * B in the first. B is packed; A only where its rows are not contiguous, or at strides that caches
 * mind. */
#include "cpu/gemm/gemm_blocks.h"

#include "base/threadpool.h"
#include "cpu/gemm/half.h"

#include <string.h>

enum {
    NC = 1024,            /* rounded down to whole panels */
    MANY_PANELS = 16,     /* of rows in a part that are worth reading all of B for */
    SMALL_WORK = 1 << 15, /* multiply-accumulates that are not worth a second thread */
    FEW_PANELS = 3,       /* of rows that take up compressed B some rows at a time: */
    FEW_ROWS = 64         /* so many, whole groups */
};

/* ---- One thread's share ---- */

/* Where panel j of a k-block of B lies that can be fetched. `b` begins with column j0. */
static const float *panel_of_b(const sni_gemm_share *s, const float *b, int64_t p, int64_t kc,
                               int64_t j0, int64_t j) {
    if (s->codec) return (const void *)sni_gemm_compressed_piece(s->g, p, j).groups;
    if (s->half)
        return (const void *)sni_half_panel(s->g->half_b, s->g->n, s->kernels->nr, p, kc, j);
    return b + (j - j0) * kc;
}

/* B comes to the tiles a panel at a time. */
static bool by_panels(const sni_gemm_f32 *g) {
    return g->compressed_b || g->half_b;
}

/* Most row panels of a block of A: as many as fill a quarter of the second-level cache, or half of
 * it where each block makes floats of B anew. */
static int64_t block_panels(const sni_gemm_f32 *g, const sni_cpu_kernels *k) {
    size_t bytes = sni_cpu_cache(2) / (by_panels(g) ? 2 : 4);
    int64_t most = (int64_t)(bytes / ((size_t)k->kc * sizeof(float))) / k->mr;
    return most < 1 ? 1 : most;
}

static int64_t block_columns(const sni_cpu_kernels *k) {
    return NC / k->nr * k->nr;
}

/* A that the tiles read strided, in place, unless so many of a tile's rows meet in one place of the
 * first-level cache that they put each other out. */
static bool is_strided(const sni_gemm_f32 *g, const sni_cpu_kernels *k) {
    enum { SETS = 64, LINE = 16, MOST_IN_SET = 7 }; /* a line in floats; eight ways */
    int8_t rows[SETS] = {0}, most = 0;
    if (g->packed_a || g->compressed_b || g->a_col != 1 || g->a_row < 0) return false;
    for (int i = 0; i < k->mr; i++) {
        int8_t here = ++rows[(uint64_t)i * (uint64_t)g->a_row / LINE % SETS];
        most = here > most ? here : most;
    }
    return most <= MOST_IN_SET;
}

/* Panels [i, i + count) of A from column p on; NULL: they are strided. */
static const float *block_of_a(const sni_gemm_share *s, int64_t i, int64_t count, int64_t p,
                               int64_t kc) {
    const sni_gemm_f32 *g = s->g;
    int mr = s->kernels->mr;
    if (s->strided) return NULL;
    if (g->packed_a)
        return g->packed_a + p * s->panels * mr + i * sni_gemm_left_panel(s->kernels, kc);
    sni_gemm_rows rows = {g->a + p * g->a_col, g->a_row, g->a_col, g->m, s->panels};
    sni_gemm_pack_rows(s->kernels, &rows, i, i + count, kc, s->a_block);
    return s->a_block;
}

static const float *block_of_b(const sni_gemm_share *s, int64_t p, int64_t kc, int64_t j,
                               int64_t nc) {
    const sni_gemm_f32 *g = s->g;
    int nr = s->kernels->nr;
    if (g->packed_b) return sni_gemm_packed_panel(g->packed_b, g->n, nr, p, kc, j);
    if (by_panels(g)) return s->b_block;
    if (g->fill) {
        for (int64_t q = 0; q < nc; q += nr)
            g->fill(g->fill_ctx, p, kc, j + q, sni_min(nr, nc - q), nr, s->b_block + q * kc);
    } else {
        sni_gemm_pack_columns(s->kernels, g->b + p * g->b_row + j * g->b_col, g->b_row, g->b_col,
                              nc, kc, s->b_block);
    }
    return s->b_block;
}

/* Whether there is anything to do to sums beside a scale. */
static bool has_end(const sni_epilogue *e) {
    return e->act != SNI_ACT_NONE || e->row_bias || e->column_bias || e->residual;
}

void sni_gemm_finish(const sni_gemm_share *s, int64_t i, int64_t rows, int64_t j, int64_t cols) {
    const sni_gemm_f32 *g = s->g;
    float *c = g->c + i * g->c_row + j;
    if (sni_gemm_is_scaled(g)) {
        sni_epilogue scale = {.act = SNI_ACT_AFFINE, .p0 = g->scale};
        s->kernels->finish_tile(&scale, NULL, false, c, g->c_row, i, rows, j, cols);
    }
    if (has_end(&g->epilogue))
        s->kernels->finish_tile(&g->epilogue, NULL, false, c, g->c_row, i, rows, j, cols);
}

/* What a tile is to fetch meanwhile. */
typedef struct fetch {
    const float *from;
    int64_t lines; /* of 64 bytes */
} fetch;

/* Part i of what is to be fetched, of `each` lines as long as there are any. */
static fetch fetch_part(const float *from, int64_t lines, int64_t each, int64_t i) {
    int64_t first = sni_min(i * each, lines);
    return (fetch){from ? from + first * 16 : NULL, from ? sni_min(each, lines - first) : 0};
}

/* Takes the sums of a tile, nr in a row, to C. */
static void add_edge(const sni_gemm_share *s, const float *sums, int64_t i, int64_t rows, int64_t j,
                     int64_t cols, bool add) {
    int nr = s->kernels->nr;
    for (int64_t r = 0; r < rows; r++) {
        float *c = s->g->c + (i + r) * s->g->c_row + j;
        if (add)
            for (int64_t q = 0; q < cols; q++) c[q] += sums[r * nr + q];
        else
            memcpy(c, sums + r * nr, (size_t)cols * sizeof *c);
    }
}

/* Terms [p, p + kc) of the sums: a k-block. */
typedef struct k_block {
    int64_t p, kc;
} k_block;

/* What a tile multiplies: A, NULL if it is strided, and a panel of B, or a compressed piece of it,
 * or one in 16 bits. */
typedef struct operands {
    const float *a, *b;
    const sni_compressed_piece *piece;
    const uint16_t *half;
} operands;

/* A single row of A, read in place, times a panel of B: columns [j, j + cols) of C. */
static void run_row_tile(const sni_gemm_share *s, const operands *x, k_block block, int64_t j,
                         int64_t cols) {
    float edge[SNI_MAX_NR], *c = s->g->c + j;
    bool whole = cols == s->kernels->nr, add = block.p > 0 || s->g->add;
    if (x->piece)
        s->codec->row(block.kc, x->a, x->piece, whole ? c : edge, whole && add);
    else if (x->half)
        s->half->row[s->g->half_b->type](block.kc, x->a, x->half, whole ? c : edge, whole && add);
    else
        s->kernels->gemm_row(block.kc, x->a, x->b, whole ? c : edge, whole && add);
    if (!whole) add_edge(s, edge, 0, 1, j, cols, add);
}

/* The rows and columns of C that a tile computes. */
typedef struct place {
    int64_t i, rows, j, cols;
} place;

/* One tile over a k-block. A compressed piece is written to the share's block on the way. What is
 * finished goes to C once: its rows may be so far apart that the first-level cache does not keep
 * them side by side. */
static void run_tile(const sni_gemm_share *s, const operands *x, k_block block, const place *at,
                     const fetch *next) {
    const sni_gemm_f32 *g = s->g;
    const sni_cpu_kernels *k = s->kernels;
    const int64_t p = block.p, kc = block.kc;
    const int64_t i = at->i, rows = at->rows, j = at->j, cols = at->cols;
    _Alignas(64) float sums[SNI_MAX_MR * SNI_MAX_NR];
    float *c = g->c + i * g->c_row + j;
    bool add = p > 0 || g->add, last = p + kc == g->k;
    bool whole = cols == k->nr, end = last && has_end(&g->epilogue) && !sni_gemm_is_scaled(g);
    bool half = 2 * cols <= k->nr;
    float *apart = whole && !end ? NULL : sums;
    if (x->piece)
        s->codec->firsts[rows](kc, x->a, x->piece, s->b_block, c, g->c_row, add, apart, next->from,
                               next->lines);
    else if (s->strided)
        (half ? k->gemm_strided_half : k->gemm_strided)[rows](kc, g->a + i * g->a_row + p, g->a_row,
                                                              x->b, c, g->c_row, add, apart,
                                                              next->from, next->lines);
    else
        (half ? k->gemm_half : k->gemm_tile)[rows](kc, x->a, x->b, NULL, c, g->c_row, add, apart,
                                                   next->from, next->lines);
    if (end)
        k->finish_tile(&g->epilogue, sums, add, c, g->c_row, i, rows, j, cols);
    else if (!whole)
        add_edge(s, sums, i, rows, j, cols, add);
    if (last && sni_gemm_is_scaled(g)) sni_gemm_finish(s, i, rows, j, cols);
}

/* Row panels [first, first + count) of A: those of its k-block, NULL if they are strided. */
typedef struct row_panels {
    int64_t first, count;
    const float *a;
} row_panels;

/* A panel of compressed B, columns [j, j + cols), times at most FEW_PANELS row panels: some rows of
 * it at a time, which stay in the first-level cache, are decoded and taken up by all tiles. */
static void run_few(const sni_gemm_share *s, const row_panels *left, k_block block, int64_t j,
                    int64_t cols) {
    const sni_gemm_f32 *g = s->g;
    const int64_t p = block.p, kc = block.kc, count = left->count;
    int mr = s->kernels->mr, nr = s->kernels->nr;
    bool add = p > 0 || g->add, whole = cols == nr;
    float sums[FEW_PANELS][SNI_MAX_MR * SNI_MAX_NR];
    int64_t row[FEW_PANELS + 1];
    for (int64_t i = 0; i <= count; i++)
        row[i] = sni_gemm_panel_row(g->m, s->panels, left->first + i);
    sni_compressed_piece piece = sni_gemm_compressed_piece(s->g, p, j);
    for (int64_t r = 0; r < kc; r += FEW_ROWS) {
        int64_t n = sni_min(FEW_ROWS, kc - r);
        int64_t lines = n * s->codec->group_bytes / (SNI_COMPRESSED_ROWS * 64) + 1;
        int64_t each = sni_ceil_div(lines, count + 1);
        const float *prefetch = (const void *)(piece.groups + SNI_COMPRESSED_AHEAD);
        fetch part = fetch_part(prefetch, lines, each, 0);
        s->codec->decode(&piece, n, s->b_block, part.from, part.lines);
        bool to_c = whole && r + n == kc;
        for (int64_t i = 0; i < count; i++) {
            part = fetch_part(prefetch, lines, each, i + 1);
            float *c = to_c ? g->c + row[i] * g->c_row + j : sums[i];
            s->kernels->gemm_tile[row[i + 1] - row[i]](
                n, left->a + i * sni_gemm_left_panel(s->kernels, kc) + r * mr, s->b_block,
                r > 0 ? sums[i] : NULL, c, to_c ? g->c_row : nr, to_c && add, NULL, part.from,
                part.lines);
        }
    }
    for (int64_t i = 0; i < count; i++) {
        if (!whole) add_edge(s, sums[i], row[i], row[i + 1] - row[i], j, cols, add);
        if (p + kc == g->k) sni_gemm_finish(s, row[i], row[i + 1] - row[i], j, cols);
    }
}

/* Makes floats of the panel of B with column j. */
static void widen_panel(const sni_gemm_share *s, k_block block, int64_t j) {
    const sni_gemm_f32 *g = s->g;
    s->half->panel[g->half_b->type](
        block.kc, sni_half_panel(g->half_b, g->n, s->kernels->nr, block.p, block.kc, j),
        s->b_block);
}

/* Columns [first, first + count) of a k-block of B, and the panel that is needed behind them. */
typedef struct column_panels {
    int64_t first, count;
    const float *b, *after;
} column_panels;

/* Row panels times columns, over one k-block. The tiles on a panel of B fetch the one that comes
 * after it, each a part. The first one decompresses it where B is compressed. */
static void run_blocks(const sni_gemm_share *s, const row_panels *left, const column_panels *right,
                       k_block block) {
    const int nr = s->kernels->nr;
    const int64_t p = block.p, kc = block.kc, count = left->count;
    const int64_t j0 = right->first, nc = right->count;
    int64_t lines = s->codec  ? sni_gemm_groups_of(kc) * s->codec->group_bytes / 64
                    : s->half ? nr * kc / 32
                              : nr * kc / 16;
    int64_t each = sni_ceil_div(lines, count);
    for (int64_t j = 0; j < nc; j += nr) {
        int64_t cols = sni_min(nr, nc - j);
        if (s->codec && count <= FEW_PANELS) {
            run_few(s, left, block, j0 + j, cols);
            continue;
        }
        const float *next =
            j + nr < nc ? panel_of_b(s, right->b, p, kc, j0, j0 + j + nr) : right->after;
        operands x = {.b = by_panels(s->g) ? s->b_block : right->b + j * kc};
        sni_compressed_piece piece = {0};
        if (s->half) widen_panel(s, block, j0 + j);
        if (s->codec) piece = sni_gemm_compressed_piece(s->g, p, j0 + j);
        for (int64_t i = 0; i < count; i++) {
            const int64_t panel = left->first + i;
            const place at = {s->rows * panel + sni_min(panel, s->more_rows),
                              s->rows + (panel < s->more_rows), j0 + j, cols};
            fetch part = fetch_part(next, lines, each, i);
            x.a = left->a ? left->a + i * sni_gemm_left_panel(s->kernels, kc) : NULL;
            x.piece = s->codec && i == 0 ? &piece : NULL;
            run_tile(s, &x, block, &at, &part);
        }
    }
}

/* The panel of B that is needed after block `b` (columns [j, j + nc), k-block p) when it is not the
 * rows' turn to go on. NULL: none, or not made yet. */
static const float *panel_after(const sni_gemm_share *s, int64_t p, int64_t kc, int64_t j,
                                int64_t nc) {
    const sni_gemm_f32 *g = s->g;
    int nr = s->kernels->nr;
    if (by_panels(g) && p + kc < g->k)
        return panel_of_b(s, NULL, p + kc, sni_min(s->kc, g->k - p - kc), 0, j);
    if (by_panels(g) && j + nc < s->n1)
        return panel_of_b(s, NULL, 0, sni_min(s->kc, g->k), 0, j + nc);
    if (!g->packed_b) return NULL;
    if (p + kc < g->k)
        return sni_gemm_packed_panel(g->packed_b, g->n, nr, p + kc, sni_min(s->kc, g->k - p - kc),
                                     j);
    if (j + nc >= s->n1) return NULL;
    return sni_gemm_packed_panel(g->packed_b, g->n, nr, 0, sni_min(s->kc, g->k), j + nc);
}

static void run_share(const sni_gemm_share *s) {
    const sni_gemm_f32 *g = s->g;
    int64_t blocks = sni_ceil_div(s->i1 - s->i0, block_panels(g, s->kernels));
    int64_t nc_most = g->packed_b || by_panels(g) ? s->n1 - s->n0 : block_columns(s->kernels);
    for (int64_t j = s->n0; j < s->n1; j += nc_most) {
        int64_t nc = sni_min(nc_most, s->n1 - j);
        for (int64_t p = 0; p < g->k; p += s->kc) {
            int64_t kc = sni_min(s->kc, g->k - p);
            const float *b = block_of_b(s, p, kc, j, nc);
            for (int64_t q = 0; q < blocks; q++) {
                if (g->stop && g->stop(g->stop_ctx)) return;
                int64_t i = s->i0 + (s->i1 - s->i0) * q / blocks;
                int64_t count = s->i0 + (s->i1 - s->i0) * (q + 1) / blocks - i;
                const row_panels left = {i, count, block_of_a(s, i, count, p, kc)};
                const column_panels right = {j, nc, b,
                                             q + 1 < blocks ? panel_of_b(s, b, p, kc, j, j)
                                                            : panel_after(s, p, kc, j, nc)};
                run_blocks(s, &left, &right, (k_block){p, kc});
            }
        }
    }
}

/* A single row of A with packed B: reads B once from end to end and packs nothing. */
static void run_row(const sni_gemm_share *s) {
    const sni_gemm_f32 *g = s->g;
    int nr = s->kernels->nr;
    int64_t panels = sni_ceil_div(s->n1 - s->n0, nr);
    for (int64_t p = 0; p < g->k; p += s->kc) {
        int64_t kc = sni_min(s->kc, g->k - p);
        for (int64_t i = 0; i < panels; i++) {
            int64_t j = s->n0 + (g->backwards ? panels - 1 - i : i) * nr,
                    cols = sni_min(nr, s->n1 - j);
            operands x = {.a = g->a + p};
            if (s->half)
                x.half = sni_half_panel(g->half_b, g->n, nr, p, kc, j);
            else
                x.b = sni_gemm_packed_panel(g->packed_b, g->n, nr, p, kc, j);
            run_row_tile(s, &x, (k_block){p, kc}, j, cols);
        }
    }
    sni_gemm_finish(s, 0, 1, s->n0, s->n1 - s->n0);
}

/* The same with compressed B, in the order in which it is stored: what is prefetched comes next. */
static void run_compressed_row(const sni_gemm_share *s) {
    const sni_gemm_f32 *g = s->g;
    int nr = s->kernels->nr;
    for (int64_t p = 0; p < g->k; p += s->kc) {
        int64_t kc = sni_min(s->kc, g->k - p);
        for (int64_t j = s->n0; j < s->n1; j += nr) {
            sni_compressed_piece piece = sni_gemm_compressed_piece(s->g, p, j);
            const operands x = {.a = g->a + p, .piece = &piece};
            run_row_tile(s, &x, (k_block){p, kc}, j, sni_min(nr, s->n1 - j));
        }
    }
    sni_gemm_finish(s, 0, 1, s->n0, s->n1 - s->n0);
}

/* ---- Threads ---- */

/* How C is cut: into `parts` ranges of whole panels, of columns or of rows. */
typedef struct job {
    const sni_gemm_f32 *g;
    const sni_cpu_kernels *kernels;
    int64_t row_panels, col_panels;
    sni_gemm_kind kind;
    int parts;
    bool by_rows;
    float *scratch;
    size_t scratch_part; /* floats of one part */
} job;

static size_t a_block_size(const sni_gemm_f32 *g, sni_gemm_kind kind, const sni_cpu_kernels *k) {
    if (g->packed_a || kind == SNI_GEMM_ROW) return 0;
    if (kind == SNI_GEMM_STRASSEN) return sni_gemm_strassen_left_size(g);
    if (is_strided(g, k)) return 0;
    int64_t panels = sni_min(sni_ceil_div(g->m, k->mr), block_panels(g, k));
    return (size_t)(panels * sni_gemm_left_panel(k, sni_gemm_depth(g->k)));
}

static size_t b_block_size(const sni_gemm_f32 *g, sni_gemm_kind kind, const sni_cpu_kernels *k) {
    if (g->packed_b || kind == SNI_GEMM_ROW) return 0;
    int64_t cols = by_panels(g) ? k->nr : sni_min(sni_round_up(g->n, k->nr), block_columns(k));
    return (size_t)(cols * sni_round_up(sni_gemm_depth(g->k), SNI_COMPRESSED_ROWS));
}

/* Floats of scratch of one thread. */
static size_t part_size(const sni_gemm_f32 *g, sni_gemm_kind kind, const sni_cpu_kernels *k) {
    return a_block_size(g, kind, k) + b_block_size(g, kind, k);
}

size_t sni_gemm_blocked_scratch(const sni_gemm_f32 *g, sni_gemm_kind kind, int threads) {
    return part_size(g, kind, sni_cpu_kernels_get()) * (size_t)threads;
}

/* Panels that are dealt out together. */
static int unit_of(const job *j) {
    return j->kind == SNI_GEMM_STRASSEN ? 2 : 1;
}

/* Cuts along the side that gives parts of most equal size. If they are equal: along the rows where
 * there are many, so that each is packed once, otherwise along the columns, so that each weight is
 * read once. */
static void cut(job *j, int threads) {
    const sni_gemm_f32 *g = j->g;
    int64_t parts = threads;
    int each = unit_of(j);
    j->row_panels = sni_round_up(sni_ceil_div(g->m, j->kernels->mr), each);
    j->col_panels = sni_ceil_div(g->n, j->kernels->nr);
    if (g->m * g->n * g->k < SMALL_WORK) parts = 1;
    int64_t rows = j->row_panels / each, columns = sni_ceil_div(j->col_panels, each);
    int64_t by_rows = sni_ceil_div(rows, sni_min(parts, rows)) * columns;
    int64_t by_cols = sni_ceil_div(columns, sni_min(parts, columns)) * rows;
    bool many = j->row_panels >= MANY_PANELS * parts && !g->packed_a;
    j->by_rows = many ? by_rows <= by_cols : by_rows < by_cols;
    j->parts = (int)sni_min(parts, j->by_rows ? rows : columns);
}

static void run_parts(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    const sni_gemm_f32 *g = j->g;
    for (int64_t part = begin; part < end; part++) {
        int each = unit_of(j);
        int64_t units = sni_ceil_div(j->by_rows ? j->row_panels : j->col_panels, each);
        int64_t from = part * units / j->parts * each, to = (part + 1) * units / j->parts * each;
        float *scratch = j->scratch ? j->scratch + (size_t)part * j->scratch_part : NULL;
        sni_gemm_share s = {.g = g,
                            .kernels = j->kernels,
                            .codec = g->compressed_b ? sni_compressed_kernels_get() : NULL,
                            .half = g->half_b ? sni_half_kernels_get() : NULL,
                            .panels = j->row_panels,
                            .kc = sni_gemm_depth(g->k),
                            .rows = g->m / j->row_panels,
                            .more_rows = g->m % j->row_panels,
                            .i0 = j->by_rows ? from : 0,
                            .i1 = j->by_rows ? to : j->row_panels,
                            .n0 = j->by_rows ? 0 : from * j->kernels->nr,
                            .n1 = j->by_rows ? g->n : sni_min(to * j->kernels->nr, g->n),
                            .strided = is_strided(g, j->kernels),
                            .a_block = scratch,
                            .b_block =
                                scratch ? scratch + a_block_size(g, j->kind, j->kernels) : NULL};
        if (j->kind == SNI_GEMM_STRASSEN)
            sni_gemm_run_strassen(&s);
        else if (j->kind == SNI_GEMM_ROW && s.codec)
            run_compressed_row(&s);
        else if (j->kind == SNI_GEMM_ROW)
            run_row(&s);
        else
            run_share(&s);
    }
}

void sni_gemm_run_empty(const sni_gemm_f32 *g, int threads, float *scratch) {
    sni_gemm_share s = {.g = g, .kernels = sni_cpu_kernels_get()};
    (void)threads, (void)scratch;
    if (g->m == 0 || g->n == 0) return;
    for (int64_t i = 0; i < g->m && !g->add; i++)
        memset(g->c + i * g->c_row, 0, (size_t)g->n * sizeof *g->c);
    sni_gemm_finish(&s, 0, g->m, 0, g->n);
}

void sni_gemm_run_blocked(const sni_gemm_f32 *g, sni_gemm_kind kind, int threads, float *scratch) {
    job j = {.g = g, .kernels = sni_cpu_kernels_get(), .kind = kind, .scratch = scratch};
    cut(&j, threads);
    j.scratch_part = part_size(g, kind, j.kernels);
    sni_parallel_for(j.parts, j.parts, 1, run_parts, &j);
}
