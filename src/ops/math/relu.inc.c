/* relu.inc.c - template by type (typed.h): Relu. Instances: relu.c, for float, double and the
 * signed integers; cpu/elementwise/compare.isa.c, for the signed integers. */

/* y = max(x, 0); NaN stays NaN. */
static void FN(relu)(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    const T *src = x;
    T *dst = y;
    for (int64_t i = 0; i < n; i++) dst[i] = src[i] < 0 ? 0 : src[i];
}
