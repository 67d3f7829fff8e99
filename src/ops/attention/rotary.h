/* rotary.h - rotary embedding: pairs of elements of each head are rotated by angles that grow with
 * the position. */
#ifndef SNI_OPS_ATTENTION_ROTARY_H
#define SNI_OPS_ATTENTION_ROTARY_H

#include "ops/attention/heads.h"

/* Turns `half` pairs of one head of float32; y may be x. */
typedef void (*sni_rotate_fn)(const void *x, const void *cosines, const void *sines, int64_t half,
                              void *y);

/* Set by an implementation (ops/core/kernel_hooks.h). */
typedef struct sni_rotary_hooks {
    sni_rotate_fn halves, neighbours; /* what a pair is: not interleaved, interleaved */
} sni_rotary_hooks;

typedef struct sni_rotary {
    sni_heads x, y;              /* y is written; it may be x */
    const void *cosines, *sines; /* (rows, rotated / 2) */
    const int64_t *ids; /* row of those for each position of each batch; NULL: its number */
    int64_t batches, heads, length, size;
    int64_t rotated; /* elements of a head that are rotated; the others are copied */
    bool interleaved;
    sni_rotate_fn hook; /* for FLOAT32; NULL: none */
} sni_rotary;

/* All of `dtype`, which is FLOAT32 or FLOAT64. */
void sni_rotate(int threads, sn_dtype dtype, const sni_rotary *r);

/* SN_BAD_DATA if one of n positions is outside a cache of `rows`. */
sn_status sni_rotary_check(sni_kernel *k, const int64_t *ids, int64_t n, int64_t rows);

#endif
