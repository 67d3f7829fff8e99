/* softmax.inc.c - template: Softmax, its logarithm and Hardmax along n elements that are `step`
 * apart, for float type T. Instances: softmax.c. */

static T FN(largest)(const T *x, int64_t n, int64_t step) {
    T most = x[0];
    for (int64_t i = 1; i < n; i++) most = x[i * step] > most ? x[i * step] : most;
    return most;
}

static void FN(softmax)(const void *src, void *dst, int64_t n, int64_t step) {
    const T *x = src;
    T *y = dst, most = FN(largest)(x, n, step), sum = 0;
    for (int64_t i = 0; i < n; i++) {
        y[i * step] = MATH(exp)(x[i * step] - most);
        sum += y[i * step];
    }
    T inverse = 1 / sum;
    for (int64_t i = 0; i < n; i++) y[i * step] *= inverse;
}

static void FN(log_softmax)(const void *src, void *dst, int64_t n, int64_t step) {
    const T *x = src;
    T *y = dst, most = FN(largest)(x, n, step), sum = 0;
    for (int64_t i = 0; i < n; i++) sum += MATH(exp)(x[i * step] - most);
    T log_sum = MATH(log)(sum);
    for (int64_t i = 0; i < n; i++) y[i * step] = x[i * step] - most - log_sum;
}

/* 1 at the first of the largest elements, 0 elsewhere. */
static void FN(hardmax)(const void *src, void *dst, int64_t n, int64_t step) {
    const T *x = src;
    T *y = dst;
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i * step] > x[at * step]) at = i;
    for (int64_t i = 0; i < n; i++) y[i * step] = i == at;
}
