/* conv_tile_fns.inc.c - the tiles of one distance of pixels: STEP_NAME, STEP (0: any) and WIDE (1:
 * up to SNI_CONV_MOST_WIDTH output blocks, 0: up to 2) are set by who includes it. */

#define NAME_(step, width, pixels) conv_##step##_##width##x##pixels
#define NAME(step, width, pixels) NAME_(step, width, pixels)
#define TILE(width, pixels)                                              \
    static void NAME(STEP_NAME, width, pixels)(const sni_conv_tile *t) { \
        conv_tile(t, STEP, pixels, width);                               \
    }
#include "cpu/conv/direct/conv_tile_list.inc.c"
#undef TILE

static const sni_conv_tile_fn NAME(STEP_NAME, all,
                                   tiles)[SNI_CONV_MOST_WIDTH + 1][SNI_CONV_MOST_PIXELS + 1] = {
#define TILE(width, pixels) [width][pixels] = NAME(STEP_NAME, width, pixels),
#include "cpu/conv/direct/conv_tile_list.inc.c"
#undef TILE
};
#undef NAME_
#undef NAME
#undef STEP_NAME
#undef STEP
