/* codes.c - how a request can end, and the protocol's names of element types. */
#include "server/api/codes.h"

static const struct {
    const char *name, *reason;
    int http, grpc;
} codes[] = {
#define SRV_CODE(name, http, reason, grpc) {#name, reason, http, grpc},
#include "server/api/codes.def"
#undef SRV_CODE
};

int srv_code_http(srv_code code) {
    return codes[code].http;
}

const char *srv_code_reason(srv_code code) {
    return codes[code].reason;
}

int srv_code_grpc(srv_code code) {
    return codes[code].grpc;
}

const char *srv_code_name(srv_code code) {
    return codes[code].name;
}

srv_code srv_code_of(sn_status status) {
    switch (status) {
    case SN_OK:
        return SRV_OK;
    case SN_INVALID_ARGUMENT:
    case SN_MALFORMED:
    case SN_BAD_DATA:
        return SRV_INVALID;
    case SN_NOT_FOUND:
        return SRV_NOT_FOUND;
    case SN_UNSUPPORTED:
        return SRV_UNIMPLEMENTED;
    case SN_NO_MEMORY:
        return SRV_UNAVAILABLE;
    case SN_LIMIT:
        return SRV_TOO_LARGE;
    case SN_CANCELLED:
        return SRV_CANCELLED;
    case SN_TIMEOUT:
        return SRV_DEADLINE;
    default:
        return SRV_INTERNAL;
    }
}

static const struct {
    const char *name, *config_name;
} types[] = {
    [SN_FLOAT32] = {"FP32", "TYPE_FP32"},
    [SN_UINT8] = {"UINT8", "TYPE_UINT8"},
    [SN_INT8] = {"INT8", "TYPE_INT8"},
    [SN_UINT16] = {"UINT16", "TYPE_UINT16"},
    [SN_INT16] = {"INT16", "TYPE_INT16"},
    [SN_INT32] = {"INT32", "TYPE_INT32"},
    [SN_INT64] = {"INT64", "TYPE_INT64"},
    [SN_STRING] = {"BYTES", "TYPE_STRING"},
    [SN_BOOL] = {"BOOL", "TYPE_BOOL"},
    [SN_FLOAT16] = {"FP16", "TYPE_FP16"},
    [SN_FLOAT64] = {"FP64", "TYPE_FP64"},
    [SN_UINT32] = {"UINT32", "TYPE_UINT32"},
    [SN_UINT64] = {"UINT64", "TYPE_UINT64"},
    [SN_COMPLEX64] = {"COMPLEX64", "TYPE_COMPLEX64"},
    [SN_COMPLEX128] = {"COMPLEX128", "TYPE_COMPLEX128"},
    [SN_BFLOAT16] = {"BF16", "TYPE_BF16"},
    [SN_FLOAT8E4M3FN] = {"FLOAT8E4M3FN", "TYPE_FLOAT8E4M3FN"},
    [SN_FLOAT8E4M3FNUZ] = {"FLOAT8E4M3FNUZ", "TYPE_FLOAT8E4M3FNUZ"},
    [SN_FLOAT8E5M2] = {"FLOAT8E5M2", "TYPE_FLOAT8E5M2"},
    [SN_FLOAT8E5M2FNUZ] = {"FLOAT8E5M2FNUZ", "TYPE_FLOAT8E5M2FNUZ"},
    [SN_UINT4] = {"UINT4", "TYPE_UINT4"},
    [SN_INT4] = {"INT4", "TYPE_INT4"},
    [SN_FLOAT4E2M1] = {"FLOAT4E2M1", "TYPE_FLOAT4E2M1"},
    [SN_FLOAT8E8M0] = {"FLOAT8E8M0", "TYPE_FLOAT8E8M0"},
    [SN_UINT2] = {"UINT2", "TYPE_UINT2"},
    [SN_INT2] = {"INT2", "TYPE_INT2"},
};
#define TYPES (sizeof types / sizeof types[0])

const char *srv_type_name(sn_dtype dtype) {
    return (size_t)dtype < TYPES ? types[dtype].name : NULL;
}

const char *srv_type_config_name(sn_dtype dtype) {
    return (size_t)dtype < TYPES && types[dtype].config_name ? types[dtype].config_name
                                                             : "TYPE_INVALID";
}

sn_dtype srv_type_find(sni_str name) {
    for (size_t i = 1; i < TYPES; i++) {
        if (types[i].name && sni_str_is(name, types[i].name)) return (sn_dtype)i;
    }
    return SN_UNDEFINED;
}

sn_dtype srv_type_config_find(sni_str name) {
    for (size_t i = 1; i < TYPES; i++) {
        if (types[i].config_name && sni_str_is(name, types[i].config_name)) return (sn_dtype)i;
    }
    return SN_UNDEFINED;
}
