/* conv.isa.c - the convolution kernels of one instruction-set tier; see tier.isa.c. */
#include "cpu/conv/conv.h"
#include "cpu/core/simd.h"

#include "cpu/core/finish.h"

#include "cpu/conv/direct/conv_tile.inc.c"

#include "cpu/conv/direct/conv_strip.inc.c"

#if LANES == 16
#include "cpu/conv/direct/conv_half.inc.c"
#endif

#define WIDE 1
#define STRIP_NAME blocked
#define LISTED_STRIP false
#include "cpu/conv/direct/conv_strip_fns.inc.c"
#undef STRIP_NAME
#undef LISTED_STRIP
#define STRIP_NAME indirect
#define LISTED_STRIP true
#include "cpu/conv/direct/conv_strip_fns.inc.c"
#undef STRIP_NAME
#undef LISTED_STRIP
#define STEP_NAME blocked_1
#define STEP BLOCK
#include "cpu/conv/direct/conv_tile_fns.inc.c"
#undef STEP_NAME
#undef STEP
#define STEP_NAME blocked_2
#define STEP (2 * BLOCK)
#include "cpu/conv/direct/conv_tile_fns.inc.c"
#undef STEP_NAME
#undef STEP
#define STEP_NAME indirect
#define STEP LISTED
#include "cpu/conv/direct/conv_tile_fns.inc.c"
#undef STEP_NAME
#undef STEP
#undef WIDE
#define WIDE 0
#define STEP_NAME plain_1
#define STEP 1
#include "cpu/conv/direct/conv_tile_fns.inc.c"
#undef STEP_NAME
#undef STEP
#define STEP_NAME plain_2
#define STEP 2
#include "cpu/conv/direct/conv_tile_fns.inc.c"
#undef STEP_NAME
#undef STEP
#define STEP_NAME any
#define STEP 0
#include "cpu/conv/direct/conv_tile_fns.inc.c"
#undef STEP_NAME
#undef STEP
#undef WIDE

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

extern const sni_conv_kernels PASTE(sni_conv_kernels_, TIER);

const sni_conv_kernels PASTE(sni_conv_kernels_, TIER) = {
#if LANES == 16
    .pixels = {0, 14, 14, 9, 7},
    .half = halves,
#elif LANES == 8
    .pixels = {0, 12, 6, 4},
#else
    .pixels = {0, 6},
#endif
    .tile = {[SNI_CONV_BLOCKED_1] = conv_blocked_1_allxtiles,
             [SNI_CONV_BLOCKED_2] = conv_blocked_2_allxtiles,
             [SNI_CONV_LISTED] = conv_indirect_allxtiles,
             [SNI_CONV_PLAIN_1] = conv_plain_1_allxtiles,
             [SNI_CONV_PLAIN_2] = conv_plain_2_allxtiles,
             [SNI_CONV_ANY] = conv_any_allxtiles},
    .strip = {strip_blocked_allxtiles, strip_indirect_allxtiles},
};
