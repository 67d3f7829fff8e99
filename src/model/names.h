/* names.h - a hash table from names to values, for the scopes of a model being imported.
 *
 * The hash is keyed anew in each process, so that a file cannot be made whose names collide. */
#ifndef SNI_MODEL_NAMES_H
#define SNI_MODEL_NAMES_H

#include "base/status.h"
#include "base/str.h"

#include <stdint.h>

typedef struct sni_name {
    sni_str key;   /* p NULL: a free slot */
    int32_t value; /* what the key stands for */
    int32_t order; /* the position of its definition */
    uint64_t hash;
} sni_name;

typedef struct sni_names { /* zero is an empty table */
    sni_name *slots;
    size_t capacity, count;
} sni_names;

/* NULL: not there. Valid until the next add. */
const sni_name *sni_names_find(const sni_names *names, sni_str key);

/* Adds a key that is not there yet. Its text must outlive the table. */
sn_status sni_names_add(sni_names *names, sni_str key, int32_t value, int32_t order, sn_error *err);

void sni_names_free(sni_names *names); /* leaves an empty table */

#endif
