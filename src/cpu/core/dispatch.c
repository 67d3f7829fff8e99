/* dispatch.c - the choice of the tier, for every table of tiers.def. */
#include "cpu/core/dispatch.h"

#include <stddef.h>

#ifdef SNI_X86
#define SNI_TIER_TABLE(type, best)                                                                 \
    extern const type type##_baseline, type##_avx2, type##_avx512, type##_##best;                  \
    static const type *const type##_tiers[SNI_ISA_COUNT] = {[SNI_ISA_BASELINE] = &type##_baseline, \
                                                            [SNI_ISA_AVX2] = &type##_avx2,         \
                                                            [SNI_ISA_AVX512] = &type##_avx512,     \
                                                            [SNI_ISA_AVX512VNNI] = &type##_##best, \
                                                            [SNI_ISA_AMX] = &type##_##best};
#else
#define SNI_TIER_TABLE(type, best)     \
    extern const type type##_baseline; \
    static const type *const type##_tiers[SNI_ISA_COUNT] = {[SNI_ISA_BASELINE] = &type##_baseline};
#endif
#include "cpu/core/tiers.def"
#undef SNI_TIER_TABLE

#define SNI_TIER_TABLE(type, best)                               \
    const type *type##_of(sni_isa isa) {                         \
        return isa <= sni_cpu_best() ? type##_tiers[isa] : NULL; \
    }                                                            \
    const type *type##_get(void) {                               \
        return type##_tiers[sni_cpu_isa()];                      \
    }
#include "cpu/core/tiers.def"
#undef SNI_TIER_TABLE
