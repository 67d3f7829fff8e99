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

static float quantize(const float *x, int64_t n, int8_t *q, int32_t *sum) {
    bool finite;
    float most = greatest(x, n, &finite), scale = most / 127, factor = 127 / most;
    *sum = 0;
    if (!finite || most < FLT_MIN * 256) {
        memset(q, 0, (size_t)n);
        return finite && most == 0 ? 0 : NAN;
    }
    int32_t total = 0;
    int64_t i = 0;
#if LANES >= 8
    vi sums = {0};
    for (; i + LANES <= n; i += LANES) {
        vi v = __builtin_convertvector(round_vf(load(x + i) * factor), vi);
        sums += v;
#if LANES == 16
        _mm_storeu_si128((__m128i *)(q + i), _mm512_cvtepi32_epi8((__m512i)v));
#else
        for (int l = 0; l < LANES; l++) q[i + l] = (int8_t)v[l];
#endif
    }
    for (int l = 0; l < LANES; l++) total += sums[l];
#endif
    for (; i < n; i++) {
        q[i] = (int8_t)nearbyintf(x[i] * factor);
        total += q[i];
    }
    *sum = total;
    return scale;
}

SNI_DEFINE_TABLE(sni_lowbit_kernels) = {
    .rows = ROWS, .bytes = tile_bytes, .floats = tile_floats, .quantize = quantize};
