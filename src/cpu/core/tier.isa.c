/* tier.isa.c - the kernels that matrix products and convolutions share, for one tier: GEMM tiles,
 * packing, epilogues; and sni_cpu_kernels, the tier's table, which also points to the tables of the
 * modules. */
#include "cpu/core/finish.h"
#include "cpu/core/kernels.h"
#include "cpu/core/transpose.h"

#include "cpu/gemm/gemm_tile.inc.c"

#include "cpu/gemm/gemm_unpacked.inc.c"

#include "cpu/gemm/strassen.inc.c"

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

/* ---- What the machine can do at best (cpu/core/machine.c) ---- */

enum { CHAINS = 12 }; /* independent sums: at least latency times multiply-add units of any CPU */

/* `rounds` times CHAINS vectors of multiply-add. The result only keeps the compiler from dropping
 * the loop. */
static float fma_chain(int64_t rounds) {
    vf sums[CHAINS];
    vf a = splat(0.999f), b = splat(0.5f);
    UNROLL
    for (int i = 0; i < CHAINS; i++) sums[i] = splat((float)i);
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL
        for (int i = 0; i < CHAINS; i++) sums[i] = sums[i] * a + b;
    }
    vf total = sums[0];
    UNROLL
    for (int i = 1; i < CHAINS; i++) total += sums[i];
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += total[i];
    return sum;
}

/* The sum of n floats, a multiple of 4 vectors. */
static float read_sum(const float *x, int64_t n) {
    vf sums[4] = {{0}};
    for (int64_t i = 0; i + 4 * LANES <= n; i += 4 * LANES) {
        UNROLL
        for (int j = 0; j < 4; j++) sums[j] += load(x + i + j * LANES);
    }
    vf total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += total[i];
    return sum;
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
    .strassen_left = strassen_left,
    .column_sizes = column_sizes,
    .pack_left = pack_left,
    .pack_transposed = pack_transposed,
    .pack_straight = pack_straight,
    .transpose_matrix = transpose_matrix,
    .finish_row = finish_row,
    .finish_tile = finish_tile,
    .lanes = LANES,
    .axpy = axpy,
    .chain_flops = 2 * CHAINS * LANES,
    .fma_chain = fma_chain,
    .read_sum = read_sum,
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
    .blocked = &SNI_TIERED(sni_blocked_kernels),
};
