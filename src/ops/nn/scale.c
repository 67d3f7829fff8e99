/* scale.c - weights times factors of their channels. */
#include "ops/nn/scale.h"

#include "base/threadpool.h"

typedef struct scale_job {
    const sni_unaligned_float *from;
    const float *by;
    int64_t channels, inner;
    float *to;
} scale_job;

static void multiply_all(const sni_unaligned_float *restrict from, float by, int64_t n,
                         float *restrict to) {
    for (int64_t i = 0; i < n; i++) to[i] = from[i] * by;
}

static void multiply_each(const sni_unaligned_float *restrict from, const float *restrict by,
                          int64_t n, float *restrict to) {
    for (int64_t i = 0; i < n; i++) to[i] = from[i] * by[i];
}

/* Stretches [begin, end) of `inner` elements that have a factor in common. */
static void scale_some(void *ctx, int64_t begin, int64_t end) {
    const scale_job *j = ctx;
    for (int64_t at = begin, n = 1; at < end; at += n) {
        int64_t channel = at % j->channels;
        if (j->inner > 1) {
            multiply_all(j->from + at * j->inner, j->by[channel], j->inner, j->to + at * j->inner);
            continue;
        }
        n = j->channels - channel < end - at ? j->channels - channel : end - at;
        multiply_each(j->from + at, j->by + channel, n, j->to + at);
    }
}

void sni_scale_channels(const sni_unaligned_float *from, int64_t count, const float *by,
                        int64_t channels, int64_t inner, float *to) {
    enum { GRAIN = 1 << 16 }; /* elements that are worth a thread */
    scale_job j = {.from = from, .by = by, .channels = channels, .inner = inner, .to = to};
    if (count > 0) sni_parallel_for(0, count / inner, GRAIN / inner + 1, scale_some, &j);
}
