/* tier.isa.c - the kernels that matrix products and convolutions share, for one tier: GEMM tiles,
 * packing, epilogues; and sni_cpu_kernels, the tier's table, which also points to the tables of the
 * modules. */
#include "cpu/core/finish.h"
#include "cpu/core/kernels.h"
#include "cpu/core/transpose.h"

#include "cpu/gemm/gemm_core.inc.c"

/* ---- GEMM tiles of packed B, and products of one row ---- */

#define TILE(rows)                                                                                 \
    static void tile_##rows(int64_t k, const float *a, const float *b, const float *sums,          \
                            float *c, int64_t c_row, bool add, float *apart, const float *fetch,   \
                            int64_t lines) {                                                       \
        tile(rows, k, left_packed(a), (tile_right){.b = b, .vectors = NV}, c, c_row, add, sums,    \
             apart, fetch, lines);                                                                 \
    }                                                                                              \
    static void half_##rows(int64_t k, const float *a, const float *b, const float *sums,          \
                            float *c, int64_t c_row, bool add, float *apart, const float *fetch,   \
                            int64_t lines) {                                                       \
        tile(rows, k, left_packed(a), (tile_right){.b = b, .vectors = NV / 2}, c, c_row, add,      \
             sums, apart, fetch, lines);                                                           \
    }                                                                                              \
    static void strided_##rows(int64_t k, const float *a, int64_t a_row, const float *b, float *c, \
                               int64_t c_row, bool add, float *apart, const float *fetch,          \
                               int64_t lines) {                                                    \
        tile(rows, k, left_strided(rows, a, a_row), (tile_right){.b = b, .vectors = NV}, c, c_row, \
             add, NULL, apart, fetch, lines);                                                      \
    }                                                                                              \
    static void strided_half_##rows(int64_t k, const float *a, int64_t a_row, const float *b,      \
                                    float *c, int64_t c_row, bool add, float *apart,               \
                                    const float *fetch, int64_t lines) {                           \
        tile(rows, k, left_strided(rows, a, a_row), (tile_right){.b = b, .vectors = NV / 2}, c,    \
             c_row, add, NULL, apart, fetch, lines);                                               \
    }                                                                                              \
    static void less_##rows(int64_t k, const float *a, const float *b, const float *less,          \
                            const float *sums, float *c, int64_t c_row, float *apart,              \
                            const float *fetch, int64_t lines) {                                   \
        tile(rows, k, left_packed(a),                                                              \
             (tile_right){.b = b, .vectors = NV, .minus = true, .less = less - b}, c, c_row,       \
             false, sums, apart, fetch, lines);                                                    \
    }
#include "cpu/gemm/gemm_sizes.inc.c"
#undef TILE

enum { WAYS = 4 }; /* steps of k that gemm_row adds up apart */

/* One row of C: A's row is read where it lies. Each of WAYS steps has sums of its own, so that
 * additions need not wait for each other. */
static void gemm_row(int64_t k, const float *restrict a, const float *restrict b, float *restrict c,
                     bool add) {
    vf sum[WAYS][NV];
    UNROLL
    for (int w = 0; w < WAYS; w++) UNROLL
    for (int j = 0; j < NV; j++) sum[w][j] = splat(0);
    int64_t p = 0;
    for (; p + WAYS <= k; p += WAYS, b += WAYS * NR) {
        UNROLL
        for (int w = 0; w < WAYS; w++) {
            vf x = splat(a[p + w]);
            UNROLL
            for (int j = 0; j < NV; j++) sum[w][j] += x * load(b + w * NR + j * LANES);
        }
    }
    for (; p < k; p++, b += NR) {
        vf x = splat(a[p]);
        UNROLL
        for (int j = 0; j < NV; j++) sum[0][j] += x * load(b + j * LANES);
    }
    UNROLL
    for (int j = 0; j < NV; j++) {
        vf total = sum[0][j];
        UNROLL
        for (int w = 1; w < WAYS; w++) total += sum[w][j];
        store(c + j * LANES, add ? load(c + j * LANES) + total : total);
    }
}

/* ---- Products of operands that are read where they lie: nothing is packed ---- */

#define INLINE inline __attribute__((always_inline))

/* ---- Both along k ---- */

enum { MOST_DOT_SUMS = LANES == 16 ? 24 : 12 }; /* that registers have room for */

/* Rows that are taken at once with so many columns. */
static INLINE int rows_at_once(int cols) {
    const int rows = MOST_DOT_SUMS / cols;
    return rows < 8 ? rows : 8;
}

/* Rows of C from row i on. `rows` and `cols` are constants at every call. */
static INLINE void dot_tile(const sni_unpacked_product *x, int64_t i, int rows, int cols) {
    const int64_t k = x->k, a_row = x->a_row, b_col = x->b_col;
    const float *a = x->a + i * a_row, *b = x->b;
    vf sum[MOST_DOT_SUMS];
    UNROLL
    for (int s = 0; s < rows * cols; s++) sum[s] = splat(0);
    int64_t p = 0;
    for (; p + LANES <= k; p += LANES) {
        vf left[8];
        UNROLL
        for (int r = 0; r < rows; r++) left[r] = load(a + r * a_row + p);
        UNROLL
        for (int j = 0; j < cols; j++) {
            vf right = load(b + j * b_col + p);
            UNROLL
            for (int r = 0; r < rows; r++) add_product(&sum[r * cols + j], left[r], right);
        }
    }
    if (p < k) {
        UNROLL
        for (int j = 0; j < cols; j++) {
            vf right = load_some(b + j * b_col + p, k - p, 0);
            UNROLL
            for (int r = 0; r < rows; r++)
                sum[r * cols + j] += load_some(a + r * a_row + p, k - p, 0) * right;
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) UNROLL
    for (int j = 0; j < cols; j++) {
        float *at = x->c + (i + r) * x->c_row + j * x->c_col, total = sum_lanes(sum[r * cols + j]);
        *at = x->add ? *at + total : total;
    }
}

#define DOTS(cols)                                                      \
    case cols:                                                          \
        for (; i + rows_at_once(cols) <= x->m; i += rows_at_once(cols)) \
            dot_tile(x, i, rows_at_once(cols), cols);                   \
        for (; i < x->m; i++) dot_tile(x, i, 1, cols);                  \
        break;

static void gemm_dots(const sni_unpacked_product *x) {
    int64_t i = 0;
    switch (x->n) {
        DOTS(1)
        DOTS(2)
        DOTS(3)
        DOTS(4)
        DOTS(5)
        DOTS(6)
        DOTS(7)
        DOTS(8)
    }
}
#undef DOTS

/* ---- B along n ---- */

enum { MOST_ACROSS = LANES == 16 ? 8 : 4 }; /* rows that are taken at once */

/* Rows of C from row i and some vectors of columns from column j on, the last of which is one of
 * `last` elements; 0: a whole one. Sums are those of a tile of packed operands, in the same order.
 * `rows` and `vectors` are constants at every call, and so is `last` where it is 0. */
static INLINE void across_tile(const sni_unpacked_product *x, int64_t i, int64_t j, int rows,
                               int vectors, int64_t last) {
    const bool whole = last == 0, add = x->add;
    const int64_t k = x->k, a_row = x->a_row, a_col = x->a_col, b_row = x->b_row;
    const float *a = x->a + i * a_row, *b = x->b + j;
    vf sum[MOST_ACROSS][4];
    UNROLL
    for (int r = 0; r < rows; r++) UNROLL
    for (int v = 0; v < vectors; v++) sum[r][v] = splat(0);
    for (int64_t p = 0; p < k; p++, a += a_col, b += b_row) {
        vf right[4];
        UNROLL
        for (int v = 0; v < vectors; v++)
            right[v] =
                whole || v < vectors - 1 ? load(b + v * LANES) : load_some(b + v * LANES, last, 0);
        UNROLL
        for (int r = 0; r < rows; r++) {
            vf left = splat(a[r * a_row]);
            UNROLL
            for (int v = 0; v < vectors; v++) add_product(&sum[r][v], left, right[v]);
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) UNROLL
    for (int v = 0; v < vectors; v++) {
        float *at = x->c + (i + r) * x->c_row + j + v * LANES;
        if (whole || v < vectors - 1)
            store(at, add ? load(at) + sum[r][v] : sum[r][v]);
        else
            store_some(at, last, add ? load_some(at, last, 0) + sum[r][v] : sum[r][v]);
    }
}

/* All columns of some rows, a constant number of them. */
static INLINE void across(const sni_unpacked_product *x, int64_t i, int rows) {
    const int wide = rows > 2 ? 2 : 4; /* enough sums that they need not wait for each other */
    const int64_t n = x->n;
    int64_t j = 0;
    for (; j + wide * LANES <= n; j += wide * LANES) across_tile(x, i, j, rows, wide, 0);
    if (wide > 2 && j + 2 * LANES <= n) {
        across_tile(x, i, j, rows, 2, 0);
        j += 2 * LANES;
    }
    if (j + LANES < n)
        across_tile(x, i, j, rows, 2, n - j - LANES);
    else if (j + LANES == n)
        across_tile(x, i, j, rows, 1, 0);
    else if (j < n)
        across_tile(x, i, j, rows, 1, n - j);
}

static void gemm_across(const sni_unpacked_product *x) {
    int64_t i = 0;
#define ROWS(count) \
    for (; i + count <= x->m; i += count) across(x, i, count)
    if (MOST_ACROSS == 8) ROWS(8);
    ROWS(4);
    ROWS(2);
    ROWS(1);
#undef ROWS
}

/* One row of C, to which so many rows of B from row p on are added at once, each read from end to
 * end. */
static INLINE void add_rows(const sni_unpacked_product *x, int64_t p, int count) {
    const bool add = x->add || p > 0;
    const int64_t n = x->n, b_row = x->b_row;
    const float *b = x->b + p * b_row;
    float *c = x->c;
    vf left[8];
    UNROLL
    for (int r = 0; r < count; r++) left[r] = splat(x->a[(p + r) * x->a_col]);
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        vf sum = add ? load(c + j) : splat(0);
        UNROLL
        for (int r = 0; r < count; r++) add_product(&sum, left[r], load(b + r * b_row + j));
        store(c + j, sum);
    }
    if (j == n) return;
    vf sum = add ? load_some(c + j, n - j, 0) : splat(0);
    UNROLL
    for (int r = 0; r < count; r++) sum += left[r] * load_some(b + r * b_row + j, n - j, 0);
    store_some(c + j, n - j, sum);
}

static void gemm_along(const sni_unpacked_product *x) {
    int64_t p = 0;
    for (; p + 8 <= x->k; p += 8) add_rows(x, p, 8);
    for (; p < x->k; p++) add_rows(x, p, 1);
}

#undef INLINE

/* ---- Packing: memory to panels that tiles read; all of it limited by stores ---- */

/* Loads the first `columns` elements of `count` rows, zeros everywhere else, and transposes. */
static inline void load_transposed(const sni_unaligned_float *from, int64_t step, int64_t count,
                                   int64_t columns, vf r[LANES]) {
    static const float zeros[LANES];
    if (columns >= LANES) {
        UNROLL
        for (int i = 0; i < LANES; i++) r[i] = load(i < count ? from + i * step : zeros);
    } else {
        UNROLL
        for (int i = 0; i < LANES; i++)
            r[i] = i < count ? load_some(from + i * step, columns, 0) : splat(0);
    }
    transpose_block(r);
}

/* to[p * width + i] = from[i * step + p] for p < k and i < count <= LANES. `room` columns may be
 * written at each p; those from `count` on become zeros. */
static void pack_transposed_group(const sni_unaligned_float *from, int64_t step, int64_t count,
                                  int64_t room, int width, int64_t k, float *to) {
    int64_t p = 0;
    for (; p + LANES <= k; p += LANES) {
        vf r[LANES];
        load_transposed(from + p, step, count, LANES, r);
        /* A store may overlap the next p, which is written later; not beyond the last one. */
        bool whole = room >= LANES || p + LANES < k;
        if (whole) {
            UNROLL
            for (int q = 0; q < LANES; q++) store(to + (p + q) * width, r[q]);
        } else {
            UNROLL
            for (int q = 0; q < LANES; q++) store_some(to + (p + q) * width, room, r[q]);
        }
    }
    for (; p < k; p++) {
        for (int64_t i = 0; i < count; i++) to[p * width + i] = from[i * step + p];
        for (int64_t i = count; i < room && i < LANES; i++) to[p * width + i] = 0;
    }
}

static void pack_transposed(const sni_unaligned_float *from, int64_t step, int64_t count, int width,
                            int64_t k, float *to) {
    for (int64_t i = 0; i < width; i += LANES) {
        int64_t here = count - i < 0 ? 0 : count - i < LANES ? count - i : LANES;
        pack_transposed_group(here ? from + i * step : from, step, here, width - i, width, k,
                              to + i);
    }
}

/* A block of transpose_matrix at an edge. */
static void transpose_edge(const sni_unaligned_float *from, int64_t from_step, int64_t rows,
                           int64_t columns, float *to, int64_t to_step) {
    vf r[LANES];
    load_transposed(from, from_step, rows, columns, r);
    for (int q = 0; q < LANES && q < columns; q++) {
        if (rows >= LANES)
            store(to + q * to_step, r[q]);
        else
            store_some(to + q * to_step, rows, r[q]);
    }
}

static void transpose_matrix(const sni_unaligned_float *from, int64_t from_step, int64_t rows,
                             int64_t columns, float *to, int64_t to_step) {
    for (int64_t i = 0; i < rows; i += LANES) {
        int64_t j = 0;
        for (; i + LANES <= rows && j + LANES <= columns; j += LANES) {
            vf r[LANES];
            UNROLL
            for (int q = 0; q < LANES; q++) r[q] = load(from + (i + q) * from_step + j);
            transpose_block(r);
            UNROLL
            for (int q = 0; q < LANES; q++) store(to + (j + q) * to_step + i, r[q]);
        }
        for (; j < columns; j += LANES)
            transpose_edge(from + i * from_step + j, from_step, rows - i, columns - j,
                           to + j * to_step + i, to_step);
    }
}

static void pack_left(const sni_unaligned_float *from, int64_t step, int64_t count, int64_t k,
                      float *to) {
    for (int64_t p = 0; p < k; p += SNI_LEFT_STEPS, from += SNI_LEFT_STEPS) {
        const sni_unaligned_float *x = from;
        float *end = to + count * SNI_LEFT_STEPS, *last = to + MR * SNI_LEFT_STEPS;
        if (k - p >= SNI_LEFT_STEPS) {
            for (; to < end; to += SNI_LEFT_STEPS, x += step) {
                UNROLL
                for (int i = 0; i < SNI_LEFT_STEPS; i += LANES) store(to + i, load(x + i));
            }
        } else {
            for (; to < end; to += SNI_LEFT_STEPS, x += step)
                for (int64_t i = 0; i < SNI_LEFT_STEPS; i++) to[i] = i < k - p ? x[i] : 0;
        }
        for (; to < last; to += LANES) store(to, splat(0));
    }
}

static void pack_straight(const sni_unaligned_float *from, int64_t k_step, int64_t count, int width,
                          int64_t k, float *to) {
    if (count == width && width % LANES == 0) {
        for (int64_t p = 0; p < k; p++, from += k_step, to += width)
            for (int i = 0; i < width; i += LANES) store(to + i, load(from + i));
        return;
    }
    for (int64_t p = 0; p < k; p++, from += k_step, to += width) {
        for (int64_t i = 0; i < width; i += LANES) {
            vf v = i + LANES <= count ? load(from + i)
                   : i < count        ? load_some(from + i, count - i, 0)
                                      : splat(0);
            /* A store may overlap the next row, which is written later. */
            if (i + LANES <= width || p + 1 < k)
                store(to + i, v);
            else
                store_some(to + i, width - i, v);
        }
    }
}

/* ---- Epilogues ---- */

static void finish_tile(const sni_epilogue *e, const float *sums, bool add, float *y, int64_t y_row,
                        int64_t i, int64_t rows, int64_t j, int64_t columns) {
    finishers[e->act](&(ending){.p0 = e->p0,
                                .p1 = e->p1,
                                .from = sums ? sums : y,
                                .from_row = sums ? NR : y_row,
                                .add = sums && add,
                                .y = y,
                                .y_row = y_row,
                                .rows = rows,
                                .n = columns,
                                .row_bias = e->row_bias ? e->row_bias + i : NULL,
                                .columns = e->column_bias ? e->column_bias + j : NULL,
                                .more = e->residual ? e->residual + i * e->residual_row + j : NULL,
                                .more_row = e->residual_row,
                                .row_slopes = e->row_slopes ? e->row_slopes + i : NULL,
                                .column_slopes = e->column_slopes ? e->column_slopes + j : NULL});
}

static void axpy(float w, const float *x, float *y, int64_t n) {
    vf weight = splat(w);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, load(y + i) + weight * load(x + i));
    for (; i < n; i++) y[i] += w * x[i];
}

/* ---- The table ---- */

extern const sni_map_kernels SNI_TIERED(sni_map_kernels);
extern const sni_row_kernels SNI_TIERED(sni_row_kernels);
extern const sni_attend_kernels SNI_TIERED(sni_attend_kernels);
extern const sni_conv_kernels SNI_TIERED(sni_conv_kernels);
extern const sni_wino_kernels SNI_TIERED(sni_wino_kernels);
extern const sni_depthwise_kernels SNI_TIERED(sni_depthwise_kernels);
extern const sni_rnn_kernels SNI_TIERED(sni_rnn_kernels);
extern const sni_tree_kernels SNI_TIERED(sni_tree_kernels);
extern const sni_nms_kernels SNI_TIERED(sni_nms_kernels);
extern const sni_inner_product_kernels SNI_TIERED(sni_inner_product_kernels);
extern const sni_strassen_kernels SNI_TIERED(sni_strassen_kernels);
extern const sni_blocked_kernels SNI_TIERED(sni_blocked_kernels);

SNI_DEFINE_TABLE(sni_cpu_kernels) = {
    .block = LANES == 16 ? 16 : 8,
    .mr = MR,
    .nr = NR,
    .kc = KC,
#define TILE(rows)                                                        \
    .gemm_tile[rows] = tile_##rows, .gemm_half[rows] = half_##rows,       \
    .gemm_less[rows] = less_##rows, .gemm_strided[rows] = strided_##rows, \
    .gemm_strided_half[rows] = strided_half_##rows,
#include "cpu/gemm/gemm_sizes.inc.c"
#undef TILE
    .gemm_dots = gemm_dots,
    .gemm_across = gemm_across,
    .gemm_along = gemm_along,
    .gemm_row = gemm_row,
    .pack_left = pack_left,
    .pack_transposed = pack_transposed,
    .pack_straight = pack_straight,
    .transpose_matrix = transpose_matrix,
    .finish_row = finish_row,
    .finish_tile = finish_tile,
    .lanes = LANES,
    .axpy = axpy,
    .maps = &SNI_TIERED(sni_map_kernels),
    .rows = &SNI_TIERED(sni_row_kernels),
    .attend = &SNI_TIERED(sni_attend_kernels),
    .conv = &SNI_TIERED(sni_conv_kernels),
    .wino = &SNI_TIERED(sni_wino_kernels),
    .depthwise = &SNI_TIERED(sni_depthwise_kernels),
    .rnn = &SNI_TIERED(sni_rnn_kernels),
    .trees = &SNI_TIERED(sni_tree_kernels),
    .nms = &SNI_TIERED(sni_nms_kernels),
    .inner_product = &SNI_TIERED(sni_inner_product_kernels),
    .strassen = &SNI_TIERED(sni_strassen_kernels),
    .blocked = &SNI_TIERED(sni_blocked_kernels),
};
