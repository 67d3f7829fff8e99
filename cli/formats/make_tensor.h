/* make_tensor.h - tensors from JSON arrays, raw bytes, other types and random numbers. */
#ifndef CLI_FORMATS_MAKE_TENSOR_H
#define CLI_FORMATS_MAKE_TENSOR_H

#include "cli/cli.h"

/* Element type and shape of a tensor to be made; -1 where a dimension follows from the data. */
typedef struct cli_tensor_type {
    sn_dtype dtype;
    int rank;
    const int64_t *dims;
} cli_tensor_type;

/* A tensor of `dtype` from nested JSON arrays of equal length (or one number). Numbers must fit
 * the type; NaN and infinities are the strings "NaN", "Infinity" and "-Infinity". Owned. */
sn_status cli_tensor_from_json(const char *bytes, size_t size, sn_dtype dtype, sn_value **out,
                               sn_error *err);

/* A tensor from bare bytes in the layout of a tensor's data. One dimension of -1 becomes what
 * the size asks for. Owned. */
sn_status cli_tensor_from_bytes(const char *bytes, size_t size, const cli_tensor_type *type,
                                sn_value **out, sn_error *err);

/* A copy in another type; every element must fit it. Owned. */
sn_status cli_tensor_convert(const sn_value *tensor, sn_dtype dtype, sn_value **out, sn_error *err);

/* Floating-point numbers from 0 to 1, integers and bools 0 or 1, empty strings. The same seed
 * gives the same numbers. Owned. */
sn_status cli_tensor_random(uint64_t seed, sn_dtype dtype, int rank, const int64_t *dims,
                            sn_value **out, sn_error *err);

#endif
