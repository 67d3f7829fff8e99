/* json_out.h - JSON output: commas and escapes are this file's business. */
#ifndef SRV_API_JSON_OUT_H
#define SRV_API_JSON_OUT_H

#include "server/util.h"

/* Values in a row are separated by commas; begin and end nest. */
typedef struct srv_json_out {
    srv_text *text; /* the caller's */
    bool comma;     /* a value was written on this level */
} srv_json_out;

void srv_json_begin(srv_json_out *out, char bracket); /* '{' or '[' */
void srv_json_end(srv_json_out *out, char bracket);   /* '}' or ']' */
void srv_json_key(srv_json_out *out, const char *key);
void srv_json_put_str(srv_json_out *out, sni_str value); /* bytes that are no UTF-8: U+FFFD */
void srv_json_put_string(srv_json_out *out, const char *value);
void srv_json_put_int(srv_json_out *out, int64_t value);
void srv_json_put_uint(srv_json_out *out, uint64_t value);
void srv_json_put_bool(srv_json_out *out, bool value);
void srv_json_put_double(srv_json_out *out, double value);  /* null when not finite */
void srv_json_put_raw(srv_json_out *out, const char *json); /* a value already written */

/* A key and its value. */
void srv_json_pair_string(srv_json_out *out, const char *key, const char *value);
void srv_json_pair_uint(srv_json_out *out, const char *key, uint64_t value);
void srv_json_pair_bool(srv_json_out *out, const char *key, bool value);

#endif
