/* tier.isa.c - all vector kernels of one instruction-set tier. Compiled once per tier with that
 * tier's flags and TIER set to its name; everything but the table is static. */
#include "cpu/core/kernels.h"
#include "cpu/core/simd.h"

#include "cpu/gemm/gemm_tile.inc.c"

#include "cpu/gemm/gemm_unpacked.inc.c"

#include "cpu/gemm/strassen.inc.c"

#include "cpu/core/transpose.inc.c"

#include "cpu/core/math.inc.c"

#include "cpu/core/act.inc.c"

#include "cpu/reduce/rows.inc.c"

#include "cpu/elementwise/map.inc.c"

#include "cpu/attention/attend.inc.c"

#include "cpu/core/peak.inc.c"

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

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

extern const sni_conv_kernels PASTE(sni_conv_kernels_, TIER);
extern const sni_wino_kernels PASTE(sni_wino_kernels_, TIER);
extern const sni_depthwise_kernels PASTE(sni_depthwise_kernels_, TIER);
extern const sni_rnn_kernels PASTE(sni_rnn_kernels_, TIER);
extern const sni_tree_kernels PASTE(sni_tree_kernels_, TIER);
extern const sni_nms_kernels PASTE(sni_nms_kernels_, TIER);
extern const sni_inner_product_kernels PASTE(sni_inner_product_kernels_, TIER);
extern const sni_blocked_kernels PASTE(sni_blocked_kernels_, TIER);
extern const sni_cpu_kernels PASTE(sni_cpu_kernels_, TIER);

const sni_cpu_kernels PASTE(sni_cpu_kernels_, TIER) = {
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
    .map =
        {
#define SNI_ACT(name) [SNI_ACT_##name] = map_##name,
#include "cpu/core/act.def"
#undef SNI_ACT
        },
    .binary =
        {
#define SNI_BINARY(name) [SNI_BINARY_##name] = binary_##name,
#include "cpu/core/binary.def"
#undef SNI_BINARY
        },
    .choose_row = choose_row,
    .from_bools = from_bools,
    .from_int32 = from_int32,
    .from_int64 = from_int64,
    .to_bools = to_bools,
    .softmax_row = softmax_row,
    .log_softmax_row = log_softmax_row,
    .lanes = LANES,
    .softmax_columns = softmax_columns,
    .moments = moments,
    .normalize_row = normalize_row,
    .scale_row = scale_row,
    .attend_weigh = attend_weigh,
    .attend_row = attend_row,
    .dot_rows = dot_rows,
    .weigh_rows = weigh_rows,
    .attend_sum = attend_sum,
    .axpy = axpy,
    .chain_flops = 2 * CHAINS * LANES,
    .fma_chain = fma_chain,
    .read_sum = read_sum,
    .conv = &PASTE(sni_conv_kernels_, TIER),
    .wino = &PASTE(sni_wino_kernels_, TIER),
    .depthwise = &PASTE(sni_depthwise_kernels_, TIER),
    .rnn = &PASTE(sni_rnn_kernels_, TIER),
    .trees = &PASTE(sni_tree_kernels_, TIER),
    .nms = &PASTE(sni_nms_kernels_, TIER),
    .inner_product = &PASTE(sni_inner_product_kernels_, TIER),
    .blocked = &PASTE(sni_blocked_kernels_, TIER),
};
