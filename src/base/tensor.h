/* tensor.h - values at run time: tensors, sequences and maps, and the memory they stand on.
 *
 * A tensor's elements are dense, row-major, and take sni_dtype_width() bytes each (types under 8
 * bits take a whole byte here). `data` is owned by `buffer` if that is set and borrowed if not:
 * from the plan's arena, a weight or the caller. String elements are sni_str whose text lives at
 * least as long as the run. */
#ifndef SNI_BASE_TENSOR_H
#define SNI_BASE_TENSOR_H

#include "base/dtype.h"
#include "base/status.h"

#include <stdatomic.h>

#define SNI_ALIGN 64 /* of every buffer and planned tensor, in bytes */

/* Bytes that may be in use at once. One budget serves all threads of a run. */
typedef struct sni_budget {
    atomic_size_t used;
    size_t limit; /* 0: none */
} sni_budget;

/* Takes `bytes` of the budget, or fails with SN_LIMIT and takes nothing. NULL is no limit. */
sn_status sni_budget_take(sni_budget *budget, size_t bytes, sn_error *err);
/* Gives back what was taken. NULL is fine. Both are thread-safe. */
void sni_budget_give(sni_budget *budget, size_t bytes);

/* Memory with a reference count. `budget`, if set, gets `bytes` back when the last one goes. */
typedef struct sni_buffer {
    atomic_int refs;
    size_t bytes;
    size_t mapped; /* bytes of pages of its own that it is in; 0: it is on the heap */
    size_t size;   /* there, as base/buffer_cache.h has it; 0: a plain block, */
    size_t lead;   /* so many bytes of which come before it */
    sni_budget *budget;
    _Alignas(SNI_ALIGN) unsigned char data[];
} sni_buffer;

/* A buffer with one reference; not zero-filled. */
sn_status sni_buffer_new(size_t bytes, sni_budget *budget, sni_buffer **out, sn_error *err);
/* The same on pages of its own (base/pages.h), for large memory that stays. */
sn_status sni_buffer_new_mapped(size_t bytes, sni_budget *budget, sni_buffer **out, sn_error *err);
/* One more reference, one less: the last one frees it. NULL is fine. Thread-safe. */
sni_buffer *sni_buffer_retain(sni_buffer *buffer);
void sni_buffer_release(sni_buffer *buffer);

typedef struct sni_tensor {
    sn_dtype dtype;
    int rank;
    int64_t count; /* elements: the product of dims */
    int64_t dims[SN_MAX_RANK];
    void *data;
    sni_buffer *buffer; /* NULL: borrowed */
} sni_tensor;

/* Sets type and shape, leaving data alone. SN_LIMIT if the shape is negative or too large. */
sn_status sni_tensor_shape(sni_tensor *t, sn_dtype dtype, int rank, const int64_t *dims,
                           sn_error *err);

/* Bytes of the elements in run-time memory. */
static inline size_t sni_tensor_bytes(const sni_tensor *t) {
    return (size_t)t->count * sni_dtype_width(t->dtype);
}

/* Type, shape and fresh memory of its own (not zero-filled, but strings are made empty). */
sn_status sni_tensor_new(sni_tensor *t, sn_dtype dtype, int rank, const int64_t *dims,
                         sni_budget *budget, sn_error *err);

/* Product of dims[from, to). */
int64_t sni_tensor_span(const sni_tensor *t, int from, int to);

typedef struct sni_sequence sni_sequence;
typedef struct sni_map sni_map;

/* Any value. NONE is an optional that holds nothing. */
typedef struct sni_datum {
    sn_kind kind;
    sni_tensor tensor; /* TENSOR */
    sni_sequence *seq; /* SEQUENCE: never NULL then */
    sni_map *map;      /* MAP: never NULL then */
} sni_datum;

/* Immutable once it can be seen by a second holder. */
struct sni_sequence {
    atomic_int refs;
    sn_dtype dtype; /* element type of its tensors, known even when it is empty; may be UNDEFINED */
    size_t count;
    sni_datum items[];
};

struct sni_map {
    atomic_int refs;
    sni_datum keys;   /* 1-D int64 or string tensor */
    sni_datum values; /* 1-D tensor, or sequence, of equal length */
};

/* A sequence of `count` NONE items with one reference. */
sn_status sni_sequence_new(size_t count, sn_dtype dtype, sni_sequence **out, sn_error *err);
/* A map of NONE keys and values with one reference. */
sn_status sni_map_new(sni_map **out, sn_error *err);

/* Drops what the datum holds and makes it NONE. Borrowed memory is left alone. */
void sni_datum_clear(sni_datum *d);

/* Makes `dst` (which must hold nothing) a holder of its own of what `src` holds: by reference
 * where the memory is counted, by a copy where it is borrowed. */
sn_status sni_datum_share(sni_datum *dst, const sni_datum *src, sni_budget *budget, sn_error *err);

#endif
