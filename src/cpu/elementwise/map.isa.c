/* map.isa.c - float32 functions of one and of two numbers over contiguous rows, for one tier. One
 * vector per step and a masked tail; cheap functions are limited by memory, the others by their
 * instructions (see cpu/core/simd_math.h). */
#include "cpu/core/kernels.h"
#include "cpu/core/act_vf.h"
#include "cpu/elementwise/map.h"

/* Elements between what is computed and what is prefetched. Functions of many instructions fill the
 * reorder buffer, so that the loads of later vectors would not be issued in time. */
enum { PREFETCH = 512 };

#define SNI_ACT(name)                                                                           \
    static void map_##name(float p0, float p1, const float *x, float *y, int64_t n) {           \
        vf a = splat(p0), b = splat(p1);                                                        \
        int64_t i = 0;                                                                          \
        for (; i + PREFETCH + LANES <= n; i += LANES) {                                         \
            __builtin_prefetch(x + i + PREFETCH, 0);                                            \
            __builtin_prefetch(y + i + PREFETCH, 1);                                            \
            store(y + i, act_vf(SNI_ACT_##name, a, b, load(x + i)));                            \
        }                                                                                       \
        for (; i + LANES <= n; i += LANES)                                                      \
            store(y + i, act_vf(SNI_ACT_##name, a, b, load(x + i)));                            \
        if (i < n)                                                                              \
            store_some(y + i, n - i, act_vf(SNI_ACT_##name, a, b, load_some(x + i, n - i, 1))); \
    }
#include "cpu/core/act.def"
#undef SNI_ACT

/* 1 where a comparison holds, else 0. */
static inline vf truth_vf(vi mask) {
    return (vf)(mask & (vi)splat(1.0f));
}

static inline __attribute__((always_inline)) vf binary_vf(sni_binary op, vf a, vf b) {
    switch (op) {
    case SNI_BINARY_ADD:
        return a + b;
    case SNI_BINARY_SUB:
        return a - b;
    case SNI_BINARY_MUL:
        return a * b;
    case SNI_BINARY_DIV:
        return a / b;
    case SNI_BINARY_MAX: /* NaN wins */
        return select_vf((a > b) | (a != a), a, b);
    case SNI_BINARY_MIN:
        return select_vf((a < b) | (a != a), a, b);
    case SNI_BINARY_EQUAL:
        return truth_vf(a == b);
    case SNI_BINARY_NOT_EQUAL:
        return truth_vf(a != b);
    case SNI_BINARY_LESS:
        return truth_vf(a < b);
    case SNI_BINARY_LESS_OR_EQUAL:
        return truth_vf(a <= b);
    default: /* PRELU */
        return select_vf(a < 0, a * b, a);
    }
}

/* y = a op b. sa and sb: the operand is a row, otherwise one number. All three are constants at
 * every call. */
static inline __attribute__((always_inline)) void
binary(sni_binary op, const float *a, const float *b, float *y, int64_t n, bool sa, bool sb) {
    vf one_a = splat(sa ? 0 : a[0]), one_b = splat(sb ? 0 : b[0]);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(y + i, binary_vf(op, sa ? load(a + i) : one_a, sb ? load(b + i) : one_b));
    if (i < n)
        store_some(y + i, n - i,
                   binary_vf(op, sa ? load_some(a + i, n - i, 1) : one_a,
                             sb ? load_some(b + i, n - i, 1) : one_b));
}

#define SNI_BINARY(name)                                                                    \
    static void binary_##name(const void *a, const void *b, void *y, int64_t n, int64_t sa, \
                              int64_t sb, const void *params) {                             \
        (void)params;                                                                       \
        if (n <= 0) return;                                                                 \
        if (sa && sb)                                                                       \
            binary(SNI_BINARY_##name, a, b, y, n, true, true);                              \
        else if (sa)                                                                        \
            binary(SNI_BINARY_##name, a, b, y, n, true, false);                             \
        else if (sb)                                                                        \
            binary(SNI_BINARY_##name, a, b, y, n, false, true);                             \
        else                                                                                \
            binary(SNI_BINARY_##name, a, b, y, n, false, false);                            \
    }
#include "cpu/core/binary.def"
#undef SNI_BINARY

/* ---- Selection and conversions, for groups of operators ---- */

/* y = c ? a : b; `sa` and `sb` as above. */
static inline __attribute__((always_inline)) void
choose(const float *c, const float *a, const float *b, float *y, int64_t n, bool sa, bool sb) {
    vf one_a = splat(sa ? 0 : a[0]), one_b = splat(sb ? 0 : b[0]);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(y + i,
              select_vf(load(c + i) != 0, sa ? load(a + i) : one_a, sb ? load(b + i) : one_b));
    if (i < n)
        store_some(y + i, n - i,
                   select_vf(load_some(c + i, n - i, 0) != 0,
                             sa ? load_some(a + i, n - i, 0) : one_a,
                             sb ? load_some(b + i, n - i, 0) : one_b));
}

static void choose_row(const float *c, const float *a, const float *b, float *y, int64_t n,
                       int64_t sa, int64_t sb) {
    if (sa && sb)
        choose(c, a, b, y, n, true, true);
    else if (sa)
        choose(c, a, b, y, n, true, false);
    else if (sb)
        choose(c, a, b, y, n, false, true);
    else
        choose(c, a, b, y, n, false, false);
}

static void from_bools(const void *x, float *y, int64_t n) {
    const uint8_t *b = x;
    for (int64_t i = 0; i < n; i++) y[i] = b[i] ? 1.0f : 0.0f;
}

static void from_int32(const void *x, float *y, int64_t n) {
    const int32_t *v = x;
    for (int64_t i = 0; i < n; i++) y[i] = (float)v[i];
}

static void from_int64(const void *x, float *y, int64_t n) {
    const int64_t *v = x;
    for (int64_t i = 0; i < n; i++) y[i] = (float)v[i];
}

static void to_bools(const float *x, uint8_t *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = x[i] != 0;
}

SNI_DEFINE_TABLE(sni_map_kernels) = {
    .map =
        {
#define SNI_ACT(name) [SNI_ACT_##name] = map_##name,
#include "cpu/core/act.def"
#undef SNI_ACT
        },
    .binary =
        {
#define SNI_BINARY(name) [SNI_BINARY_##name] = binary_##name,
#include "cpu/core/binary.def"
#undef SNI_BINARY
        },
    .choose_row = choose_row,
    .from_bools = from_bools,
    .from_int32 = from_int32,
    .from_int64 = from_int64,
    .to_bools = to_bools,
};
