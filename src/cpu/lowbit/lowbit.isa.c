/* lowbit.isa.c - kernels of one instruction-set tier for weights of few bits: tiles of products
 * with bytes and with floats. */
#include "cpu/lowbit/lowbit.h"
#include "cpu/core/simd.h"

#include <float.h>

#define INLINE static inline __attribute__((always_inline))

enum { COLUMNS = SNI_LOWBIT_COLUMNS, CHUNK = SNI_LOWBIT_CHUNK, MOST = SNI_LOWBIT_ROWS };

#if LANES >= 8
#include "cpu/lowbit/lowbit_vector.inc.c"
#else
#include "cpu/lowbit/lowbit_plain.inc.c"
#endif

/* ---- Rows of A ---- */

static float greatest(const float *x, int64_t n, bool *finite) {
    vf most = splat(0), odd = splat(0);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf v = load(x + i);
        most = max_vf(most, max_vf(v, -v));
        odd += v * 0; /* NaN where one is not finite */
    }
    float found = max_lanes(most), rest = sum_lanes(odd);
    for (; i < n; i++) {
        found = fabsf(x[i]) > found ? fabsf(x[i]) : found;
        rest += x[i] * 0;
    }
    *finite = rest == 0;
    return found;
}

/* The scale that takes `limit` to the greatest of n floats; NaN: bytes cannot stand for them. */
static float scale_for(const float *x, int64_t n, float limit) {
    bool finite;
    float most = greatest(x, n, &finite);
    if (!finite || (most > 0 && most < FLT_MIN * limit * 256)) return NAN;
    return most / limit;
}

#if LANES >= 8
/* The lowest bytes of all lanes. */
INLINE void store_low(int8_t *to, vi v) {
#if LANES == 16
    _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8((__m512i)v));
#else
    const __m256i pick = _mm256_set1_epi32(0x0c080400);
    __m256i x = _mm256_shuffle_epi8((__m256i)v, pick);
    __m128i low = _mm256_castsi256_si128(x), high = _mm256_extracti128_si256(x, 1);
    _mm_storel_epi64((__m128i *)to, _mm_unpacklo_epi32(low, high));
#endif
}

INLINE vi whole(vf v) {
    return __builtin_convertvector(round_vf(v), vi);
}

INLINE int32_t sum_ints(vi v) {
    int32_t sum = 0;
    for (int l = 0; l < LANES; l++) sum += v[l];
    return sum;
}
#endif

static float quantize(const float *x, int64_t n, int8_t *q, int32_t *sum) {
    const float scale = scale_for(x, n, 127), factor = scale > 0 ? 1 / scale : 0;
    *sum = 0;
    if (!(scale > 0)) {
        memset(q, 0, (size_t)n);
        return scale;
    }
    int64_t i = 0;
#if LANES >= 8
    vi sums = {0};
    for (; i + LANES <= n; i += LANES) {
        vi v = whole(load(x + i) * factor);
        sums += v;
        store_low(q + i, v);
    }
    *sum = sum_ints(sums);
#endif
    for (; i < n; i++) {
        q[i] = (int8_t)nearbyintf(x[i] * factor);
        *sum += q[i];
    }
    return scale;
}

#if LANES >= 8
/* Blocks are multiples of 16 long. */
static float quantize_split(const float *x, int64_t n, int8_t *q, int32_t sum[SNI_LOWBIT_SLICES]) {
    const float scale = scale_for(x, n, 127 * 65536), factor = scale > 0 ? 1 / scale : 0;
    vi sums[SNI_LOWBIT_SLICES] = {{0}};
    for (int64_t i = 0; i < n; i += LANES) {
        vi v = scale > 0 ? whole(load(x + i) * factor) : (vi){0};
        for (int s = SNI_LOWBIT_SLICES - 1; s >= 0; s--) {
            vi low = s ? (vi)((vu)v << 24) >> 24 : v;
            sums[s] += low;
            store_low(q + s * n + i, low);
            v = (v - low) >> 8;
        }
    }
    for (int s = 0; s < SNI_LOWBIT_SLICES; s++) sum[s] = sum_ints(sums[s]);
    return scale;
}
#endif

SNI_DEFINE_TABLE(sni_lowbit_kernels) = {
    .rows = ROWS,
    .bytes = tile_bytes,
    .floats = tile_floats,
    .quantize = quantize,
#if LANES >= 8
    .split = tile_split,
    .split_bits = LANES == 16 ? 8 : 4,
    .quantize_split = quantize_split,
#endif
};
