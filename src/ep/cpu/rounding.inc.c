/* rounding.inc.c - rows of numbers rounded by the tier's instructions; compilers take them for one
 * number at a time. */

#if defined(__AVX512F__)
#define ROUNDED(x, scalar, way) ((vf)_mm512_roundscale_ps((__m512)(x), (way) | _MM_FROUND_NO_EXC))
#elif defined(__AVX2__)
#define ROUNDED(x, scalar, way) ((vf)_mm256_round_ps((__m256)(x), (way) | _MM_FROUND_NO_EXC))
#else
#define ROUNDED(x, scalar, way) each_lane(x, scalar)
static inline vf each_lane(vf x, float (*scalar)(float)) {
    vf y;
    for (int i = 0; i < LANES; i++) y[i] = scalar(x[i]);
    return y;
}
#endif

#define ROW(name, scalar, way)                                                                 \
    static void name(const void *from, void *to, int64_t n, const void *params) {              \
        const float *x = from;                                                                 \
        float *y = to;                                                                         \
        int64_t i = 0;                                                                         \
        (void)params;                                                                          \
        for (; i + LANES <= n; i += LANES) store(y + i, ROUNDED(load(x + i), scalar, way));    \
        if (i < n) store_some(y + i, n - i, ROUNDED(load_some(x + i, n - i, 0), scalar, way)); \
    }
ROW(floor_row, floorf, _MM_FROUND_TO_NEG_INF)
ROW(ceil_row, ceilf, _MM_FROUND_TO_POS_INF)
ROW(round_row, nearbyintf, _MM_FROUND_CUR_DIRECTION)
#undef ROW
#undef ROUNDED
