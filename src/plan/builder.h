/* builder.h - a plan under construction, for build.c and known.c. */
#ifndef SNI_PLAN_BUILDER_H
#define SNI_PLAN_BUILDER_H

#include "plan/plan.h"

typedef struct sni_builder {
    sni_plan *plan;
    const sni_graph *graph;
    sni_common *common;
    sni_type *types;   /* by value; kind NONE: not known */
    sni_datum **known; /* by value: contents worked out, owned; NULL: not known */
    sni_ref *refs;     /* by value: where it is; NONE: nowhere yet */
    int64_t *parts;    /* by value: sni_slot.part */
    sni_symbols *symbols;
    sni_arena scratch; /* until the plan is built */
    sn_error *err;
} sni_builder;

/* ---- known.c: contents that are known before a run ---- */

/* The constant that a value has in this plan: an input's default only if the caller leaves it.
 * NULL: none. */
sni_const *sni_plan_constant(const sni_builder *b, int32_t id);

/* A constant as all plans share it, without its contents as long as nobody needed them: runs that
 * are under way may see it, so what is set once stays. */
sni_datum *sni_plan_weight(const sni_builder *b, int32_t id);
/* The same with its contents, which are charged to the session if they are not in the file. */
sn_status sni_plan_load_weight(sni_builder *b, int32_t id, const sni_datum **out);

/* Keeps a list of dimensions as the contents of a value, where all of them are plain and its type
 * is an int64 or int32 tensor of that length. */
sn_status sni_plan_keep_dims(sni_builder *b, int32_t id, const sni_type *type, const sni_dim *dims,
                             int32_t count);

/* Whether a node can and should be worked out now: all inputs known, results small. */
sn_status sni_plan_evaluable(sni_builder *b, const sni_node *n, bool *yes);
/* Works it out, and keeps what its outputs hold. */
sn_status sni_plan_evaluate(sni_builder *b, const sni_node *n);

#endif
