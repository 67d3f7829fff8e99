/* convert.inc.c - template: loads of type T into the carrier of its class, and stores of every
 * carrier into T. Instances: convert.c, for all numbers and bool. */
#if defined(T_FLOAT)
#define CARRIER T
#elif defined(T_SIGNED)
#define CARRIER int64_t
#else
#define CARRIER uint64_t
#endif

/* A number of another type; booleans are 0 and 1. */
#if defined(T_BOOL)
#define AS(type, v) ((v) != 0)
#else
#define AS(type, v) ((type)(v))
#endif

static void FN(load)(const void *src, void *carrier, size_t n) {
    const T *s = src;
    CARRIER *d = carrier;
    for (size_t i = 0; i < n; i++) d[i] = AS(CARRIER, s[i]);
}

static void FN(store_i64)(const void *carrier, void *dst, size_t n) {
    const int64_t *s = carrier;
    T *d = dst;
    for (size_t i = 0; i < n; i++) d[i] = AS(T, s[i]);
}

static void FN(store_u64)(const void *carrier, void *dst, size_t n) {
    const uint64_t *s = carrier;
    T *d = dst;
    for (size_t i = 0; i < n; i++) d[i] = AS(T, s[i]);
}
#undef AS

static T FN(from_f64)(double v) {
#if defined(T_BOOL)
    return v != 0;
#elif defined(T_FLOAT)
    return (T)v;
#elif defined(T_SIGNED)
    const double limit = (double)((uint64_t)1 << (sizeof(T) * 8 - 1));
    const T top = (T)(((uint64_t)1 << (sizeof(T) * 8 - 1)) - 1);
    if (v >= limit) return top;
    if (v < -limit) return (T)(-top - 1);
    return v == v ? (T)v : 0;
#else
    const double limit = 2 * (double)((uint64_t)1 << (sizeof(T) * 8 - 1));
    if (v >= limit) return (T)UINT64_MAX;
    return v > 0 ? (T)v : 0;
#endif
}

static void FN(store_f64)(const void *carrier, void *dst, size_t n) {
    const double *s = carrier;
    T *d = dst;
    for (size_t i = 0; i < n; i++) d[i] = FN(from_f64)(s[i]);
}

static void FN(store_f32)(const void *carrier, void *dst, size_t n) {
    const float *s = carrier;
    T *d = dst;
    for (size_t i = 0; i < n; i++) {
#if defined(T_FLOAT)
        d[i] = (T)s[i];
#else
        d[i] = FN(from_f64)((double)s[i]);
#endif
    }
}

#undef CARRIER
