/* min_keys.h - finding the least keys of a row, compiled once per instruction-set tier. A key is a
 * signed integer of 32 or 64 bits that rises in the order of the result. */
#ifndef SNI_CPU_SELECT_MIN_KEYS_H
#define SNI_CPU_SELECT_MIN_KEYS_H

#include "base/dtype.h"
#include "cpu/core/dispatch.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sni_min_key_fns {
    /* The least key of each group, whose members stand `groups` apart; groups <= n. */
    void (*fold)(const void *keys, int64_t n, int64_t groups, void *least);
    /* The least and the greatest of n > 0 keys. */
    void (*ends)(const void *keys, int64_t n, int64_t *low, int64_t *high);
    /* How many of n keys are at most `limit`. */
    int64_t (*count)(const void *keys, int64_t n, int64_t limit);
    /* Writes the positions, from *from on, of keys that are at most `limit`; stops when fewer than
     * SNI_MIN_KEYS_CHUNK more would fit into `room`. Returns how many, and in *from where it
     * stopped.
     */
    int64_t (*find)(const void *keys, int64_t n, int64_t limit, int64_t *from, int32_t *at,
                    int64_t room);
} sni_min_key_fns;

enum { SNI_MIN_KEYS_CHUNK = 16 };

struct sni_min_keys {
    /* Keys of n elements by their type, turned where the largest come first; NULL: no such type.
     * NaN counts as the largest, and -0 is 0. */
    void (*keys[SNI_DTYPE_COUNT])(const void *x, int64_t n, bool largest, void *keys);
    sni_min_key_fns narrow, wide; /* of 32 and of 64 bits */
};

#endif
