/* kv_cache.h - caches of keys and values, (batches, kv_heads, rows, size), that attention operators
 * append to. A tensor that is both the past and the present cache is appended to in place. */
#ifndef SNI_OPS_ATTENTION_KV_CACHE_H
#define SNI_OPS_ATTENTION_KV_CACHE_H

#include "ops/attention/attention_core.h"

/* Bytes or elements that a row of `size` numbers takes in a cache of type `stored`, which is what
 * sni_heads says; SN_UNDEFINED: elements. */
static inline int64_t sni_kv_units(sn_dtype stored, int64_t size) {
    return stored == SN_UINT8 ? (size + 1) / 2 : size;
}

/* Which scales a cache of integers has; the order of choices of an attribute. */
typedef enum sni_kv_quant { SNI_KV_PLAIN, SNI_KV_PER_TENSOR, SNI_KV_PER_CHANNEL } sni_kv_quant;
#define SNI_KV_QUANT_TYPES .text = "NONE", .choices = "NONE|PER_TENSOR|PER_CHANNEL"

/* The scales at `input` for each element of each head, as sni_heads has them; untouched if the
 * cache is plain. */
sn_status sni_kv_scales(sni_kernel *k, const sni_attention *a, int input, sni_kv_quant quant,
                        const float **out);

/* A row of floats in a type that sni_heads can have. `scale` (n) is that of integers: those are
 * rounded to nearest even, and saturate; a scale of 0 counts as 1. */
void sni_kv_store(sn_dtype stored, const float *scale, const float *row, int64_t n, void *to);

/* Row s of batch b's head h, as floats. */
void sni_kv_load(const sni_heads *h, int64_t b, int64_t head, int64_t s, int64_t n, float *to);

/* Makes *h, keys or values of `size` elements in a cache, plain, in scratch. */
sn_status sni_kv_expand(sni_kernel *k, const sni_attention *a, int64_t size, sni_heads *h);

typedef struct sni_cache {
    const void *past;
    int64_t past_rows;
    void *present; /* NULL: in scratch */
    int64_t rows;
    sn_dtype stored; /* as in sni_heads */
    const float *scale;
} sni_cache;

/* Puts used[b] rows of the past, then the `fresh` new ones that *h tells, into the present cache,
 * and 0 behind them; *h then tells where those are. used[b] is at most past_rows, and used[b] +
 * fresh at most `rows`. If past and present are the same memory, only the new rows are written, and
 * 0 behind them as far as the attention reads. */
sn_status sni_attention_join(sni_kernel *k, const sni_attention *a, const sni_cache *c,
                             const int64_t *used, int64_t fresh, int64_t size, sni_heads *h);

/* What is appended to a cache: `fresh` rows of `size` elements after used[b] of the past ones, for
 * each batch b. The present cache has `rows` rows. */
typedef struct sni_append {
    int64_t rows;
    const int64_t *used;
    int64_t fresh, size;
    const float *scale; /* (kv_heads, size): of a cache of integers */
} sni_append;

/* sni_attention_join() with tensors: `past` may be NULL, and so may `present`, an output. Does
 * nothing if both are. */
sn_status sni_attention_join_tensors(sni_kernel *k, const sni_attention *a, const sni_tensor *past,
                                     sni_tensor *present, const sni_append *append, sni_heads *h);

/* For a cache of *past rows that are all in use, *rows becomes those with `fresh` new ones. If
 * `given` (one element) tells how many are in use, *past becomes that, and *rows the rows there
 * are; SN_BAD_DATA if the new ones do not fit. */
sn_status sni_attention_past(sni_kernel *k, const sni_tensor *given, int64_t fresh, int64_t *past,
                             int64_t *rows);

/* An array of n elements that are all v. */
sn_status sni_same_i64(sni_kernel *k, int64_t n, int64_t v, const int64_t **out);

/* Length of the cache at input i, (batch, heads, length, size); 0 if it is not given. */
sn_status sni_infer_cache(sni_infer *c, int i, sni_dim batch, sni_dim heads, sni_dim size,
                          sni_dim *length);

#endif
