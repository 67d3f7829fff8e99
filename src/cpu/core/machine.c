/* machine.c - the peak rates of this machine, measured. */
#include "cpu/core/machine.h"

#include "base/clock.h"
#include "base/threadpool.h"

#include <stdlib.h>

enum {
    TRIES = 8,
    ROUNDS = 1 << 18,       /* of one try: some milliseconds */
    READ_FLOATS = 16 << 20, /* larger than the private caches of a thread */
    MOST_THREADS = 256
};

typedef struct trial {
    const sni_peak_kernels *kernels;
    const float *memory; /* NULL: arithmetic is measured */
    int64_t piece;       /* floats that one thread reads */
    float sums[MOST_THREADS];
} trial;

static double seconds(void) {
    return (double)sni_now_ns() * 1e-9;
}

static void work(void *ctx, int64_t begin, int64_t end) {
    trial *t = ctx;
    for (int64_t i = begin; i < end; i++)
        t->sums[i] = t->memory ? t->kernels->read_sum(t->memory + i * t->piece, t->piece)
                               : t->kernels->fma_chain(ROUNDS);
}

/* The shortest time of several tries. */
static double best_time(trial *t, int threads) {
    double best = 1e30;
    for (int i = 0; i < TRIES; i++) {
        double start = seconds();
        sni_parallel_for(threads, threads, 1, work, t);
        double took = seconds() - start;
        if (took < best) best = took;
    }
    return best > 1e-9 ? best : 1e-9;
}

sn_status sni_machine_measure(int threads, sni_machine_peak *out, sn_error *err) {
    if (threads <= 0) threads = sni_threads_available();
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    trial *t = calloc(1, sizeof *t);
    float *memory = calloc(READ_FLOATS, sizeof *memory);
    if (!t || !memory) {
        free(t);
        free(memory);
        return sni_fail_memory(err);
    }
    t->kernels = sni_peak_kernels_get();
    double arithmetic = best_time(t, threads);
    for (int64_t i = 0; i < READ_FLOATS; i++)
        memory[i] = 1; /* touches every page: untouched ones are the shared zero page */
    t->memory = memory;
    t->piece = READ_FLOATS / threads / 64 * 64;
    double reading = best_time(t, threads);
    out->flops = (double)threads * ROUNDS * (double)t->kernels->chain_flops / arithmetic;
    out->bytes = (double)threads * (double)t->piece * sizeof(float) / reading;
    free(memory);
    free(t);
    return SN_OK;
}
