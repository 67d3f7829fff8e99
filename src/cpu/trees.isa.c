/* trees.isa.c - walks through decision trees for one instruction-set tier; see tier.isa.c. */
#include "cpu/trees.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { FEATURE_MASK = (1 << SNI_TREE_FEATURE_BITS) - 1, SKIP_MASK = (1 << SNI_TREE_SKIP_BITS) - 1 };

#if defined(__AVX2__)

/* Some vectors of walks at once: a step waits for memory, and the others' steps fill the time. */
#if defined(__AVX512F__)

enum { WIDTH = 16, VECTORS = SNI_TREE_LANES / WIDTH };
typedef __m512i whole;

static inline whole load_whole(const int32_t *p) {
    return _mm512_loadu_si512(p);
}

static inline void store_whole(int32_t *p, whole v) {
    _mm512_storeu_si512(p, v);
}

static inline bool is_zero(whole v) {
    return _mm512_test_epi32_mask(v, v) == 0;
}

/* How far each walk goes. */
static inline whole step_of(const sni_tree_nodes *n, const float *x, whole row, whole here) {
    whole link = _mm512_i32gather_epi32(here, n->link, 4);
    __m512 split = _mm512_i32gather_ps(here, n->split, 4);
    whole column = _mm512_add_epi32(row, _mm512_and_si512(link, _mm512_set1_epi32(FEATURE_MASK)));
    __m512 v = _mm512_i32gather_ps(column, x, 4);
    __mmask16 missing = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q) & _mm512_movepi32_mask(link);
    __mmask16 yes = _mm512_cmp_ps_mask(v, split, _CMP_LE_OQ) | missing;
    whole skip = _mm512_and_si512(_mm512_srli_epi32(link, SNI_TREE_FEATURE_BITS),
                                  _mm512_set1_epi32(SKIP_MASK));
    return _mm512_mask_mov_epi32(skip, yes, _mm512_set1_epi32(1));
}

static inline whole add(whole a, whole b) {
    return _mm512_add_epi32(a, b);
}

static inline whole either(whole a, whole b) {
    return _mm512_or_si512(a, b);
}

#else

enum { WIDTH = 8, VECTORS = SNI_TREE_LANES / WIDTH };
typedef __m256i whole;

static inline whole load_whole(const int32_t *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

static inline void store_whole(int32_t *p, whole v) {
    _mm256_storeu_si256((__m256i *)p, v);
}

static inline bool is_zero(whole v) {
    return _mm256_testz_si256(v, v);
}

/* How far each walk goes. */
static inline whole step_of(const sni_tree_nodes *n, const float *x, whole row, whole here) {
    whole link = _mm256_i32gather_epi32(n->link, here, 4);
    __m256 split = _mm256_i32gather_ps(n->split, here, 4);
    whole feature = _mm256_and_si256(link, _mm256_set1_epi32(FEATURE_MASK));
    __m256 v = _mm256_i32gather_ps(x, _mm256_add_epi32(row, feature), 4);
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

static inline whole either(whole a, whole b) {
    return _mm256_or_si256(a, b);
}

#endif

static void walk(const sni_tree_nodes *n, const float *x, const int32_t *from, int32_t *at) {
    whole row[VECTORS], here[VECTORS], moved;
    for (int v = 0; v < VECTORS; v++) row[v] = load_whole(from + v * WIDTH);
    for (int v = 0; v < VECTORS; v++) here[v] = load_whole(at + v * WIDTH);
    do {
        whole step[VECTORS];
        for (int v = 0; v < VECTORS; v++) step[v] = step_of(n, x, row[v], here[v]);
        moved = step[0];
        for (int v = 1; v < VECTORS; v++) moved = either(moved, step[v]);
        for (int v = 0; v < VECTORS; v++) here[v] = add(here[v], step[v]);
    } while (!is_zero(moved));
    for (int v = 0; v < VECTORS; v++) store_whole(at + v * WIDTH, here[v]);
}

#else

static void walk(const sni_tree_nodes *n, const float *x, const int32_t *from, int32_t *at) {
    int32_t moved;
    do {
        moved = 0;
        for (int l = 0; l < SNI_TREE_LANES; l++) {
            uint32_t link = (uint32_t)n->link[at[l]];
            float v = x[from[l] + (int32_t)(link & FEATURE_MASK)];
            bool yes = v <= n->split[at[l]] || (v != v && link >> 31);
            int32_t step = yes ? 1 : (int32_t)(link >> SNI_TREE_FEATURE_BITS & SKIP_MASK);
            at[l] += step;
            moved |= step;
        }
    } while (moved);
}

#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

extern const sni_tree_kernels PASTE(sni_tree_kernels_, TIER);

const sni_tree_kernels PASTE(sni_tree_kernels_, TIER) = {.walk = walk};
