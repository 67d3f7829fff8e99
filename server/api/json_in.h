/* json_in.h - JSON input: a strict pull reader over text in memory, without a tree.
 *
 *     srv_json_in in;
 *     srv_json_open(&in, text, size, arena, err);
 *     srv_json_object(&in);
 *     while (srv_json_member(&in, &key)) {
 *         if (sni_str_is(key, "id")) srv_json_string(&in, &id);
 *         else srv_json_skip(&in);
 *     }
 *     status = srv_json_close(&in);
 *
 * The first failure is kept in `status` and every later call does nothing and returns false, so
 * loops end. Values are read in place: numbers and strings without escapes cost no copy. */
#ifndef SRV_API_JSON_IN_H
#define SRV_API_JSON_IN_H

#include "base/arena.h"
#include "server/util.h"

#define SRV_JSON_DEPTH 32 /* arrays and objects that may be open at once, unless said otherwise */
#define SRV_JSON_MAX_DEPTH 1000 /* that may be said */
#define SRV_JSON_NUMBER 400     /* characters of one number */

typedef struct srv_json_in {
    const char *start, *at, *end; /* *end must be readable and NUL */
    sn_status status;
    sn_error *err;
    sni_arena *arena;     /* for strings with escapes */
    int depth, max_depth; /* open now; that may be */
    bool first;           /* no member of the innermost array or object was read yet */
} srv_json_in;

typedef enum srv_json_kind {
    SRV_JSON_NONE, /* the end, or a failure */
    SRV_JSON_NULL,
    SRV_JSON_BOOL,
    SRV_JSON_NUMBER_KIND,
    SRV_JSON_STRING,
    SRV_JSON_ARRAY,
    SRV_JSON_OBJECT
} srv_json_kind;

/* `text` is followed by a NUL, and both live as long as the reader and what it returns; strings
 * with escapes go to `arena`. */
void srv_json_open(srv_json_in *in, const char *text, size_t size, sni_arena *arena, sn_error *err);
/* Sets how deep arrays and objects may nest, SRV_JSON_MAX_DEPTH at most. */
void srv_json_limit_depth(srv_json_in *in, uint64_t depth);
/* The outcome of everything; fails if text is left. */
sn_status srv_json_close(srv_json_in *in);
/* Keeps a failure at this place. */
sn_status srv_json_fail(srv_json_in *in, const char *fmt, ...) SNI_PRINTF(2, 3);

/* What comes next, without reading it. */
srv_json_kind srv_json_peek(srv_json_in *in);

/* Enters an array or object. Then srv_json_element or srv_json_member says whether there is
 * another; when they return false at the end, they have left it. */
bool srv_json_array(srv_json_in *in);
bool srv_json_object(srv_json_in *in);
bool srv_json_element(srv_json_in *in);
bool srv_json_member(srv_json_in *in, sni_str *key);

bool srv_json_string(srv_json_in *in, sni_str *out);
bool srv_json_bool(srv_json_in *in, bool *out);
bool srv_json_null(srv_json_in *in);
bool srv_json_int(srv_json_in *in, int64_t *out);   /* whole, in range */
bool srv_json_uint(srv_json_in *in, uint64_t *out); /* the same */
/* Rounded to nearest; false when the number is too large for the type. */
bool srv_json_double(srv_json_in *in, double *out);
bool srv_json_float(srv_json_in *in, float *out);
/* Reads any value and forgets it. */
bool srv_json_skip(srv_json_in *in);

#endif
