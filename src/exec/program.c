/* program.c - plans by shape, and frames to run them in. */
#include "exec/program.h"

#include <stdlib.h>

enum {
    PLAN_LIMIT = 16, /* plans kept per graph; the one unused for longest goes */
    FRAME_LIMIT = 4, /* idle frames kept per plan */
    DEPTH_LIMIT = 64
};

struct sni_planned {
    sni_plan *plan;
    sni_arena key_arena;
    sni_signature key;
    sni_frame *idle;
    int n_idle;
    int busy;                 /* frames handed out */
    bool dropped;             /* no longer in the list: freed with its last frame */
    struct sni_planned *next; /* most recently used first */
};

struct sni_program {
    const sni_graph *graph;
    pthread_mutex_t lock;
    sni_planned *plans;
    int n_plans;
    sni_program ***children; /* by node id, then by subgraph; NULL for nodes without */
    sni_prepared *prepared;  /* by node id; guarded by the lock */
};

/* ---- Signatures ---- */

static bool same_type(const sni_type *a, const sni_type *b) {
    if (a->kind != b->kind || a->dtype != b->dtype) return false;
    if (a->has_shape != b->has_shape || a->rank != b->rank) return false;
    for (int i = 0; a->has_shape && i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    if (!a->inner || !b->inner) return a->inner == b->inner;
    return same_type(a->inner, b->inner);
}

static bool same_signature(const sni_signature *a, const sni_signature *b) {
    if (a->count != b->count) return false;
    for (int32_t i = 0; i < a->count; i++)
        if (!same_type(&a->types[i], &b->types[i])) return false;
    return true;
}

static sn_status copy_signature(sni_planned *p, const sni_signature *from, sn_error *err) {
    sni_type *types = SNI_NEW_ARRAY(&p->key_arena, sni_type, from->count);
    if (!types) return sni_fail_memory(err);
    for (int32_t i = 0; i < from->count; i++)
        if (!sni_type_copy(&types[i], &from->types[i], &p->key_arena)) return sni_fail_memory(err);
    p->key = (sni_signature){.types = types, .count = from->count};
    return SN_OK;
}

/* ---- Frames ---- */

static void frame_free(sni_frame *f) {
    if (!f) return;
    sni_buffer_release(f->arena);
    sni_buffer_release(f->scratch);
    free(f->slots);
    free(f->pointers);
    free(f);
}

static void bind_slots(sni_frame *f, const sni_plan *p) {
    for (int32_t i = 0; i < p->n_slots; i++) {
        const sni_slot *s = &p->slots[i];
        if (s->place != SNI_PLACE_CONST && s->place != SNI_PLACE_ARENA) continue;
        f->slots[i].kind = SN_KIND_TENSOR;
        f->slots[i].tensor = s->tensor;
        if (s->place == SNI_PLACE_ARENA) f->slots[i].tensor.data = f->arena->data + s->offset;
    }
    for (int32_t i = 0; i < p->n_pointers; i++)
        f->pointers[i] = p->pointers[i] == SNI_NO_ID ? NULL : &f->slots[p->pointers[i]];
}

static sn_status frame_new(sni_planned *planned, sni_frame **out, sn_error *err) {
    const sni_plan *p = planned->plan;
    sni_frame *f = calloc(1, sizeof *f);
    if (!f) return sni_fail_memory(err);
    f->planned = planned;
    f->slots = calloc((size_t)p->n_slots + 1, sizeof *f->slots);
    f->pointers = calloc((size_t)p->n_pointers + 1, sizeof *f->pointers);
    sn_status status = f->slots && f->pointers ? SN_OK : sni_fail_memory(err);
    if (status == SN_OK) status = sni_buffer_new(p->arena_bytes, NULL, &f->arena, err);
    if (status != SN_OK) {
        frame_free(f);
        return status;
    }
    bind_slots(f, p);
    *out = f;
    return SN_OK;
}

const sni_plan *sni_frame_plan(const sni_frame *frame) {
    return frame->planned->plan;
}

/* ---- Plans ---- */

static void planned_free(sni_planned *p) {
    if (!p) return;
    for (sni_frame *f = p->idle, *next; f; f = next) {
        next = f->next;
        frame_free(f);
    }
    sni_plan_free(p->plan);
    sni_arena_free(&p->key_arena);
    free(p);
}

/* Finds a plan and puts it first in the list. Called with the lock held. */
static sni_planned *find_planned(sni_program *g, const sni_signature *signature) {
    for (sni_planned **at = &g->plans; *at; at = &(*at)->next) {
        sni_planned *p = *at;
        if (!same_signature(&p->key, signature)) continue;
        *at = p->next;
        p->next = g->plans;
        g->plans = p;
        return p;
    }
    return NULL;
}

static void drop_oldest(sni_program *g) {
    sni_planned **at = &g->plans;
    while ((*at)->next) at = &(*at)->next;
    sni_planned *p = *at;
    *at = NULL;
    g->n_plans--;
    if (p->busy)
        p->dropped = true;
    else
        planned_free(p);
}

static sn_status add_planned(sni_program *g, const sni_signature *signature, sni_planned **out,
                             sn_error *err) {
    sni_planned *p = calloc(1, sizeof *p);
    if (!p) return sni_fail_memory(err);
    sni_arena_init(&p->key_arena, 0);
    sn_status status = copy_signature(p, signature, err);
    if (status == SN_OK) status = sni_plan_build(g->graph, &p->key, g->prepared, &p->plan, err);
    if (status != SN_OK) {
        planned_free(p);
        return status;
    }
    if (g->n_plans == PLAN_LIMIT) drop_oldest(g);
    p->next = g->plans;
    g->plans = p;
    g->n_plans++;
    *out = p;
    return SN_OK;
}

/* An idle frame, or a new one. Called with the lock held. */
static sn_status take_frame(sni_planned *p, sni_budget *budget, sni_frame **out, sn_error *err) {
    SN_TRY(sni_budget_take(budget, p->plan->arena_bytes, err));
    sni_frame *f = p->idle;
    sn_status status = SN_OK;
    if (f) {
        p->idle = f->next;
        p->n_idle--;
    } else {
        status = frame_new(p, &f, err);
    }
    if (status != SN_OK) {
        sni_budget_give(budget, p->plan->arena_bytes);
        return status;
    }
    p->busy++;
    *out = f;
    return SN_OK;
}

sn_status sni_program_frame(sni_program *program, const sni_signature *signature,
                            sni_budget *budget, sni_frame **out, sn_error *err) {
    pthread_mutex_lock(&program->lock);
    sn_status status = SN_OK;
    sni_planned *p = find_planned(program, signature);
    if (!p) status = add_planned(program, signature, &p, err);
    if (status == SN_OK) status = take_frame(p, budget, out, err);
    pthread_mutex_unlock(&program->lock);
    return status;
}

void sni_program_return(sni_program *program, sni_frame *frame, sni_budget *budget) {
    pthread_mutex_lock(&program->lock);
    sni_planned *p = frame->planned;
    p->busy--;
    sni_budget_give(budget, p->plan->arena_bytes);
    if (p->dropped || p->n_idle == FRAME_LIMIT) {
        frame_free(frame);
    } else {
        frame->next = p->idle;
        p->idle = frame;
        p->n_idle++;
    }
    if (p->dropped && p->busy == 0) planned_free(p);
    pthread_mutex_unlock(&program->lock);
}

bool sni_program_last_plan(sni_program *program, sn_status (*fn)(void *ctx, const sni_plan *plan),
                           void *ctx, sn_status *status) {
    pthread_mutex_lock(&program->lock);
    bool any = program->plans != NULL;
    if (any) *status = fn(ctx, program->plans->plan);
    pthread_mutex_unlock(&program->lock);
    return any;
}

/* ---- Programs ---- */

static sn_status program_new(const sni_graph *g, int depth, sni_program **out, sn_error *err);

static sn_status add_children(sni_program *p, const sni_node *n, int depth, sn_error *err) {
    sni_program **list = calloc((size_t)n->n_subgraphs + 1, sizeof *list);
    if (!list) return sni_fail_memory(err);
    p->children[n->id] = list;
    for (int32_t i = 0; i < n->n_subgraphs; i++)
        SN_TRY(program_new(n->subgraphs[i], depth + 1, &list[i], err));
    return SN_OK;
}

static sn_status program_new(const sni_graph *g, int depth, sni_program **out, sn_error *err) {
    if (depth > DEPTH_LIMIT)
        return sni_fail(err, SN_LIMIT, "subgraphs nest more than %d deep", DEPTH_LIMIT);
    sni_program *p = calloc(1, sizeof *p);
    if (!p) return sni_fail_memory(err);
    if (pthread_mutex_init(&p->lock, NULL) != 0) {
        free(p);
        return sni_fail_memory(err);
    }
    p->graph = g;
    p->children = calloc((size_t)g->node_count + 1, sizeof *p->children);
    p->prepared = calloc((size_t)g->node_count + 1, sizeof *p->prepared);
    sn_status status = p->children && p->prepared ? SN_OK : sni_fail_memory(err);
    for (const sni_node *n = sni_graph_first(g); n && status == SN_OK; n = sni_graph_next(g, n))
        if (n->n_subgraphs) status = add_children(p, n, depth, err);
    if (status == SN_OK)
        *out = p;
    else
        sni_program_free(p);
    return status;
}

sn_status sni_program_new(const sni_graph *g, sni_program **out, sn_error *err) {
    return program_new(g, 0, out, err);
}

static void free_children(sni_program *p) {
    for (int32_t id = 0; p->children && id < p->graph->node_count; id++) {
        if (!p->children[id]) continue;
        for (sni_program **child = p->children[id]; *child; child++) sni_program_free(*child);
        free(p->children[id]);
    }
    free(p->children);
}

void sni_program_free(sni_program *program) {
    if (!program) return;
    for (sni_planned *p = program->plans, *next; p; p = next) {
        next = p->next;
        planned_free(p);
    }
    free_children(program);
    sni_prepared_free(program->prepared, program->graph->node_count);
    free(program->prepared);
    pthread_mutex_destroy(&program->lock);
    free(program);
}

const sni_graph *sni_program_graph(const sni_program *program) {
    return program->graph;
}

sni_program *sni_program_child(const sni_program *program, const sni_node *node, int32_t index) {
    return program->children[node->id][index];
}
