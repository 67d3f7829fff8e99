/* seven.inc.c - sums of operands for products by seven (cpu/gemm_seven.c). */

/* The greater of two numbers without their signs, as bits: infinity and NaN are greater than all
 * numbers. */
static inline vi greater_size(vi most, vf x) {
    return max_vi(most, (vi)x & 0x7fffffff);
}

/* A pair of row panels, its quarters A11, A12, A21 and A22 one after the other; behind them come
 * the sums. `sizes`: the bits of the greatest number of each row, without sign, of the upper panel
 * and then of the lower. */
static void seven_left(int64_t rows, int64_t half, float *a, int32_t *sizes) {
    int64_t quarter = MR * half;
    for (int64_t i = 0; i < rows; i++) {
        vi upper = {0}, lower = {0};
        for (int64_t at = i * SNI_LEFT_STEPS; at < quarter; at += MR * SNI_LEFT_STEPS) {
            UNROLL
            for (int l = 0; l < SNI_LEFT_STEPS; l += LANES) {
                float *p = a + at + l;
                vf a11 = load(p), a12 = load(p + quarter);
                vf a21 = load(p + 2 * quarter), a22 = load(p + 3 * quarter);
                store(p + 4 * quarter, a11 + a22);
                store(p + 5 * quarter, a21 + a22);
                store(p + 6 * quarter, a11 + a12);
                store(p + 7 * quarter, a11 - a21);
                store(p + 8 * quarter, a12 - a22);
                upper = greater_size(greater_size(upper, a11), a12);
                lower = greater_size(greater_size(lower, a21), a22);
            }
        }
        sizes[i] = greatest_lane(upper);
        sizes[MR + i] = greatest_lane(lower);
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
