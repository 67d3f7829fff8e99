/* conv_rows.h - rows of the table of convolution algorithms by name. */
#ifndef CONV_ROWS_H
#define CONV_ROWS_H

#include "unit.h"

#include "cpu/conv/conv_algorithms.h"

static inline const sni_impl *conv_row(const char *op, const char *name) {
    const sni_impl *row = sni_cpu_convolutions;
    while (row->op && (strcmp(row->op, op) != 0 || strcmp(row->name, name) != 0)) row++;
    if (!row->op) fail_msg("no row %s of %s", name, op);
    return row;
}

#endif
