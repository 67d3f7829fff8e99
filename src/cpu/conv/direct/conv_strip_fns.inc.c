/* conv_strip_fns.inc.c - the strips of one kind: STRIP_NAME and INDIRECT_STRIP are set by who
 * includes it. */

#define NAME_(kind, width, pixels) strip_##kind##_##width##x##pixels
#define NAME(kind, width, pixels) NAME_(kind, width, pixels)
#define TILE(width, pixels)                                                              \
    static void NAME(STRIP_NAME, width, pixels)(const sni_conv_tile *t, int64_t tiles) { \
        conv_strip(t, tiles, INDIRECT_STRIP, pixels, width);                             \
    }
#include "cpu/conv/direct/conv_tile_list.inc.c"
#undef TILE

static const sni_conv_strip_fn NAME(STRIP_NAME, all,
                                    tiles)[SNI_CONV_MOST_WIDTH + 1][SNI_CONV_MOST_PIXELS + 1] = {
#define TILE(width, pixels) [width][pixels] = NAME(STRIP_NAME, width, pixels),
#include "cpu/conv/direct/conv_tile_list.inc.c"
#undef TILE
};
#undef NAME_
#undef NAME
#undef STRIP_NAME
#undef INDIRECT_STRIP
