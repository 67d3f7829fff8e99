/* long_work.c - loops that poll. */
#include "ops/core/long_work.h"

#include "base/threadpool.h"

#define LONG_WORK 33554432.0 /* operations between two looks at the clock: some milliseconds */

typedef struct long_part {
    void (*fn)(void *ctx, int64_t begin, int64_t end);
    void *ctx;
    int64_t first;
} long_part;

static void run_part(void *ctx, int64_t begin, int64_t end) {
    const long_part *p = ctx;
    p->fn(p->ctx, p->first + begin, p->first + end);
}

bool sni_long_work(double work) {
    return work > LONG_WORK;
}

sn_status sni_long_for(sni_kernel *k, int64_t n, int64_t grain, double work,
                       void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx) {
    if (!sni_long_work(work * (double)n)) {
        sni_parallel_for(k->threads, n, grain, fn, ctx);
        return SN_OK;
    }
    long_part part = {.fn = fn, .ctx = ctx};
    int64_t threads = k->threads > 0 ? k->threads : sni_threads_available();
    int64_t most = work < LONG_WORK ? (int64_t)(LONG_WORK / (work < 1 ? 1 : work)) : 1;
    if (grain > most) grain = most;
    for (int64_t count; part.first < n; part.first += count) {
        SN_TRY(sni_poll(k));
        count = n - part.first < most * threads ? n - part.first : most * threads;
        sni_parallel_for(k->threads, count, grain, run_part, &part);
    }
    return sni_poll(k);
}
