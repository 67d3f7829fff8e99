/* scatter.inc.c - template by type (typed.h): ScatterElements and its reductions. Instances:
 * scatter.c, for all numbers. */

#ifdef T_FLOAT
#define BEATS(s, cmp, d) ((s)cmp(d) || (s) != (s))
#else
#define BEATS(s, cmp, d) ((s)cmp(d))
#endif

/* *dst = *dst op *src for one element. Integers wrap. NaN wins over everything. */
static void FN(scatter_add)(void *dst, const void *src) {
    T *d = dst;
#ifdef T_FLOAT
    *d += *(const T *)src;
#else
    (void)__builtin_add_overflow(*d, *(const T *)src, d);
#endif
}

static void FN(scatter_mul)(void *dst, const void *src) {
    T *d = dst;
#ifdef T_FLOAT
    *d *= *(const T *)src;
#else
    (void)__builtin_mul_overflow(*d, *(const T *)src, d);
#endif
}

static void FN(scatter_max)(void *dst, const void *src) {
    T *d = dst, s = *(const T *)src;
    if (BEATS(s, >, *d)) *d = s;
}

static void FN(scatter_min)(void *dst, const void *src) {
    T *d = dst, s = *(const T *)src;
    if (BEATS(s, <, *d)) *d = s;
}

#undef BEATS
