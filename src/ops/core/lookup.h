/* lookup.h - a hash index from keys to their positions in a list. */
#ifndef SNI_OPS_CORE_LOOKUP_H
#define SNI_OPS_CORE_LOOKUP_H

#include "ops/core/op.h"

/* Keys are borrowed: strings, int64 or double. Of equal keys the first counts. NaN equals NaN. */
typedef struct sni_lookup {
    sn_dtype kind; /* SN_STRING, SN_INT64 or SN_FLOAT64 */
    const void *keys;
    size_t count;
    int32_t *slots; /* position + 1; 0: free */
    size_t mask;
} sni_lookup;

/* Builds the index in the arena. */
sn_status sni_lookup_make(sni_lookup *l, sn_dtype kind, const void *keys, size_t count,
                          sni_arena *arena, sn_error *err);

/* Position of a key of the lookup's kind; -1: it is not there. */
int64_t sni_lookup_find(const sni_lookup *l, const void *key);

/* Position of element i of a tensor: strings, or numbers brought to the lookup's kind (a number
 * that is no integer is not in a list of integers). -1 also when the kinds do not go together. */
int64_t sni_lookup_element(const sni_lookup *l, const sni_tensor *t, int64_t i);

#endif
