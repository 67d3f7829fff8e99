/* memory.c - who owns a byte when: offsets for the blocks of a plan (blocks.h), such that blocks
 * whose lives overlap get disjoint ranges of the arena. */
#include "base/checked.h"
#include "plan/blocks.h"

#include <stdlib.h>

enum {
    QUADRATIC_LIMIT = 8192, /* more blocks than this are packed by the quicker method */
    PROMOTE_WORK = 1 << 18, /* comparisons of blocks that improving one order is worth */
    THOROUGH_LIMIT = 1024   /* up to this many blocks several orders are tried */
};

typedef struct packer {
    sni_blocks b;
    size_t bytes;       /* of the arena */
    size_t lower_bound; /* most bytes of living blocks */
    int32_t peak;       /* the step with the most bytes of blocks */
} packer;

typedef struct sort_key {
    uint64_t rank; /* highest first */
    int32_t first, number;
} sort_key;

/* ---- Offsets ---- */

static int by_rank(const void *a, const void *b) {
    const sort_key *x = a, *y = b;
    if (x->rank != y->rank) return x->rank > y->rank ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static bool overlap(const sni_block *a, const sni_block *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* Gives a block the lowest offset that is free all its life. `placed` holds the numbers of the
 * blocks placed so far by rising offset. */
static void place_block(sni_block *blocks, int32_t number, int32_t *placed, int32_t n_placed) {
    sni_block *b = &blocks[number];
    size_t at = 0;
    int32_t where = n_placed;
    for (int32_t i = 0; i < n_placed; i++) {
        const sni_block *other = &blocks[placed[i]];
        if (!overlap(b, other)) continue;
        if (other->offset >= at + b->size) break;
        if (other->offset + other->size > at) at = other->offset + other->size;
    }
    b->offset = at;
    while (where > 0 && blocks[placed[where - 1]].offset > at) {
        placed[where] = placed[where - 1];
        where--;
    }
    placed[where] = number;
}

/* In which order blocks are placed: each is good for some graphs. */
typedef enum order { BY_SIZE, BY_PEAK, BY_AREA, BY_LIFE, BY_TIME, ORDERS } order;

static uint64_t rank_of(const packer *k, const sni_block *b, order how) {
    uint64_t life = (uint64_t)(b->last - b->first + 1);
    bool peak = b->first <= k->peak && k->peak <= b->last;
    switch (how) {
    case BY_PEAK: /* those that live when memory is fullest, the longest-lived first */
        return peak ? UINT64_MAX - UINT32_MAX + life : b->size;
    case BY_AREA:
        return life * (b->size / SNI_ALIGN);
    case BY_LIFE:
        return life;
    case BY_TIME:
        return UINT32_MAX - (uint64_t)b->first;
    default:
        return b->size;
    }
}

static sn_status end_of(const packer *k, size_t *out, sn_error *err) {
    size_t top = 0;
    for (int32_t i = 0; i < k->b.count; i++) {
        size_t end;
        if (!sni_add_size(k->b.blocks[i].offset, k->b.blocks[i].size, &end))
            return sni_fail(err, SN_LIMIT, "the tensors of one run do not fit the address space");
        if (end > top) top = end;
    }
    *out = top;
    return SN_OK;
}

/* Working memory of the search for a good order, an entry per block. */
typedef struct search {
    int32_t *placed;
    sort_key *keys;
    sni_block *best; /* the blocks in the best places so far */
    size_t least;    /* their arena */
} search;

static bool is_close(const packer *k, size_t bytes) {
    return bytes - k->lower_bound <= k->lower_bound / 100;
}

static sn_status place_all(packer *k, search *s, int32_t n, sn_error *err) {
    for (int32_t i = 0; i < n; i++) place_block(k->b.blocks, s->keys[i].number, s->placed, i);
    SN_TRY(end_of(k, &k->bytes, err));
    if (k->bytes >= s->least) return SN_OK;
    s->least = k->bytes;
    memcpy(s->best, k->b.blocks, (size_t)k->b.count * sizeof *s->best);
    return SN_OK;
}

static int32_t sort_blocks(const packer *k, search *s, order how) {
    int32_t n = 0;
    for (int32_t i = 0; i < k->b.count; i++) {
        const sni_block *b = &k->b.blocks[i];
        if (b->size) s->keys[n++] = (sort_key){rank_of(k, b, how), b->first, i};
    }
    qsort(s->keys, (size_t)n, sizeof *s->keys, by_rank);
    return n;
}

/* Again and again lets the block that reaches highest be placed first. */
static sn_status promote(packer *k, search *s, int32_t n, sn_error *err) {
    int64_t rounds = PROMOTE_WORK / ((int64_t)n * n + 1);
    for (int64_t round = 0; round < rounds && round < n && !is_close(k, s->least); round++) {
        int32_t top = 0;
        for (int32_t i = 0; i < n; i++) {
            const sni_block *b = &k->b.blocks[s->keys[i].number];
            if (b->offset + b->size == k->bytes) top = i;
        }
        sort_key key = s->keys[top];
        memmove(s->keys + 1, s->keys, (size_t)top * sizeof *s->keys);
        s->keys[0] = key;
        SN_TRY(place_all(k, s, n, err));
    }
    return SN_OK;
}

/* Tries orders until one comes close to the bound, and leaves the best. */
static sn_status pack_well(packer *k, sn_error *err) {
    size_t capacity = (size_t)k->b.count + 1;
    search s = {.placed = calloc(capacity, sizeof *s.placed),
                .keys = calloc(capacity, sizeof *s.keys),
                .best = calloc(capacity, sizeof *s.best),
                .least = SIZE_MAX};
    sn_status status = s.placed && s.keys && s.best ? SN_OK : sni_fail_memory(err);
    order last = k->b.count <= THOROUGH_LIMIT ? ORDERS : BY_SIZE + 1;
    for (order how = BY_SIZE; how < last && status == SN_OK; how++) {
        int32_t n = sort_blocks(k, &s, how);
        status = place_all(k, &s, n, err);
        if (status == SN_OK && is_close(k, s.least)) break;
        if (status == SN_OK && last == ORDERS) status = promote(k, &s, n, err);
    }
    if (status == SN_OK) {
        memcpy(k->b.blocks, s.best, (size_t)k->b.count * sizeof *s.best);
        k->bytes = s.least;
    }
    free(s.placed);
    free(s.keys);
    free(s.best);
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
    for (int32_t i = 0; i < k->b.count; i++) {
        sni_block *b = &k->b.blocks[i];
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
    return end_of(k, &k->bytes, err);
}

/* ---- The lower bound ---- */

/* Most bytes of living blocks, and the step where that is. */
static sn_status find_bound(packer *k, sn_error *err) {
    int32_t n_steps = k->b.plan->n_steps;
    size_t *alive = calloc((size_t)n_steps + 2, sizeof *alive); /* changes from step to step */
    if (!alive) return sni_fail_memory(err);
    for (int32_t i = 0; i < k->b.count; i++) {
        const sni_block *b = &k->b.blocks[i];
        if (!b->size) continue;
        alive[b->first] += b->size;
        alive[b->last + 1] -= b->size; /* wraps, and back again in the sum */
    }
    size_t now = 0;
    for (int32_t i = 0; i < n_steps; i++) {
        now += alive[i];
        if (now <= k->lower_bound) continue;
        k->lower_bound = now;
        k->peak = i;
    }
    free(alive);
    return SN_OK;
}

/* ---- The whole ---- */

static sn_status pack_plan(packer *k, const sni_plan *plan, unsigned views, sn_error *err) {
    sni_blocks_free(&k->b);
    *k = (packer){0};
    SN_TRY(sni_blocks_make(&k->b, plan, views, err));
    SN_TRY(find_bound(k, err));
    return k->b.count <= QUADRATIC_LIMIT ? pack_well(k, err) : pack_by_time(k, err);
}

static void set_places(sni_plan *plan, const packer *k) {
    for (int32_t i = 0; i < plan->n_slots; i++)
        if (k->b.block_of[i] != SNI_NO_ID)
            plan->slots[i].offset = k->b.blocks[k->b.block_of[i]].offset + k->b.delta[i];
    for (int32_t i = 0; i < plan->n_steps; i++) {
        plan->steps[i].view = k->b.view[i] == SNI_VIEW_ALL;
        /* The reference kernel knows that operands may be in place. */
        if (k->b.view[i] == SNI_VIEW_SOME) plan->steps[i].impl = NULL;
    }
    plan->arena_bytes = k->bytes;
}

/* Views save copies, but hold memory longer: the whole of what a part is of, the result of a
 * concatenation before its last operand. They are taken where that costs little. */
static bool is_cheap(const packer *views, const packer *plain) {
    return views->bytes <= plain->bytes || views->bytes - plain->bytes <= plain->bytes / 20;
}

#ifndef NDEBUG
static bool share_bytes(const sni_slot *a, const sni_slot *b) {
    return a->place == SNI_PLACE_ARENA && b->place == SNI_PLACE_ARENA &&
           a->offset < b->offset + sni_tensor_bytes(&b->tensor) &&
           b->offset < a->offset + sni_tensor_bytes(&a->tensor);
}

/* True if step `index` may read `slot`, its input i, while it writes `out`. */
static bool may_read(const sni_step *s, int32_t i, const sni_slot *slot, const sni_slot *out) {
    if (!share_bytes(slot, out)) return true;
    return i < 32 && (s->node->op->inplace >> i & 1) && slot->offset == out->offset &&
           sni_tensor_bytes(&slot->tensor) == sni_tensor_bytes(&out->tensor);
}

/* No step writes over what it reads in another place, or over what is needed after it. Views and
 * concatenations, whose operands stand where they belong, are left out. */
static sn_status check_places(const sni_plan *plan, sn_error *err) {
    for (int32_t index = 0; index < plan->n_steps; index++) {
        const sni_step *s = &plan->steps[index];
        if (s->view || s->dynamic || (s->node->op->flags & SNI_OP_JOINS)) continue;
        for (int32_t o = 0; o < s->node->n_out; o++) {
            sni_ref out = sni_step_outputs(plan, s)[o];
            bool fine = true;
            if (out < 0 || plan->slots[out].part >= 0) continue;
            for (int32_t i = 0; i < s->node->n_in && fine; i++) {
                sni_ref in = sni_step_inputs(plan, s)[i];
                fine = in < 0 || may_read(s, i, &plan->slots[in], &plan->slots[out]);
            }
            for (int32_t i = 0; i < plan->n_slots && fine; i++) {
                const sni_slot *slot = &plan->slots[i];
                fine = i == out || slot->first >= index || sni_slot_end(plan, slot) <= index ||
                       !share_bytes(slot, &plan->slots[out]);
            }
            if (!fine)
                return sni_fail(err, SN_INTERNAL, "step %d writes over what is still needed",
                                (int)index);
        }
    }
    return SN_OK;
}
#endif

sn_status sni_plan_memory(sni_plan *plan, sn_error *err) {
    static const unsigned choices[] = {SNI_VIEWS_ALL, SNI_VIEWS_JOINS, SNI_VIEWS_PARTS};
    packer views = {0}, plain = {0};
    const packer *best = &plain;
    sn_status status = pack_plan(&plain, plan, 0, err);
    size_t bound = plain.lower_bound;
    for (size_t i = 0; i < 3 && status == SN_OK && best == &plain; i++) {
        status = pack_plan(&views, plan, choices[i], err);
        if (views.lower_bound < bound) bound = views.lower_bound;
        if (status == SN_OK && is_cheap(&views, &plain)) best = &views;
    }
    if (status == SN_OK) {
        set_places(plan, best);
        plan->lower_bound = bound;
    }
    sni_blocks_free(&views.b);
    sni_blocks_free(&plain.b);
#ifndef NDEBUG
    if (status == SN_OK) status = check_places(plan, err);
#endif
    return status;
}
