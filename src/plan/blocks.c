/* blocks.c - which values share memory: views and parts with what they show, results with operands
 * that nobody needs any more, operands of a concatenation with its result. */
#include "plan/blocks.h"

#include <stdlib.h>

static bool is_planned(const sni_plan *p, sni_ref r) {
    return r >= 0 && p->slots[r].place == SNI_PLACE_ARENA;
}

/* ---- Blocks ---- */

static void add_block(sni_blocks *b, int32_t slot) {
    const sni_slot *s = &b->plan->slots[slot];
    b->block_of[slot] = b->count;
    b->delta[slot] = 0;
    b->next[slot] = SNI_NO_ID;
    b->blocks[b->count++] = (sni_block){.size = sni_slot_capacity(s),
                                        .first = s->first,
                                        .last = sni_slot_end(b->plan, s),
                                        .slots = slot,
                                        .n_slots = 1};
}

/* Puts a slot on top of another, `bytes` into it. */
static void join_block(sni_blocks *b, int32_t slot, int32_t other, size_t bytes) {
    sni_block *block = &b->blocks[b->block_of[other]];
    int32_t last = sni_slot_end(b->plan, &b->plan->slots[slot]);
    b->block_of[slot] = b->block_of[other];
    b->delta[slot] = b->delta[other] + bytes;
    b->next[slot] = block->slots;
    block->slots = slot;
    block->n_slots++;
    if (last > block->last) block->last = last;
}

/* Makes all of block `from` part of block `to`, `bytes` into it. */
static void merge_block(sni_blocks *b, int32_t from, int32_t to, size_t bytes) {
    sni_block *x = &b->blocks[from], *y = &b->blocks[to];
    int32_t tail = x->slots;
    for (int32_t s = x->slots; s != SNI_NO_ID; s = b->next[s]) {
        b->block_of[s] = to;
        b->delta[s] += bytes;
        tail = s;
    }
    b->next[tail] = y->slots;
    y->slots = x->slots;
    y->n_slots += x->n_slots;
    if (x->first < y->first) y->first = x->first;
    if (x->last > y->last) y->last = x->last;
    x->size = 0;
    x->slots = SNI_NO_ID;
    x->n_slots = 0;
}

/* ---- Views and parts ---- */

/* True if slot `out` can stand on input 0 of its step, *bytes into it. */
static bool is_part(const sni_blocks *b, const sni_step *s, int32_t out, size_t *bytes) {
    const sni_slot *slot = &b->plan->slots[out];
    if (slot->part < 0 || s->node->n_in == 0 ||
        !is_planned(b->plan, sni_step_inputs(b->plan, s)[0]))
        return false;
    bool whole = sni_tensor_bytes(&slot->tensor) ==
                 sni_tensor_bytes(&b->plan->slots[sni_step_inputs(b->plan, s)[0]].tensor);
    *bytes = (size_t)slot->part * sni_dtype_width(slot->tensor.dtype);
    return *bytes % SNI_ALIGN == 0 && (whole || (b->views & SNI_VIEWS_PARTS));
}

/* ---- Results over operands ---- */

/* True if input i of a step may be overwritten although it reads input j, too: the two are apart,
 * or the same elements, which are read before they are written. */
static bool may_be_read(const sni_blocks *b, const sni_step *s, int32_t i, int32_t j) {
    const sni_ref *in = sni_step_inputs(b->plan, s);
    if (!is_planned(b->plan, in[j]) || b->block_of[in[j]] != b->block_of[in[i]]) return true;
    if (j >= 32 || !(s->node->op->inplace >> j & 1)) return false;
    size_t from = b->delta[in[i]], to = from + sni_tensor_bytes(&b->plan->slots[in[i]].tensor);
    size_t start = b->delta[in[j]], end = start + sni_tensor_bytes(&b->plan->slots[in[j]].tensor);
    return end <= from || to <= start || (start == from && end == to);
}

static bool may_be_overwritten(const sni_blocks *b, const sni_step *s, int32_t i) {
    for (int32_t j = 0; j < s->node->n_in; j++)
        if (!may_be_read(b, s, i, j)) return false;
    return true;
}

/* The input whose memory output 0 of a step takes over: all of its block dies here. */
static int32_t overwritten(const sni_blocks *b, const sni_step *s, int32_t index, int32_t out) {
    const sni_plan *p = b->plan;
    const sni_ref *in = sni_step_inputs(p, s);
    const sni_tensor *result = &p->slots[out].tensor;
    for (int32_t i = 0; i < s->node->n_in && i < 32; i++) {
        if (!(s->node->op->inplace >> i & 1) || !is_planned(p, in[i]) ||
            b->blocks[b->block_of[in[i]]].last != index || !may_be_overwritten(b, s, i))
            continue;
        const sni_tensor *t = &p->slots[in[i]].tensor;
        if (t->count == result->count &&
            sni_dtype_width(t->dtype) == sni_dtype_width(result->dtype))
            return in[i];
    }
    return SNI_NO_ID;
}

/* ---- Concatenations ---- */

/* True if the operands lie one after the other in the result. */
static bool is_flat_join(const sni_step *s, const sni_tensor *out) {
    const sni_attr *a = sni_node_attr(s->node, "axis");
    if (!(s->node->op->flags & SNI_OP_JOINS) || !a || a->kind != SNI_ATTR_INT) return false;
    int64_t axis = a->u.i < 0 ? a->u.i + out->rank : a->u.i;
    for (int64_t i = 0; i < axis && i < out->rank; i++)
        if (out->dims[i] != 1) return false;
    return true;
}

/* How many operands from `i` on fill a block of their own exactly, in their order; 0: none. */
static int32_t fills_block(const sni_blocks *b, const sni_ref *in, int32_t i, int32_t n,
                           int32_t own) {
    const sni_plan *p = b->plan;
    if (!is_planned(p, in[i]) || b->delta[in[i]] != 0) return 0;
    int32_t block = b->block_of[in[i]];
    size_t at = 0, size = b->blocks[block].size;
    if (block == own) return 0;
    for (int32_t m = i; m < n; m++) {
        if (!is_planned(p, in[m]) || b->block_of[in[m]] != block || b->delta[in[m]] != at) return 0;
        size_t bytes = sni_tensor_bytes(&p->slots[in[m]].tensor);
        at += bytes;
        if (sni_slot_capacity(&p->slots[in[m]]) - bytes + at == size) /* the last may be ragged */
            return m + 1 == n || bytes % SNI_ALIGN == 0 ? m + 1 - i : 0;
        if (bytes % SNI_ALIGN || bytes == 0) return 0;
    }
    return 0;
}

static size_t ref_bytes(const sni_plan *p, sni_ref r) {
    return sni_tensor_bytes(r >= 0 ? &p->slots[r].tensor : &p->consts[sni_ref_const(r)]->tensor);
}

/* Has as many operands as possible made in their place in the result, which has a block already. */
static void join_operands(sni_blocks *b, int32_t index, int32_t out) {
    const sni_plan *p = b->plan;
    const sni_step *s = &p->steps[index];
    const sni_ref *in = sni_step_inputs(p, s);
    int32_t n = s->node->n_in, own = b->block_of[out], done = 0;
    size_t at = 0;
    for (int32_t i = 0; i < n; i++) {
        if (in[i] == SNI_REF_NONE || (in[i] >= 0 && p->slots[in[i]].place == SNI_PLACE_DYNAMIC) ||
            (in[i] >= 0 && p->slots[in[i]].place == SNI_PLACE_INPUT))
            return;
    }
    for (int32_t i = 0; i < n;) {
        int32_t fit = at % SNI_ALIGN ? 0 : fills_block(b, in, i, n, own);
        if (fit) merge_block(b, b->block_of[in[i]], own, at);
        done += fit;
        for (int32_t m = 0; m < (fit ? fit : 1); m++) at += ref_bytes(p, in[i++]);
    }
    b->view[index] = done == n ? SNI_VIEW_ALL : done ? SNI_VIEW_SOME : SNI_VIEW_NONE;
}

/* ---- The whole ---- */

static bool can_join(const sni_blocks *b, const sni_step *s, int32_t out) {
    return (b->views & SNI_VIEWS_JOINS) && is_flat_join(s, &b->plan->slots[out].tensor);
}

static void place_step(sni_blocks *b, int32_t index) {
    const sni_plan *p = b->plan;
    const sni_step *s = &p->steps[index];
    bool all = s->node->n_out > 0;
    for (int32_t o = 0; o < s->node->n_out; o++) {
        int32_t slot = sni_step_outputs(p, s)[o], over;
        size_t bytes;
        if (slot < 0) continue;
        bool part = is_planned(p, slot) && is_part(b, s, slot, &bytes);
        all &= part;
        if (!is_planned(p, slot)) continue;
        if (part) {
            join_block(b, slot, sni_step_inputs(p, s)[0], bytes);
        } else if (o == 0 && (over = overwritten(b, s, index, slot)) != SNI_NO_ID) {
            join_block(b, slot, over, 0);
        } else {
            add_block(b, slot);
            if (o == 0 && can_join(b, s, slot)) join_operands(b, index, slot);
        }
    }
    if (all) b->view[index] = SNI_VIEW_ALL;
}

sn_status sni_blocks_make(sni_blocks *b, const sni_plan *plan, unsigned views, sn_error *err) {
    size_t slots = (size_t)plan->n_slots + 1;
    *b = (sni_blocks){.plan = plan, .views = views};
    b->blocks = calloc(slots, sizeof *b->blocks);
    b->block_of = calloc(slots, sizeof *b->block_of);
    b->delta = calloc(slots, sizeof *b->delta);
    b->next = calloc(slots, sizeof *b->next);
    b->view = calloc((size_t)plan->n_steps + 1, sizeof *b->view);
    if (!b->blocks || !b->block_of || !b->delta || !b->next || !b->view)
        return sni_fail_memory(err);
    for (size_t i = 0; i < slots; i++) b->block_of[i] = SNI_NO_ID;
    for (int32_t i = 0; i < plan->n_steps; i++)
        if (!plan->steps[i].dynamic) place_step(b, i);
    return SN_OK;
}

void sni_blocks_free(sni_blocks *b) {
    free(b->blocks);
    free(b->block_of);
    free(b->delta);
    free(b->next);
    free(b->view);
}
