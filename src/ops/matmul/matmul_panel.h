/* matmul_panel.h - sizes that blocks of a matrix product have whatever their tiles are, for
 * matmul_core.inc.c and its driver. */
#ifndef SNI_OPS_MATMUL_MATMUL_PANEL_H
#define SNI_OPS_MATMUL_MATMUL_PANEL_H

#include "ops/matmul/matmul_core.h"
#include "ops/core/typed.h"

#include <string.h>

enum {
    PANEL_COLS = 64,   /* columns of a block of C */
    PANEL_STRIDE = 72, /* of the panel's rows: keeps them out of each other's cache sets */
    PANEL_BYTES = 72 * 1024,
    FEW_ROWS = 3, /* at most so many rows are computed without a panel */
};

/* Before a loop whose count is a constant: all of it is laid out. */
#if defined(__clang__)
#define SNI_ALL_ROUNDS _Pragma("clang loop unroll(full)")
#else
#define SNI_ALL_ROUNDS _Pragma("GCC unroll 16")
#endif

#endif
