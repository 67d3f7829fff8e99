/* choose.inc.c - template: z = c ? a : b (sni_ternary_fn) for elements of type T, named by SUFFIX.
 * Instances: moves.isa.c, one for each width of 1, 2, 4 and 8 bytes. z may be a, b or c. */
static void FN(choose)(const void *const x[3], const int64_t stride[3], void *out, int64_t n,
                       const void *params) {
    (void)params;
    const uint8_t *c = x[0];
    const T *a = x[1], *b = x[2];
    T *z = out;
    const int64_t sa = stride[1], sb = stride[2];
    if (stride[0] == 0 || (sa == 0 && sb == 0 && n == 1)) {
        const T *from = *c ? a : b;
        const int64_t step = *c ? sa : sb;
        if (step == 0) {
            const T v = *from;
            for (int64_t i = 0; i < n; i++) z[i] = v;
        } else if (z != from && n > 0) {
            memmove(z, from, (size_t)n * sizeof *z);
        }
    } else if (sa && sb) {
        SAFE_LOOP for (int64_t i = 0; i < n; i++) {
            T u = a[i], v = b[i];
            z[i] = c[i] ? u : v;
        }
    } else if (sa) {
        const T v = *b;
        SAFE_LOOP for (int64_t i = 0; i < n; i++) {
            T u = a[i];
            z[i] = c[i] ? u : v;
        }
    } else if (sb) {
        const T u = *a;
        SAFE_LOOP for (int64_t i = 0; i < n; i++) {
            T v = b[i];
            z[i] = c[i] ? u : v;
        }
    } else {
        const T u = *a, v = *b;
        SAFE_LOOP for (int64_t i = 0; i < n; i++) z[i] = c[i] ? u : v;
    }
}
