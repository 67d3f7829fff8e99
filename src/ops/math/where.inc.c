/* where.inc.c - template by type (typed.h): selection (sni_ternary_fn). Instances: where.c, for
 * the unsigned integers and wide. */

/* z = c ? x : y for elements of type T, which any type of the same width may stand on. */
static void FN(choose)(const void *const x[3], const int64_t stride[3], void *out, int64_t n,
                       const void *params) {
    (void)params;
    const uint8_t *c = x[0];
    const T *a = x[1], *b = x[2];
    T *z = out;
    const int64_t sc = stride[0], sa = stride[1], sb = stride[2];
    if (sc && sa && sb)
        for (int64_t i = 0; i < n; i++) z[i] = c[i] ? a[i] : b[i];
    else
        for (int64_t i = 0; i < n; i++) z[i] = c[i * sc] ? a[i * sa] : b[i * sb];
}
