/* trees.isa.c - walks through decision trees, for one tier. Up to four vectors of walks advance
 * together, a gather per vector and step: a step waits for memory, and the steps of the other
 * vectors fill the time. The last few walks of a group go on one by one. */
#include "cpu/core/simd.h"
#include "cpu/ml/trees.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { FEATURE_MASK = (1 << SNI_TREE_FEATURE_BITS) - 1, SKIP_MASK = (1 << SNI_TREE_SKIP_BITS) - 1 };

/* The step of one walk, without a branch that could be mispredicted. */
static inline int32_t step_of_one(const sni_tree_place *n, const float *x) {
    uint32_t link = (uint32_t)n->link;
    float v = x[link & FEATURE_MASK];
    uint32_t yes = (uint32_t)(v <= n->split) | ((uint32_t)(v != v) & link >> 31);
    return (int32_t)((link >> SNI_TREE_FEATURE_BITS & SKIP_MASK & (yes - 1)) | yes);
}

#if defined(__AVX2__)

/* A gather instruction depends on the old contents of its destination register even if it replaces
 * all of them. Each gather therefore gets a register of zeros; otherwise the vectors would wait for
 * each other. */
#if defined(__AVX512F__)

enum { WIDTH = 16 };
typedef __m512i whole;

static inline whole load_whole(const int32_t *p) {
    return _mm512_loadu_si512(p);
}

static inline void store_whole(int32_t *p, whole v) {
    _mm512_storeu_si512(p, v);
}

/* A mask of the elements that are not 0. */
static inline uint32_t not_zero(whole v) {
    return _mm512_test_epi32_mask(v, v);
}

/* The step of each walk. */
static inline whole step_of(const sni_tree_place *n, const float *x, whole row, whole here) {
    const whole even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const whole zero = _mm512_setzero_si512();
    __mmask16 all = 0xffff;
    __asm__(
        ""
        : "+k"(all)); /* hides from the compiler that the mask is full: it would drop the zeros */
    whole low =
        _mm512_mask_i32gather_epi64(zero, (__mmask8)all, _mm512_castsi512_si256(here), n, 8);
    whole high =
        _mm512_mask_i32gather_epi64(zero, (__mmask8)all, _mm512_extracti64x4_epi64(here, 1), n, 8);
    __m512 split = _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, even, high));
    whole odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    whole link = _mm512_permutex2var_epi32(low, odd, high);
    whole column = _mm512_add_epi32(row, _mm512_and_si512(link, _mm512_set1_epi32(FEATURE_MASK)));
    __m512 v = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), all, column, x, 4);
    __mmask16 missing = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q) & _mm512_movepi32_mask(link);
    __mmask16 yes = _mm512_cmp_ps_mask(v, split, _CMP_LE_OQ) | missing;
    whole skip = _mm512_and_si512(_mm512_srli_epi32(link, SNI_TREE_FEATURE_BITS),
                                  _mm512_set1_epi32(SKIP_MASK));
    return _mm512_mask_mov_epi32(skip, yes, _mm512_set1_epi32(1));
}

static inline whole add(whole a, whole b) {
    return _mm512_add_epi32(a, b);
}

#else

enum { WIDTH = 8 };
typedef __m256i whole;

static inline whole load_whole(const int32_t *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

static inline void store_whole(int32_t *p, whole v) {
    _mm256_storeu_si256((__m256i *)p, v);
}

/* A bit for each element that is not 0. */
static inline uint32_t not_zero(whole v) {
    __m256i none = _mm256_cmpeq_epi32(v, _mm256_setzero_si256());
    return ~(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(none)) & 0xff;
}

/* How far each walk goes. */
static inline whole step_of(const sni_tree_place *n, const float *x, whole row, whole here) {
    const __m256 zero = _mm256_setzero_ps();
    __m256 all = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
    __asm__("" : "+x"(all)); /* a compiler that knows this mask leaves out the zeros */
    whole link = _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), &n->link, here,
                                             _mm256_castps_si256(all), 8);
    __m256 split = _mm256_mask_i32gather_ps(zero, &n->split, here, all, 8);
    whole feature = _mm256_and_si256(link, _mm256_set1_epi32(FEATURE_MASK));
    __m256 v = _mm256_mask_i32gather_ps(zero, x, _mm256_add_epi32(row, feature), all, 4);
    __m256 missing = _mm256_and_ps(_mm256_cmp_ps(v, v, _CMP_UNORD_Q), _mm256_castsi256_ps(link));
    __m256 yes = _mm256_or_ps(_mm256_cmp_ps(v, split, _CMP_LE_OQ), missing);
    whole skip = _mm256_and_si256(_mm256_srli_epi32(link, SNI_TREE_FEATURE_BITS),
                                  _mm256_set1_epi32(SKIP_MASK));
    return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(skip),
                                                _mm256_castsi256_ps(_mm256_set1_epi32(1)), yes));
}

static inline whole add(whole a, whole b) {
    return _mm256_add_epi32(a, b);
}

#endif

enum {
    VECTORS = 4, /* what fits the registers */
    FEW = 6      /* so many walks go on one by one: a scalar step takes a third of a vector step */
};

static inline __attribute__((always_inline)) void
walk_some(const sni_tree_place *n, const float *x, const int32_t *from, int32_t *at, int vectors) {
    whole row[VECTORS], here[VECTORS];
    uint64_t moved;
    UNROLL
    for (int v = 0; v < vectors; v++) row[v] = load_whole(from + v * WIDTH);
    UNROLL
    for (int v = 0; v < vectors; v++) here[v] = load_whole(at + v * WIDTH);
    do {
        moved = 0;
        UNROLL
        for (int v = 0; v < vectors; v++) {
            whole step = step_of(n, x, row[v], here[v]);
            moved |= (uint64_t)not_zero(step) << (v * WIDTH);
            here[v] = add(here[v], step);
        }
    } while (__builtin_popcountll(moved) > FEW);
    UNROLL
    for (int v = 0; v < vectors; v++) store_whole(at + v * WIDTH, here[v]);
    for (; moved; moved &= moved - 1) {
        int l = __builtin_ctzll(moved);
        int32_t place = at[l], step;
        do {
            step = step_of_one(n + place, x + from[l]);
            place += step;
        } while (step);
        at[l] = place;
    }
}

static void walk(const sni_tree_place *n, const float *x, const int32_t *from, int32_t *at,
                 int count) {
    int l = 0;
    for (; l + VECTORS * WIDTH <= count; l += VECTORS * WIDTH)
        walk_some(n, x, from + l, at + l, VECTORS);
    switch ((count - l) / WIDTH) {
    case 3:
        walk_some(n, x, from + l, at + l, 3);
        break;
    case 2:
        walk_some(n, x, from + l, at + l, 2);
        break;
    case 1:
        walk_some(n, x, from + l, at + l, 1);
        break;
    default:
        break;
    }
}

#else

static void walk(const sni_tree_place *n, const float *x, const int32_t *from, int32_t *at,
                 int count) {
    int32_t moved;
    do {
        moved = 0;
        for (int l = 0; l < count; l++) {
            int32_t step = step_of_one(&n[at[l]], x + from[l]);
            at[l] += step;
            moved |= step;
        }
    } while (moved);
}

#endif

SNI_DEFINE_TABLE(sni_tree_kernels) = {.walk = walk};
