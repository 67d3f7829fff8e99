/* min_keys.h - finding the smallest keys of a row, for TopK: the kernels of one tier. A key is a
 * signed integer of 32 or 64 bits whose order is that of the result. */
#ifndef SNI_CPU_SELECT_MIN_KEYS_H
#define SNI_CPU_SELECT_MIN_KEYS_H

#include "base/dtype.h"
#include "cpu/core/dispatch.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sni_min_key_fns {
    /* least[g] = the minimum of group g: keys g, g + groups, g + 2 * groups, ...; groups <= n. */
    void (*fold)(const void *keys, int64_t n, int64_t groups, void *least);
    /* The minimum and the maximum of n > 0 keys. */
    void (*ends)(const void *keys, int64_t n, int64_t *low, int64_t *high);
    /* How many of n keys are at most `limit`. */
    int64_t (*count)(const void *keys, int64_t n, int64_t limit);
    /* Writes the positions, from *from on, of keys that are at most `limit`. Stops when fewer than
     * SNI_MIN_KEYS_CHUNK more would fit into `room` positions. Returns their number; *from becomes
     * where it stopped. */
    int64_t (*find)(const void *keys, int64_t n, int64_t limit, int64_t *from, int32_t *at,
                    int64_t room);
} sni_min_key_fns;

enum { SNI_MIN_KEYS_CHUNK = 16 };

struct sni_min_keys {
    /* Makes the keys of n elements, inverted if the largest come first; by type, NULL: none. NaN
     * counts as the largest number, and -0 as 0. */
    void (*keys[SNI_DTYPE_COUNT])(const void *x, int64_t n, bool largest, void *keys);
    sni_min_key_fns narrow, wide; /* of 32 and of 64 bits */
};

#endif
