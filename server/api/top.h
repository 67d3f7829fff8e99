/* top.h - the classification extension: the largest elements of each row with their indices. */
#ifndef SRV_API_TOP_H
#define SRV_API_TOP_H

#include "server/api/json_out.h"
#include "server/engine/request.h"

/* Whether an output can be ranked: a number type that is no complex, one dimension or more. */
bool srv_top_possible(const srv_output *output);
/* Its shape: that of the output with the last dimension cut to the number asked for. */
void srv_top_dims(const srv_output *output, int64_t *dims);
/* The strings "value:index", as JSON and in the protocol's binary form. */
void srv_top_write(srv_json_out *out, const srv_output *output);
void srv_top_binary(srv_text *out, const srv_output *output);

#endif
