/* moves.h - loops that move elements: the kernels of one tier. Tables are indexed by the logarithm
 * of the element width in bytes: sni_move_index(). */
#ifndef SNI_CPU_MOVE_MOVES_H
#define SNI_CPU_MOVE_MOVES_H

#include "cpu/core/dispatch.h"
#include "ops/core/elementwise.h"
#include "ops/nn/resize.h"
#include "ops/attention/rotary.h"

enum { SNI_MOVE_WIDTHS = 4 };

struct sni_moves {
    /* z = c ? a : b; c are bools. */
    sni_ternary_fn choose[SNI_MOVE_WIDTHS];
    /* to[j * to_step + i] = from[i * from_step + j] for i < rows and j < columns. */
    void (*transpose[SNI_MOVE_WIDTHS])(const void *from, int64_t from_step, int64_t rows,
                                       int64_t columns, void *to, int64_t to_step);
    sni_resize_hooks resize;
    sni_rotary_hooks rotary;
};

/* sni_moves.transpose for elements of `width` bytes. False, with nothing done, if the width is not
 * 1, 2, 4 or 8. */
bool sni_move_transpose(size_t width, const void *from, int64_t from_step, int64_t rows,
                        int64_t columns, void *to, int64_t to_step);

/* The index of a width of 1, 2, 4 or 8 bytes; -1 for any other. */
static inline int sni_move_index(size_t width) {
    return width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : width == 8 ? 3 : -1;
}

#endif
