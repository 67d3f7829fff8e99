/* memory.c - who owns a byte when. Values that may share memory (a view and what it views, a result
 * written over an operand) become one block; blocks whose lifetimes overlap get disjoint ranges of
 * the arena. */
#include "base/checked.h"
#include "plan/plan.h"

#include <stdlib.h>

enum { QUADRATIC_LIMIT = 8192 }; /* more blocks than this are packed by the quicker method */

typedef struct block {
    size_t size; /* a multiple of SNI_ALIGN */
    size_t offset;
    int32_t first, last; /* steps, both included */
} block;

typedef struct packer {
    sni_plan *plan;
    block *blocks;
    int32_t n_blocks;
    int32_t *block_of; /* by slot; SNI_NO_ID */
} packer;

typedef struct sort_key {
    size_t size;
    int32_t first, number;
} sort_key;

/* ---- Blocks ---- */

static int32_t last_use(const sni_slot *s, int32_t n_steps) {
    return s->last < n_steps ? s->last : n_steps - 1;
}

/* True if the arena slot `from` is the only living part of its block after `step`. */
static bool dies_at(const packer *k, int32_t from, int32_t step) {
    return k->plan->slots[from].place == SNI_PLACE_ARENA &&
           k->blocks[k->block_of[from]].last == step;
}

/* The input whose memory output 0 of a step takes over, or SNI_NO_ID. */
static int32_t shared_input(const packer *k, const sni_step *s, int32_t index) {
    const sni_plan *p = k->plan;
    const sni_node *n = s->node;
    const sni_ref *in = sni_step_inputs(p, s);
    const sni_slot *out = &p->slots[sni_step_outputs(p, s)[0]];
    if (out->place != SNI_PLACE_ARENA) return SNI_NO_ID;
    if ((n->op->flags & SNI_OP_VIEW) && n->n_in > 0 && in[0] >= 0 &&
        p->slots[in[0]].place == SNI_PLACE_ARENA)
        return in[0];
    for (int32_t i = 0; i < n->n_in && i < 32; i++) {
        if (!(n->op->inplace >> i & 1) || in[i] < 0 || !dies_at(k, in[i], index)) continue;
        const sni_tensor *t = &p->slots[in[i]].tensor;
        if (t->count == out->tensor.count &&
            sni_dtype_width(t->dtype) == sni_dtype_width(out->tensor.dtype))
            return in[i];
    }
    return SNI_NO_ID;
}

static void add_block(packer *k, int32_t slot) {
    const sni_slot *s = &k->plan->slots[slot];
    size_t size = sni_tensor_bytes(&s->tensor) + SNI_ALIGN - 1;
    k->block_of[slot] = k->n_blocks;
    k->blocks[k->n_blocks++] = (block){.size = size & ~(size_t)(SNI_ALIGN - 1),
                                       .first = s->first,
                                       .last = last_use(s, k->plan->n_steps)};
}

static void join_block(packer *k, int32_t slot, int32_t other) {
    block *b = &k->blocks[k->block_of[other]];
    int32_t last = last_use(&k->plan->slots[slot], k->plan->n_steps);
    k->block_of[slot] = k->block_of[other];
    if (last > b->last) b->last = last;
}

static void make_blocks(packer *k) {
    sni_plan *p = k->plan;
    for (int32_t i = 0; i < p->n_steps; i++) {
        const sni_step *s = &p->steps[i];
        for (int32_t o = 0; o < s->node->n_out; o++) {
            int32_t slot = sni_step_outputs(p, s)[o];
            if (slot < 0 || p->slots[slot].place != SNI_PLACE_ARENA) continue;
            int32_t share = o == 0 ? shared_input(k, s, i) : SNI_NO_ID;
            if (share != SNI_NO_ID)
                join_block(k, slot, share);
            else
                add_block(k, slot);
        }
    }
}

/* ---- Offsets ---- */

/* Largest first; among equals in order of time. */
static int by_size(const void *a, const void *b) {
    const sort_key *x = a, *y = b;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static bool overlap(const block *a, const block *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* Gives a block the lowest offset that is free all its life. `placed` holds the numbers of the
 * blocks placed so far by rising offset. */
static void place_block(packer *k, int32_t number, int32_t *placed, int32_t n_placed) {
    block *b = &k->blocks[number];
    size_t at = 0;
    int32_t where = n_placed;
    for (int32_t i = 0; i < n_placed; i++) {
        const block *other = &k->blocks[placed[i]];
        if (!overlap(b, other)) continue;
        if (other->offset >= at + b->size) break;
        if (other->offset + other->size > at) at = other->offset + other->size;
    }
    b->offset = at;
    while (where > 0 && k->blocks[placed[where - 1]].offset > at) {
        placed[where] = placed[where - 1];
        where--;
    }
    placed[where] = number;
}

static sn_status pack_by_size(packer *k, sn_error *err) {
    int32_t *placed = calloc((size_t)k->n_blocks + 1, sizeof *placed);
    sort_key *order = calloc((size_t)k->n_blocks + 1, sizeof *order);
    sn_status status = placed && order ? SN_OK : sni_fail_memory(err);
    if (status == SN_OK) {
        for (int32_t i = 0; i < k->n_blocks; i++)
            order[i] = (sort_key){k->blocks[i].size, k->blocks[i].first, i};
        qsort(order, (size_t)k->n_blocks, sizeof *order, by_size);
        for (int32_t i = 0; i < k->n_blocks; i++) place_block(k, order[i].number, placed, i);
    }
    free(placed);
    free(order);
    return status;
}

/* For very long plans: in order of time, each block into the tightest range whose last tenant is
 * gone. Blocks are in order of `first` already. */
static sn_status pack_by_time(packer *k, sn_error *err) {
    enum { WINDOW = 256 }; /* living or reusable ranges that are looked at */
    struct range {
        size_t offset, size;
        int32_t last;
    } *ranges = calloc(WINDOW, sizeof *ranges);
    if (!ranges) return sni_fail_memory(err);
    size_t top = 0;
    int32_t used = 0;
    for (int32_t i = 0; i < k->n_blocks; i++) {
        block *b = &k->blocks[i];
        int32_t best = SNI_NO_ID;
        for (int32_t r = 0; r < used; r++)
            if (ranges[r].last < b->first && ranges[r].size >= b->size &&
                (best == SNI_NO_ID || ranges[r].size < ranges[best].size))
                best = r;
        if (best == SNI_NO_ID) {
            b->offset = top;
            top += b->size;
            if (used < WINDOW) ranges[used++] = (struct range){b->offset, b->size, b->last};
        } else {
            b->offset = ranges[best].offset;
            ranges[best].last = b->last;
        }
    }
    free(ranges);
    return SN_OK;
}

/* ---- Results ---- */

static sn_status set_lower_bound(packer *k, sn_error *err) {
    sni_plan *p = k->plan;
    size_t *change = calloc((size_t)p->n_steps + 2, sizeof *change);
    size_t *gone = calloc((size_t)p->n_steps + 2, sizeof *gone);
    if (!change || !gone) {
        free(change);
        free(gone);
        return sni_fail_memory(err);
    }
    for (int32_t i = 0; i < k->n_blocks; i++) {
        change[k->blocks[i].first] += k->blocks[i].size;
        gone[k->blocks[i].last + 1] += k->blocks[i].size;
    }
    size_t now = 0;
    for (int32_t i = 0; i <= p->n_steps; i++) {
        now = now + change[i] - gone[i];
        if (now > p->lower_bound) p->lower_bound = now;
    }
    free(change);
    free(gone);
    return SN_OK;
}

static sn_status set_offsets(packer *k, sn_error *err) {
    sni_plan *p = k->plan;
    for (int32_t i = 0; i < p->n_slots; i++) {
        if (k->block_of[i] == SNI_NO_ID) continue;
        const block *b = &k->blocks[k->block_of[i]];
        size_t end;
        p->slots[i].offset = b->offset;
        if (!sni_add_size(b->offset, b->size, &end))
            return sni_fail(err, SN_LIMIT, "the tensors of one run do not fit the address space");
        if (end > p->arena_bytes) p->arena_bytes = end;
    }
    return SN_OK;
}

sn_status sni_plan_memory(sni_plan *plan, sn_error *err) {
    packer k = {.plan = plan};
    size_t slots = (size_t)plan->n_slots + 1;
    k.blocks = calloc(slots, sizeof *k.blocks);
    k.block_of = malloc(slots * sizeof *k.block_of);
    sn_status status = SN_OK;
    if (!k.blocks || !k.block_of) {
        status = sni_fail_memory(err);
        goto done;
    }
    for (size_t i = 0; i < slots; i++) k.block_of[i] = SNI_NO_ID;
    make_blocks(&k);
    status = k.n_blocks <= QUADRATIC_LIMIT ? pack_by_size(&k, err) : pack_by_time(&k, err);
    if (status == SN_OK) status = set_lower_bound(&k, err);
    if (status == SN_OK) status = set_offsets(&k, err);
done:
    free(k.blocks);
    free(k.block_of);
    return status;
}
