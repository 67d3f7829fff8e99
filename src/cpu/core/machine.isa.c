/* machine.isa.c - what one tier of the machine can do at best: arithmetic in registers, and sums of
 * what memory delivers. */
#include "cpu/core/machine.h"
#include "cpu/core/simd.h"

enum { CHAINS = 12 }; /* independent sums: at least latency times multiply-add units of any CPU */

/* `rounds` times CHAINS vectors of multiply-add. The result only keeps the compiler from dropping
 * the loop. */
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

SNI_DEFINE_TABLE(sni_peak_kernels) = {
    .chain_flops = 2 * CHAINS * LANES,
    .fma_chain = fma_chain,
    .read_sum = read_sum,
};
