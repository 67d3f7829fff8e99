/* lowbit.c - rows, panels and threads around the tiles of products with weights of few bits. */
#include "cpu/lowbit/lowbit.h"

#include "base/checked.h"
#include "base/lengths.h"
#include "base/threadpool.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    COLUMNS = SNI_LOWBIT_COLUMNS,
    ALIGN = 64,
    SMALL_WORK = 1 << 17, /* multiply-accumulates that are not worth a second thread */
    BLOCK_BYTES = 1 << 18 /* of panels that all rows meet before the next ones */
};

int sni_lowbit_height(int rows) {
    static const int heights[] = {1, 2, 4, 8, SNI_LOWBIT_ROWS};
    int i = 0;
    while (heights[i] < rows) i++;
    return heights[i];
}

/* ---- Rows of A ---- */

/* Bytes of the parts of a tile's left side. */
typedef struct left_sizes {
    size_t elements, numbers, tile; /* of A; of scales, and of sums; of all */
} left_sizes;

static bool left_size(const sni_lowbit *w, int slices, int rows, left_sizes *s) {
    size_t depth, size = slices ? (size_t)slices : sizeof(float);
    if (!sni_mul_size((size_t)w->blocks, (size_t)w->block, &depth) ||
        !sni_mul_size(depth, (size_t)rows * size, &s->elements) || s->elements > SIZE_MAX / 8)
        return false;
    s->elements = (s->elements + ALIGN - 1) / ALIGN * ALIGN;
    s->numbers = ((size_t)(w->blocks * rows) * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
    s->tile = s->elements + (slices ? 1 + (size_t)slices : 0) * s->numbers;
    return true;
}

/* The tile's parts in `memory`. */
static sni_lowbit_left left_of(const left_sizes *s, int slices, int rows, void *memory) {
    uint8_t *at = memory;
    sni_lowbit_left left = {.rows = rows, .slices = slices};
    void *numbers = at + s->elements, *sums = at + s->elements + s->numbers;
    if (slices) {
        left.a = memory;
        left.scale = numbers;
        left.start = sums;
    } else {
        left.floats = memory;
    }
    return left;
}

/* Block b of a row of A, filled up with zeros. */
static void read_block(const sni_lowbit *w, const float *row, int64_t b, float *to) {
    const int64_t from = b * w->block, count = sni_min(w->block, w->k - from);
    if (!w->order) {
        memcpy(to, row + from, (size_t)count * sizeof *to);
        memset(to + count, 0, (size_t)(w->block - count) * sizeof *to);
        return;
    }
    for (int64_t p = 0; p < w->block; p++) {
        int32_t at = w->order[from + p];
        to[p] = at >= 0 && at < w->k ? row[at] : 0;
    }
}

/* Row r of a tile as bytes; false: it has numbers that bytes cannot stand for. */
static bool put_bytes(const sni_lowbit *w, const float *row, int r, const sni_lowbit_left *left) {
    const sni_lowbit_kernels *kernels = sni_lowbit_kernels_get();
    int32_t *a = (int32_t *)(uintptr_t)left->a, *start = (int32_t *)(uintptr_t)left->start;
    int32_t q[SNI_LOWBIT_SLICES * SNI_LOWBIT_BLOCK / 4], sum[SNI_LOWBIT_SLICES];
    float *to_scale = (float *)(uintptr_t)left->scale, x[SNI_LOWBIT_BLOCK];
    const int slices = left->slices, all = slices * left->rows;
    const int64_t units = w->block / 4;
    const int32_t times = w->zero == SNI_LOWBIT_BYTES ? -1 : -(1 << (w->bits - 1));
    bool fits = true;
    for (int64_t b = 0; b < w->blocks; b++, a += units * all) {
        read_block(w, row, b, x);
        float scale = (slices == 1 ? kernels->quantize : kernels->quantize_split)(x, w->block,
                                                                                  (int8_t *)q, sum);
        fits &= scale == scale;
        to_scale[b * left->rows + r] = scale;
        for (int s = 0; s < slices; s++) {
            start[(b * slices + s) * left->rows + r] = sum[s] * times;
            for (int64_t u = 0; u < units; u++) a[u * all + s * left->rows + r] = q[s * units + u];
        }
    }
    return fits;
}

/* What a row of floats is multiplied by, so that products with weights before they are scaled do
 * not overflow. */
static float row_factor(const float *row, int64_t n) {
    bool huge = false;
    for (int64_t i = 0; i < n; i++) huge |= fabsf(row[i]) > 0x1p60f && fabsf(row[i]) <= FLT_MAX;
    return huge ? 0x1p-40f : 1;
}

/* Row r of a tile as floats, times `factor`. */
static void put_floats(const sni_lowbit *w, const float *row, float factor, int r,
                       const sni_lowbit_left *left) {
    float *a = (float *)(uintptr_t)left->floats, x[SNI_LOWBIT_BLOCK];
    for (int64_t b = 0; b < w->blocks; b++) {
        read_block(w, row, b, x);
        for (int64_t p = 0; p < w->block; p++)
            a[(b * w->block + p) * left->rows + r] = x[p] * factor;
    }
}

/* ---- Tiles ---- */

typedef struct product {
    const sni_lowbit_call *c;
    const sni_lowbit_kernels *kernels;
    int slices;          /* of bytes; 0: floats */
    int64_t first, rows; /* of A and C */
    int64_t tiles;
    left_sizes size; /* of a whole tile */
    uint8_t *left;   /* of all tiles */
    uint8_t *wide;   /* rows of A that have to be multiplied as floats: 1 */
    float *factors;  /* of rows of A that are floats */
    int64_t parts;   /* the tiles are dealt out to, beside panels */
} product;

static int64_t tile_rows(const product *p, int64_t tile) {
    return sni_min(p->kernels->rows, p->rows - tile * p->kernels->rows);
}

static sni_lowbit_left tile_left(const product *p, int64_t tile) {
    int height = sni_lowbit_height((int)tile_rows(p, tile));
    left_sizes size = {0};
    left_size(p->c->w, p->slices, height, &size);
    return left_of(&size, p->slices, height, p->left + (size_t)tile * p->size.tile);
}

static void make_left(void *ctx, int64_t begin, int64_t end) {
    const product *p = ctx;
    const sni_lowbit *w = p->c->w;
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t from = p->first + tile * p->kernels->rows, rows = tile_rows(p, tile);
        sni_lowbit_left left = tile_left(p, tile);
        for (int r = 0; r < left.rows; r++) { /* rows that are not there are the last again */
            int64_t i = from + sni_min(r, rows - 1);
            const float *row = p->c->a + i * w->k;
            if (!p->slices) {
                p->factors[i] = row_factor(row, w->k);
                put_floats(w, row, p->factors[i], r, &left);
            } else if (!put_bytes(w, row, r, &left)) {
                p->wide[i] = 1;
            }
        }
    }
}

/* One tile's sums and one panel's columns to C. */
static void finish(const product *p, int64_t tile, int64_t panel, float *y) {
    const sni_lowbit *w = p->c->w;
    int64_t j = panel * COLUMNS, count = sni_min(COLUMNS, w->n - j), rows = tile_rows(p, tile);
    int64_t first = p->first + tile * p->kernels->rows;
    float *c = p->c->c + first * w->n + j;
    for (int64_t r = 0; r < rows; r++, c += w->n, y += COLUMNS) {
        float factor = p->slices ? 1 : p->factors[first + r];
        for (int64_t i = 0; factor != 1 && i < count; i++) y[i] /= factor;
        if (p->c->bias)
            for (int64_t i = 0; i < count; i++) c[i] = y[i] + p->c->bias[j + i];
        else
            memcpy(c, y, (size_t)count * sizeof *c);
    }
}

static void run_tiles(const product *p, int64_t t0, int64_t t1, int64_t j0, int64_t j1) {
    const sni_lowbit *w = p->c->w;
    const sni_lowbit_tile_fn tile = p->slices > 1 ? p->kernels->split
                                    : p->slices   ? p->kernels->bytes
                                                  : p->kernels->floats;
    float y[SNI_LOWBIT_ROWS * COLUMNS];
    int64_t at_once = sni_max(1, (int64_t)(BLOCK_BYTES / w->panel_bytes));
    for (int64_t j = j0; j < j1; j += at_once)
        for (int64_t t = t0; t < t1; t++) {
            sni_lowbit_left left = tile_left(p, t);
            if (p->c->stop && p->c->stop(p->c->stop_ctx)) return;
            for (int64_t i = j; i < sni_min(j1, j + at_once); i++) {
                const uint8_t *panel = w->panels + (size_t)i * w->panel_bytes;
                tile(w, panel, &left, y);
                finish(p, t, i, y);
            }
        }
}

/* Items [begin, end): panels of the first part of the tiles, those of the next one, ... */
static void run_items(void *ctx, int64_t begin, int64_t end) {
    const product *p = ctx;
    int64_t panels = sni_lowbit_panels(p->c->w);
    while (begin < end) {
        int64_t part = begin / panels, j = begin % panels;
        int64_t count = sni_min(end - begin, panels - j);
        run_tiles(p, p->tiles * part / p->parts, p->tiles * (part + 1) / p->parts, j, j + count);
        begin += count;
    }
}

static void run_product(product *p) {
    const sni_lowbit *w = p->c->w;
    enum { FEW_PANELS = 8 }; /* for each thread */
    int64_t panels = sni_lowbit_panels(w), threads = p->c->threads > 0 ? p->c->threads : 1;
    p->parts = panels < FEW_PANELS * threads ? sni_min(p->tiles, threads) : 1;
    double work = (double)w->k * COLUMNS * (double)sni_ceil_div(p->rows, p->parts);
    int64_t grain = work < SMALL_WORK ? (int64_t)(SMALL_WORK / work) : 1;
    sni_parallel_for(p->c->threads, p->tiles, sni_max(1, SMALL_WORK / w->k), make_left, p);
    sni_parallel_for(p->c->threads, panels * p->parts, grain, run_items, p);
}

/* ---- The product ---- */

typedef struct memory {
    size_t tile, left; /* bytes of a tile's left side, and of all */
    size_t row;        /* of a single row of floats */
    size_t wide, factors;
} memory;

/* Few rows of floats meet weights as fast as those come from memory only if they are split into
 * bytes. Many rows would do more work so than as floats. */
static int slices_of(const sni_lowbit_call *c) {
    const sni_lowbit *w = c->w;
    if (c->bytes) return 1;
    bool split = c->m <= SNI_LOWBIT_SPLIT && w->bits <= sni_lowbit_kernels_get()->split_bits;
    return split && !w->codes ? SNI_LOWBIT_SLICES : 0;
}

static bool memory_of(const sni_lowbit_call *c, memory *out) {
    int most = sni_lowbit_kernels_get()->rows;
    left_sizes tile, row;
    size_t all, marks;
    int64_t tiles = sni_ceil_div(c->m, most);
    int rows = sni_lowbit_height((int)sni_min(c->m, most)), slices = slices_of(c);
    if (!left_size(c->w, slices, rows, &tile) || !left_size(c->w, false, 1, &row) ||
        !sni_mul_size(tile.tile, (size_t)tiles, &out->left))
        return false;
    out->tile = tile.tile;
    out->row = slices ? row.tile : 0;
    out->wide = (size_t)sni_round_up(c->m, ALIGN);
    out->factors = out->wide * sizeof(float);
    return sni_mul_size(out->wide, 1 + sizeof(float), &marks) &&
           sni_add_size(out->left, out->row, &all) && sni_add_size(all, marks, &all);
}

size_t sni_lowbit_scratch_size(const sni_lowbit_call *c) {
    memory m;
    return memory_of(c, &m) ? m.left + m.row + m.wide + m.factors : 0;
}

/* Columns whose scales are not finite or huge, by whole elements. */
static void run_plain(void *ctx, int64_t begin, int64_t end) {
    const sni_lowbit_call *c = ctx;
    const sni_lowbit *w = c->w;
    const int64_t depth = w->order ? w->blocks * w->block : w->k;
    for (int64_t j = begin; j < end; j++) {
        if (!w->plain[j]) continue;
        for (int64_t i = 0; i < c->m; i++) {
            const float *a = c->a + i * w->k;
            float sum = 0;
            if (c->stop && c->stop(c->stop_ctx)) return;
            for (int64_t p = 0; p < depth; p++) {
                int64_t from = w->order ? w->order[p] : p;
                if (from >= 0 && from < w->k) sum += a[from] * sni_lowbit_element(w, j, p);
            }
            c->c[i * w->n + j] = c->bias ? sum + c->bias[j] : sum;
        }
    }
}

void sni_lowbit_run(const sni_lowbit_call *c, void *scratch) {
    const sni_lowbit_kernels *kernels = sni_lowbit_kernels_get();
    memory sizes;
    if (c->m < 1 || !memory_of(c, &sizes)) return;
    uint8_t *at = scratch, *marks = at + sizes.left + sizes.row;
    product p = {.c = c,
                 .kernels = kernels,
                 .slices = slices_of(c),
                 .rows = c->m,
                 .tiles = sni_ceil_div(c->m, kernels->rows),
                 .size = {.tile = sizes.tile},
                 .left = at,
                 .wide = marks,
                 .factors = (void *)(marks + sizes.wide)};
    memset(p.wide, 0, sizes.wide);
    run_product(&p);
    for (int64_t i = 0; p.slices && i < c->m; i++) {
        if (!p.wide[i]) continue;
        product row = p;
        row.slices = 0;
        row.first = i;
        row.rows = row.tiles = 1;
        row.left = at + sizes.left;
        run_product(&row);
    }
    sni_parallel_for(c->threads, c->w->n, 4096, run_plain, (void *)(uintptr_t)c);
}
