/* machine.h - the peak rates of this machine, measured. */
#ifndef SNI_CPU_CORE_MACHINE_H
#define SNI_CPU_CORE_MACHINE_H

#include "base/status.h"
#include "cpu/core/dispatch.h"

#include <stdint.h>

struct sni_peak_kernels {
    int64_t chain_flops; /* float operations of a round of fma_chain() */
    /* So many rounds of multiply-add in registers. The result means nothing: it keeps the compiler
     * from dropping the work. */
    float (*fma_chain)(int64_t rounds);
    /* The sum of n floats, a multiple of 4 vectors, in any order. */
    float (*read_sum)(const float *x, int64_t n);
};

typedef struct sni_machine_peak {
    double flops; /* float32 operations per second; a multiply-add counts as two */
    double bytes; /* bytes per second read from main memory */
} sni_machine_peak;

/* Measures with so many threads (0: all available) for about 0.2 s. Fails with SN_NO_MEMORY. */
sn_status sni_machine_measure(int threads, sni_machine_peak *out, sn_error *err);

#endif
