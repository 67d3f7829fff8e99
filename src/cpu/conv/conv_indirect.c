/* conv_indirect.c - blocked convolution of one tap whose input channels are found one by one,
 * wherever they lie: groups of channels that do not fill blocks, and channels taken from several
 * tensors. Outputs that share a block but not a group are sums over the channels of all their
 * groups, with zeros for those of the others; where that gives NaN, because 0 times infinity does,
 * each group's channels are summed apart. Every output is the same sum in the same order whatever
 * the number of threads. */
#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/conv/conv_algorithms.h"
#include "cpu/conv/blocked.h"
#include "ops/core/compute.h"

#include <stdlib.h>
#include <string.h>

/* Neighbouring output blocks that are made of the same input channels. Those of several groups make
 * up one block. */
typedef struct stretch {
    int64_t first, blocks;     /* of output */
    int64_t channel, channels; /* of input */
    int64_t panel;             /* where its weights begin: (blocks, channels, block) */
} stretch;

typedef struct indirect_weights {
    int64_t block, in;
    int64_t group_in, group_out; /* channels of a group */
    sni_blocked_origins *origins;
    float *panels, *bias, *slopes; /* the last two may be NULL */
    int64_t floats;                /* of panels */
    int64_t count;
    stretch of[];
} indirect_weights;

/* ---- Weights ---- */

bool sni_conv_indirect_supports(const sni_choice *c) {
    const sni_blocked_conv_params *p = c->params;
    sni_conv_geometry g;
    return c->node->n_out == 1 && !sni_choice_given(c, 5) && sni_blocked_any_geometry(c, &g) &&
           sni_blocked_is_flat(&p->fused.conv, c->constants[1]->tensor.dims);
}

/* Appends output block b, which is made of these input channels. */
static void add_block(indirect_weights *w, int64_t b, int64_t channel, int64_t channels) {
    stretch *s = w->count ? &w->of[w->count - 1] : NULL;
    if (!s || s->channel != channel || s->channels != channels) {
        s = &w->of[w->count++];
        *s = (stretch){.first = b, .channel = channel, .channels = channels, .panel = w->floats};
    }
    s->blocks++;
    w->floats += channels * w->block;
}

static void cut_blocks(indirect_weights *w, const sni_conv_geometry *g) {
    int64_t in = w->group_in, out = w->group_out;
    for (int64_t first = 0; first < g->out_channels; first += w->block) {
        int64_t last = first + w->block < g->out_channels ? first + w->block : g->out_channels;
        int64_t from = first / out, to = (last - 1) / out + 1;
        add_block(w, first / w->block, from * in, (to - from) * in);
    }
}

static void pack(const indirect_weights *w, const sni_conv_geometry *g, const float *from) {
    int64_t in = w->group_in, out = w->group_out;
    for (const stretch *s = w->of; s < w->of + w->count; s++)
        for (int64_t o = s->first * w->block; o < (s->first + s->blocks) * w->block; o++) {
            if (o >= g->out_channels) break;
            int64_t b = o / w->block - s->first, skip = o / out * in - s->channel;
            float *to = w->panels + s->panel + (b * s->channels + skip) * w->block + o % w->block;
            for (int64_t i = 0; i < in; i++) to[i * w->block] = from[o * in + i];
        }
}

static sn_status fill(const sni_choice *c, const sni_conv_geometry *g, indirect_weights *w,
                      sn_error *err) {
    const sni_tensor *from;
    bool filled;
    const sni_blocked_conv_params *p = c->params;
    SN_TRY(sni_blocked_origins_new(&p->indirect, &w->origins, err));
    cut_blocks(w, g);
    SN_TRY(sni_cpu_floats(c, (size_t)w->floats, &w->panels, &filled, err));
    if (!filled) {
        SN_TRY(sni_cpu_weight(c, 1, &from, err));
        pack(w, g, from->data);
    }
    SN_TRY(sni_blocked_bias(c, &w->bias, err));
    return sni_blocked_slopes(c, &w->slopes, err);
}

void sni_conv_indirect_release(void *state) {
    indirect_weights *w = state;
    free(w->origins);
    free(w);
}

sn_status sni_conv_indirect_prepare(const sni_choice *c, void **state, sn_error *err) {
    sni_conv_geometry g;
    int64_t block = sni_cpu_kernels_get()->block;
    if (!sni_blocked_any_geometry(c, &g)) return sni_fail(err, SN_INTERNAL, "no geometry");
    size_t blocks = (size_t)sni_blocks(g.out_channels, block);
    indirect_weights *w = calloc(1, sizeof *w + blocks * sizeof *w->of);
    if (!w) return sni_fail_memory(err);
    w->block = block;
    w->in = g.in_channels;
    w->group_in = g.in_channels / g.groups;
    w->group_out = g.out_channels / g.groups;
    sn_status status = fill(c, &g, w, err);
    if (status == SN_OK)
        *state = w;
    else
        sni_conv_indirect_release(w);
    return status;
}

/* ---- Running ---- */

/* Some neighbouring output blocks of a stretch. */
typedef struct tile {
    const stretch *of;
    int64_t first, width;
} tile;

/* Items are a span of pixels in the blocks of a tile. */
typedef struct indirect_job {
    const indirect_weights *w;
    const sni_conv_kernels *kernels;
    sni_conv_epilogue epilogue;
    float *y;
    const float **list; /* by image and channel */
    tile *tiles;
    int64_t n_tiles, out_blocks;
    int64_t pixels, span, spans;
} indirect_job;

enum {
    PIECE_MACS = 1 << 18, /* products that are worth a thread's while */
    STRIP = 8,            /* tiles of a strip: what they write stays in the first cache */
    MOST_WIDTH = SNI_CONV_MOST_WIDTH
};

/* A tile of outputs of several groups, which is one block wide: the channels of each group are
 * summed by themselves, and of their sums the lanes of the group's own outputs are kept. */
static void run_apart(const indirect_job *j, const stretch *s, int64_t pixels, sni_conv_tile t) {
    const indirect_weights *w = j->w;
    float sums[SNI_CONV_MOST_PIXELS * SNI_MOST_BLOCK], *y = t.y;
    int64_t block = w->block, groups = s->channels / w->group_in, from = 0;
    t.y = sums;
    t.unclear = NULL;
    t.channels = w->group_in;
    t.prefetch_step = 0;
    for (int64_t i = 0; i < groups; i++) {
        int64_t group = s->channel / w->group_in + i;
        int64_t to = sni_min((group + 1) * w->group_out - s->first * block, block);
        if (i == groups - 1) to = block;
        j->kernels->tile[SNI_CONV_INDIRECT][1][pixels](&t);
        for (int64_t p = 0; p < pixels; p++)
            memcpy(y + p * block + from, sums + p * block + from, (size_t)(to - from) * sizeof *y);
        from = to;
        t.list += w->group_in;
        t.w += w->group_in * block;
    }
}

static void run_item(const indirect_job *j, int64_t image, int64_t span, const tile *at) {
    const indirect_weights *w = j->w;
    const stretch *s = at->of;
    int64_t block = w->block, out = s->first + at->first;
    int64_t from = span * j->span, to = sni_min(from + j->span, j->pixels);
    int64_t y = (image * j->out_blocks + out) * j->pixels * block;
    sni_conv_epilogue e = j->epilogue;
    sni_conv_tile t = {.list = j->list + image * w->in + s->channel,
                       .w = w->panels + s->panel + at->first * s->channels * block,
                       .channels = s->channels,
                       .rows = 1,
                       .taps = 1,
                       .w_out = s->channels * block,
                       .y_block = j->pixels * block,
                       .finish = true,
                       .epilogue = &e};
    t.x_prefetch = (uintptr_t)t.w;
    if (e.bias) e.bias += out * block;
    if (e.slopes) e.slopes += out * block;
    bool unclear = false;
    if (s->channels > w->group_in) t.unclear = &unclear;
    bool last = at + 1 == j->tiles + j->n_tiles;
    int64_t tiles = (to - from + j->kernels->pixels[at->width] - 1) / j->kernels->pixels[at->width];
    /* Meanwhile the weights of the next tile, which lie behind these, are fetched. */
    uintptr_t step = (uintptr_t)((at->width * block + tiles - 1) / tiles) * sizeof(float);
    int64_t least = (to - from) / tiles, larger = (to - from) % tiles;
    for (int64_t i = 0, p = from, some; i < tiles; i += some) {
        int64_t pixels = least + (i < larger);
        some = t.unclear ? 1 : sni_min((i < larger ? larger : tiles) - i, STRIP);
        t.x_at = p * block;
        t.prefetch = (uintptr_t)(t.w + (last ? 0 : at->width * t.w_out));
        t.prefetch_step = last ? 0 : step;
        t.prefetch += (uintptr_t)(i * s->channels) * t.prefetch_step;
        t.y = j->y + y + p * block;
        if (e.residual) e.residual = j->epilogue.residual + y + p * block;
        if (t.unclear)
            j->kernels->tile[SNI_CONV_INDIRECT][at->width][pixels](&t);
        else
            j->kernels->strips->strip[1][at->width][pixels](&t, some);
        if (unclear) run_apart(j, s, pixels, t);
        unclear = false;
        p += some * pixels;
    }
}

static void run_items(void *ctx, int64_t begin, int64_t end) {
    const indirect_job *j = ctx;
    for (int64_t i = begin; i < end; i++) {
        int64_t span = i / j->n_tiles;
        run_item(j, span / j->spans, span % j->spans, &j->tiles[i % j->n_tiles]);
    }
}

/* Spans of pixels whose input fits into the cache, a whole number of them for each thread where
 * threads take pixels. */
static void cut_pixels(const sni_kernel *k, indirect_job *j, int64_t images) {
    int64_t cache = j->w->block == 16 ? 1 << 18 : 1 << 16; /* floats: half of the second level */
    int64_t parts = sni_blocked_parts(k, images, j->pixels, j->pixels);
    int64_t each = (j->pixels + parts - 1) / parts;
    int64_t spans = sni_min(parts * ((each * j->w->in + cache - 1) / cache), j->pixels);
    j->span = (j->pixels + spans - 1) / spans;
    j->spans = (j->pixels + j->span - 1) / j->span;
}

static void cut_tiles(indirect_job *j) {
    for (const stretch *s = j->w->of; s < j->w->of + j->w->count; s++) {
        int64_t width = sni_conv_width(j->kernels, s->blocks, j->span, MOST_WIDTH);
        for (int64_t b = 0; b < s->blocks; b += width)
            j->tiles[j->n_tiles++] =
                (tile){.of = s, .first = b, .width = sni_min(width, s->blocks - b)};
    }
}

sn_status sni_conv_indirect_run(sni_kernel *k) {
    const indirect_weights *w = k->state;
    const sni_cpu_kernels *kernels = sni_cpu_kernels_get();
    sni_blocked_call call;
    void *tiles;
    if (sni_out(k, 0)->count == 0) return SN_OK;
    SN_TRY(sni_blocked_call_init(k, w->bias, w->slopes, &call));
    int64_t images = call.geometry.n;
    indirect_job j = {.w = w,
                      .kernels = kernels->conv,
                      .epilogue = call.epilogue,
                      .y = call.y,
                      .out_blocks = sni_blocks(call.geometry.out_channels, w->block),
                      .pixels = call.geometry.out_h * call.geometry.out_w};
    SN_TRY(sni_blocked_list(k, w->origins, SNI_BLOCKED_CONV_MORE, w->in, &j.list));
    SN_TRY(sni_scratch_matrix(k, j.out_blocks, 1, sizeof *j.tiles, &tiles));
    j.tiles = tiles;
    cut_pixels(k, &j, images);
    cut_tiles(&j);
    int64_t items = images * j.spans * j.n_tiles;
    int64_t threads = k->threads > 0 ? k->threads : sni_threads_available();
    int64_t macs = w->floats * j.pixels * images / items, grain = PIECE_MACS / (macs + 1) + 1;
    if (grain < items / threads) grain = items / threads;
    sni_parallel_for(k->threads, items, grain, run_items, &j);
    return SN_OK;
}
