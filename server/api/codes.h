/* codes.h - how a request can end, in the words of every protocol; and the protocol's names of
 * element types. */
#ifndef SRV_API_CODES_H
#define SRV_API_CODES_H

#include "server/util.h"

typedef enum srv_code {
#define SRV_CODE(name, http, reason, grpc) SRV_##name,
#include "server/api/codes.def"
#undef SRV_CODE
    SRV_CODE_COUNT
} srv_code;

int srv_code_http(srv_code code);
const char *srv_code_reason(srv_code code); /* of the HTTP status */
int srv_code_grpc(srv_code code);
const char *srv_code_name(srv_code code); /* "NOT_FOUND" */

/* What a failure of the library means to whoever sent the request. */
srv_code srv_code_of(sn_status status);

/* "FP32", "INT64", "BYTES" ...; types without a name in the protocol have the library's in capitals
 * (such as "FLOAT8E5M2"). Static storage; NULL for a number that is no type. */
const char *srv_type_name(sn_dtype dtype);
/* The inverse, SN_UNDEFINED when there is none. */
sn_dtype srv_type_find(sni_str name);
/* "TYPE_FP32", "TYPE_STRING": as model configurations write it. */
const char *srv_type_config_name(sn_dtype dtype);
sn_dtype srv_type_config_find(sni_str name);

#endif
