/* conv_direct_half.c - weights of direct convolutions that stay in 16 bits. Each item of a run
 * makes floats of those that it is about to use, in memory that stays in the second-level cache. */
#include "base/floats.h"
#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/conv/direct/conv_direct.h"

#include <stdlib.h>

/* Numbers of an output block. */
static int64_t panel_size(const sni_direct_weights *d, int64_t block) {
    return sni_blocks(d->in, d->in_block) * d->in_block * d->taps * block;
}

static int64_t panels_of(const sni_direct_weights *d, int64_t block) {
    return d->groups * sni_blocks(d->out, block);
}

static size_t bytes_of(const sni_direct_weights *d) {
    int64_t block = sni_cpu_kernels_get()->block;
    return (size_t)(panels_of(d, block) * panel_size(d, block)) * sizeof(uint16_t);
}

bool sni_direct_is_half(const sni_choice *c, const sni_direct_weights *d) {
    if (d->merged > 1 || d->apart) return false;
    size_t given = sni_pack_given(c);
    return given ? given == bytes_of(d) : c->constants[1]->narrow != NULL;
}

/* ---- Packing: a block of filters to floats, to its panel, and back ---- */

typedef struct pack_job {
    const sni_direct_weights *d;
    const uint16_t *from;
    sn_dtype dtype;
    int64_t block, each; /* numbers of a filter */
    float *room;         /* of each panel's part: filters, then the panel */
    int64_t room_size;
    int64_t parts;
    uint16_t *to;
} pack_job;

static void pack_panel(const pack_job *j, int64_t panel, float *room) {
    const sni_direct_weights *d = j->d;
    int64_t blocks = sni_blocks(d->out, j->block), size = panel_size(d, j->block);
    int64_t first = panel % blocks * j->block, count = sni_min(j->block, d->out - first);
    float *packed = room + j->block * j->each;
    const char *from = (const char *)j->from +
                       (panel / blocks * d->out + first) * j->each * (int64_t)sizeof *j->from;
    sni_half_kernels_get()->widen[sni_half_type(j->dtype)](
        count * j->each, (const uint16_t *)(const void *)from, room);
    for (int64_t i = 0; i < size; i++) packed[i] = 0;
    sni_conv_pack_filters(room, count, d->in, d->taps, d->in_block, false, packed);
    sni_narrow(j->dtype, packed, j->to + panel * size, (size_t)size, false);
}

static void pack_parts(void *ctx, int64_t begin, int64_t end) {
    const pack_job *j = ctx;
    int64_t panels = panels_of(j->d, j->block);
    for (int64_t part = begin; part < end; part++)
        for (int64_t p = part * panels / j->parts; p < (part + 1) * panels / j->parts; p++)
            pack_panel(j, p, j->room + part * j->room_size);
}

sn_status sni_direct_pack_half(const sni_choice *c, sni_direct_weights *d, sn_error *err) {
    enum { TYPE_BYTES = 64 };
    size_t sizes[2] = {bytes_of(d), TYPE_BYTES};
    const sni_borrow *borrow;
    void *pieces[2];
    bool filled;
    SN_TRY(sni_pack_alloc_all(c, 2, sizes, pieces, &filled, err));
    uint8_t *type = pieces[1];
    if (!filled) {
        if (!c->constants[1]->narrow)
            return sni_fail(err, SN_INVALID_MODEL, "packed weights: 16 bits without their type");
        SN_TRY(sni_pack_borrow_narrow(c, 1, &borrow, err));
        pack_job j = {.d = d,
                      .from = borrow->tensor.data,
                      .dtype = borrow->tensor.dtype,
                      .block = sni_cpu_kernels_get()->block,
                      .each = d->in * d->taps,
                      .parts = sni_threads_available(),
                      .to = pieces[0]};
        *type = (uint8_t)sni_half_type(j.dtype);
        j.room_size = j.block * j.each + panel_size(d, j.block);
        j.room = malloc((size_t)(j.parts * j.room_size) * sizeof *j.room);
        if (!j.room) return sni_fail_memory(err);
        sni_parallel_for(0, j.parts, 1, pack_parts, &j);
        free(j.room);
    }
    d->half = (sni_half_b){*type ? SNI_HALF_BF16 : SNI_HALF_F16, pieces[0]};
    return SN_OK;
}

/* ---- Runs ---- */

void sni_direct_widen(const sni_direct_job *j, const sni_direct_part *part, float *room) {
    const sni_direct_weights *d = j->weights;
    int64_t in = d->in_block * d->taps * j->block, size = panel_size(d, j->block);
    const uint16_t *from = d->half.panels + part->first * size + part->first_in * in;
    for (int64_t b = 0; b < part->width; b++)
        sni_half_kernels_get()->widen[d->half.type](part->chunk * in, from + b * size,
                                                    room + b * part->chunk * in);
}
