/* gemm.inc.c - template by type (typed.h): the end of Gemm: alpha * y + beta * c. LOW and HIGH are
 * the range of an integer T. Instances: gemm.c, for float, double, int32_t, uint32_t, int64_t and
 * uint64_t. */

/* y = alpha * y + beta * c over one row; c moves by `step` (0 or 1) for each element. */
static void FN(finish)(void *y, const void *c, int64_t step, int64_t n, float alpha, float beta) {
    T *dst = y;
    const T *add = c;
    for (int64_t j = 0; j < n; j++) {
#ifdef T_FLOAT
        T v = (T)alpha * dst[j];
        dst[j] = add ? v + (T)beta * add[j * step] : v;
#else
        double v = (double)alpha * (double)dst[j];
        if (add) v += (double)beta * (double)add[j * step];
        dst[j] = !(v > LOW) ? (T)LOW : v >= HIGH ? (T)HIGH : (T)v;
#endif
    }
}
