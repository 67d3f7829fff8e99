/* gemm_core.inc.c - the GEMM micro-kernel: a tile of C stays in registers over all of k. */

#if LANES == 16
enum { MR = 14, NV = 2, KC = 768 };
#elif LANES == 8
enum { MR = 6, NV = 2, KC = 384 };
#else
enum { MR = 4, NV = 2, KC = 384 };
#endif
enum {
    NR = NV * LANES,
    STEPS = 4,       /* of k in one round of the loop */
    FETCH_STEPS = 16 /* of k for which lines are fetched at once */
};

/* One step of k. */
static inline __attribute__((always_inline)) void tile_step(int rows, const float *a,
                                                            const float *b, vf sum[MR][NV]) {
    vf right[NV];
    UNROLL
    for (int j = 0; j < NV; j++) right[j] = load(b + j * LANES);
    UNROLL
    for (int i = 0; i < rows; i++) {
        vf left = splat(a[i]);
        UNROLL
        for (int j = 0; j < NV; j++) sum[i][j] += left * right[j];
    }
}

/* `rows` is a constant at every call, so that the loops unroll and the tile needs no memory.
 * Several steps of k make one round of the loop: its counting would otherwise take the multipliers'
 * place. */
static inline __attribute__((always_inline)) void tile_steps(int rows, int64_t k, const float **a,
                                                             const float **b, vf sum[MR][NV]) {
    const float *x = *a, *y = *b;
    for (; k >= STEPS; k -= STEPS, x += STEPS * MR, y += STEPS * NR) {
        UNROLL
        for (int s = 0; s < STEPS; s++) tile_step(rows, x + s * MR, y + s * NR, sum);
    }
    for (; k > 0; k--, x += MR, y += NR) tile_step(rows, x, y, sum);
    *a = x;
    *b = y;
}

/* With `go_on`, C is the sum so far, as if it had never left the registers.
 *
 * What is fetched comes a few lines at a time, all along: memory has its own pace, and what waits
 * for it must not fill the places that the tile's own loads need. */
static inline __attribute__((always_inline)) void tile(int rows, int64_t k, const float *a,
                                                       const float *b, float *restrict c,
                                                       int64_t c_row, bool add, bool go_on,
                                                       const float *fetch, int64_t lines) {
    vf sum[MR][NV];
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < NV; j++) sum[i][j] = go_on ? load(c + i * c_row + j * LANES) : splat(0);
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < NR; j += 16) __builtin_prefetch(c + i * c_row + j, 1);
    int64_t each = (lines * FETCH_STEPS + k - 1) / (k ? k : 1), p = 0;
    for (; p + FETCH_STEPS <= k && lines > 0; p += FETCH_STEPS, lines -= each) {
        for (int64_t i = 0; i < each; i++, fetch += 16) __builtin_prefetch(fetch, 0, 2);
        tile_steps(rows, FETCH_STEPS, &a, &b, sum);
    }
    tile_steps(rows, k - p, &a, &b, sum);
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < NV; j++) {
        float *at = c + i * c_row + j * LANES;
        store(at, add ? load(at) + sum[i][j] : sum[i][j]);
    }
}
