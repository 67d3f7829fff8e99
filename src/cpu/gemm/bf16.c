/* bf16.c - blocking around the tiles of products of bfloat16 (cpu/gemm/bf16.h).
 *
 * Rows are rounded and packed once, some panels at a time that stay in the second-level cache, and
 * meet one panel of B's columns after the other. With many panels of rows for each thread, threads
 * take rows; else rows are packed together and threads take columns. */
#include "cpu/gemm/bf16.h"

#include "base/threadpool.h"
#include "cpu/gemm/gemm_blocks.h"

enum {
    MANY_PANELS = 4, /* of rows for each thread that are worth reading all of B for */
    LINES_AT_ONCE = SNI_PRODUCT_PARTS / 2 * 2,
    PANELS_TOGETHER = 16 /* of rows that meet a k-block of a panel of columns */
};

const sni_bf16_kernels *sni_bf16_kernels_get(void) {
#ifdef SNI_X86
    extern const sni_bf16_kernels sni_bf16_kernels_avx512bf16, sni_bf16_kernels_amxbf16;
    if (sni_cpu_has(SNI_CPU_AMX_BF16)) return &sni_bf16_kernels_amxbf16;
    if (sni_cpu_has(SNI_CPU_AVX512_BF16)) return &sni_bf16_kernels_avx512bf16;
#endif
    return NULL;
}

typedef struct job {
    const sni_product *p;
    const sni_half_b *b;
    const sni_bf16_kernels *kernels;
    int64_t k, n, depth, strips, panel_size; /* elements of a packed panel of rows */
    int64_t together;                        /* panels of rows in a block */
    bool by_rows;
    int parts;
    uint16_t *scratch;
} job;

static void set_up(job *j, const sni_product *p, int64_t k, int64_t n, int threads) {
    const sni_bf16_kernels *kernels = sni_bf16_kernels_get();
    int64_t lines = sni_ceil_div(k, SNI_BF16_TERMS);
    *j = (job){.p = p, .kernels = kernels, .k = k, .n = n, .depth = sni_gemm_depth(k)};
    j->strips = sni_ceil_div(n, sni_cpu_kernels_get()->nr);
    j->panel_size = lines * kernels->rows * SNI_BF16_TERMS;
    int64_t most = (int64_t)(sni_cpu_cache(2) / 4 * 3 / sizeof(uint16_t)) / j->panel_size;
    threads = threads < 1 ? 1 : threads;
    j->by_rows = p->panels >= MANY_PANELS * threads;
    int64_t each = j->by_rows ? sni_ceil_div(p->panels, threads) : p->panels;
    j->together = sni_max(1, sni_min(most, each));
    j->parts = (int)sni_min(threads, j->by_rows ? p->panels : j->strips);
}

size_t sni_bf16_scratch_size(const sni_product *p, int64_t k, int64_t n, int threads) {
    job j;
    set_up(&j, p, k, n, threads);
    return (size_t)((j.by_rows ? j.parts : 1) * j.together * j.panel_size) * sizeof(uint16_t);
}

static bool stops(const job *j) {
    return j->p->stop && j->p->stop(j->p->stop_ctx);
}

/* Rounds and packs a panel of rows. */
static void pack_panel(const job *j, int64_t panel, uint16_t *to) {
    sni_product_part parts[SNI_PRODUCT_PARTS];
    int64_t lines = j->k / SNI_LEFT_STEPS, some;
    int rows = j->p->rows(j->p->ctx, panel).count;
    for (int64_t line = 0; line < lines; line += some) {
        some = sni_min(LINES_AT_ONCE, lines - line);
        int count = j->p->left(j->p->ctx, panel, line, some, parts);
        j->kernels->left(rows, count, parts, to);
        to += some / 2 * j->kernels->rows * SNI_BF16_TERMS;
    }
}

/* Fetches where a tile's results go: its rows may be far apart. */
static void fetch_results(const job *j, const sni_product_place *place) {
    sni_product_end end;
    if (place->columns < sni_cpu_kernels_get()->nr) return;
    j->p->end(j->p->ctx, place, &end);
    for (int i = 0; i < place->rows.count; i++) {
        __builtin_prefetch(end.y + i * end.row, 1);
        __builtin_prefetch(end.y + i * end.row + end.vector, 1);
    }
}

/* Sums of the tiles of some panels of rows. */
typedef struct tile_sums {
    _Alignas(64) float of[PANELS_TOGETHER][SNI_PRODUCT_ROWS * SNI_MAX_NR];
} tile_sums;

/* `count` panels of rows from `panel` on, packed at `a`, times a panel of columns: by one k-block
 * of it after the other, each of which stays near for all of them. */
static void run_tiles(const job *j, int64_t panel, int64_t count, const uint16_t *a,
                      int64_t strip) {
    int nr = sni_cpu_kernels_get()->nr;
    sni_product_place places[PANELS_TOGETHER];
    tile_sums sums;
    for (int64_t i = 0; i < count; i++) {
        places[i] = (sni_product_place){.rows = j->p->rows(j->p->ctx, panel + i),
                                        .column = strip * nr,
                                        .columns = sni_min(nr, j->n - strip * nr),
                                        .first = true,
                                        .last = true};
    }
    for (int64_t p = 0; p < j->k; p += j->depth) {
        int64_t kc = sni_min(j->depth, j->k - p);
        const uint16_t *b = sni_half_panel(j->b, j->n, nr, p, kc, strip * nr);
        bool last = p + kc == j->k;
        for (int64_t i = 0; i < count; i++) {
            if (last) fetch_results(j, &places[i]);
            j->kernels->tile(places[i].rows.count, kc, a + i * j->panel_size + p * j->kernels->rows,
                             b, p > 0, sums.of[i]);
            if (last) j->p->finish(j->p->ctx, &places[i], sums.of[i]);
        }
    }
}

/* Panels of rows that are packed at `a`, times a panel of columns. */
static void run_strip(const job *j, int64_t first, int64_t count, const uint16_t *a,
                      int64_t strip) {
    for (int64_t i = 0; i < count; i += PANELS_TOGETHER)
        run_tiles(j, first + i, sni_min(PANELS_TOGETHER, count - i), a + i * j->panel_size, strip);
}

/* ---- Threads that take rows ---- */

static void run_rows(const job *j, int64_t part) {
    int64_t end = (part + 1) * j->p->panels / j->parts, count;
    uint16_t *a = j->scratch + part * j->together * j->panel_size;
    for (int64_t first = part * j->p->panels / j->parts; first < end; first += count) {
        count = sni_min(j->together, end - first);
        for (int64_t i = 0; i < count; i++) pack_panel(j, first + i, a + i * j->panel_size);
        for (int64_t strip = 0; strip < j->strips; strip++) {
            if (stops(j)) return;
            run_strip(j, first, count, a, strip);
        }
    }
}

static void run_row_parts(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    for (int64_t part = begin; part < end; part++) run_rows(j, part);
    if (j->kernels->end) j->kernels->end();
}

/* ---- Threads that take columns ---- */

/* Panels of rows that are packed. */
typedef struct block {
    const job *j;
    int64_t first, count;
} block;

static void pack_some(void *ctx, int64_t begin, int64_t end) {
    const block *b = ctx;
    for (int64_t i = begin; i < end; i++)
        pack_panel(b->j, b->first + i, b->j->scratch + i * b->j->panel_size);
}

static void run_column_parts(void *ctx, int64_t begin, int64_t end) {
    const block *b = ctx;
    const job *j = b->j;
    for (int64_t part = begin; part < end; part++)
        for (int64_t strip = part * j->strips / j->parts; strip < (part + 1) * j->strips / j->parts;
             strip++) {
            if (stops(j)) break;
            run_strip(j, b->first, b->count, j->scratch, strip);
        }
    if (j->kernels->end) j->kernels->end();
}

void sni_bf16_run(const sni_product *p, const sni_half_b *b, int64_t k, int64_t n, int threads,
                  void *scratch) {
    job j;
    set_up(&j, p, k, n, threads);
    j.b = b;
    j.scratch = scratch;
    if (j.by_rows) {
        sni_parallel_for(j.parts, j.parts, 1, run_row_parts, &j);
        return;
    }
    for (int64_t first = 0; first < p->panels && !stops(&j); first += j.together) {
        block now = {&j, first, sni_min(j.together, p->panels - first)};
        sni_parallel_for(j.parts, now.count, 1, pack_some, &now);
        sni_parallel_for(j.parts, j.parts, 1, run_column_parts, &now);
    }
}
