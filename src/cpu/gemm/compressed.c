/* compressed.c - which instructions compress and decompress exponents. */
#include "cpu/gemm/compressed.h"

#include "base/cpu.h"

extern const sni_compressed_kernels sni_compressed_kernels_baseline;
#ifdef SNI_X86
extern const sni_compressed_kernels sni_compressed_kernels_avx2, sni_compressed_kernels_avx512;
#endif

/* A tier below the best one has the instructions of its name alone, so that tests reach them. */
const sni_compressed_kernels *sni_compressed_kernels_get(void) {
#ifdef SNI_X86
    sni_isa isa = sni_cpu_isa();
    if (isa == SNI_ISA_AVX2) return &sni_compressed_kernels_avx2;
    if (sni_cpu_has(SNI_CPU_VBMI2)) return sni_compressed_kernels_avx512.with_vbmi2;
    if (isa >= SNI_ISA_AVX512) return &sni_compressed_kernels_avx512;
#endif
    return &sni_compressed_kernels_baseline;
}
