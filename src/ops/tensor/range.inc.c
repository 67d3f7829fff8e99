/* range.inc.c - template by type (typed.h): Range. Instances: range.c, for all numbers. */

/* How many steps of `delta` lead from `start` up to, but not to, `limit`; -1 if the delta is 0 or
 * a number is not finite. */
static int64_t FN(range_count)(const void *start, const void *limit, const void *delta) {
    T a = *(const T *)start, b = *(const T *)limit, d = *(const T *)delta;
    if (d == 0) return -1;
#ifdef T_FLOAT
    T n = MATH(ceil)((b - a) / d);
    if (n != n) return -1;
    return n <= 0 ? 0 : n >= (T)INT64_MAX ? INT64_MAX : (int64_t)n;
#else
    /* The distance of any two integers fits an unsigned one of 64 bits. */
    if (a == b || (a < b) != (d > 0)) return 0;
    uint64_t far = a < b ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
    uint64_t step = d > 0 ? (uint64_t)d : 0 - (uint64_t)d;
    uint64_t n = (far - 1) / step + 1;
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
#endif
}

/* Elements [begin, end) of the range whose first one is out[0]. Integers wrap. */
static void FN(range_fill)(const void *start, const void *delta, void *out, int64_t begin,
                           int64_t end) {
    T a = *(const T *)start, d = *(const T *)delta, *y = out;
#ifdef T_FLOAT
    for (int64_t i = begin; i < end; i++) y[i] = a + (T)i * d;
#else
    uint64_t step = (uint64_t)d, next = (uint64_t)a + (uint64_t)begin * step;
    for (int64_t i = begin; i < end; i++, next += step) y[i] = (T)next;
#endif
}
