/* pick.inc.c - elements of a row at given places, a vector at a time: by permuting what lies close
 * together, as it does when a picture grows or shrinks by less than half. */

#if defined(__AVX2__)
/* Where `count` elements of a row of `in` begin that hold all of the places, which rise; negative:
 * none do. At the end of a row they begin before the first place. */
static inline int64_t lowest(const int32_t *at, int64_t in, int64_t count) {
    int64_t first = at[0], last = at[LANES - 1], low = first < in - count ? first : in - count;
    return last >= first && last - low < count ? low : -1;
}
#endif

#if defined(__AVX512F__)
static inline vf pick(const float *x, int64_t in, const int32_t *at) {
    __m512i index = _mm512_loadu_si512(at);
    int64_t low = lowest(at, in, LANES);
    if (low >= 0)
        return (vf)_mm512_permutexvar_ps(_mm512_sub_epi32(index, _mm512_set1_epi32((int)low)),
                                         _mm512_loadu_ps(x + low));
    low = lowest(at, in, 2 * LANES);
    if (low >= 0)
        return (vf)_mm512_permutex2var_ps(_mm512_loadu_ps(x + low),
                                          _mm512_sub_epi32(index, _mm512_set1_epi32((int)low)),
                                          _mm512_loadu_ps(x + low + LANES));
    return (vf)_mm512_i32gather_ps(index, x, 4);
}
#elif defined(__AVX2__)
static inline vf pick(const float *x, int64_t in, const int32_t *at) {
    __m256i index = _mm256_loadu_si256((const void *)at);
    int64_t low = lowest(at, in, LANES);
    if (low >= 0)
        return (vf)_mm256_permutevar8x32_ps(_mm256_loadu_ps(x + low),
                                            _mm256_sub_epi32(index, _mm256_set1_epi32((int)low)));
    low = lowest(at, in, 2 * LANES);
    if (low >= 0) {
        __m256i near = _mm256_sub_epi32(index, _mm256_set1_epi32((int)low));
        __m256 a = _mm256_permutevar8x32_ps(_mm256_loadu_ps(x + low), near);
        __m256 b = _mm256_permutevar8x32_ps(_mm256_loadu_ps(x + low + LANES), near);
        __m256i far = _mm256_cmpgt_epi32(near, _mm256_set1_epi32(LANES - 1));
        return (vf)_mm256_blendv_ps(a, b, _mm256_castsi256_ps(far));
    }
    return (vf)_mm256_i32gather_ps(x, index, 4);
}
#else
static inline vf pick(const float *x, int64_t in, const int32_t *at) {
    vf v;
    (void)in;
    for (int i = 0; i < LANES; i++) v[i] = x[at[i]];
    return v;
}
#endif

/* Places in any order. */
static inline vf pick_any(const float *x, const int32_t *at) {
#if defined(__AVX512F__)
    return (vf)_mm512_i32gather_ps(_mm512_loadu_si512(at), x, 4);
#elif defined(__AVX2__)
    return (vf)_mm256_i32gather_ps(x, _mm256_loadu_si256((const void *)at), 4);
#else
    return pick(x, 0, at);
#endif
}

static void pick_row(const float *x, int64_t in, const int32_t *at, int64_t n, float *y) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, pick(x, in, at + i));
    if (i < n) store_some(y + i, n - i, pick(x, in, at + i));
}

static inline vf weighted(const float *w, vf v) {
    vf weight = load(w);
    return select_vf(weight != 0, weight * v, splat(0)); /* an infinity of weight 0 is left out */
}

/* `anywhere`, and `taps` at some calls, are constants. */
static inline __attribute__((always_inline)) void spread_taps(bool anywhere, const float *x,
                                                              int64_t in, const int32_t *at,
                                                              const float *w, int64_t taps,
                                                              int64_t step, int64_t n, float *y) {
    for (int64_t i = 0; i < n; i += LANES) {
        vf sum = splat(0);
        for (int64_t t = 0; t < taps; t++) {
            const int32_t *places = at + t * step + i;
            vf v = anywhere ? pick_any(x, places) : pick(x, in, places);
            sum += weighted(w + t * step + i, v);
        }
        if (i + LANES <= n)
            store(y + i, sum);
        else
            store_some(y + i, n - i, sum);
    }
}

static void spread_row(const float *x, int64_t in, const int32_t *at, const float *w, int64_t taps,
                       int64_t step, int64_t n, float *y) {
    if (taps == 2)
        spread_taps(false, x, in, at, w, 2, step, n, y);
    else
        spread_taps(false, x, in, at, w, taps, step, n, y);
}

static void sample_row(const float *x, int64_t in, const int32_t *at, const float *w, int64_t taps,
                       int64_t step, int64_t n, float *y) {
    if (taps == 4)
        spread_taps(true, x, in, at, w, 4, step, n, y);
    else
        spread_taps(true, x, in, at, w, taps, step, n, y);
}

#if LANES == 16
#define HALF(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#elif LANES == 8
#define HALF(f) f(0), f(1), f(2), f(3)
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#else
#define HALF(f) f(0), f(1)
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#endif

static inline double pair_at(const float *x) {
    double pair;
    memcpy(&pair, x, sizeof pair);
    return pair;
}

/* Of LANES places, the elements there and those behind them. Vectors of pairs are listed, because
 * compilers put those together in memory that are filled one by one. */
static inline void pick_pairs(const float *x, const int32_t *at, vf *first, vf *second) {
    typedef double pairs __attribute__((vector_size(sizeof(vf))));
#define LOW(i) pair_at(x + at[i])
#define HIGH(i) pair_at(x + at[LANES / 2 + (i)])
    const pairs low = {HALF(LOW)}, high = {HALF(HIGH)};
#undef LOW
#undef HIGH
    *first = __builtin_shufflevector((vf)low, (vf)high, EVEN);
    *second = __builtin_shufflevector((vf)low, (vf)high, ODD);
}

static void sample_pairs(const float *x, const int32_t *at, const float *w, int64_t step, int64_t n,
                         float *y) {
    for (int64_t i = 0; i < n; i += LANES) {
        vf sum = splat(0), first, second;
        UNROLL
        for (int r = 0; r < 2; r++) {
            pick_pairs(x, at + r * step + i, &first, &second);
            sum += weighted(w + 2 * r * step + i, first);
            sum += weighted(w + (2 * r + 1) * step + i, second);
        }
        if (i + LANES <= n)
            store(y + i, sum);
        else
            store_some(y + i, n - i, sum);
    }
}
