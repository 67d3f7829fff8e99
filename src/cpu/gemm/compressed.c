/* compressed.c - which instructions compress and decompress exponents. */
#include "cpu/gemm/compressed.h"

#include "base/cpu.h"

#include <stdatomic.h>
#ifdef SNI_X86
#include <cpuid.h>
#endif

extern const sni_compressed_kernels sni_compressed_kernels_baseline;
#ifdef SNI_X86
extern const sni_compressed_kernels sni_compressed_kernels_avx2, sni_compressed_kernels_avx512;

static bool has_vbmi2(void) {
    static atomic_int cached = -1;
    int has = atomic_load_explicit(&cached, memory_order_relaxed);
    if (has >= 0) return has;
    unsigned a, b, c, d;
    has = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & 1u << 1) && (c & 1u << 6); /* and VBMI */
    atomic_store_explicit(&cached, has, memory_order_relaxed);
    return has;
}
#endif

/* A tier below the best one has the instructions of its name alone, so that tests reach them. */
const sni_compressed_kernels *sni_compressed_kernels_get(void) {
#ifdef SNI_X86
    sni_isa isa = sni_cpu_isa();
    if (isa == SNI_ISA_AVX2) return &sni_compressed_kernels_avx2;
    if (isa >= SNI_ISA_AVX512VNNI && has_vbmi2()) return sni_compressed_kernels_avx512.with_vbmi2;
    if (isa >= SNI_ISA_AVX512) return &sni_compressed_kernels_avx512;
#endif
    return &sni_compressed_kernels_baseline;
}
