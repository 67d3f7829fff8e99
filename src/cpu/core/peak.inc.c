/* peak.inc.c - loops that do nothing but arithmetic, or nothing but reading: what the machine can
 * do at best, to compare kernels with. */

enum { CHAINS = 12 }; /* independent sums: more than latency times the units of any machine */

/* `rounds` times CHAINS vectors of multiply-add; the result keeps the compiler honest. */
static float fma_chain(int64_t rounds) {
    vf sums[CHAINS];
    vf a = splat(0.999f), b = splat(0.5f);
    UNROLL
    for (int i = 0; i < CHAINS; i++) sums[i] = splat((float)i);
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL
        for (int i = 0; i < CHAINS; i++) sums[i] = sums[i] * a + b;
    }
    vf total = sums[0];
    UNROLL
    for (int i = 1; i < CHAINS; i++) total += sums[i];
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += total[i];
    return sum;
}

/* The sum of n floats, a multiple of 4 vectors. */
static float read_sum(const float *x, int64_t n) {
    vf sums[4] = {{0}};
    for (int64_t i = 0; i + 4 * LANES <= n; i += 4 * LANES) {
        UNROLL
        for (int j = 0; j < 4; j++) sums[j] += load(x + i + j * LANES);
    }
    vf total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += total[i];
    return sum;
}
