/* compressed.c - which instructions code and decode, and whether it is worth it here. */
#include "cpu/gemm/compressed.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "cpu/core/kernels.h"

#include <stdatomic.h>
#include <stdlib.h>
#ifdef SNI_X86
#include <cpuid.h>
#include <emmintrin.h>
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

/* ---- Whether it pays ---- */

enum {
    READ_FLOATS = 1 << 19, /* that are read from memory at a time */
    GROUPS = 4,            /* that are decoded, again and again */
    DECODINGS = 64,        /* of them at a time */
    TRIES = 5
};

/* Takes n floats out of all caches. */
static void forget(const float *x, int64_t n) {
#ifdef SNI_X86
    for (int64_t i = 0; i < n; i += 16) _mm_clflush(x + i);
    _mm_mfence();
#else
    (void)x, (void)n;
#endif
}

/* Nanoseconds for a float from memory, the least of several tries. */
static double read_time(const float *x) {
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    volatile float sum;
    int64_t best = INT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        forget(x, READ_FLOATS);
        int64_t start = (int64_t)sni_now_ns();
        sum = k->read_sum(x, READ_FLOATS);
        int64_t took = (int64_t)sni_now_ns() - start;
        if (took < best) best = took;
    }
    (void)sum;
    return (double)best / READ_FLOATS;
}

/* The same for one that is decoded: the floats at x, with room at `to`. */
static double decode_time(const float *x, float *to) {
    const sni_compressed_kernels *coder = sni_compressed_kernels_get();
    int64_t rows = (int64_t)GROUPS * SNI_COMPRESSED_ROWS, count = rows * sni_cpu_kernels_get()->nr;
    uint8_t *groups = (uint8_t *)(to + count);
    uint8_t *room = groups + (size_t)GROUPS * (size_t)coder->group_bytes;
    sni_compressed_list list = {.end = room, .last = -1};
    coder->encode(x, GROUPS, 0x3f, groups, &list);
    int64_t best = INT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        int64_t start = (int64_t)sni_now_ns();
        for (int j = 0; j < DECODINGS; j++) {
            sni_compressed_piece piece = {
                .groups = groups, .more = room, .end = list.end, .last = -1, .base = 0x3f};
            coder->decode(&piece, rows, to, NULL, 0);
        }
        int64_t took = (int64_t)sni_now_ns() - start;
        if (took < best) best = took;
    }
    return (double)best / (double)(count * DECODINGS);
}

static atomic_int paying = -1;

void sni_compressed_assume(bool pays) {
    atomic_store(&paying, pays);
}

bool sni_compressed_pays(void) {
    int known = atomic_load(&paying);
    if (known >= 0 || !sni_compressed_kernels_get()->group_bytes) return known > 0;
    float *x = aligned_alloc(64, READ_FLOATS * sizeof *x), *to = NULL;
    if (x) to = aligned_alloc(64, READ_FLOATS * sizeof *to);
    if (to) {
        for (int64_t i = 0; i < READ_FLOATS; i++) x[i] = i % 64 ? 1 : 0.1f; /* some have no code */
        known = read_time(x) > SNI_COMPRESSED_WORTH * decode_time(x, to);
        atomic_store(&paying, known);
    }
    free(x);
    free(to);
    return known > 0;
}
