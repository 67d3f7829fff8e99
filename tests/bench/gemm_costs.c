/* gemm_costs.c - measures what src/cpu/costs has for matrix products and prints it as one of those
 * files: the best of many rounds, in cycles of this core. */
#include "gemm_costs.h"

#include "cpu/core/machine.h"
#include "cpu/costs/costs.h"
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/inner_product.h"
#include "cpu/gemm/matmul_algorithms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 40, CHAIN = 1 << 20 };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Nanoseconds of a cycle: of one addition that waits for the one before. */
static double cycle_ns(void) {
    double best = 1e30;
    for (int r = 0; r < ROUNDS; r++) {
        double start = now_ns();
        uint64_t x = (uint64_t)r;
        for (int i = 0; i < CHAIN; i++) {
            x += 3;
            __asm__ volatile("" : "+r"(x));
        }
        best = fmin(best, (now_ns() - start) / CHAIN);
    }
    return best;
}

static float *floats(size_t count) {
    float *p = aligned_alloc(64, (count * sizeof *p + 127) / 64 * 64);
    if (!p) exit(1);
    for (size_t i = 0; i < count; i++) p[i] = (float)(int)(i * 2654435761u % 2001) / 1000 - 1;
    return p;
}

/* A product with weights in the caches. */
typedef struct subject {
    sni_gemm_f32 g;
    float *a, *b, *c, *numbers;
    uint8_t *even, *tame;
    sni_inner_product_b inner;
} subject;

static subject subject_new(int64_t m, int64_t n, int64_t k) {
    subject s = {.a = floats((size_t)(m * k)),
                 .b = floats(sni_gemm_packed_b_size(k, n)),
                 .c = floats((size_t)(m * n)),
                 .numbers = floats(sni_inner_product_numbers(k, n, false)),
                 .even = malloc(sni_gemm_even_size(k, n) + 1),
                 .tame = malloc(sni_inner_product_flags(n) + 1)};
    if (!s.even || !s.tame) exit(1);
    memset(s.even, 1, sni_gemm_even_size(k, n) + 1);
    s.g = (sni_gemm_f32){.m = m, .n = n, .k = k, .a = s.a, .a_row = k, .a_col = 1};
    s.g.packed_b = s.b;
    s.g.c = s.c;
    s.g.c_row = n;
    if (sni_inner_product_most()) sni_inner_product_measure(s.b, k, n, false, s.numbers, s.tame);
    s.inner =
        (sni_inner_product_b){.k = k, .n = n, .panels = s.b, .numbers = s.numbers, .tame = s.tame};
    return s;
}

static void subject_free(subject *s) {
    free(s->a);
    free(s->b);
    free(s->c);
    free(s->numbers);
    free(s->even);
    free(s->tame);
}

/* Nanoseconds of both rows, taken in turns. */
static void compare(subject *s, const char *row, double *plain, double *other) {
    const sni_gemm_algorithm *rows[2] = {sni_gemm_algorithm_named("tiled"),
                                         sni_gemm_algorithm_named(row)};
    double best[2] = {1e30, 1e30};
    s->g.even = s->even;
    s->g.inner_product = &s->inner;
    for (int r = 0; r < 2 * ROUNDS; r++) {
        size_t size = rows[r % 2]->scratch(&s->g, 1);
        float *scratch = floats(size + 16);
        rows[r % 2]->run(&s->g, 1, scratch);
        double start = now_ns();
        rows[r % 2]->run(&s->g, 1, scratch);
        best[r % 2] = fmin(best[r % 2], now_ns() - start);
        free(scratch);
    }
    *plain = best[0];
    *other = best[1];
}

/* Cycles that a row saves of the tiles' for so many. */
static double saved(const char *row, int64_t m, int64_t n, int64_t k, double cycle, double *plain) {
    subject s = subject_new(m, n, k);
    double tiled, other;
    compare(&s, row, &tiled, &other);
    subject_free(&s);
    if (plain) *plain = tiled / cycle;
    return (tiled - other) / cycle;
}

static void show_strassen(double cycle, double vector) {
    enum { N = 768, K = 768, FEW = 56, MANY = 392 };
    double vectors = (double)K * N / (sni_cpu_kernels_get()->nr / 2) * vector;
    double few = saved("strassen", FEW, N, K, cycle, NULL) / vectors;
    double many = saved("strassen", MANY, N, K, cycle, NULL) / vectors;
    double gain = (many - few) / (MANY - FEW);
    printf("            .strassen_gain = %.3f,\n", gain);
    printf("            .strassen_rows = %.1f,\n", gain > 0 ? MANY - many / gain : 0.0);
}

/* Of three products, whose rows save panels (2 gain k - end) - pack k each. */
static void show_inner_product(double cycle, double vector) {
    enum { M = 182, N = 512, K = 768, SHORT = 128, NARROW = 64 };
    int nr = sni_cpu_kernels_get()->nr;
    double gain = -1, end = 22, pack = 0.8125;
    if (sni_inner_product_most() > 0) {
        double all = saved("inner-product", M, N, K, cycle, NULL) / M;
        double few = saved("inner-product", M, N, SHORT, cycle, NULL) / M;
        double narrow = saved("inner-product", M, NARROW, K, cycle, NULL) / M;
        double panels = (double)N / nr, less = (double)NARROW / nr;
        double by_term = (all - few) / (K - SHORT); /* panels 2 gain - pack */
        end = (by_term * K - all) / panels;
        double narrow_term = (narrow + less * end) / K; /* less 2 gain - pack */
        double twice = (by_term - narrow_term) / (panels - less);
        gain = twice / 2 / vector;
        pack = panels * twice - by_term;
    }
    printf("            .inner_gain = %.3f,\n            .inner_end = %.1f,\n", gain, end);
    printf("            .inner_pack = %.3f,\n", pack);
}

void print_gemm_costs(void) {
    enum { M = 182, N = 512, K = 512 };
    sni_machine_peak peak = {0};
    double cycle = cycle_ns(), plain;
    saved("tiled", M, N, K, cycle, &plain);
    double vectors = (double)M * K * N / (sni_cpu_kernels_get()->nr / 2);
    double vector = plain / vectors;
    sni_machine_measure(1, &peak, NULL);
    printf("/* %s; %.2f GHz. */\n    .gemm =\n        {\n", sni_costs_get()->name, 1 / cycle);
    printf("            .vector = %.3f,\n", vector);
    show_strassen(cycle, vector);
    show_inner_product(cycle, vector);
    printf("            .memory_byte = %.3f,\n        },\n", 1e9 / peak.bytes / cycle);
}
