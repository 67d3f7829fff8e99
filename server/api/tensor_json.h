/* tensor_json.h - tensors as JSON arrays, read straight into their memory and written from it. */
#ifndef SRV_API_TENSOR_JSON_H
#define SRV_API_TENSOR_JSON_H

#include "server/api/json_in.h"
#include "server/api/json_out.h"
#include "server/engine/request.h"

/* Reads an array, nested in any way, whose elements are exactly those of `input`, which has its
 * memory. NaN and infinities are the strings "NaN", "Infinity" and "-Infinity". */
bool srv_tensor_read(srv_json_in *in, srv_input *input);

/* Writes the elements as one flat array; those that JSON has no number for as the same strings. */
void srv_tensor_write(srv_json_out *out, const srv_output *output);

/* Whether a type can be read and written this way; others go in binary only. */
bool srv_tensor_has_json(sn_dtype dtype);

#endif
