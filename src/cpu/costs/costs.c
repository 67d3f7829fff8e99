/* costs.c - the table of costs, and which entry is this processor's. */
#include "cpu/costs/costs.h"

#include <stdatomic.h>
#include <stddef.h>
#ifdef SNI_X86
#include <cpuid.h>
#endif

enum entry {
    ZEN_2,
    ZEN_3,
    ZEN_4,
    ZEN_5,
    SKYLAKE_X,
    ICE_LAKE,
    SAPPHIRE_RAPIDS,
    GENERIC_AMX, /* from here on by tier, the highest first */
    GENERIC_AVX512,
    GENERIC_AVX2,
    GENERIC_BASELINE,
    ENTRIES
};

static const sni_costs entries[ENTRIES] = {
#include "cpu/costs/zen2.def"
#include "cpu/costs/zen3.def"
#include "cpu/costs/zen4.def"
#include "cpu/costs/zen5.def"
#include "cpu/costs/skylake_x.def"
#include "cpu/costs/ice_lake.def"
#include "cpu/costs/sapphire_rapids.def"
#include "cpu/costs/generic_amx.def"
#include "cpu/costs/generic_avx512.def"
#include "cpu/costs/generic_avx2.def"
#include "cpu/costs/generic_baseline.def"
};

const sni_costs *sni_costs_at(int index) {
    return index >= 0 && index < ENTRIES ? &entries[index] : NULL;
}

#ifdef SNI_X86
/* The microarchitecture of an AMD family; ENTRIES: none that is known. */
static enum entry amd_entry(unsigned family, unsigned model) {
    if (family == 23) return model >= 0x30 ? ZEN_2 : ENTRIES;
    if (family == 25) return sni_cpu_best() >= SNI_ISA_AVX512 ? ZEN_4 : ZEN_3;
    return family == 26 ? ZEN_5 : ENTRIES;
}

static enum entry intel_entry(unsigned family, unsigned model) {
    if (family != 6) return ENTRIES;
    switch (model) {
    case 0x55:
        return SKYLAKE_X;
    case 0x6a:
    case 0x6c:
    case 0x7d:
    case 0x7e:
    case 0x8c:
    case 0x8d:
    case 0xa7:
        return ICE_LAKE;
    case 0x8f:
    case 0xcf:
    case 0xad:
    case 0xae:
        return SAPPHIRE_RAPIDS;
    default:
        return ENTRIES;
    }
}

/* The microarchitecture of this processor; ENTRIES: none that is known. */
static enum entry processor_entry(void) {
    unsigned a, b, c, d, b0, c0, d0;
    if (!__get_cpuid(0, &a, &b0, &c0, &d0) || !__get_cpuid(1, &a, &b, &c, &d)) return ENTRIES;
    unsigned family = a >> 8 & 15, model = a >> 4 & 15;
    if (family == 6 || family == 15) model |= a >> 12 & 0xf0;
    if (family == 15) family += a >> 20 & 255;
    if (b0 == signature_AMD_ebx && c0 == signature_AMD_ecx && d0 == signature_AMD_edx)
        return amd_entry(family, model);
    if (b0 == signature_INTEL_ebx && c0 == signature_INTEL_ecx && d0 == signature_INTEL_edx)
        return intel_entry(family, model);
    return ENTRIES;
}
#else
static enum entry processor_entry(void) {
    return ENTRIES;
}
#endif

/* An entry is for its tier and those above: a lower one that SINTER_ISA has put in force takes the
 * generic numbers. */
const sni_costs *sni_costs_get(void) {
    static const sni_costs *_Atomic cached;
    const sni_costs *costs = atomic_load_explicit(&cached, memory_order_relaxed);
    if (costs) return costs;
    enum entry own = processor_entry();
    if (own != ENTRIES && entries[own].tier <= sni_cpu_isa()) {
        costs = &entries[own];
    } else {
        costs = &entries[GENERIC_AMX];
        while (costs->tier > sni_cpu_isa()) costs++; /* the last is for every tier */
    }
    atomic_store_explicit(&cached, costs, memory_order_relaxed);
    return costs;
}
