/* cum.inc.c - template by type (typed.h): running sums and products. Instances: cum.c, for all
 * numbers. */

/* Running sums or products of n rows of `width` elements, one row added to the next; y may be x. */
static void FN(cumsum_rows)(const void *from, void *to, int64_t n, int64_t step, int64_t width) {
    const T *x = from;
    T *y = to;
    if (x != y) memcpy(y, x, (size_t)width * sizeof(T));
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = 0; j < width; j++) {
#ifdef T_FLOAT
            y[i * step + j] = y[(i - 1) * step + j] + x[i * step + j];
#else
            y[i * step + j] = (T)((uint64_t)y[(i - 1) * step + j] + (uint64_t)x[i * step + j]);
#endif
        }
}

static void FN(cumprod_rows)(const void *from, void *to, int64_t n, int64_t step, int64_t width) {
    const T *x = from;
    T *y = to;
    if (x != y) memcpy(y, x, (size_t)width * sizeof(T));
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = 0; j < width; j++) {
#ifdef T_FLOAT
            y[i * step + j] = y[(i - 1) * step + j] * x[i * step + j];
#else
            y[i * step + j] = (T)((uint64_t)y[(i - 1) * step + j] * (uint64_t)x[i * step + j]);
#endif
        }
}

/* Running sum or product of n elements that are `step` apart, forwards or (step < 0) backwards. */
static void FN(cumsum)(const void *from, void *to, int64_t n, int64_t step, bool exclusive) {
    const T *x = from;
    T *y = to, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        T v = x[i * step];
        if (exclusive) y[i * step] = sum;
#ifdef T_FLOAT
        sum += v;
#else
        (void)__builtin_add_overflow(sum, v, &sum);
#endif
        if (!exclusive) y[i * step] = sum;
    }
}

static void FN(cumprod)(const void *from, void *to, int64_t n, int64_t step, bool exclusive) {
    const T *x = from;
    T *y = to, product = 1;
    for (int64_t i = 0; i < n; i++) {
        T v = x[i * step];
        if (exclusive) y[i * step] = product;
#ifdef T_FLOAT
        product *= v;
#else
        (void)__builtin_mul_overflow(product, v, &product);
#endif
        if (!exclusive) y[i * step] = product;
    }
}
