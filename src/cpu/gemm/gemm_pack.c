/* gemm_pack.c - packed operands of matrix products, and B with its exponents compressed.
 *
 * A packed operand is a row of k-blocks; each is a row of panels: of A at most mr rows, as equal in
 * number as can be, some k of each row after the other (the tile takes them one by one, so that
 * nothing need be transposed); of B nr columns, k after k. */
#include "cpu/gemm/gemm_blocks.h"

#include "base/threadpool.h"

#include <string.h>

enum {
    PACK_GRAIN = 1 << 15, /* elements to pack that are worth a thread */
    STREAM = 1 << 21,     /* elements of a large operand that are packed at once */
    CODE_ROWS = 64        /* of a panel that are packed and compressed at once: whole groups */
};

int64_t sni_gemm_depth(int64_t k) {
    int64_t blocks = sni_ceil_div(k, sni_cpu_kernels_get()->kc);
    int step = blocks > 1 ? 2 * SNI_LEFT_STEPS : SNI_LEFT_STEPS;
    return k ? sni_round_up(sni_ceil_div(k, blocks), step) : 1;
}

/* ---- Packing ---- */

size_t sni_gemm_packed_a_size(int64_t m, int64_t k) {
    return (size_t)(sni_round_up(m, sni_cpu_kernels_get()->mr) * sni_round_up(k, SNI_LEFT_STEPS));
}

size_t sni_gemm_packed_b_size(int64_t k, int64_t n) {
    return (size_t)(k * sni_round_up(n, sni_cpu_kernels_get()->nr));
}

/* One panel of B: `count` (at most nr) columns, k after k, padded with zeros. `step` leads to the
 * next of them, `k_step` to the next k. */
static void pack_panel(const sni_cpu_kernels *kernels, const sni_unaligned_float *from,
                       int64_t step, int64_t k_step, int64_t count, int64_t k, float *to) {
    const int width = kernels->nr;
    if (k_step == 1) {
        kernels->pack_transposed(from, step, count, width, k, to);
    } else if (step == 1) {
        kernels->pack_straight(from, k_step, count, width, k, to);
    } else {
        for (int64_t p = 0; p < k; p++, from += k_step, to += width) {
            for (int64_t i = 0; i < count; i++) to[i] = from[i * step];
            for (int64_t i = count; i < width; i++) to[i] = 0;
        }
    }
}

/* One panel of A: `count` rows. */
static void pack_left_panel(const sni_cpu_kernels *kernels, const sni_unaligned_float *from,
                            int64_t row, int64_t col, int64_t count, int64_t kc, float *to) {
    float lines[SNI_MAX_MR * SNI_LEFT_STEPS];
    if (col == 1) {
        kernels->pack_left(from, row, count, kc, to);
        return;
    }
    for (int64_t p = 0; p < kc;
         p += SNI_LEFT_STEPS, to += sni_gemm_left_panel(kernels, SNI_LEFT_STEPS)) {
        int64_t steps = sni_min(SNI_LEFT_STEPS, kc - p);
        if (row == 1)
            kernels->transpose_matrix(from + p * col, col, steps, count, lines, SNI_LEFT_STEPS);
        for (int64_t i = 0; i < count && row != 1; i++)
            for (int64_t s = 0; s < steps; s++)
                lines[i * SNI_LEFT_STEPS + s] = from[i * row + (p + s) * col];
        kernels->pack_left(lines, SNI_LEFT_STEPS, count, steps, to);
    }
}

void sni_gemm_pack_rows(const sni_cpu_kernels *kernels, const sni_gemm_rows *a, int64_t first,
                        int64_t last, int64_t kc, float *to) {
    for (int64_t i = first; i < last; i++, to += sni_gemm_left_panel(kernels, kc)) {
        int64_t row = sni_gemm_panel_row(a->m, a->panels, i);
        int64_t count = sni_gemm_panel_row(a->m, a->panels, i + 1) - row;
        pack_left_panel(kernels, a->from + row * a->row, a->row, a->col, count, kc, to);
    }
}

void sni_gemm_pack_columns(const sni_cpu_kernels *kernels, const sni_unaligned_float *from,
                           int64_t row, int64_t col, int64_t n, int64_t kc, float *to) {
    int nr = kernels->nr;
    for (int64_t j = 0; j < n; j += nr, to += nr * kc)
        pack_panel(kernels, from + j * col, col, row, sni_min(nr, n - j), kc, to);
}

/* A whole operand to pack; pieces are pairs of a k-block and a panel. */
typedef struct pack_job {
    const sni_cpu_kernels *kernels;
    const sni_unaligned_float *from;
    int64_t row, col, k, kc, panels, side; /* side: m of A or n of B */
    bool left;
    bool
        panels_first; /* pieces are counted over the k-blocks of a panel, not the other way round */
    int64_t first;    /* piece */
    float *to;
    const sni_compressed_kernels *codec; /* NULL: floats are kept */
    struct compressed_entry *entries;    /* of all pieces, k-block after k-block */
    uint8_t *groups, *lists;             /* of a blob, list_capacity() bytes each */
} pack_job;

/* What a compressed operand says of a piece. The table of these comes first, then, aligned, the
 * pieces' groups. */
typedef struct compressed_entry {
    uint32_t
        more; /* first byte of its own in the operand's list, which goes on to the next one's */
    uint32_t base;
} compressed_entry;

static size_t compressed_table_size(int64_t pieces) {
    return ((size_t)pieces * sizeof(compressed_entry) + 63) / 64 * 64;
}

/* Bytes that a piece's list takes at most. */
static int64_t list_capacity(int64_t kc) {
    return sni_gemm_groups_of(kc) * SNI_COMPRESSED_ROWS * sni_cpu_kernels_get()->nr *
           SNI_COMPRESSED_MORE;
}

/* Groups of a compressed operand of k rows, in blocks of kc, that come before piece `panel` of the
 * block that begins with row p. */
static int64_t groups_before(int64_t k, int64_t kc, int64_t p, int64_t panels, int64_t panel) {
    return p / kc * sni_gemm_groups_of(kc) * panels +
           panel * sni_gemm_groups_of(sni_min(kc, k - p));
}

/* The highest byte with which the best run of `codes` neighbours begins, without its sign. */
static uint8_t best_base(const uint32_t counts[SNI_COMPRESSED_TOPS], int codes, uint64_t *inside) {
    uint64_t sum = 0, most = 0;
    int base = 0;
    for (int e = 0; e < SNI_COMPRESSED_TOPS; e++) {
        sum += counts[e];
        if (e >= codes) sum -= counts[e - codes];
        if (sum <= most) continue;
        most = sum;
        base = e < codes ? 0 : e - codes + 1;
    }
    *inside = most;
    return (uint8_t)base;
}

static void count_tops(const sni_unaligned_float *x, int64_t n,
                       uint32_t counts[SNI_COMPRESSED_TOPS]) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        counts[bits >> 24 & (SNI_COMPRESSED_TOPS - 1)]++;
    }
}

/* Compresses one piece of B: `count` columns from `from` on, kc rows. Its base follows from the
 * first rows. */
static void compress_blob(const pack_job *j, const sni_unaligned_float *from, int64_t count,
                          int64_t p, int64_t kc, int64_t panel) {
    int nr = j->kernels->nr;
    float rows[CODE_ROWS * SNI_MAX_NR];
    int64_t at = p / j->kc * j->panels + panel;
    compressed_entry *entry = &j->entries[at];
    uint8_t *to =
        j->groups + groups_before(j->k, j->kc, p, j->panels, panel) * j->codec->group_bytes;
    uint8_t *start = j->lists + at * list_capacity(j->kc);
    sni_compressed_list list = {.end = start, .last = -1};
    for (int64_t r = 0; r < kc; r += CODE_ROWS) {
        int64_t n = sni_min(CODE_ROWS, kc - r), groups = sni_gemm_groups_of(n);
        pack_panel(j->kernels, from + r * j->row, j->col, j->row, count, n, rows);
        if (r == 0) {
            uint32_t counts[SNI_COMPRESSED_TOPS] = {0};
            uint64_t inside;
            count_tops(rows, n * nr, counts);
            entry->base = best_base(counts, j->codec->codes, &inside);
        }
        memset(rows + n * nr, 0, (size_t)((groups * SNI_COMPRESSED_ROWS - n) * nr) * sizeof *rows);
        j->codec->encode(rows, groups, (uint8_t)entry->base, to, &list);
        to += groups * j->codec->group_bytes;
    }
    entry->more = (uint32_t)(list.end - start);
}

static void pack_pieces(void *ctx, int64_t begin, int64_t end) {
    const pack_job *j = ctx;
    const sni_cpu_kernels *kernels = j->kernels;
    int width = j->left ? kernels->mr : kernels->nr;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t at = j->first + piece, blocks = sni_ceil_div(j->k, j->kc);
        int64_t p = (j->panels_first ? at % blocks : at / j->panels) * j->kc;
        int64_t i = j->panels_first ? at / blocks : at % j->panels;
        int64_t kc = sni_min(j->kc, j->k - p);
        float *to = j->codec  ? NULL
                    : j->left ? j->to + p * j->panels * width + i * sni_gemm_left_panel(kernels, kc)
                              : j->to + p * j->panels * width + i * width * kc;
        if (j->codec)
            compress_blob(j, j->from + p * j->row + i * width * j->col,
                          sni_min(width, j->side - i * width), p, kc, i);
        else if (j->left)
            sni_gemm_pack_rows(kernels,
                               &(sni_gemm_rows){.from = j->from + p * j->col,
                                                .row = j->row,
                                                .col = j->col,
                                                .m = j->side,
                                                .panels = j->panels},
                               i, i + 1, kc, to);
        else
            sni_gemm_pack_columns(kernels, j->from + p * j->row + i * width * j->col, j->row,
                                  j->col, sni_min(width, j->side - i * width), kc, to);
    }
}

/* Packs in the order in which the operand lies in memory. */
static void pack_all(pack_job *j, sni_gemm_done_fn done, const void *ctx) {
    int width = j->left ? j->kernels->mr : j->kernels->nr;
    int64_t k_step = j->left ? j->col : j->row, step = j->left ? j->row : j->col;
    j->panels = sni_ceil_div(j->side, width);
    j->kc = sni_gemm_depth(j->k);
    j->panels_first = k_step == 1 && step > 1;
    if (j->panels == 0 || j->k == 0) return;
    int64_t blocks = sni_ceil_div(j->k, j->kc), grain = PACK_GRAIN / (width * j->kc) + 1;
    int64_t outer = j->panels_first ? j->panels : blocks, inner = j->panels * blocks / outer;
    int64_t line = j->panels_first ? width * step : j->kc * k_step; /* floats of an outer one */
    int64_t whole = j->panels_first ? j->side * step : j->k * k_step;
    int64_t some = done && line < STREAM ? STREAM / line : done ? 1 : outer;
    for (int64_t o = 0; o < outer; o += some) {
        int64_t end = sni_min(outer, o + some);
        j->first = o * inner;
        sni_parallel_for(0, (end - o) * inner, grain, pack_pieces, j);
        if (done)
            done(ctx, j->from + o * line,
                 (size_t)(sni_min(end * line, whole) - o * line) * sizeof(float));
    }
}

void sni_gemm_pack_a(const sni_unaligned_float *a, int64_t a_row, int64_t a_col, int64_t m,
                     int64_t k, float *to) {
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

static pack_job job_of(const sni_gemm_stream *s) {
    return (pack_job){.kernels = sni_cpu_kernels_get(),
                      .from = s->b,
                      .row = s->b_row,
                      .col = s->b_col,
                      .k = s->k,
                      .side = s->n};
}

void sni_gemm_stream_b(const sni_gemm_stream *s, float *to) {
    pack_job j = job_of(s);
    j.to = to;
    pack_all(&j, s->done, s->ctx);
}

void sni_gemm_pack_b(const sni_unaligned_float *b, int64_t b_row, int64_t b_col, int64_t k,
                     int64_t n, float *to) {
    sni_gemm_stream_b(&(sni_gemm_stream){.b = b, .b_row = b_row, .b_col = b_col, .k = k, .n = n},
                      to);
}

typedef struct make_job {
    sni_gemm_fill_fn fill;
    const void *ctx;
    int64_t k, n;
    float *to;
} make_job;

/* Panels of columns over all of k. */
static void make_panels(void *ctx, int64_t begin, int64_t end) {
    const make_job *m = ctx;
    int nr = sni_cpu_kernels_get()->nr;
    int64_t depth = sni_gemm_depth(m->k);
    for (int64_t j = begin * nr; j < end * nr; j += nr)
        for (int64_t p = 0; p < m->k; p += depth) {
            int64_t kc = sni_min(depth, m->k - p);
            m->fill(m->ctx, p, kc, j, sni_min(nr, m->n - j), nr,
                    m->to + p * sni_round_up(m->n, nr) + j * kc);
        }
}

void sni_gemm_make_b(sni_gemm_fill_fn fill, const void *ctx, int64_t k, int64_t n, float *to) {
    make_job m = {fill, ctx, k, n, to};
    sni_parallel_for(0, sni_ceil_div(n, sni_cpu_kernels_get()->nr), 1, make_panels, &m);
}

/* ---- Coding ---- */

static int64_t pieces_of_b(int64_t k, int64_t n) {
    return sni_ceil_div(n, sni_cpu_kernels_get()->nr) * sni_ceil_div(k, sni_gemm_depth(k));
}

size_t sni_gemm_compress_capacity(int64_t k, int64_t n) {
    return (size_t)(pieces_of_b(k, n) * list_capacity(sni_gemm_depth(k)));
}

size_t sni_gemm_compressed_b_size(int64_t k, int64_t n) {
    int64_t panels = sni_ceil_div(n, sni_cpu_kernels_get()->nr), kc = sni_gemm_depth(k);
    int64_t groups = panels * (k / kc * sni_gemm_groups_of(kc) + sni_gemm_groups_of(k % kc));
    int bytes = sni_compressed_kernels_get()->group_bytes;
    if (!bytes || k == 0 || n == 0 || sni_gemm_compress_capacity(k, n) > UINT32_MAX) return 0;
    return (compressed_table_size(pieces_of_b(k, n)) + (size_t)(groups * bytes) + 63) / 64 * 64;
}

double sni_gemm_uncompressed_part(const sni_unaligned_float *b, int64_t count) {
    enum { STRETCH = 512, STRETCHES = 64 };
    uint32_t counts[SNI_COMPRESSED_TOPS] = {0};
    uint64_t inside;
    int64_t each = sni_min(count, STRETCH), places = sni_ceil_div(count, each), seen = 0;
    for (int64_t i = 0; i < sni_min(places, STRETCHES); i++, seen += each)
        count_tops(b + (count - each) / sni_min(places, STRETCHES) * i, each, counts);
    best_base(counts, sni_compressed_kernels_get()->codes, &inside);
    return 1 - (double)inside / (double)seen;
}

size_t sni_gemm_compress_b(const sni_gemm_stream *s, void *to, uint8_t *buffer) {
    int64_t pieces = pieces_of_b(s->k, s->n);
    pack_job j = job_of(s);
    j.codec = sni_compressed_kernels_get();
    j.entries = to;
    j.groups = (uint8_t *)to + compressed_table_size(pieces);
    j.lists = buffer;
    pack_all(&j, s->done, s->ctx);
    size_t total = 0;
    for (int64_t i = 0; i < pieces; i++) {
        size_t count = j.entries[i].more;
        memmove(buffer + total, buffer + i * list_capacity(j.kc), count);
        j.entries[i].more = (uint32_t)total;
        total += count;
    }
    return total;
}

sni_compressed_piece sni_gemm_compressed_piece(const sni_gemm_f32 *g, int64_t p, int64_t j) {
    const sni_compressed_b *b = g->compressed_b;
    const sni_compressed_kernels *codec = sni_compressed_kernels_get();
    int nr = sni_cpu_kernels_get()->nr;
    int64_t panels = sni_ceil_div(g->n, nr), panel = j / nr, kc = sni_gemm_depth(g->k);
    const compressed_entry *entry =
        (const compressed_entry *)b->compressed + p / kc * panels + panel;
    const uint8_t *groups =
        (const uint8_t *)b->compressed + compressed_table_size(panels * sni_ceil_div(g->k, kc));
    int64_t before = groups_before(g->k, kc, p, panels, panel);
    bool last = p + kc >= g->k && panel + 1 == panels;
    size_t more = entry->more < b->n_more ? entry->more : b->n_more;
    size_t end = last || entry[1].more > b->n_more ? b->n_more : entry[1].more;
    return (sni_compressed_piece){.groups = groups + before * codec->group_bytes,
                                  .more = b->more + more,
                                  .end = b->more + (end < more ? more : end),
                                  .last = -1,
                                  .base = (uint8_t)entry->base};
}
