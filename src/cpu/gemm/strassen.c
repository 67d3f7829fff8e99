/* strassen.c - Strassen's method on panels, seven products for eight, with
 * signs that leave nothing but differences of B.
 *
 * Two row panels of A and two panels of B, each cut in the middle, are matrices of two by two
 * quarters. Seven products of sums of quarters give all four tiles of C: with
 *
 *     T = (A11 + A22) (B11 - B22) + A22 (B21 - B11) + (A11 + A12) B22
 *
 * they are
 *
 *     C11 = T + (A12 - A22) (B21 - B22)           C12 = (A11 + A12) B22 + A11 (B12 - B22)
 *     C21 = A22 (B21 - B11) + (A21 + A22) B11     C22 = C12 + C21 - T + (A11 - A21) (B11 - B12)
 *
 * Sums go on from tile to tile in registers, and the tiles themselves take one quarter of B from
 * the other: next to their products that costs little, while sums of B kept in memory would go to
 * the second-level cache and back for each use. What is combined are neighbours, so that the method
 * needs no memory but for the sums of a few row panels, and gives the same bits however C is cut.
 *
 * A row's errors are then as large as if it had the numbers of the row it is combined with, and a
 * column's likewise; an infinity would reach both. So the sums' kernels look at all numbers, and
 * pairs whose sizes differ much, or which hold a very large number, are multiplied as they are. */
#include "cpu/gemm/gemm_blocks.h"
#include "cpu/elementwise/map.h"
#include "cpu/gemm/strassen.h"

#include "base/threadpool.h"

enum {
    LEAST_DEPTH = 128, /* of a k-block that is worth more ends of tiles */
    LEAST_COLUMNS = 6, /* panels of B that are worth the sums of A */
    QUARTERS = 7,      /* of a pair of row panels, or sums of quarters */
    MOST_PAIRS = 64,   /* of row panels in a block */
    EXPONENT = 1 << 23 /* one step of it in the bits of a float */
};
static const int32_t SPREAD = 3 * EXPONENT;             /* a pair's sizes: one 8 times the other */
static const int32_t HUGE_SIZE = (127 + 60) * EXPONENT; /* 2^60: sums and products stay finite */

/* Floats of a pair of row panels with their sums. */
static int64_t pair_size(const sni_cpu_kernels *kernels, int64_t kc) {
    return QUARTERS * sni_gemm_left_panel(kernels, kc) / 2;
}

static int64_t block_pairs(const sni_gemm_f32 *g, const sni_cpu_kernels *k) {
    int64_t bytes = pair_size(k, sni_gemm_depth(g->k)) * (int64_t)sizeof(float);
    int64_t most = (int64_t)sni_cpu_cache(2) / bytes;
    return sni_max(1, sni_min(most, MOST_PAIRS));
}

size_t sni_gemm_strassen_left_size(const sni_gemm_f32 *g) {
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    int64_t pairs = sni_min(sni_ceil_div(g->m, 2 * k->mr), block_pairs(g, k));
    return (size_t)(pairs * pair_size(k, sni_gemm_depth(g->k)));
}

/* Whether numbers of such sizes may be added up: `count` pairs, the others from `other` on. */
static bool are_close(const int32_t *sizes, const int32_t *other, int64_t count) {
    bool close = true;
    for (int64_t i = 0; i < count; i++) {
        int32_t more = sizes[i] > other[i] ? sizes[i] : other[i];
        int32_t less = sizes[i] > other[i] ? other[i] : sizes[i];
        close &= more < HUGE_SIZE && more - less <= SPREAD;
    }
    return close;
}

/* ---- Columns ---- */

size_t sni_gemm_even_size(int64_t k, int64_t n) {
    int64_t kc = k ? sni_gemm_depth(k) : 0;
    int nr = sni_cpu_kernels_get()->nr;
    bool halves = kc % (2 * SNI_LEFT_STEPS) == 0 && k % (2 * SNI_LEFT_STEPS) == 0;
    return kc >= LEAST_DEPTH && halves && n >= LEAST_COLUMNS * nr ? (size_t)sni_ceil_div(n, 2 * nr)
                                                                  : 0;
}

typedef struct even_job {
    const float *packed;
    int64_t k, n;
    uint8_t *even;
} even_job;

static void find_even(void *ctx, int64_t begin, int64_t end) {
    const even_job *job = ctx;
    const sni_cpu_kernels *kernels = sni_cpu_kernels_get();
    int nr = kernels->nr;
    int64_t depth = sni_gemm_depth(job->k);
    for (int64_t i = begin; i < end; i++) {
        int32_t sizes[2][SNI_MAX_NR] = {{0}};
        int64_t j = 2 * i * nr, second = sni_min(nr, job->n - j - nr);
        for (int64_t p = 0; p < job->k && second > 0; p += depth) {
            int64_t kc = sni_min(depth, job->k - p);
            const float *panel = sni_gemm_packed_panel(job->packed, job->n, nr, p, kc, j);
            kernels->strassen->column_sizes(kc, panel, sizes[0]);
            kernels->strassen->column_sizes(kc, panel + nr * kc, sizes[1]);
        }
        job->even[i] = second > 0 && are_close(sizes[0], sizes[1], second);
    }
}

void sni_gemm_find_even(const float *packed_b, int64_t k, int64_t n, uint8_t *even) {
    int64_t pairs = (int64_t)sni_gemm_even_size(k, n);
    even_job job = {packed_b, k, n, even};
    sni_parallel_for(0, pairs, 1, find_even, &job);
}

/* ---- Products ---- */

/* A pair of row panels and a block of columns over a k-block. */
typedef struct pair {
    const float *a; /* quarters and sums; whole panels if it is not close */
    bool close;     /* its rows may be added up */
    int64_t row, rows[2];
} pair;

/* A panel of B, or two whose columns may be added up. */
typedef struct columns {
    const float *b[2];
    bool close;
    int64_t j, cols[2];
    int64_t kc;
    bool add, last;
} columns;

/* What the tiles are to fetch, an even share each. */
typedef struct prefetch {
    const float *from;
    int64_t lines, each;
} prefetch;

/* The next share; *lines is how much it is. */
static const float *next_share(prefetch *next, int64_t *lines) {
    const float *from = next->from;
    *lines = sni_min(next->each, next->lines);
    if (from) next->from = from + *lines * 16;
    next->lines -= *lines;
    return from;
}

/* Rows of A, or of sums, times a panel of B, less another one (NULL: nothing), over k terms. */
typedef struct terms {
    const float *a, *b, *less;
    int64_t k, rows;
} terms;

/* sums = so_far + A (B - less); C is where they will go. */
static void run_tile(const sni_gemm_share *s, terms x, const float *so_far, float *sums, float *c,
                     prefetch *next) {
    int64_t lines;
    const float *fetch = next_share(next, &lines);
    if (x.less)
        s->kernels->gemm_less[x.rows](x.k, x.a, x.b, x.less, so_far, c, s->g->c_row, sums, fetch,
                                      lines);
    else
        s->kernels->gemm_tile[x.rows](x.k, x.a, x.b, so_far, c, s->g->c_row, false, sums, fetch,
                                      lines);
}

static float *tile_of_c(const sni_gemm_share *s, const pair *p, const columns *q, int y, int x) {
    return s->g->c + (p->row + y * p->rows[0]) * s->g->c_row + q->j + x * s->kernels->nr;
}

/* Takes sums to tile (y, x) of the pairs, finished if they are whole. */
static void end_tile(const sni_gemm_share *s, const pair *p, const columns *q, int y, int x,
                     const float *sums) {
    static const sni_epilogue none = {0};
    const sni_epilogue *e = q->last ? &s->g->epilogue : &none;
    int64_t i = p->row + y * p->rows[0], j = q->j + x * s->kernels->nr;
    s->kernels->finish_tile(e, sums, q->add, tile_of_c(s, p, q, y, x), s->g->c_row, i, p->rows[y],
                            j, q->cols[x]);
}

/* The four tiles as the head of this file says. */
static void run_strassen(const sni_gemm_share *s, const pair *p, const columns *q, prefetch *next) {
    const sni_cpu_kernels *k = s->kernels;
    _Alignas(64) float t[SNI_MAX_MR * SNI_MAX_NR], u[SNI_MAX_MR * SNI_MAX_NR],
        y12[SNI_MAX_MR * SNI_MAX_NR], y21[SNI_MAX_MR * SNI_MAX_NR];
    int64_t half = q->kc / 2, left = k->mr * half, right = k->nr * half, n = p->rows[0];
    int64_t count = n * k->nr;
    const float *a11 = p->a, *a22 = a11 + left, *sums = a11 + 2 * left;
    const float *b11 = q->b[0], *b21 = b11 + right, *b12 = q->b[1], *b22 = b12 + right;
    float *c11 = tile_of_c(s, p, q, 0, 0), *c12 = tile_of_c(s, p, q, 0, 1),
          *c21 = tile_of_c(s, p, q, 1, 0), *c22 = tile_of_c(s, p, q, 1, 1);
    run_tile(s, (terms){a22, b21, b11, half, n}, NULL, t, c21, next);
    run_tile(s, (terms){sums + left, b11, NULL, half, n}, t, y21, c21, next);
    end_tile(s, p, q, 1, 0, y21);
    run_tile(s, (terms){sums + 2 * left, b22, NULL, half, n}, NULL, u, c12, next);
    run_tile(s, (terms){a11, b12, b22, half, n}, u, y12, c12, next);
    end_tile(s, p, q, 0, 1, y12);
    k->maps->binary[SNI_BINARY_ADD](t, u, t, count, 1, 1, NULL);
    run_tile(s, (terms){sums, b11, b22, half, n}, t, t, c11, next);
    k->maps->binary[SNI_BINARY_ADD](y12, y21, y12, count, 1, 1, NULL);
    k->maps->binary[SNI_BINARY_SUB](y12, t, y12, count, 1, 1, NULL);
    run_tile(s, (terms){sums + 4 * left, b21, b22, half, n}, t, t, c11, next);
    end_tile(s, p, q, 0, 0, t);
    run_tile(s, (terms){sums + 3 * left, b11, b12, half, n}, y12, u, c22, next);
    end_tile(s, p, q, 1, 1, u);
}

/* The same tiles by eight products, or two of them by four where there is one panel of B. */
static void run_plain(const sni_gemm_share *s, const pair *p, const columns *q, prefetch *next) {
    _Alignas(64) float sums[SNI_MAX_MR * SNI_MAX_NR];
    int64_t panel = sni_gemm_left_panel(s->kernels, q->kc);
    for (int x = 0; x < 2 && q->cols[x]; x++)
        for (int y = 0; y < 2 && p->rows[y]; y++) {
            run_tile(s, (terms){p->a + y * panel, q->b[x], NULL, q->kc, p->rows[y]}, NULL, sums,
                     tile_of_c(s, p, q, y, x), next);
            end_tile(s, p, q, y, x, sums);
        }
}

/* Row panels 2i and 2i + 1 of A from column p on: sums of their quarters if `sums`, and if they may
 * be added up; else as they are. */
static pair pack_pair(const sni_gemm_share *s, int64_t i, int64_t p, int64_t kc, bool sums,
                      float *to) {
    const sni_gemm_f32 *g = s->g;
    const sni_cpu_kernels *k = s->kernels;
    int32_t sizes[2 * SNI_MAX_MR];
    int64_t row = sni_gemm_panel_row(g->m, s->panels, 2 * i),
            middle = sni_gemm_panel_row(g->m, s->panels, 2 * i + 1),
            end = sni_gemm_panel_row(g->m, s->panels, 2 * i + 2);
    pair r = {.a = to, .row = row, .rows = {middle - row, end - middle}};
    if (sums) {
        k->strassen->left_sums(g->a + row * g->a_row + p, g->a_row, r.rows[0], r.rows[1], kc / 2,
                               to, sizes);
        r.close = are_close(sizes, sizes + k->mr, r.rows[1]);
    }
    if (!r.close)
        sni_gemm_pack_rows(k, &(sni_gemm_rows){g->a + p, g->a_row, 1, g->m, s->panels}, 2 * i,
                           2 * i + 2, kc, to);
    return r;
}

/* Columns from j on, two panels if the share has as many, over kc terms from p on. `b` is where
 * they lie. */
static columns take_columns(const sni_gemm_share *s, const float *b, int64_t j, int64_t p,
                            int64_t kc) {
    int nr = s->kernels->nr;
    columns q = {.b = {b, b + nr * kc}, .j = j, .kc = kc};
    q.cols[0] = sni_min(nr, s->n1 - j);
    q.cols[1] = sni_max(0, sni_min(nr, s->n1 - j - nr));
    q.add = p > 0 || s->g->add;
    q.last = p + kc == s->g->k;
    q.close = q.cols[1] > 0 && s->g->even[j / (2 * nr)];
    return q;
}

/* A block of A: `count` pairs from pair `first` on. */
typedef struct block {
    pair pairs[MOST_PAIRS];
    int64_t first, count;
} block;

static void pack_block(const sni_gemm_share *s, int64_t p, int64_t kc, bool sums, block *b) {
    for (int64_t i = 0; i < b->count; i++)
        b->pairs[i] =
            pack_pair(s, b->first + i, p, kc, sums, s->a_block + i * pair_size(s->kernels, kc));
}

/* A block times those columns of the share that may be added up, or the others, over one k-block,
 * for which B is `right`. Returns how many pairs of panels it left out. The tiles on a
 * pair of panels fetch the next one; after the last comes `after`, if it is there. */
static int64_t run_pairs(const sni_gemm_share *s, const block *a, int64_t p, int64_t kc, bool even,
                         const float *right, const float *after) {
    int nr = s->kernels->nr;
    int64_t lines = 2 * nr * kc / 16, left_out = 0;
    for (int64_t j = s->n0; j < s->n1; j += 2 * nr, right += 2 * nr * kc) {
        columns q = take_columns(s, right, j, p, kc);
        prefetch next = {.from = j + 2 * nr < s->n1 ? right + 2 * nr * kc : after};
        next.lines = next.from ? lines : 0;
        next.each = sni_ceil_div(lines, 7 * a->count);
        left_out += q.close != even;
        for (int64_t i = 0; i < a->count && q.close == even; i++)
            if (a->pairs[i].close)
                run_strassen(s, &a->pairs[i], &q, &next);
            else
                run_plain(s, &a->pairs[i], &q, &next);
    }
    return left_out;
}

/* The share's columns of the k-block that begins with row p; NULL: there is none. */
static const float *right_of(const sni_gemm_share *s, int64_t p) {
    const sni_gemm_f32 *g = s->g;
    if (p >= g->k) return NULL;
    return sni_gemm_packed_panel(g->packed_b, g->n, s->kernels->nr, p, sni_min(s->kc, g->k - p),
                                 s->n0);
}

/* All of the share over one k-block. False: the product is to be given up. */
static bool run_block(const sni_gemm_share *s, int64_t p, int64_t kc) {
    const sni_gemm_f32 *g = s->g;
    int64_t all = (s->i1 - s->i0) / 2, blocks = sni_ceil_div(all, block_pairs(g, s->kernels));
    const float *right = right_of(s, p);
    for (int64_t q = 0; q < blocks; q++) {
        if (g->stop && g->stop(g->stop_ctx)) return false;
        block a = {.first = s->i0 / 2 + all * q / blocks};
        a.count = s->i0 / 2 + all * (q + 1) / blocks - a.first;
        const float *after = q + 1 < blocks ? right : right_of(s, p + kc);
        pack_block(s, p, kc, true, &a);
        if (!run_pairs(s, &a, p, kc, true, right, after)) continue;
        pack_block(s, p, kc, false, &a);
        run_pairs(s, &a, p, kc, false, right, after);
    }
    return true;
}

void sni_gemm_run_strassen(const sni_gemm_share *s) {
    for (int64_t p = 0; p < s->g->k; p += s->kc)
        if (!run_block(s, p, sni_min(s->kc, s->g->k - p))) return;
}
