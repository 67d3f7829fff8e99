/* strassen.isa.c - sums of operands for products by seven (cpu/gemm/strassen.c), for one
 * instruction-set tier. */
#include "cpu/gemm/strassen.h"

#include "cpu/core/simd.h"

#include "cpu/gemm/gemm_core.inc.c"

/* The greater of two numbers without their signs, as bits: infinity and NaN are greater than all
 * numbers. */
static inline vi greater_size(vi most, vf x) {
    return max_vi(most, (vi)x & 0x7fffffff);
}

/* Row i of a pair of panels, `up` and `down`. */
static inline void left_row(const float *up, const float *down, int64_t i, int64_t half, float *to,
                            int32_t *sizes) {
    vi upper = {0}, lower = {0};
    int64_t quarter = MR * half;
    to += i * SNI_LEFT_STEPS;
    for (int64_t p = 0; p < half; p += SNI_LEFT_STEPS, to += SNI_LEFT_STEPS * MR) {
        UNROLL
        for (int l = 0; l < SNI_LEFT_STEPS; l += LANES) {
            vf a11 = load(up + p + l), a12 = load(up + half + p + l);
            vf a21 = load(down + p + l), a22 = load(down + half + p + l);
            store(to + l, a11);
            store(to + quarter + l, a22);
            store(to + 2 * quarter + l, a11 + a22);
            store(to + 3 * quarter + l, a21 + a22);
            store(to + 4 * quarter + l, a11 + a12);
            store(to + 5 * quarter + l, a11 - a21);
            store(to + 6 * quarter + l, a12 - a22);
            upper = greater_size(greater_size(upper, a11), a12);
            lower = greater_size(greater_size(lower, a21), a22);
        }
    }
    sizes[i] = greatest_lane(upper);
    sizes[MR + i] = greatest_lane(lower);
}

/* Rows of A in pairs, a vector of each quarter at a time: four loads give seven stores, and memory
 * is the limit. */
static void left_sums(const float *from, int64_t step, int64_t rows, int64_t lower, int64_t half,
                      float *to, int32_t *sizes) {
    for (int64_t i = 0; i < rows; i++) {
        const float *up = from + i * step;
        left_row(up, i < lower ? up + rows * step : up, i, half, to, sizes);
    }
}

/* The greatest number of each column of a panel. */
static void column_sizes(int64_t k, const float *b, int32_t *sizes) {
    vi most[NV];
    memcpy(most, sizes, sizeof most);
    for (int64_t p = 0; p < k; p++, b += NR) {
        UNROLL
        for (int j = 0; j < NV; j++) most[j] = greater_size(most[j], load(b + j * LANES));
    }
    memcpy(sizes, most, sizeof most);
}

SNI_DEFINE_TABLE(sni_strassen_kernels) = {.left_sums = left_sums, .column_sizes = column_sizes};
