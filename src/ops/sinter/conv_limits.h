/* conv_limits.h - sizes that decide between plain and blocked layout of a convolution. The layout
 * pass (opt/layout_ops.c) asks for the layout, and algorithms for plain tensors (cpu/conv) take
 * what it leaves to them: both go by these. */
#ifndef SNI_OPS_SINTER_CONV_LIMITS_H
#define SNI_OPS_SINTER_CONV_LIMITS_H

#include "base/lengths.h"

#include <stdbool.h>

enum {
    /* Of so few channels before and after it, and at least so wide, a convolution is quickest on
     * plain rows: blocks would be mostly empty. */
    SNI_ROWS_MAX_IN = 2,
    SNI_ROWS_MAX_OUT = 4,
    SNI_ROWS_MIN_WIDTH = 64,
    /* Weights of an output, and of all, up to which sums of rows along a line are quickest. */
    SNI_ROWS_MAX_TAPS = 1024,
    SNI_ROWS_MAX_WEIGHTS = 1 << 14,
    /* Kernels for blocked output read so few channels of plain input. */
    SNI_PLAIN_MAX_IN = 7
};

/* At most a quarter of the blocks of so many input channels is empty: zeros are summed, too. */
static inline bool sni_fills_input_blocks(int64_t channels, int64_t block) {
    return 4 * channels >= 3 * sni_round_up(channels, block);
}

/* Output channels fill half of a block at least: half of the sums, at most, are of no use. */
static inline bool sni_fills_output_block(int64_t channels, int64_t block) {
    return 2 * channels >= block;
}

/* True for a convolution along a line whose weights, (out, taps of all channels of a group), are
 * few enough for sums of rows, which need no copies. */
static inline bool sni_rows_take(int64_t out, int64_t taps) {
    return taps <= SNI_ROWS_MAX_TAPS && out * taps <= SNI_ROWS_MAX_WEIGHTS;
}

#endif
