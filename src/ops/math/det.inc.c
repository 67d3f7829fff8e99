/* det.inc.c - template by type (typed.h): determinants by elimination with pivots. Instances:
 * det.c, for float and double. */

/* Determinants of square matrices for one type. */
static T FN(determinant)(T *m, int64_t n) {
    T product = 1;
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = c;
        for (int64_t r = c + 1; r < n; r++)
            if (MATH(fabs)(m[r * n + c]) > MATH(fabs)(m[pivot * n + c])) pivot = r;
        if (m[pivot * n + c] == 0) return 0;
        if (pivot != c) {
            product = -product;
            for (int64_t j = c; j < n; j++) {
                T swap = m[c * n + j];
                m[c * n + j] = m[pivot * n + j];
                m[pivot * n + j] = swap;
            }
        }
        product *= m[c * n + c];
        for (int64_t r = c + 1; r < n; r++) {
            T factor = m[r * n + c] / m[c * n + c];
            for (int64_t j = c + 1; j < n; j++) m[r * n + j] -= factor * m[c * n + j];
        }
    }
    return product;
}

static void FN(determinants)(void *work, void *out, int64_t count, int64_t n) {
    for (int64_t i = 0; i < count; i++) ((T *)out)[i] = FN(determinant)((T *)work + i * n * n, n);
}
