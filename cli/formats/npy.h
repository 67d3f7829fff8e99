/* npy.h - numpy's .npy format, versions 1 to 3. */
#ifndef CLI_FORMATS_NPY_H
#define CLI_FORMATS_NPY_H

#include "cli/cli.h"

#include <stdio.h>

/* A tensor from the bytes of a .npy file: numbers, bool, complex, and strings ('S' as bytes, 'U'
 * as UTF-8), either byte order, C or Fortran order. Owned. */
sn_status cli_npy_read(const char *bytes, size_t size, sn_value **out, sn_error *err);

/* The type in which a tensor of `dtype` is written: numpy lacks the narrow floats (float32) and
 * the integers under 8 bits (int8, uint8). */
sn_dtype cli_npy_dtype(sn_dtype dtype);

/* Writes a tensor as .npy 1.0; strings must be UTF-8 without NUL. */
sn_status cli_npy_write(const sn_value *tensor, FILE *stream, sn_error *err);

#endif
