/* filters.c - filters of convolutions transposed so that a vector holds a tap of a block of them.
 */
#include "base/threadpool.h"
#include "cpu/conv/conv.h"
#include "cpu/core/kernels.h"

#include <string.h>

enum {
    AT_ONCE = 64,    /* taps that are transposed at once */
    MOST_BLOCK = 16, /* of all tiers */
    GRAIN = 1 << 15  /* weights that are worth a thread */
};

typedef struct job {
    const sni_cpu_kernels *kernels;
    const sni_unaligned_float *w;
    int64_t out, in, taps, in_block;
    bool apart;
    float *to;
} job;

/* Taps from `first` on, counted over all channels of a filter, to their places. */
static void place(const job *j, const float *transposed, int64_t first, int64_t count, float *to) {
    int64_t block = j->kernels->block;
    int64_t channel = first / j->taps, tap = first % j->taps;
    int64_t inputs = sni_blocks(j->in, j->in_block) * j->in_block;
    for (int64_t i = 0; i < count; i++, transposed += block) {
        int64_t in_block = channel / j->in_block * j->in_block;
        int64_t row = in_block * j->taps + tap * j->in_block + channel - in_block;
        if (j->apart) row = tap * inputs + channel;
        memcpy(to + row * block, transposed, (size_t)block * sizeof *to);
        if (++tap < j->taps) continue;
        tap = 0;
        channel++;
    }
}

/* Output blocks [begin, end). */
static void pack_blocks(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    int64_t block = j->kernels->block, depth = j->in * j->taps;
    int64_t size = sni_blocks(j->in, j->in_block) * j->in_block * j->taps * block;
    float transposed[AT_ONCE * MOST_BLOCK];
    for (int64_t b = begin; b < end; b++) {
        const sni_unaligned_float *from = j->w + b * block * depth;
        int64_t count = j->out - b * block < block ? j->out - b * block : block;
        float *to = j->to + b * size;
        if (j->taps == 1 || j->in_block == 1) { /* in order as they are */
            j->kernels->pack_transposed(from, depth, count, (int)block, depth, to);
            continue;
        }
        for (int64_t at = 0; at < depth; at += AT_ONCE) {
            int64_t some = depth - at < AT_ONCE ? depth - at : AT_ONCE;
            j->kernels->pack_transposed(from + at, depth, count, (int)block, some, transposed);
            place(j, transposed, at, some, to);
        }
    }
}

void sni_conv_pack_filters(const sni_unaligned_float *w, int64_t out, int64_t in, int64_t taps,
                           int64_t in_block, bool apart, float *to) {
    job j = {.kernels = sni_cpu_kernels_get(),
             .w = w,
             .out = out,
             .in = in,
             .taps = taps,
             .in_block = in_block,
             .apart = apart,
             .to = to};
    int64_t block = j.kernels->block, each = in * taps * block;
    sni_parallel_for(0, sni_blocks(out, block), each > GRAIN ? 1 : GRAIN / (each + 1) + 1,
                     pack_blocks, &j);
}
