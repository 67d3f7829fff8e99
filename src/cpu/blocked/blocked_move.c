/* blocked_move.c - moving channels: indirect ones of blocked tensors, and the conversions between
 * blocked and plain layout. */
#include "base/threadpool.h"
#include "cpu/blocked/blocked_kernels.h"
#include "cpu/conv/blocked.h"

#include <stdlib.h>
#include <string.h>

enum { TILE = 64 }; /* pixels transposed at once */

/* ---- GatherChannels ---- */

static bool gather_accepts(const sni_choice *c) {
    const sni_gather_channels_params *p = c->params;
    return p->block == sni_cpu_kernels_get()->block;
}

static sn_status gather_prepare(const sni_choice *c, void **state, sn_error *err) {
    const sni_gather_channels_params *p = c->params;
    sni_blocked_origins *o;
    SN_TRY(sni_blocked_origins_new(&p->indirect, &o, err));
    *state = o;
    return SN_OK;
}

typedef struct gather_job {
    sni_kernel *k;
    const sni_blocked_origins *origins;
    const sni_tensor *y;
    int64_t pixels, block, parts;
} gather_job;

/* The first pixel of a channel's block in image n of its input. */
static const float *block_of(const gather_job *j, int64_t n, const sni_origin *o) {
    const sni_tensor *x = sni_in(j->k, o->tensor);
    return (const float *)x->data + (n * x->dims[1] + o->channel / j->block) * j->pixels * j->block;
}

/* Pixels [from, to) of an output block. */
static void gather_pixels(const gather_job *j, int64_t plane, int64_t from, int64_t to) {
    int64_t n = plane / j->y->dims[1], first = plane % j->y->dims[1] * j->block;
    float *y = (float *)j->y->data + (plane * j->pixels + from) * j->block;
    const float *blocks[SNI_MOST_BLOCK];
    int32_t lanes[SNI_MOST_BLOCK];
    bool whole = first + j->block <= j->origins->count;
    for (int64_t c = 0; c < j->block; c++) {
        int64_t channel = first + c < j->origins->count ? first + c : j->origins->count - 1;
        const sni_origin *o = &j->origins->of[channel];
        blocks[c] = block_of(j, n, o) + from * j->block;
        lanes[c] = o->channel % (int32_t)j->block;
        whole = whole && blocks[c] == blocks[0] && lanes[c] == c;
    }
    if (whole)
        memcpy(y, blocks[0], (size_t)((to - from) * j->block) * sizeof *y);
    else
        sni_cpu_kernels_get()->blocked->gather(blocks, lanes, y, to - from);
}

static void gather_parts(void *ctx, int64_t begin, int64_t end) {
    const gather_job *j = ctx;
    for (int64_t i = begin; i < end; i++) {
        sni_blocked_share s = sni_blocked_share_of(i, j->y->dims[1], j->parts);
        gather_pixels(j, s.plane, s.part * j->pixels / j->parts,
                      (s.part + 1) * j->pixels / j->parts);
    }
}

static sn_status gather_run(sni_kernel *k) {
    const sni_tensor *y = sni_out(k, 0);
    gather_job j = {.k = k,
                    .origins = k->state,
                    .y = y,
                    .pixels = y->dims[2] * y->dims[3],
                    .block = y->dims[4]};
    j.parts = sni_blocked_parts(k, y->dims[0], j.pixels, j.pixels);
    if (y->count)
        sni_blocked_for(k, y->dims[0] * y->dims[1] * j.parts, j.pixels * j.block / j.parts,
                        gather_parts, &j);
    return SN_OK;
}

const sni_impl sni_cpu_gather_channels = {
    .name = "gather_channels_f32",
    .op = "GatherChannels",
    .domain = SNI_SINTER_DOMAIN,
    .accepts = gather_accepts,
    .prepare = gather_prepare,
    .release = free,
    .run = gather_run,
};

/* ---- ToBlocked and FromBlocked ---- */

static bool convert_accepts(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32);
}

typedef struct convert_job {
    const float *x;
    float *y;
    int64_t channels, blocks, pixels, block;
    int64_t tiles; /* of TILE pixels */
} convert_job;

static void block_tiles(void *ctx, int64_t begin, int64_t end) {
    const convert_job *j = ctx;
    for (int64_t i = begin; i < end; i++) {
        int64_t plane = i / j->tiles, p0 = i % j->tiles * TILE;
        int64_t p1 = p0 + TILE < j->pixels ? p0 + TILE : j->pixels;
        int64_t first = plane % j->blocks * j->block;
        const float *x = j->x + (plane / j->blocks * j->channels + first) * j->pixels;
        float *y = j->y + plane * j->pixels * j->block;
        int64_t left = j->channels - first;
        sni_cpu_kernels_get()->pack_transposed(x + p0, j->pixels, left < j->block ? left : j->block,
                                               (int)j->block, p1 - p0, y + p0 * j->block);
    }
}

static void unblock_tiles(void *ctx, int64_t begin, int64_t end) {
    const convert_job *j = ctx;
    for (int64_t i = begin; i < end; i++) {
        int64_t plane = i / j->tiles, p0 = i % j->tiles * TILE;
        int64_t p1 = p0 + TILE < j->pixels ? p0 + TILE : j->pixels;
        int64_t first = plane % j->blocks * j->block;
        const float *x = j->x + plane * j->pixels * j->block;
        float *y = j->y + (plane / j->blocks * j->channels + first) * j->pixels;
        int64_t left = j->channels - first;
        sni_cpu_kernels_get()->transpose_matrix(x + p0 * j->block, j->block, p1 - p0,
                                                left < j->block ? left : j->block, y + p0,
                                                j->pixels);
    }
}

/* Pixels of tile i of a tensor with its channels last: blocks are runs of each pixel. */
static void last_tile(const convert_job *j, int64_t i, bool to) {
    int64_t image = i / j->tiles, p0 = i % j->tiles * TILE;
    int64_t p1 = p0 + TILE < j->pixels ? p0 + TILE : j->pixels;
    for (int64_t b = 0; b < j->blocks; b++) {
        int64_t first = b * j->block, left = j->channels - first;
        size_t bytes = (size_t)(left < j->block ? left : j->block) * sizeof(float);
        for (int64_t p = p0; p < p1; p++) {
            int64_t plain = (image * j->pixels + p) * j->channels + first;
            int64_t blocked = ((image * j->blocks + b) * j->pixels + p) * j->block;
            if (to && left < j->block) memset(j->y + blocked, 0, (size_t)j->block * sizeof(float));
            if (left >= 16 && j->block == 16) /* sizes that are no calls */
                memcpy(j->y + (to ? blocked : plain), j->x + (to ? plain : blocked), 64);
            else if (left >= 8 && j->block == 8)
                memcpy(j->y + (to ? blocked : plain), j->x + (to ? plain : blocked), 32);
            else
                memcpy(j->y + (to ? blocked : plain), j->x + (to ? plain : blocked), bytes);
        }
    }
}

static void block_last(void *ctx, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) last_tile(ctx, i, true);
}

static void unblock_last(void *ctx, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) last_tile(ctx, i, false);
}

typedef void (*convert_fn)(void *ctx, int64_t begin, int64_t end);

static sn_status convert(sni_kernel *k, const sni_tensor *plain, const sni_tensor *blocked,
                         convert_fn fn, convert_fn last) {
    const sni_blocked_params *p = k->params;
    convert_job j = {.x = sni_in(k, 0)->data,
                     .y = sni_out(k, 0)->data,
                     .blocks = blocked->dims[1],
                     .block = blocked->dims[4]};
    if (!plain->count) return SN_OK;
    sni_blocked_plain(p, plain, &j.channels, &j.pixels);
    j.tiles = (j.pixels + TILE - 1) / TILE;
    int64_t tile = j.pixels < TILE ? j.pixels : TILE;
    if (p->channels_last)
        sni_blocked_for(k, plain->dims[0] * j.tiles, tile * j.channels, last, &j);
    else
        sni_parallel_for(k->threads, plain->dims[0] * j.blocks * j.tiles,
                         sni_cpu_grain(tile * j.block), fn, &j);
    return SN_OK;
}

static sn_status to_run(sni_kernel *k) {
    return convert(k, sni_in(k, 0), sni_out(k, 0), block_tiles, block_last);
}

static sn_status from_run(sni_kernel *k) {
    return convert(k, sni_out(k, 0), sni_in(k, 0), unblock_tiles, unblock_last);
}

const sni_impl sni_cpu_to_blocked = {
    .name = "to_blocked_f32",
    .op = "ToBlocked",
    .domain = SNI_SINTER_DOMAIN,
    .accepts = convert_accepts,
    .run = to_run,
};

const sni_impl sni_cpu_from_blocked = {
    .name = "from_blocked_f32",
    .op = "FromBlocked",
    .domain = SNI_SINTER_DOMAIN,
    .accepts = convert_accepts,
    .run = from_run,
};
