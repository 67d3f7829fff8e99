/* min_keys.isa.c - keys of TopK, for one tier. The plain loops vectorise by themselves; only
 * `find`, which turns comparisons into positions, needs intrinsics (MASK). All are limited by
 * memory. */
#include "cpu/select/min_keys.h"

#include "cpu/core/simd.h"
#include "ops/core/typed.h"

/* ---- Keys ---- */

static void keys_i32(const void *x, int64_t n, bool largest, void *keys) {
    const int32_t *v = x, flip = largest ? -1 : 0;
    int32_t *k = keys;
    for (int64_t i = 0; i < n; i++) k[i] = v[i] ^ flip;
}

static void keys_i64(const void *x, int64_t n, bool largest, void *keys) {
    const int64_t *v = x, flip = largest ? -1 : 0;
    int64_t *k = keys;
    for (int64_t i = 0; i < n; i++) k[i] = v[i] ^ flip;
}

/* The bits of a non-negative float rise with its value as an integer's do; those of a negative one
 * fall, so all but its sign are inverted. */
static void keys_f32(const void *x, int64_t n, bool largest, void *keys) {
    const float *v = x;
    const int32_t flip = largest ? -1 : 0;
    int32_t *k = keys;
    for (int64_t i = 0; i < n; i++) {
        float value = v[i] + 0.0f;
        int32_t bits;
        memcpy(&bits, &value, sizeof bits);
        bits ^= (bits >> 31) & INT32_MAX;
        k[i] = (value != value ? INT32_MAX : bits) ^ flip;
    }
}

static void keys_f64(const void *x, int64_t n, bool largest, void *keys) {
    const double *v = x;
    const int64_t flip = largest ? -1 : 0;
    int64_t *k = keys;
    for (int64_t i = 0; i < n; i++) {
        double value = v[i] + 0.0;
        int64_t bits;
        memcpy(&bits, &value, sizeof bits);
        bits ^= (bits < 0 ? -1 : 0) & INT64_MAX;
        k[i] = (value != value ? INT64_MAX : bits) ^ flip;
    }
}

/* ---- Masks of keys that are at most a limit ---- */

#if LANES == 16
static inline uint32_t mask_32(const int32_t *k, int32_t most) {
    return _mm512_cmple_epi32_mask(_mm512_loadu_si512(k), _mm512_set1_epi32(most));
}
static inline uint32_t mask_64(const int64_t *k, int64_t most) {
    const __m512i limit = _mm512_set1_epi64(most);
    uint32_t low = _mm512_cmple_epi64_mask(_mm512_loadu_si512(k), limit);
    return low | (uint32_t)_mm512_cmple_epi64_mask(_mm512_loadu_si512(k + 8), limit) << 8;
}
#elif LANES == 8
static inline __m256i above_32(const int32_t *k, __m256i most) {
    return _mm256_cmpgt_epi32(_mm256_loadu_si256((const __m256i_u *)k), most);
}
static inline uint32_t mask_32(const int32_t *k, int32_t most) {
    const __m256i limit = _mm256_set1_epi32(most);
    __m256i above = _mm256_packs_epi32(above_32(k, limit), above_32(k + 8, limit));
    above = _mm256_permute4x64_epi64(above, 0xd8); /* lanes in their order */
    __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(above), _mm256_extracti128_si256(above, 1));
    return ~(uint32_t)_mm_movemask_epi8(bytes) & 0xffff;
}
static inline uint32_t above_64(const int64_t *k, __m256i most) {
    __m256i above = _mm256_cmpgt_epi64(_mm256_loadu_si256((const __m256i_u *)k), most);
    return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(above));
}
static inline uint32_t mask_64(const int64_t *k, int64_t most) {
    const __m256i limit = _mm256_set1_epi64x(most);
    return ~(above_64(k, limit) | above_64(k + 4, limit) << 4 | above_64(k + 8, limit) << 8 |
             above_64(k + 12, limit) << 12) &
           0xffff;
}
#else
static inline uint32_t mask_32(const int32_t *k, int32_t most) {
    uint32_t bits = 0;
    for (int i = 0; i < SNI_MIN_KEYS_CHUNK; i++) bits |= (uint32_t)(k[i] <= most) << i;
    return bits;
}
static inline uint32_t mask_64(const int64_t *k, int64_t most) {
    uint32_t bits = 0;
    for (int i = 0; i < SNI_MIN_KEYS_CHUNK; i++) bits |= (uint32_t)(k[i] <= most) << i;
    return bits;
}
#endif

#define K int32_t
#define SUFFIX 32
#define MASK mask_32
#include "cpu/select/min_keys.inc.c"

#define K int64_t
#define SUFFIX 64
#define MASK mask_64
#include "cpu/select/min_keys.inc.c"

SNI_DEFINE_TABLE(sni_min_keys) = {
    .keys = {[SN_FLOAT32] = keys_f32,
             [SN_FLOAT64] = keys_f64,
             [SN_INT32] = keys_i32,
             [SN_INT64] = keys_i64},
    .narrow = {.fold = fold_32, .ends = ends_32, .count = count_32, .find = find_32},
    .wide = {.fold = fold_64, .ends = ends_64, .count = count_64, .find = find_64},
};
