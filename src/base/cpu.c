/* cpu.c - which instructions and how many processors there are. */
#include "base/cpu.h"
#include "base/cgroup.h"

#include "base/threadpool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

/* ---- Instruction sets ---- */

static const char *const isa_names[SNI_ISA_COUNT] = {"baseline", "avx2", "avx512", "avx512vnni",
                                                     "amx"};

const char *sni_isa_name(sni_isa isa) {
    return (unsigned)isa < SNI_ISA_COUNT ? isa_names[isa] : "unknown";
}

#if defined(__x86_64__)

/* Register states that the operating system saves. */
static uint64_t enabled_states(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static sni_isa processor_isa(void) {
    const unsigned fma = 1u << 12, xsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
    const unsigned avx2 = 1u << 5;
    const unsigned avx512 =
        1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;  /* F DQ CD BW VL */
    const unsigned vnni = 1u << 11, amx = 1u << 24 | 1u << 25; /* TILE INT8 */
    const uint64_t ymm = 0x6, zmm = 0xe6, tiles = 0x60000;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return SNI_ISA_BASELINE;
    const unsigned needed = fma | xsave | avx | f16c;
    if ((c & needed) != needed) return SNI_ISA_BASELINE;
    uint64_t states = enabled_states();
    if ((states & ymm) != ymm || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & avx2))
        return SNI_ISA_BASELINE;
    if ((states & zmm) != zmm || (b & avx512) != avx512) return SNI_ISA_AVX2;
    if (!(c & vnni)) return SNI_ISA_AVX512;
    return (states & tiles) == tiles && (d & amx) == amx ? SNI_ISA_AMX : SNI_ISA_AVX512VNNI;
}

/* Those that the processor has, a bit each. */
static unsigned processor_features(void) {
    const unsigned vbmi = 1u << 1 | 1u << 6, avx512_bf16 = 1u << 5, amx_bf16 = 1u << 22;
    unsigned a, b, c, d, features = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    if ((c & vbmi) == vbmi) features |= 1u << SNI_CPU_VBMI2;
    if (d & amx_bf16) features |= 1u << SNI_CPU_AMX_BF16;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & avx512_bf16))
        features |= 1u << SNI_CPU_AVX512_BF16;
    return features;
}

/* Lets the process use tiles, whose state a thread's context does not hold unless this is asked
 * for. False: the system has no such thing, or a thread's signal stack is too small for it. */
static bool may_use_tiles(void) {
    enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM */
    return syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0;
}

#else

static sni_isa processor_isa(void) {
    return SNI_ISA_BASELINE;
}

static unsigned processor_features(void) {
    return 0;
}

static bool may_use_tiles(void) {
    return false;
}

#endif

sni_isa sni_cpu_best(void) {
    static atomic_int cached = -1;
    int best = atomic_load(&cached);
    if (best < 0) {
        best = (int)processor_isa();
        if (best == SNI_ISA_AMX && !may_use_tiles()) best = SNI_ISA_AVX512VNNI;
        atomic_store(&cached, best);
    }
    return (sni_isa)best;
}

/* The tier that SINTER_ISA names; SNI_ISA_COUNT: none. */
static int named_isa(void) {
    const char *name = getenv("SINTER_ISA");
    int isa = 0;
    while (isa < SNI_ISA_COUNT && !(name && strcmp(name, isa_names[isa]) == 0)) isa++;
    return isa;
}

sni_isa sni_cpu_isa(void) {
    static atomic_int cached = -1;
    int isa = atomic_load(&cached);
    if (isa >= 0) return (sni_isa)isa;
    isa = named_isa();
    if (isa >= (int)processor_isa()) isa = (int)sni_cpu_best(); /* who wants less asks for less */
    atomic_store(&cached, isa);
    return (sni_isa)isa;
}

bool sni_cpu_has(sni_cpu_feature feature) {
    static atomic_int cached = -1;
    int has = atomic_load_explicit(&cached, memory_order_relaxed);
    if (has < 0) {
        has = (int)processor_features();
        if (sni_cpu_isa() < SNI_ISA_AVX512VNNI) has = 0;
        if (sni_cpu_isa() < SNI_ISA_AMX) has &= ~(1 << SNI_CPU_AMX_BF16);
        atomic_store_explicit(&cached, has, memory_order_relaxed);
    }
    return has >> feature & 1;
}

/* ---- Processors ---- */

static int affinity_count(void) {
    for (int most = 1024; most <= 1 << 20; most *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)most);
        if (!set) return 1;
        size_t size = CPU_ALLOC_SIZE((size_t)most);
        int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0) return count;
    }
    return 1;
}

int sni_threads_available(void) {
    static atomic_int cached;
    int count = atomic_load(&cached);
    if (count > 0) return count;
    count = affinity_count();
    sni_cgroup_cpus(&count);
    if (count < 1) count = 1;
    atomic_store(&cached, count);
    return count;
}

int sni_cpu_block(void) {
    return sni_cpu_isa() >= SNI_ISA_AVX512 ? 16 : 8;
}

/* ---- Caches ---- */

#ifndef _SC_LEVEL1_DCACHE_SIZE /* not every C library has them; -1 is not known */
#define _SC_LEVEL1_DCACHE_SIZE (-1)
#define _SC_LEVEL2_CACHE_SIZE (-1)
#endif

static size_t cache_bytes[3]; /* by level */
static pthread_once_t cache_once = PTHREAD_ONCE_INIT;

static size_t cache_size(int name, size_t least, size_t most, size_t usual) {
    long found = sysconf(name);
    return found >= (long)least && found <= (long)most ? (size_t)found : usual;
}

static void find_caches(void) {
    cache_bytes[1] = cache_size(_SC_LEVEL1_DCACHE_SIZE, 8 << 10, 1 << 20, 32 << 10);
    cache_bytes[2] = cache_size(_SC_LEVEL2_CACHE_SIZE, 128 << 10, 16 << 20, 512 << 10);
}

size_t sni_cpu_cache(int level) {
    pthread_once(&cache_once, find_caches);
    return cache_bytes[level];
}
