/* gemm_layers.c - matrix products on packed weights beside the machine's peak: square ones, and the
 * layers of well-known transformers with weights that are not in any cache.
 *
 *     bench_gemm [threads] [milliseconds per measurement] [network] [algorithm]
 *     bench_gemm --costs
 *
 * The algorithm is a row of cpu/gemm/matmul_algorithms.c that takes constant operands ("tiled",
 * "strassen", "inner-product" or "emulated"); without one, the best of these on this machine. The
 * second line prints the coefficients of this machine for src/cpu/costs.
 *
 * "warm" repeats one product; "cold" takes other weights every time, as a run of a whole model
 * does. */
#include "cpu/gemm/emulated.h"
#include "cpu/gemm/gemm.h"
#include "cpu/core/machine.h"
#include "cpu/gemm/inner_product.h"
#include "cpu/gemm/matmul_algorithms.h"
#include "gemm_costs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { COLD_BYTES = 300 << 20, HUGE_PAGE = 2 << 20 };

typedef struct layer {
    const char *network;
    int64_t m, k, n;
    sni_act act;
    bool residual;
} layer;

static const layer layers[] = {
    {"square", 512, 512, 512, SNI_ACT_NONE, false},
    {"square", 1024, 1024, 1024, SNI_ACT_NONE, false},
    {"square", 2048, 2048, 2048, SNI_ACT_NONE, false},
    {"square", 4096, 4096, 4096, SNI_ACT_NONE, false},
    {"bert s128", 128, 768, 768, SNI_ACT_NONE, true},
    {"bert s128", 128, 768, 2304, SNI_ACT_NONE, false},
    {"bert s128", 128, 768, 3072, SNI_ACT_GELU, false},
    {"bert s128", 128, 3072, 768, SNI_ACT_NONE, true},
    {"bert s16", 16, 768, 768, SNI_ACT_NONE, true},
    {"bert s16", 16, 768, 3072, SNI_ACT_GELU, false},
    {"bert s16", 16, 3072, 768, SNI_ACT_NONE, true},
    {"vit", 197, 768, 768, SNI_ACT_NONE, true},
    {"vit", 197, 768, 3072, SNI_ACT_GELU, false},
    {"vit", 197, 3072, 768, SNI_ACT_NONE, true},
    {"minilm", 128, 384, 384, SNI_ACT_NONE, true},
    {"minilm", 128, 384, 1536, SNI_ACT_GELU, false},
    {"minilm", 128, 1536, 384, SNI_ACT_NONE, true},
    {"swin", 3136, 96, 96, SNI_ACT_NONE, false},
    {"swin", 3136, 96, 384, SNI_ACT_GELU, false},
    {"swin", 3136, 384, 96, SNI_ACT_NONE, true},
    {"swin", 784, 192, 768, SNI_ACT_GELU, false},
    {"swin", 196, 384, 1536, SNI_ACT_GELU, false},
    {"swin", 196, 1536, 384, SNI_ACT_NONE, true},
    {"swin", 49, 768, 768, SNI_ACT_NONE, false},
    {"swin", 49, 768, 3072, SNI_ACT_GELU, false},
    {"swin", 49, 3072, 768, SNI_ACT_NONE, true},
    {"graph net", 1000, 1000, 128, SNI_ACT_NONE, false},
    {"graph net", 1000, 512, 128, SNI_ACT_NONE, false},
    {"graph net", 1000, 128, 128, SNI_ACT_NONE, false},
    {"swin", 784, 192, 192, SNI_ACT_NONE, true},
    {"swin", 784, 768, 192, SNI_ACT_NONE, true},
    {"gpt2", 1, 768, 768, SNI_ACT_NONE, true},
    {"gpt2", 1, 768, 3072, SNI_ACT_GELU_TANH, false},
    {"gpt2", 1, 768, 50257, SNI_ACT_NONE, false},
};

static double now(void) { /* milliseconds */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static float *floats(size_t count) {
    size_t bytes = (count * sizeof(float) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    float *p = aligned_alloc(HUGE_PAGE, bytes + HUGE_PAGE);
    if (!p) exit(1);
    madvise(p, bytes, MADV_HUGEPAGE);
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        p[i] = (float)(state >> 8) * 0x1p-23f - 1.0f;
    }
    return p;
}

typedef enum way { TILED, STRASSEN, INNER_PRODUCT, EMULATED } way;

static const char *const ways[] = {"tiled", "strassen", "inner-product", "emulated"};

/* What the product is told of its weights; of all copies the same, results are not looked at. */
typedef struct facts {
    uint8_t *even, *tame;
    float *numbers;
    sni_inner_product_b inner_product;
    sni_emulated_b emulated;
} facts;

static void tell(facts *f, way how, float *weights, sni_gemm_f32 *g) {
    size_t even = sni_gemm_even_size(g->k, g->n);
    f->even = malloc(even + 1);
    f->tame = malloc(sni_inner_product_flags(g->n));
    f->numbers = floats(sni_inner_product_numbers(g->k, g->n, false));
    if (!f->even || !f->tame) exit(1);
    memset(f->even, 1, even);
    g->use = sni_gemm_algorithm_named(ways[how]);
    if (even && how == STRASSEN) g->even = f->even;
    if (how == EMULATED && sni_emulated_can(g->k, g->n)) {
        f->emulated = sni_emulated_of(g->k, g->n, false, weights);
        g->emulated = &f->emulated;
    }
    if (how != INNER_PRODUCT || g->k % SNI_LEFT_STEPS) return;
    sni_inner_product_measure(weights, g->k, g->n, false, f->numbers, f->tame);
    f->inner_product =
        (sni_inner_product_b){.k = g->k, .n = g->n, .numbers = f->numbers, .tame = f->tame};
    g->inner_product = &f->inner_product;
}

/* The mean time of a call over the quickest of a few rounds. */
static double measure(sni_gemm_f32 *g, facts *f, float *weights, size_t size, size_t copies,
                      int threads, float *scratch, double milliseconds) {
    double best = 1e30, start = now();
    for (int round = 0; round < 2 || now() - start < milliseconds; round++) {
        double at = now();
        for (size_t i = 0; i < copies; i++) {
            g->packed_b = f->inner_product.panels = weights + i * size;
            f->emulated = sni_emulated_of(g->k, g->n, false, weights + i * size);
            sni_gemm_f32_run(g, threads, scratch);
        }
        at = (now() - at) / (double)copies;
        if (at < best) best = at;
    }
    return best;
}

static void run_layer(const layer *l, int threads, double milliseconds, double peak, float *weights,
                      size_t room, way how) {
    size_t size = (sni_gemm_packed_b_size(l->k, l->n) + 15) / 16 * 16;
    if (size > room) return;
    float *a = floats((size_t)(l->m * l->k)), *c = floats((size_t)(l->m * l->n));
    float *bias = floats((size_t)l->n), *more = floats((size_t)(l->m * l->n));
    sni_gemm_f32 g = {.m = l->m, .n = l->n, .k = l->k, .a = a, .a_row = l->k, .a_col = 1};
    g.packed_b = weights;
    g.c = c;
    g.c_row = l->n;
    facts f = {0};
    tell(&f, how, weights, &g);
    g.epilogue.act = l->act;
    g.epilogue.column_bias = bias;
    g.epilogue.residual = l->residual ? more : NULL;
    g.epilogue.residual_row = l->n;
    float *scratch = floats(sni_gemm_scratch_size(&g, threads) + 16);
    double flops = 2.0 * (double)l->m * (double)l->n * (double)l->k;
    size_t copies = l->m > 512 && l->m == l->n ? 1 : room / size;
    double warm = measure(&g, &f, weights, size, 1, threads, scratch, milliseconds);
    double cold = measure(&g, &f, weights, size, copies, threads, scratch, milliseconds);
    printf("%-10s %5d %5d %5d %10.1f us %4.0f %% %10.1f us %4.0f %% %6.1f GB/s\n", l->network,
           (int)l->m, (int)l->k, (int)l->n, warm * 1e3, flops / warm / peak * 1e-4, cold * 1e3,
           flops / cold / peak * 1e-4, (double)(size * sizeof(float)) / cold * 1e-6);
    fflush(stdout);
    free(a);
    free(c);
    free(bias);
    free(more);
    free(scratch);
    free(f.even);
    free(f.tame);
    free(f.numbers);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--costs") == 0) {
        print_gemm_costs();
        return 0;
    }
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    double milliseconds = argc > 2 ? atof(argv[2]) : 100;
    const char *only = argc > 3 ? argv[3] : "";
    way how = sni_emulated_kernels_get()       ? EMULATED
              : sni_inner_product_is_quicker() ? INNER_PRODUCT
                                               : STRASSEN;
    for (way w = TILED; argc > 4 && w <= EMULATED; w++)
        if (strcmp(argv[4], ways[w]) == 0) how = w;
    sni_machine_peak machine = {0};
    if (sni_machine_measure(threads, &machine, NULL) != SN_OK) return 1;
    double peak = machine.flops * 1e-9;
    printf("%d threads, peak %.1f GFLOP/s, reads %.1f GB/s\n", threads, peak, machine.bytes * 1e-9);
    printf("%-10s %5s %5s %5s %20s %25s\n", "network", "m", "k", "n", "warm", "cold");
    size_t room = COLD_BYTES / sizeof(float);
    float *weights = floats(room);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strstr(layers[i].network, only))
            run_layer(&layers[i], threads, milliseconds, peak, weights, room, how);
    free(weights);
    return 0;
}
