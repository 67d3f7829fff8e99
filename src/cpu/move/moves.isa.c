/* moves.isa.c - loops that move elements, compiled with a tier's flags; everything but the table is
 * static. */
#include "cpu/move/moves.h"

#include "cpu/core/simd.h"

#define ZIP_LOW_2 0, 2
#define ZIP_HIGH_2 1, 3
#define ZIP_LOW_4 0, 4, 1, 5
#define ZIP_HIGH_4 2, 6, 3, 7
#define ZIP_LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define ZIP_HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define ZIP_LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ZIP_HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

#include "cpu/move/pick.inc.c"
#include "cpu/reduce/places.inc.c"
#include "cpu/attention/rotate.inc.c"

typedef uint8_t bytes_16 __attribute__((vector_size(16)));
typedef uint16_t words_8 __attribute__((vector_size(16)));
typedef uint32_t vector_32 __attribute__((vector_size(4 * LANES)));
typedef uint64_t vector_64 __attribute__((vector_size(4 * LANES)));

#define T uint8_t
#define SUFFIX u8
#define V bytes_16
#define SIDE 16
#define ZIP_LOW ZIP_LOW_16
#define ZIP_HIGH ZIP_HIGH_16
#include "cpu/elementwise/choose.inc.c"
#include "cpu/move/transpose_block.inc.c"

#define T uint16_t
#define SUFFIX u16
#define V words_8
#define SIDE 8
#define ZIP_LOW ZIP_LOW_8
#define ZIP_HIGH ZIP_HIGH_8
#include "cpu/elementwise/choose.inc.c"
#include "cpu/move/transpose_block.inc.c"

#if LANES == 16
#define ZIP_LOW ZIP_LOW_16
#define ZIP_HIGH ZIP_HIGH_16
#elif LANES == 8
#define ZIP_LOW ZIP_LOW_8
#define ZIP_HIGH ZIP_HIGH_8
#else
#define ZIP_LOW ZIP_LOW_4
#define ZIP_HIGH ZIP_HIGH_4
#endif
#define T uint32_t
#define SUFFIX u32
#define V vector_32
#define SIDE LANES
#include "cpu/elementwise/choose.inc.c"
#include "cpu/move/transpose_block.inc.c"

#if LANES == 16
#define ZIP_LOW ZIP_LOW_8
#define ZIP_HIGH ZIP_HIGH_8
#elif LANES == 8
#define ZIP_LOW ZIP_LOW_4
#define ZIP_HIGH ZIP_HIGH_4
#else
#define ZIP_LOW ZIP_LOW_2
#define ZIP_HIGH ZIP_HIGH_2
#endif
#define T uint64_t
#define SUFFIX u64
#define V vector_64
#define SIDE (LANES / 2)
#include "cpu/elementwise/choose.inc.c"
#include "cpu/move/transpose_block.inc.c"

extern const sni_moves SNI_PASTE(sni_moves, TIER);

const sni_moves SNI_PASTE(sni_moves, TIER) = {
    .choose = {choose_u8, choose_u16, choose_u32, choose_u64},
    .transpose = {transpose_u8, transpose_u16, transpose_u32, transpose_u64},
    .rotary = {.halves = rotate_halves, .neighbours = rotate_neighbours},
    .resize = {.lanes = LANES,
               .pick = pick_row,
               .spread = spread_row,
               .sample = sample_row,
               .sample_pairs = sample_pairs,
               .weigh = weigh_places},
};
