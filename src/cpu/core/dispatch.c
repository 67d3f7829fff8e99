/* dispatch.c - which instructions. */
#include "cpu/core/kernels.h"

#include <stddef.h>

extern const sni_cpu_kernels sni_cpu_kernels_baseline;
#ifdef SNI_X86
extern const sni_cpu_kernels sni_cpu_kernels_avx2, sni_cpu_kernels_avx512;
#endif

static const sni_cpu_kernels *const tiers[SNI_ISA_COUNT] = {
    [SNI_ISA_BASELINE] = &sni_cpu_kernels_baseline,
#ifdef SNI_X86
    [SNI_ISA_AVX2] = &sni_cpu_kernels_avx2,         [SNI_ISA_AVX512] = &sni_cpu_kernels_avx512,
    [SNI_ISA_AVX512VNNI] = &sni_cpu_kernels_avx512, [SNI_ISA_AMX] = &sni_cpu_kernels_avx512,
#endif
};

const sni_cpu_kernels *sni_cpu_kernels_of(sni_isa isa) {
    return isa <= sni_cpu_best() ? tiers[isa] : NULL;
}

const sni_cpu_kernels *sni_cpu_kernels_get(void) {
    const sni_cpu_kernels *found = NULL;
    for (int isa = (int)sni_cpu_isa(); isa >= 0 && !found; isa--) found = tiers[isa];
    return found;
}
