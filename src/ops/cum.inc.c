/* Running sum or product of n elements that lie `step` apart, forwards or (step < 0) backwards. */
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
