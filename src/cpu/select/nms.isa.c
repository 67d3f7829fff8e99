/* nms.isa.c - a box against many, for one tier: LANES boxes per step, and a division only where a
 * lane overlaps at all. Compiled without fused multiply-adds, so that every tier decides alike. */
#include "cpu/select/nms.h"
#include "cpu/core/simd.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* Whether any lane of a comparison is true. */
static inline bool any(vi mask) {
#if defined(__AVX512F__)
    return _mm512_movepi32_mask((__m512i)mask) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_ps((__m256)mask) != 0;
#else
    int32_t found = 0;
    for (int i = 0; i < LANES; i++) found |= mask[i];
    return found != 0;
#endif
}

static bool overlaps(const sni_nms_taken *t, int64_t from, int64_t to, const float *b,
                     float threshold) {
    const vf y1 = splat(b[0]), x1 = splat(b[1]), y2 = splat(b[2]), x2 = splat(b[3]);
    const vf area = splat(b[4]), limit = splat(threshold), zero = splat(0);
    vi lane;
    for (int i = 0; i < LANES; i++) lane[i] = i;
    for (int64_t i = from; i < to; i += LANES) {
        vf height = min_vf(y2, load(t->y2 + i)) - max_vf(y1, load(t->y1 + i));
        vf width = min_vf(x2, load(t->x2 + i)) - max_vf(x1, load(t->x1 + i));
        vi left = (vi){0} + (int32_t)(to - i < LANES ? to - i : LANES);
        vi touch = (height > zero) & (width > zero) & (lane < left);
        if (!any(touch)) continue;
        vf both = height * width, either = (area + load(t->area + i)) - both;
        if (any(touch & (either > zero) & (both / either > limit))) return true;
    }
    return false;
}

SNI_DEFINE_TABLE(sni_nms_kernels) = {.overlaps = overlaps};
