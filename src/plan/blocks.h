/* blocks.h - which values of a plan share memory, and how. */
#ifndef SNI_PLAN_BLOCKS_H
#define SNI_PLAN_BLOCKS_H

#include "plan/plan.h"

/* One range of the arena. Its slots stand in it at fixed places: views and results written over an
 * operand on top of each other, the operands of a concatenation side by side. */
typedef struct sni_block {
    size_t size; /* a multiple of SNI_ALIGN; 0: it became part of another */
    size_t offset;
    int32_t first, last; /* steps, both included */
    int32_t slots;       /* the first of its slots; the rest by sni_blocks.next */
    int32_t n_slots;
} sni_block;

enum { SNI_VIEW_NONE = 0, SNI_VIEW_SOME, SNI_VIEW_ALL };

typedef struct sni_blocks {
    const sni_plan *plan;
    sni_block *blocks;
    int32_t count;
    int32_t *block_of; /* by slot; SNI_NO_ID: not planned */
    size_t *delta;     /* by slot: its place in its block */
    int32_t *next;     /* by slot: the next one of its block */
    uint8_t *view;     /* by step: how many of its results stand in memory already */
    unsigned views;    /* SNI_VIEWS_... */
} sni_blocks;

/* Which views there are beside those of a whole tensor. */
enum { SNI_VIEWS_PARTS = 1, SNI_VIEWS_JOINS = 2, SNI_VIEWS_ALL = 3 };

/* Makes the blocks of a plan, with the kinds of views that `views` allows. sni_blocks_free() in any
 * case. */
sn_status sni_blocks_make(sni_blocks *b, const sni_plan *plan, unsigned views, sn_error *err);
void sni_blocks_free(sni_blocks *b);

/* Last step that a slot is needed in. */
static inline int32_t sni_slot_end(const sni_plan *p, const sni_slot *s) {
    return s->last < p->n_steps ? s->last : p->n_steps - 1;
}

/* Bytes of a slot's tensor, rounded up to SNI_ALIGN. */
static inline size_t sni_slot_capacity(const sni_slot *s) {
    return (sni_tensor_bytes(&s->tensor) + SNI_ALIGN - 1) & ~(size_t)(SNI_ALIGN - 1);
}

#endif
