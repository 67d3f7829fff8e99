/* whole.inc.c - predicates of floats and arithmetic of integers. */

static void is_infinite(const void *from, void *to, int64_t n, const void *params) {
    const float *restrict x = from;
    uint8_t *restrict y = to;
    const sni_which_infinity *which = params;
    const float low = which->negative ? -INFINITY : INFINITY;
    const float high = which->positive ? INFINITY : -INFINITY;
    if (!which->negative && !which->positive)
        for (int64_t i = 0; i < n; i++) y[i] = 0;
    else
        for (int64_t i = 0; i < n; i++) y[i] = (uint8_t)((x[i] == low) | (x[i] == high));
}

/* y[i] = f(v) of x[i], where v has its bits without a sign: the least integer is its own size. */
#define WHOLE(name, type, bits, f)                                                \
    static void name(const void *from, void *to, int64_t n, const void *params) { \
        (void)params;                                                             \
        const type *x = from;                                                     \
        type *y = to;                                                             \
        for (int64_t i = 0; i < n; i++) {                                         \
            bits v = (bits)x[i];                                                  \
            y[i] = (type)(f);                                                     \
        }                                                                         \
    }
WHOLE(Abs_i32, int32_t, uint32_t, x[i] < 0 ? 0 - v : v)
WHOLE(Abs_i64, int64_t, uint64_t, x[i] < 0 ? 0 - v : v)
WHOLE(Neg_i32, int32_t, uint32_t, 0 - v)
WHOLE(Neg_i64, int64_t, uint64_t, 0 - v)
WHOLE(Sign_i32, int32_t, uint32_t, (x[i] > 0) - (int32_t)(v >> 31))
WHOLE(Sign_i64, int64_t, uint64_t, (x[i] > 0) - (int64_t)(v >> 63))
#undef WHOLE

/* By way of doubles, whose quotients of two int32 are cut to the right whole number. */
static inline int32_t quotient_of(int32_t u, int32_t v) {
    if (v == 0) return 0;
    return v == -1 ? (int32_t)(0 - (uint32_t)u) : (int32_t)((double)u / (double)v);
}

/* The same of several at once; *u and *v where the stride is 0. */
#if defined(__AVX512F__)
enum { QUOTIENTS = 8 };
static inline void quotients(const int32_t *u, const int32_t *v, int64_t su, int64_t sv,
                             int32_t *y) {
    const __m256i one = _mm256_set1_epi32(1), none = _mm256_setzero_si256();
    __m256i a = su ? _mm256_loadu_si256((const void *)u) : _mm256_set1_epi32(*u);
    __m256i b = sv ? _mm256_loadu_si256((const void *)v) : _mm256_set1_epi32(*v);
    __mmask8 zero = _mm256_cmpeq_epi32_mask(b, none);
    __mmask8 transpose = _mm256_cmpeq_epi32_mask(b, _mm256_set1_epi32(-1));
    __m256i by = _mm256_mask_mov_epi32(b, (__mmask8)(zero | transpose), one);
    __m256i q = _mm512_cvttpd_epi32(_mm512_div_pd(_mm512_cvtepi32_pd(a), _mm512_cvtepi32_pd(by)));
    q = _mm256_mask_sub_epi32(q, transpose, none, a);
    _mm256_storeu_si256((void *)y, _mm256_mask_mov_epi32(q, zero, none));
}
#elif defined(__AVX2__)
enum { QUOTIENTS = 4 };
static inline void quotients(const int32_t *u, const int32_t *v, int64_t su, int64_t sv,
                             int32_t *y) {
    const __m128i one = _mm_set1_epi32(1), none = _mm_setzero_si128();
    __m128i a = su ? _mm_loadu_si128((const void *)u) : _mm_set1_epi32(*u);
    __m128i b = sv ? _mm_loadu_si128((const void *)v) : _mm_set1_epi32(*v);
    __m128i zero = _mm_cmpeq_epi32(b, none), transpose = _mm_cmpeq_epi32(b, _mm_set1_epi32(-1));
    __m128i by = _mm_blendv_epi8(b, one, _mm_or_si128(zero, transpose));
    __m128i q = _mm256_cvttpd_epi32(_mm256_div_pd(_mm256_cvtepi32_pd(a), _mm256_cvtepi32_pd(by)));
    q = _mm_blendv_epi8(q, _mm_sub_epi32(none, a), transpose);
    _mm_storeu_si128((void *)y, _mm_andnot_si128(zero, q));
}
#else
enum { QUOTIENTS = 1 };
static inline void quotients(const int32_t *u, const int32_t *v, int64_t su, int64_t sv,
                             int32_t *y) {
    (void)su;
    (void)sv;
    *y = quotient_of(*u, *v);
}
#endif

static void quotient_i32(const void *a, const void *b, void *to, int64_t n, int64_t sa, int64_t sb,
                         const void *params) {
    (void)params;
    const int32_t *u = a, *v = b;
    int32_t *y = to;
    int64_t i = 0;
    for (; i + QUOTIENTS <= n; i += QUOTIENTS) quotients(u + i * sa, v + i * sb, sa, sb, y + i);
    for (; i < n; i++) y[i] = quotient_of(u[i * sa], v[i * sb]);
}
