/* min_keys.inc.c - template: the functions of sni_min_key_fns for keys of type K, named by SUFFIX.
 * Instances: min_keys.isa.c, for int32_t and int64_t.
 *   MASK(k, most)   a bit for each of SNI_MIN_KEYS_CHUNK keys that is at most `most`
 * All parameters are undefined again. */

static void FN(fold)(const void *keys, int64_t n, int64_t groups, void *least) {
    const K *restrict k = keys;
    K *restrict m = least;
    for (int64_t g = 0; g < groups; g++) m[g] = k[g];
    for (int64_t i = groups; i < n; i += groups) {
        int64_t end = groups < n - i ? groups : n - i;
        for (int64_t g = 0; g < end; g++) m[g] = k[i + g] < m[g] ? k[i + g] : m[g];
    }
}

static void FN(ends)(const void *keys, int64_t n, int64_t *low, int64_t *high) {
    const K *k = keys;
    K least = k[0], most = k[0];
    for (int64_t i = 1; i < n; i++) {
        least = k[i] < least ? k[i] : least;
        most = k[i] > most ? k[i] : most;
    }
    *low = least;
    *high = most;
}

static int64_t FN(count)(const void *keys, int64_t n, int64_t limit) {
    const K *k = keys;
    const K most = (K)limit;
    K found = 0; /* n < 2^31 */
    for (int64_t i = 0; i < n; i++) found = (K)(found + (k[i] <= most));
    return found;
}

static int64_t FN(find)(const void *keys, int64_t n, int64_t limit, int64_t *from, int32_t *at,
                        int64_t room) {
    const K *k = keys;
    const K most = (K)limit;
    int64_t found = 0, i = *from;
    for (; i + SNI_MIN_KEYS_CHUNK <= n && found + SNI_MIN_KEYS_CHUNK <= room;
         i += SNI_MIN_KEYS_CHUNK) {
        for (uint32_t bits = MASK(k + i, most); bits; bits &= bits - 1)
            at[found++] = (int32_t)(i + __builtin_ctz(bits));
    }
    for (; i < n && i + SNI_MIN_KEYS_CHUNK > n && found < room; i++)
        if (k[i] <= most) at[found++] = (int32_t)i;
    *from = i;
    return found;
}

#undef K
#undef SUFFIX
#undef MASK
