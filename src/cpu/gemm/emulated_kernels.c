/* emulated_kernels.c - which tier has kernels for products that are emulated on int8 tiles. */
#include "cpu/gemm/emulated.h"

#ifdef SNI_X86
extern const sni_emulated_kernels sni_emulated_kernels_amx;
#endif

const sni_emulated_kernels *sni_emulated_kernels_get(void) {
#ifdef SNI_X86
    if (sni_cpu_isa() >= SNI_ISA_AMX) return &sni_emulated_kernels_amx;
#endif
    return NULL;
}
