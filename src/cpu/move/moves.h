/* moves.h - loops that move elements by their width, compiled once per instruction-set tier. Tables
 * are indexed by the logarithm of the width in bytes: 1, 2, 4, 8. */
#ifndef SNI_CPU_MOVE_MOVES_H
#define SNI_CPU_MOVE_MOVES_H

#include "ops/core/elementwise.h"
#include "ops/nn/resize.h"
#include "ops/attention/rotary.h"

enum { SNI_MOVE_WIDTHS = 4 };

typedef struct sni_moves {
    /* z = c ? a : b; c are bools. */
    sni_ternary_fn choose[SNI_MOVE_WIDTHS];
    /* to[j * to_step + i] = from[i * from_step + j] for i < rows and j < columns. */
    void (*transpose[SNI_MOVE_WIDTHS])(const void *from, int64_t from_step, int64_t rows,
                                       int64_t columns, void *to, int64_t to_step);
    sni_resize_hooks resize;
    sni_rotary_hooks rotary;
} sni_moves;

/* Those of the tier in force. */
const sni_moves *sni_moves_get(void);

/* The tables' `turn` by width; false: there is none. */
bool sni_move_transpose(size_t width, const void *from, int64_t from_step, int64_t rows,
                        int64_t columns, void *to, int64_t to_step);

/* Index into the tables; -1: elements of another width. */
static inline int sni_move_index(size_t width) {
    return width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : width == 8 ? 3 : -1;
}

#endif
