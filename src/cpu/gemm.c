/* gemm.c - blocking and packing around the GEMM tile.
 *
 * B is cut into blocks of at most kc rows (of the tier) and NC columns, A into blocks of whole
 * panels and the same columns, so that a block of A stays in the second-level cache and a panel of
 * B in the first. A packed operand is a row of such k-blocks; each is a row of panels:
 * of A at most mr rows, as equal in number as can be, some k of each row after the other (the tile
 * takes them one by one, so that nothing need be turned); of B nr columns, k after k. */
#include "cpu/gemm.h"

#include "base/lengths.h"
#include "base/threadpool.h"

#include <string.h>

enum {
    NC = 1024,            /* rounded down to whole panels */
    MANY_PANELS = 16,     /* of rows in a part that are worth reading all of B for */
    SMALL_WORK = 1 << 15, /* multiply-accumulates that are not worth a second thread */
    PACK_GRAIN = 1 << 15, /* elements to pack that are worth a thread */
    STREAM = 1 << 21,     /* elements of a large operand that are packed at once */
    CODE_ROWS = 64,       /* of a panel that are packed and coded at once: whole groups */
    FEW_PANELS = 3,       /* of rows that take up coded B some rows at a time: */
    FEW_ROWS = 64         /* so many, whole groups */
};

/* Rows of a k-block: as equal as can be, in steps that the tile takes at once. The last may be
 * shorter. */
static int64_t block_depth(int64_t k) {
    return k ? sni_round_up(sni_ceil_div(k, sni_ceil_div(k, sni_cpu_kernels_get()->kc)),
                            SNI_LEFT_STEPS)
             : 1;
}

/* First row of panel i when m rows are dealt out to `panels`. */
static int64_t panel_row(int64_t m, int64_t panels, int64_t i) {
    return m / panels * i + sni_smaller(i, m % panels);
}

/* ---- Packing ---- */

size_t sni_gemm_packed_a_size(int64_t m, int64_t k) {
    return (size_t)(sni_round_up(m, sni_cpu_kernels_get()->mr) * sni_round_up(k, SNI_LEFT_STEPS));
}

size_t sni_gemm_packed_b_size(int64_t k, int64_t n) {
    return (size_t)(k * sni_round_up(n, sni_cpu_kernels_get()->nr));
}

/* One panel of B: `count` (at most `width`) columns, k after k, padded with zeros. `step` leads to
 * the next of them, `k_step` to the next k. */
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

/* Floats of a row panel of A over kc columns. */
static int64_t left_panel(const sni_cpu_kernels *kernels, int64_t kc) {
    return kernels->mr * sni_round_up(kc, SNI_LEFT_STEPS);
}

/* One panel of A: `count` rows. */
static void pack_left_panel(const sni_cpu_kernels *kernels, const sni_loose_float *from,
                            int64_t row, int64_t col, int64_t count, int64_t kc, float *to) {
    float lines[SNI_MAX_MR * SNI_LEFT_STEPS];
    if (col == 1) {
        kernels->pack_left(from, row, count, kc, to);
        return;
    }
    for (int64_t p = 0; p < kc; p += SNI_LEFT_STEPS, to += left_panel(kernels, SNI_LEFT_STEPS)) {
        int64_t steps = sni_smaller(SNI_LEFT_STEPS, kc - p);
        if (row == 1)
            kernels->turn_matrix(from + p * col, col, steps, count, lines, SNI_LEFT_STEPS);
        for (int64_t i = 0; i < count && row != 1; i++)
            for (int64_t s = 0; s < steps; s++)
                lines[i * SNI_LEFT_STEPS + s] = from[i * row + (p + s) * col];
        kernels->pack_left(lines, SNI_LEFT_STEPS, count, steps, to);
    }
}

/* Panels [first, last) of A's rows for one k-block that starts at `from`. */
static void pack_a_panels(const sni_cpu_kernels *kernels, const sni_loose_float *from, int64_t row,
                          int64_t col, int64_t m, int64_t first, int64_t last, int64_t kc,
                          float *to) {
    int64_t panels = sni_ceil_div(m, kernels->mr);
    for (int64_t i = first; i < last; i++, to += left_panel(kernels, kc)) {
        int64_t r = panel_row(m, panels, i);
        pack_left_panel(kernels, from + r * row, row, col, panel_row(m, panels, i + 1) - r, kc, to);
    }
}

/* Columns [0, n) of B for one k-block. */
static void pack_b_panels(const sni_cpu_kernels *kernels, const sni_loose_float *from, int64_t row,
                          int64_t col, int64_t n, int64_t kc, float *to) {
    int nr = kernels->nr;
    for (int64_t j = 0; j < n; j += nr, to += nr * kc)
        pack_panel(kernels, from + j * col, col, row, sni_smaller(nr, n - j), nr, kc, to);
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
    const sni_coded_kernels *coder; /* NULL: floats are kept */
    struct coded_entry *entries;    /* of all pieces, k-block after k-block */
    uint8_t *groups, *room;
} pack_job;

/* What a coded operand says of a piece. The table of these comes first, then, aligned, the pieces'
 * groups. */
typedef struct coded_entry {
    uint32_t
        more; /* first byte of its own in the operand's list, which goes on to the next one's */
    uint32_t base;
} coded_entry;

static size_t coded_table_size(int64_t pieces) {
    return ((size_t)pieces * sizeof(coded_entry) + 63) / 64 * 64;
}

static int64_t groups_of(int64_t rows) {
    return sni_ceil_div(rows, SNI_CODED_ROWS);
}

/* Bytes that a piece's list takes at most. */
static int64_t list_room(int64_t kc) {
    return groups_of(kc) * SNI_CODED_ROWS * sni_cpu_kernels_get()->nr * SNI_CODED_MORE;
}

/* Groups of a coded operand of k rows, in blocks of kc, that come before piece `panel` of the block
 * that begins with row p. */
static int64_t groups_before(int64_t k, int64_t kc, int64_t p, int64_t panels, int64_t panel) {
    return p / kc * groups_of(kc) * panels + panel * groups_of(sni_smaller(kc, k - p));
}

/* The highest byte with which the best run of `codes` neighbours begins, without its sign. */
static uint8_t best_base(const uint32_t counts[SNI_CODED_TOPS], int codes, uint64_t *inside) {
    uint64_t sum = 0, most = 0;
    int base = 0;
    for (int e = 0; e < SNI_CODED_TOPS; e++) {
        sum += counts[e];
        if (e >= codes) sum -= counts[e - codes];
        if (sum <= most) continue;
        most = sum;
        base = e < codes ? 0 : e - codes + 1;
    }
    *inside = most;
    return (uint8_t)base;
}

static void count_tops(const sni_loose_float *x, int64_t n, uint32_t counts[SNI_CODED_TOPS]) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        counts[bits >> 24 & (SNI_CODED_TOPS - 1)]++;
    }
}

/* Codes one piece of B: `count` columns from `from` on, kc rows. Its base follows from the first
 * rows. */
static void code_piece(const pack_job *j, const sni_loose_float *from, int64_t count, int64_t p,
                       int64_t kc, int64_t panel) {
    int nr = j->kernels->nr;
    float rows[CODE_ROWS * SNI_MAX_NR];
    int64_t at = p / j->kc * j->panels + panel;
    coded_entry *entry = &j->entries[at];
    uint8_t *to =
        j->groups + groups_before(j->k, j->kc, p, j->panels, panel) * j->coder->group_bytes;
    uint8_t *room = j->room + at * list_room(j->kc);
    sni_coded_list list = {.end = room, .last = -1};
    for (int64_t r = 0; r < kc; r += CODE_ROWS) {
        int64_t n = sni_smaller(CODE_ROWS, kc - r), groups = groups_of(n);
        pack_panel(j->kernels, from + r * j->row, j->col, j->row, count, nr, n, rows);
        if (r == 0) {
            uint32_t counts[SNI_CODED_TOPS] = {0};
            uint64_t inside;
            count_tops(rows, n * nr, counts);
            entry->base = best_base(counts, j->coder->codes, &inside);
        }
        memset(rows + n * nr, 0, (size_t)((groups * SNI_CODED_ROWS - n) * nr) * sizeof *rows);
        j->coder->encode(rows, groups, (uint8_t)entry->base, to, &list);
        to += groups * j->coder->group_bytes;
    }
    entry->more = (uint32_t)(list.end - room);
}

static void pack_pieces(void *ctx, int64_t begin, int64_t end) {
    const pack_job *j = ctx;
    const sni_cpu_kernels *kernels = j->kernels;
    int width = j->left ? kernels->mr : kernels->nr;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t at = j->first + piece, blocks = sni_ceil_div(j->k, j->kc);
        int64_t p = (j->panels_first ? at % blocks : at / j->panels) * j->kc;
        int64_t i = j->panels_first ? at / blocks : at % j->panels;
        int64_t kc = sni_smaller(j->kc, j->k - p);
        float *to = j->coder  ? NULL
                    : j->left ? j->to + p * j->panels * width + i * left_panel(kernels, kc)
                              : j->to + p * j->panels * width + i * width * kc;
        if (j->coder)
            code_piece(j, j->from + p * j->row + i * width * j->col,
                       sni_smaller(width, j->side - i * width), p, kc, i);
        else if (j->left)
            pack_a_panels(kernels, j->from + p * j->col, j->row, j->col, j->side, i, i + 1, kc, to);
        else
            pack_b_panels(kernels, j->from + p * j->row + i * width * j->col, j->row, j->col,
                          sni_smaller(width, j->side - i * width), kc, to);
    }
}

/* Packs in the order in which the operand lies in memory. */
static void pack_all(pack_job *j, sni_gemm_done_fn done, const void *ctx) {
    int width = j->left ? j->kernels->mr : j->kernels->nr;
    int64_t k_step = j->left ? j->col : j->row, step = j->left ? j->row : j->col;
    j->panels = sni_ceil_div(j->side, width);
    j->kc = block_depth(j->k);
    j->panels_first = k_step == 1 && step > 1;
    if (j->panels == 0 || j->k == 0) return;
    int64_t blocks = sni_ceil_div(j->k, j->kc), grain = PACK_GRAIN / (width * j->kc) + 1;
    int64_t outer = j->panels_first ? j->panels : blocks, inner = j->panels * blocks / outer;
    int64_t line = j->panels_first ? width * step : j->kc * k_step; /* floats of an outer one */
    int64_t whole = j->panels_first ? j->side * step : j->k * k_step;
    int64_t some = done && line < STREAM ? STREAM / line : done ? 1 : outer;
    for (int64_t o = 0; o < outer; o += some) {
        int64_t end = sni_smaller(outer, o + some);
        j->first = o * inner;
        sni_parallel_for(0, (end - o) * inner, grain, pack_pieces, j);
        if (done)
            done(ctx, j->from + o * line,
                 (size_t)(sni_smaller(end * line, whole) - o * line) * sizeof(float));
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

/* ---- Coding ---- */

static int64_t pieces_of_b(int64_t k, int64_t n) {
    return sni_ceil_div(n, sni_cpu_kernels_get()->nr) * sni_ceil_div(k, block_depth(k));
}

size_t sni_gemm_code_room(int64_t k, int64_t n) {
    return (size_t)(pieces_of_b(k, n) * list_room(block_depth(k)));
}

size_t sni_gemm_coded_b_size(int64_t k, int64_t n) {
    int64_t panels = sni_ceil_div(n, sni_cpu_kernels_get()->nr), kc = block_depth(k);
    int64_t groups = panels * (k / kc * groups_of(kc) + groups_of(k % kc));
    int bytes = sni_coded_kernels_get()->group_bytes;
    if (!bytes || k == 0 || n == 0 || sni_gemm_code_room(k, n) > UINT32_MAX) return 0;
    return (coded_table_size(pieces_of_b(k, n)) + (size_t)(groups * bytes) + 63) / 64 * 64;
}

double sni_gemm_uncoded_part(const sni_loose_float *b, int64_t count) {
    enum { STRETCH = 512, STRETCHES = 64 };
    uint32_t counts[SNI_CODED_TOPS] = {0};
    uint64_t inside;
    int64_t each = sni_smaller(count, STRETCH), places = sni_ceil_div(count, each), seen = 0;
    for (int64_t i = 0; i < sni_smaller(places, STRETCHES); i++, seen += each)
        count_tops(b + (count - each) / sni_smaller(places, STRETCHES) * i, each, counts);
    best_base(counts, sni_coded_kernels_get()->codes, &inside);
    return 1 - (double)inside / (double)seen;
}

size_t sni_gemm_code_b(const sni_loose_float *b, int64_t b_row, int64_t b_col, int64_t k, int64_t n,
                       void *to, uint8_t *room, sni_gemm_done_fn done, const void *ctx) {
    int64_t pieces = pieces_of_b(k, n);
    pack_job j = {.kernels = sni_cpu_kernels_get(),
                  .from = b,
                  .row = b_row,
                  .col = b_col,
                  .k = k,
                  .side = n,
                  .coder = sni_coded_kernels_get(),
                  .entries = to,
                  .groups = (uint8_t *)to + coded_table_size(pieces),
                  .room = room};
    pack_all(&j, done, ctx);
    size_t total = 0;
    for (int64_t i = 0; i < pieces; i++) {
        size_t count = j.entries[i].more;
        memmove(room + total, room + i * list_room(j.kc), count);
        j.entries[i].more = (uint32_t)total;
        total += count;
    }
    return total;
}

/* ---- One thread's share ---- */

/* Row panels [i0, i1) and columns [n0, n1) of C; n0 is a multiple of nr. */
typedef struct share {
    const sni_gemm_f32 *g;
    const sni_cpu_kernels *kernels;
    const sni_coded_kernels *coder; /* NULL: B is not coded */
    int64_t panels, kc;             /* row panels of A, rows of a k-block */
    int64_t rows, more_rows;        /* of each panel; panels that have one more */
    int64_t i0, i1, n0, n1;
    float *a_block, *b_block; /* scratch; NULL for packed operands; of coded B one panel */
} share;

/* Panel j of the k-block of B that begins with row p. Whatever the bytes of B's table are, it lies
 * within B. */
static sni_coded_piece coded_piece(const share *s, int64_t p, int64_t j) {
    const sni_gemm_f32 *g = s->g;
    const sni_coded_b *b = g->coded_b;
    int64_t panels = sni_ceil_div(g->n, s->kernels->nr), panel = j / s->kernels->nr;
    const coded_entry *entry = (const coded_entry *)b->coded + p / s->kc * panels + panel;
    const uint8_t *groups =
        (const uint8_t *)b->coded + coded_table_size(panels * sni_ceil_div(g->k, s->kc));
    int64_t before = groups_before(g->k, s->kc, p, panels, panel);
    bool last = p + s->kc >= g->k && panel + 1 == panels;
    size_t more = entry->more < b->n_more ? entry->more : b->n_more;
    size_t end = last || entry[1].more > b->n_more ? b->n_more : entry[1].more;
    return (sni_coded_piece){.groups = groups + before * s->coder->group_bytes,
                             .more = b->more + more,
                             .end = b->more + (end < more ? more : end),
                             .last = -1,
                             .base = (uint8_t)entry->base};
}

/* Where panel j of a k-block of B lies that can be fetched. `b` begins with column j0. */
static const float *panel_of_b(const share *s, const float *b, int64_t p, int64_t kc, int64_t j0,
                               int64_t j) {
    return s->coder ? (const void *)coded_piece(s, p, j).groups : b + (j - j0) * kc;
}

/* Most row panels of a block of A: as many as fill a quarter of the second-level cache, or half of
 * it where each block decodes B anew. */
static int64_t block_panels(const sni_gemm_f32 *g, const sni_cpu_kernels *k) {
    size_t room = sni_cpu_cache(2) / (g->coded_b ? 2 : 4);
    int64_t most = (int64_t)(room / ((size_t)k->kc * sizeof(float))) / k->mr;
    return most < 1 ? 1 : most;
}

static int64_t block_columns(const sni_cpu_kernels *k) {
    return NC / k->nr * k->nr;
}

/* Panels [i, i + count) of A from column p on. */
static const float *block_of_a(const share *s, int64_t i, int64_t count, int64_t p, int64_t kc) {
    const sni_gemm_f32 *g = s->g;
    int mr = s->kernels->mr;
    if (g->packed_a) return g->packed_a + p * s->panels * mr + i * left_panel(s->kernels, kc);
    pack_a_panels(s->kernels, g->a + p * g->a_col, g->a_row, g->a_col, g->m, i, i + count, kc,
                  s->a_block);
    return s->a_block;
}

static const float *block_of_b(const share *s, int64_t p, int64_t kc, int64_t j, int64_t nc) {
    const sni_gemm_f32 *g = s->g;
    int nr = s->kernels->nr;
    if (g->packed_b) return g->packed_b + p * sni_round_up(g->n, nr) + j * kc;
    if (g->coded_b) return s->b_block;
    if (g->fill) {
        for (int64_t q = 0; q < nc; q += nr)
            g->fill(g->fill_ctx, p, kc, j + q, sni_smaller(nr, nc - q), nr, s->b_block + q * kc);
    } else {
        pack_b_panels(s->kernels, g->b + p * g->b_row + j * g->b_col, g->b_row, g->b_col, nc, kc,
                      s->b_block);
    }
    return s->b_block;
}

static bool is_scaled(const sni_gemm_f32 *g) {
    return g->scale != 0 && g->scale != 1;
}

/* Whether there is anything to do to sums beside a scale. */
static bool has_end(const sni_epilogue *e) {
    return e->act != SNI_ACT_NONE || e->row_bias || e->column_bias || e->residual;
}

/* Scale, bias, residual and activation on a finished tile. */
static void finish_tile(const share *s, int64_t i, int64_t rows, int64_t j, int64_t cols) {
    const sni_gemm_f32 *g = s->g;
    float *c = g->c + i * g->c_row + j;
    if (is_scaled(g)) {
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
    int64_t first = sni_smaller(i * each, lines);
    return (fetch){from ? from + first * 16 : NULL, from ? sni_smaller(each, lines - first) : 0};
}

/* Takes the sums of a tile, nr in a row, to C. */
static void add_edge(const share *s, const float *sums, int64_t i, int64_t rows, int64_t j,
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

/* A single row of A, read where it lies, times a panel of B: `b` or a coded `piece`. */
static void run_row_tile(const share *s, const float *a, const float *b,
                         const sni_coded_piece *piece, int64_t kc, int64_t j, int64_t cols,
                         bool add) {
    float edge[SNI_MAX_NR], *c = s->g->c + j;
    bool whole = cols == s->kernels->nr;
    if (piece)
        s->coder->row(kc, a, piece, whole ? c : edge, whole && add);
    else
        s->kernels->gemm_row(kc, a, b, whole ? c : edge, whole && add);
    if (!whole) add_edge(s, edge, 0, 1, j, cols, add);
}

/* One tile, of which B is `b` or a coded `piece`, which is written to the share's block on the way.
 * What is finished goes to C once: its rows may be so far apart that the first-level cache does not
 * keep them side by side. */
static void run_tile(const share *s, const float *a, const float *b, const sni_coded_piece *piece,
                     int64_t kc, int64_t i, int64_t rows, int64_t j, int64_t cols, bool add,
                     bool last, const fetch *next) {
    const sni_gemm_f32 *g = s->g;
    _Alignas(64) float sums[SNI_MAX_MR * SNI_MAX_NR];
    float *c = g->c + i * g->c_row + j;
    bool whole = cols == s->kernels->nr, end = last && has_end(&g->epilogue) && !is_scaled(g);
    float *apart = whole && !end ? NULL : sums;
    if (piece)
        s->coder->firsts[rows](kc, a, piece, s->b_block, c, g->c_row, add, apart, next->from,
                               next->lines);
    else
        s->kernels->gemm_tile[rows](kc, a, b, c, g->c_row, add, apart, next->from, next->lines);
    if (end)
        s->kernels->finish_tile(&g->epilogue, sums, add, c, g->c_row, i, rows, j, cols);
    else if (!whole)
        add_edge(s, sums, i, rows, j, cols, add);
    if (last && is_scaled(g)) finish_tile(s, i, rows, j, cols);
}

/* A panel of coded B times at most FEW_PANELS row panels from panel i0 on: some rows of it at a
 * time, which stay in the first-level cache, are decoded and taken up by all tiles. */
static void run_few(const share *s, int64_t i0, int64_t count, int64_t j, int64_t cols, int64_t p,
                    int64_t kc, const float *a) {
    const sni_gemm_f32 *g = s->g;
    int mr = s->kernels->mr, nr = s->kernels->nr;
    bool add = p > 0 || g->add, whole = cols == nr;
    float sums[FEW_PANELS][SNI_MAX_MR * SNI_MAX_NR];
    int64_t row[FEW_PANELS + 1];
    for (int64_t i = 0; i <= count; i++) row[i] = panel_row(g->m, s->panels, i0 + i);
    sni_coded_piece piece = coded_piece(s, p, j);
    for (int64_t r = 0; r < kc; r += FEW_ROWS) {
        int64_t n = sni_smaller(FEW_ROWS, kc - r);
        int64_t lines = n * s->coder->group_bytes / (SNI_CODED_ROWS * 64) + 1;
        int64_t each = sni_ceil_div(lines, count + 1);
        const float *ahead = (const void *)(piece.groups + SNI_CODED_AHEAD);
        fetch part = fetch_part(ahead, lines, each, 0);
        s->coder->decode(&piece, n, s->b_block, part.from, part.lines);
        bool to_c = whole && r + n == kc;
        for (int64_t i = 0; i < count; i++) {
            part = fetch_part(ahead, lines, each, i + 1);
            float *c = to_c ? g->c + row[i] * g->c_row + j : sums[i];
            s->coder->tiles[row[i + 1] - row[i]](
                n, a + i * left_panel(s->kernels, kc) + r * mr, s->b_block, r > 0 ? sums[i] : NULL,
                c, to_c ? g->c_row : nr, to_c && add, part.from, part.lines);
        }
    }
    for (int64_t i = 0; i < count; i++) {
        if (!whole) add_edge(s, sums[i], row[i], row[i + 1] - row[i], j, cols, add);
        if (p + kc == g->k) finish_tile(s, row[i], row[i + 1] - row[i], j, cols);
    }
}

/* `count` row panels from panel i0 on, times columns [j0, j0 + nc), over one k-block. The tiles on
 * a panel of B fetch the one that comes after it, each a part; after the last one comes `after`.
 * The first one decodes it where B is coded. */
static void run_blocks(const share *s, int64_t i0, int64_t count, int64_t j0, int64_t nc, int64_t p,
                       int64_t kc, const float *a, const float *b, const float *after) {
    int nr = s->kernels->nr;
    bool last = p + kc == s->g->k;
    int64_t lines = s->coder ? groups_of(kc) * s->coder->group_bytes / 64 : nr * kc / 16;
    int64_t each = sni_ceil_div(lines, count);
    for (int64_t j = 0; j < nc; j += nr) {
        int64_t cols = sni_smaller(nr, nc - j);
        if (s->coder && count <= FEW_PANELS) {
            run_few(s, i0, count, j0 + j, cols, p, kc, a);
            continue;
        }
        const float *next = j + nr < nc ? panel_of_b(s, b, p, kc, j0, j0 + j + nr) : after;
        const float *right = s->coder ? s->b_block : b + j * kc;
        sni_coded_piece piece = {0};
        if (s->coder) piece = coded_piece(s, p, j0 + j);
        for (int64_t i = 0; i < count; i++) {
            int64_t row = s->rows * (i0 + i) + sni_smaller(i0 + i, s->more_rows);
            int64_t rows = s->rows + (i0 + i < s->more_rows);
            fetch part = fetch_part(next, lines, each, i);
            run_tile(s, a + i * left_panel(s->kernels, kc), right,
                     s->coder && i == 0 ? &piece : NULL, kc, row, rows, j0 + j, cols,
                     p > 0 || s->g->add, last, &part);
        }
    }
}

/* The panel of B that is needed after block `b` (columns [j, j + nc), k-block p) when it is not the
 * rows' turn to go on. NULL: none, or not made yet. */
static const float *panel_after(const share *s, int64_t p, int64_t kc, int64_t j, int64_t nc) {
    const sni_gemm_f32 *g = s->g;
    int64_t n = sni_round_up(g->n, s->kernels->nr);
    if (s->coder && p + kc < g->k) return panel_of_b(s, NULL, p + kc, 0, 0, j);
    if (s->coder && j + nc < s->n1) return panel_of_b(s, NULL, 0, 0, 0, j + nc);
    if (!g->packed_b) return NULL;
    if (p + kc < g->k) return g->packed_b + (p + kc) * n + j * sni_smaller(s->kc, g->k - p - kc);
    return j + nc < s->n1 ? g->packed_b + (j + nc) * sni_smaller(s->kc, g->k) : NULL;
}

static void run_share(const share *s) {
    const sni_gemm_f32 *g = s->g;
    int64_t blocks = sni_ceil_div(s->i1 - s->i0, block_panels(g, s->kernels));
    int64_t nc_most = g->packed_b || g->coded_b ? s->n1 - s->n0 : block_columns(s->kernels);
    for (int64_t j = s->n0; j < s->n1; j += nc_most) {
        int64_t nc = sni_smaller(nc_most, s->n1 - j);
        for (int64_t p = 0; p < g->k; p += s->kc) {
            int64_t kc = sni_smaller(s->kc, g->k - p);
            const float *b = block_of_b(s, p, kc, j, nc);
            for (int64_t q = 0; q < blocks; q++) {
                if (g->stop && g->stop(g->stop_ctx)) return;
                int64_t i = s->i0 + (s->i1 - s->i0) * q / blocks;
                int64_t count = s->i0 + (s->i1 - s->i0) * (q + 1) / blocks - i;
                const float *after =
                    q + 1 < blocks ? panel_of_b(s, b, p, kc, j, j) : panel_after(s, p, kc, j, nc);
                run_blocks(s, i, count, j, nc, p, kc, block_of_a(s, i, count, p, kc), b, after);
            }
        }
    }
}

/* A single row of A with packed B: reads B once from end to end and packs nothing. */
static void run_row(const share *s) {
    const sni_gemm_f32 *g = s->g;
    int nr = s->kernels->nr;
    int64_t panels = sni_ceil_div(s->n1 - s->n0, nr);
    for (int64_t i = 0; i < panels; i++) {
        int64_t j = s->n0 + (g->backwards ? panels - 1 - i : i) * nr,
                cols = sni_smaller(nr, s->n1 - j);
        for (int64_t p = 0; p < g->k; p += s->kc) {
            int64_t kc = sni_smaller(s->kc, g->k - p);
            run_row_tile(s, g->a + p, g->packed_b + p * sni_round_up(g->n, nr) + j * kc, NULL, kc,
                         j, cols, p > 0 || g->add);
        }
    }
    finish_tile(s, 0, 1, s->n0, s->n1 - s->n0);
}

/* The same with coded B, in the order in which it lies: what is fetched ahead comes next. */
static void run_coded_row(const share *s) {
    const sni_gemm_f32 *g = s->g;
    int nr = s->kernels->nr;
    for (int64_t p = 0; p < g->k; p += s->kc) {
        int64_t kc = sni_smaller(s->kc, g->k - p);
        for (int64_t j = s->n0; j < s->n1; j += nr) {
            sni_coded_piece piece = coded_piece(s, p, j);
            run_row_tile(s, g->a + p, NULL, &piece, kc, j, sni_smaller(nr, s->n1 - j),
                         p > 0 || g->add);
        }
    }
    finish_tile(s, 0, 1, s->n0, s->n1 - s->n0);
}

static bool is_row(const sni_gemm_f32 *g) {
    return g->m == 1 && (g->packed_b || g->coded_b) && !g->packed_a && (g->a_col == 1 || g->k == 1);
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
    int64_t panels = sni_smaller(sni_ceil_div(g->m, k->mr), block_panels(g, k));
    return (size_t)(panels * left_panel(k, block_depth(g->k)));
}

static size_t b_block_size(const sni_gemm_f32 *g, const sni_cpu_kernels *k) {
    if (g->packed_b || (g->coded_b && is_row(g))) return 0;
    int64_t cols = g->coded_b ? k->nr : sni_smaller(sni_round_up(g->n, k->nr), block_columns(k));
    return (size_t)(cols * sni_round_up(block_depth(g->k), SNI_CODED_ROWS));
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
    j->row_panels = sni_ceil_div(g->m, j->kernels->mr);
    j->col_panels = sni_ceil_div(g->n, j->kernels->nr);
    if (g->m * g->n * g->k < SMALL_WORK) parts = 1;
    int64_t by_rows =
        sni_ceil_div(j->row_panels, sni_smaller(parts, j->row_panels)) * j->col_panels;
    int64_t by_cols =
        sni_ceil_div(j->col_panels, sni_smaller(parts, j->col_panels)) * j->row_panels;
    bool many = j->row_panels >= MANY_PANELS * parts && !g->packed_a;
    j->by_rows = many ? by_rows <= by_cols : by_rows < by_cols;
    j->parts = (int)sni_smaller(parts, j->by_rows ? j->row_panels : j->col_panels);
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
                   .coder = g->coded_b ? sni_coded_kernels_get() : NULL,
                   .panels = j->row_panels,
                   .kc = block_depth(g->k),
                   .rows = g->m / j->row_panels,
                   .more_rows = g->m % j->row_panels,
                   .i0 = j->by_rows ? from : 0,
                   .i1 = j->by_rows ? to : j->row_panels,
                   .n0 = j->by_rows ? 0 : from * j->kernels->nr,
                   .n1 = j->by_rows ? g->n : sni_smaller(to * j->kernels->nr, g->n),
                   .a_block = scratch,
                   .b_block = scratch ? scratch + a_block_size(g, j->kernels) : NULL};
        if (is_row(g) && s.coder)
            run_coded_row(&s);
        else if (is_row(g))
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
