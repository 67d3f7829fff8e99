/* value.h - sn_value: what callers hold, and its way into and out of a run. */
#ifndef SNI_API_VALUE_H
#define SNI_API_VALUE_H

#include "base/arena.h"
#include "base/tensor.h"

/* A tensor's data is in ONNX's packed layout here (types under 8 bits share bytes); strings are
 * sni_str, each with memory of its own. */
struct sn_value {
    atomic_int refs; /* holders */
    sn_kind kind;
    sn_dtype dtype;
    int rank;
    int64_t dims[SN_MAX_RANK];
    size_t count;
    size_t bytes;          /* of data */
    void *data;            /* NULL for strings */
    sni_str *strings;      /* SN_STRING: count of them; each p is NULL or from malloc */
    sni_buffer *buffer;    /* owns data; NULL: the caller's memory */
    sn_release_fn release; /* for data that is the caller's; NULL: none */
    void *release_ctx;
    sn_value **items; /* SEQUENCE */
    size_t n_items;
    sn_value *keys, *values; /* MAP */
};

/* A view of a value (not NULL) for a run. Memory is borrowed where layout and alignment allow,
 * copied where not. `value` must stay as it is while the datum lives. The caller clears the datum;
 * after a failure there is nothing to clear. */
sn_status sni_value_to_datum(const sn_value *value, sni_datum *out, sn_error *err);

/* A value of its own from what a run made, for the caller to destroy. Takes over memory that nobody
 * else holds: the datum is only good to be cleared afterwards. */
sn_status sni_value_from_datum(sni_datum *datum, sn_value **out, sn_error *err);

#endif
