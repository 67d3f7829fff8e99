/* cdist.inc.c - template by type (typed.h): distances between the rows of two matrices. Instances:
 * cdist.c, for float and double. */

/* Squares of the distances of row `a` to all rows of b, for one float type. */
static void FN(distances)(const void *a, const void *b, void *y, int64_t rows, int64_t n,
                          bool root) {
    const T *u = a, *v = b;
    T *dst = y;
    for (int64_t j = 0; j < rows; j++) {
        T sum = 0;
        for (int64_t i = 0; i < n; i++) {
            T d = u[i] - v[j * n + i];
            sum += d * d;
        }
        dst[j] = root ? MATH(sqrt)(sum) : sum;
    }
}
