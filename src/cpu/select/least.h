/* least.h - finding the least keys of a row, compiled once per instruction-set tier. A key is a
 * signed integer of 32 or 64 bits that rises in the order of the result. */
#ifndef SNI_EP_CPU_LEAST_H
#define SNI_EP_CPU_LEAST_H

#include "base/dtype.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sni_least_fns {
    /* The least key of each group, whose members stand `groups` apart; groups <= n. */
    void (*fold)(const void *keys, int64_t n, int64_t groups, void *least);
    /* The least and the greatest of n > 0 keys. */
    void (*ends)(const void *keys, int64_t n, int64_t *low, int64_t *high);
    /* How many of n keys are at most `limit`. */
    int64_t (*count)(const void *keys, int64_t n, int64_t limit);
    /* Writes the positions, from *from on, of keys that are at most `limit`; stops when fewer than
     * SNI_LEAST_ROOM more would fit into `room`. Returns how many, and in *from where it stopped.
     */
    int64_t (*find)(const void *keys, int64_t n, int64_t limit, int64_t *from, int32_t *at,
                    int64_t room);
} sni_least_fns;

enum { SNI_LEAST_ROOM = 16 };

typedef struct sni_least {
    /* Keys of n elements by their type, turned where the largest come first; NULL: no such type.
     * NaN counts as the largest, and -0 is 0. */
    void (*keys[SNI_DTYPE_COUNT])(const void *x, int64_t n, bool largest, void *keys);
    sni_least_fns narrow, wide; /* of 32 and of 64 bits */
} sni_least;

/* Those of the tier in force. */
const sni_least *sni_least_get(void);

#endif
