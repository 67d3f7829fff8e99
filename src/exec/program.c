/* program.c - plans by shape, and frames to run them in. */
#include "exec/program.h"

#include "base/pages.h"
#include "base/threadpool.h"

#include <assert.h>
#include <stdlib.h>

enum {
    FRAME_LIMIT = 4, /* idle frames kept per plan */
    BUCKETS = 128    /* of plans by their signature's hash */
};

struct sni_planned {
    sni_plan *plan;
    sni_arena key_arena;
    sni_signature key;
    uint64_t hash;
    size_t bytes; /* of the plan and its idle frames, charged to the pool */
    sni_frame *idle;
    int n_idle;
    int busy;                          /* frames handed out */
    bool dropped;                      /* no longer in the list: freed with its last frame */
    struct sni_planned *newer, *older; /* the list by time of use */
    struct sni_planned *next;          /* in its bucket */
};

struct sni_program {
    const sni_graph *graph;
    sni_pool *pool;
    pthread_mutex_t lock;
    sni_planned *newest, *oldest;
    sni_planned *buckets[BUCKETS];
    sni_program ***children; /* by node id, then by subgraph; NULL for nodes without */
    sni_common common;       /* guarded by the lock */
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

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_signature(const sni_signature *s) {
    uint64_t hash = (uint64_t)s->count;
    for (int32_t i = 0; i < s->count; i++) {
        const sni_type *t = &s->types[i];
        hash = mix(hash, (uint64_t)t->kind << 16 | (uint64_t)t->dtype << 8 | (uint64_t)t->rank);
        for (int a = 0; t->has_shape && a < t->rank; a++) hash = mix(hash, (uint64_t)t->dims[a]);
    }
    return hash;
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
    free(f->slots);
    free(f->refs);
    free(f);
}

static size_t frame_bytes(const sni_plan *p) {
    return sizeof(sni_frame) + (size_t)p->n_slots * sizeof(sni_datum) +
           (size_t)p->n_refs * sizeof(sni_datum *);
}

const sni_datum *sni_frame_at(const sni_frame *frame, sni_ref r) {
    if (r == SNI_REF_NONE) return NULL;
    return sni_ref_is_const(r) ? frame->planned->plan->consts[sni_ref_const(r)] : &frame->slots[r];
}

static sn_status frame_new(sni_planned *planned, sni_frame **out, sn_error *err) {
    const sni_plan *p = planned->plan;
    sni_frame *f = calloc(1, sizeof *f);
    if (!f) return sni_fail_memory(err);
    f->planned = planned;
    f->slots = calloc((size_t)p->n_slots + 1, sizeof *f->slots);
    f->refs = calloc((size_t)p->n_refs + 1, sizeof(*f->refs));
    if (!f->slots || !f->refs) {
        frame_free(f);
        return sni_fail_memory(err);
    }
    for (int32_t i = 0; i < p->n_slots; i++) {
        if (p->slots[i].place != SNI_PLACE_ARENA) continue;
        f->slots[i].kind = SN_KIND_TENSOR;
        f->slots[i].tensor = p->slots[i].tensor;
    }
    for (int32_t i = 0; i < p->n_refs; i++) f->refs[i] = sni_frame_at(f, p->refs[i]);
    *out = f;
    return SN_OK;
}

/* Lets planned tensors stand in the arena that the frame has now. */
static void bind_arena(sni_frame *f) {
    const sni_plan *p = f->planned->plan;
    unsigned char *data = f->workspace->arena.data;
    assert((uintptr_t)data % SNI_ALIGN == 0 && f->workspace->arena.bytes >= p->arena_bytes);
    if (f->bound == data) return;
    for (int32_t i = 0; i < p->n_slots; i++)
        if (p->slots[i].place == SNI_PLACE_ARENA)
            f->slots[i].tensor.data = data + p->slots[i].offset;
    f->bound = data;
}

const sni_plan *sni_frame_plan(const sni_frame *frame) {
    return frame->planned->plan;
}

/* ---- Pages of a compiled model ---- */

/* Large pages [begin, end) of its packed data. */
static void fetch_some(void *ctx, int64_t begin, int64_t end) {
    const sni_finished *f = ctx;
    size_t from = (size_t)begin * SNI_LARGE_PAGE, to = (size_t)end * SNI_LARGE_PAGE;
    sni_pages_fetch(f->data + from, (to < f->bytes ? to : f->bytes) - from);
}

/* Begins a loop that has the system map them, the first time. */
static void begin_fetching(sni_pool *pool, sni_loop *loop) {
    const sni_finished *f = pool->finished;
    bool first = f && !atomic_exchange(&pool->fetched, true);
    size_t pages = first ? (f->bytes + SNI_LARGE_PAGE - 1) / SNI_LARGE_PAGE : 0;
    sni_parallel_begin(loop, 0, (int64_t)pages, 1, fetch_some, (void *)f);
}

/* Makes a plan; other threads fetch the weights meanwhile. */
static sn_status build_plan(sni_program *g, const sni_signature *key, sni_plan **out,
                            sn_error *err) {
    sni_loop fetching;
    begin_fetching(g->pool, &fetching);
    sn_status status = sni_plan_build(&g->common, key, out, err);
    sni_parallel_end(&fetching);
    return status;
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

static void charge(const sni_program *g, sni_planned *p, size_t bytes) {
    p->bytes += bytes;
    atomic_fetch_add(&g->pool->plan_bytes, bytes);
}

static void list_remove(sni_program *g, sni_planned *p) {
    *(p->newer ? &p->newer->older : &g->newest) = p->older;
    *(p->older ? &p->older->newer : &g->oldest) = p->newer;
    p->newer = p->older = NULL;
}

static void list_add(sni_program *g, sni_planned *p) {
    p->older = g->newest;
    *(g->newest ? &g->newest->newer : &g->oldest) = p;
    g->newest = p;
}

/* Finds a plan and makes it the newest. Called with the lock held. */
static sni_planned *find_planned(sni_program *g, const sni_signature *signature, uint64_t hash) {
    for (sni_planned *p = g->buckets[hash % BUCKETS]; p; p = p->next) {
        if (p->hash != hash || !same_signature(&p->key, signature)) continue;
        if (p != g->newest) {
            list_remove(g, p);
            list_add(g, p);
        }
        return p;
    }
    return NULL;
}

static void drop_planned(sni_program *g, sni_planned *p) {
    sni_planned **at = &g->buckets[p->hash % BUCKETS];
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    list_remove(g, p);
    atomic_fetch_sub(&g->pool->plan_bytes, p->bytes);
    p->bytes = 0;
    if (p->busy)
        p->dropped = true;
    else
        planned_free(p);
}

static sn_status add_planned(sni_program *g, const sni_signature *signature, uint64_t hash,
                             sni_planned **out, sn_error *err) {
    sni_planned *p = calloc(1, sizeof *p);
    if (!p) return sni_fail_memory(err);
    sni_arena_init(&p->key_arena, 0);
    p->hash = hash;
    sn_status status = copy_signature(p, signature, err);
    if (status == SN_OK) status = build_plan(g, &p->key, &p->plan, err);
    if (status != SN_OK) {
        planned_free(p);
        return status;
    }
    list_add(g, p);
    p->next = g->buckets[hash % BUCKETS];
    g->buckets[hash % BUCKETS] = p;
    charge(g, p, sizeof *p + p->key_arena.used + p->plan->bytes);
    while (g->oldest != p && atomic_load(&g->pool->plan_bytes) > g->pool->plan_limit)
        drop_planned(g, g->oldest);
    *out = p;
    return SN_OK;
}

/* An idle frame, or a new one. Called with the lock held. */
static sn_status take_frame(const sni_program *g, sni_planned *p, sni_frame **out, sn_error *err) {
    sni_frame *f = p->idle;
    if (f) {
        p->idle = f->next;
        p->n_idle--;
    } else {
        SN_TRY(frame_new(p, &f, err));
        charge(g, p, frame_bytes(p->plan));
    }
    p->busy++;
    *out = f;
    return SN_OK;
}

/* Takes a frame back. Called with the lock held. */
static void put_frame(const sni_program *g, sni_frame *f) {
    sni_planned *p = f->planned;
    p->busy--;
    if (p->dropped || p->n_idle == FRAME_LIMIT) {
        if (!p->dropped) {
            p->bytes -= frame_bytes(p->plan);
            atomic_fetch_sub(&g->pool->plan_bytes, frame_bytes(p->plan));
        }
        frame_free(f);
    } else {
        f->next = p->idle;
        p->idle = f;
        p->n_idle++;
    }
    if (p->dropped && p->busy == 0) planned_free(p);
}

sn_status sni_program_frame(sni_program *program, const sni_signature *signature,
                            sni_budget *budget, sni_frame **out, sn_error *err) {
    uint64_t hash = hash_signature(signature);
    sni_frame *f = NULL;
    pthread_mutex_lock(&program->lock);
    sni_planned *p = find_planned(program, signature, hash);
    sn_status status = p ? SN_OK : add_planned(program, signature, hash, &p, err);
    if (status == SN_OK) status = take_frame(program, p, &f, err);
    pthread_mutex_unlock(&program->lock);
    if (status != SN_OK) return status;
    size_t bytes = p->plan->arena_bytes;
    status = sni_budget_take(budget, bytes, err);
    if (status == SN_OK) {
        status = sni_pool_take(program->pool, bytes, &f->workspace, err);
        if (status != SN_OK) sni_budget_give(budget, bytes);
    }
    if (status != SN_OK) {
        pthread_mutex_lock(&program->lock);
        put_frame(program, f);
        pthread_mutex_unlock(&program->lock);
        return status;
    }
    bind_arena(f);
    *out = f;
    return SN_OK;
}

#ifndef NDEBUG
/* Whether a frame holds nothing of the run that it was used for; for assertions. */
static bool is_unbound(const sni_frame *f) {
    const sni_plan *p = f->planned->plan;
    for (int32_t i = 0; i < p->n_slots; i++)
        if (p->slots[i].place != SNI_PLACE_ARENA && f->slots[i].kind != SN_KIND_NONE) return false;
    return true;
}
#endif

void sni_program_return(sni_program *program, sni_frame *frame, sni_budget *budget) {
    assert(is_unbound(frame));
    sni_budget_give(budget, frame->planned->plan->arena_bytes);
    sni_pool_return(program->pool, frame->workspace);
    frame->workspace = NULL;
    pthread_mutex_lock(&program->lock);
    put_frame(program, frame);
    pthread_mutex_unlock(&program->lock);
}

sn_status sni_program_choose(sni_program *program, const sni_node *n, const sni_type *const *in,
                             sni_assignment *out, sn_error *err) {
    pthread_mutex_lock(&program->lock);
    sn_status status = sni_plan_choose(&program->common, n, in, out, err);
    pthread_mutex_unlock(&program->lock);
    return status;
}

sni_pool *sni_program_pool(const sni_program *program) {
    return program->pool;
}

bool sni_program_last_plan(sni_program *program, sn_status (*fn)(void *ctx, const sni_plan *plan),
                           void *ctx, sn_status *status) {
    pthread_mutex_lock(&program->lock);
    bool any = program->newest != NULL;
    if (any) *status = fn(ctx, program->newest->plan);
    pthread_mutex_unlock(&program->lock);
    return any;
}

/* ---- Programs ---- */

static sn_status program_new(const sni_graph *g, sni_pool *pool, int depth, sni_program **out,
                             sn_error *err);

static sn_status add_children(sni_program *p, const sni_node *n, int depth, sn_error *err) {
    sni_program **list = calloc((size_t)n->n_subgraphs + 1, sizeof *list);
    if (!list) return sni_fail_memory(err);
    p->children[n->id] = list;
    for (int32_t i = 0; i < n->n_subgraphs; i++)
        SN_TRY(program_new(n->subgraphs[i], p->pool, depth + 1, &list[i], err));
    return SN_OK;
}

static sn_status program_new(const sni_graph *g, sni_pool *pool, int depth, sni_program **out,
                             sn_error *err) {
    SN_TRY(sni_check_nesting(depth, err));
    sni_program *p = calloc(1, sizeof *p);
    if (!p) return sni_fail_memory(err);
    if (pthread_mutex_init(&p->lock, NULL) != 0) {
        free(p);
        return sni_fail_memory(err);
    }
    p->graph = g;
    p->pool = pool;
    p->children = calloc((size_t)g->node_count + 1, sizeof *p->children);
    sn_status status = sni_common_init(&p->common, g, &pool->choosing, &pool->packed, err);
    p->common.finished = pool->finished;
    p->common.number = pool->programs++;
    if (status == SN_OK && !p->children) status = sni_fail_memory(err);
    for (const sni_node *n = sni_graph_first(g); n && status == SN_OK; n = sni_graph_next(g, n))
        if (n->n_subgraphs) status = add_children(p, n, depth, err);
    if (status == SN_OK)
        *out = p;
    else
        sni_program_free(p);
    return status;
}

sn_status sni_program_new(const sni_graph *g, sni_pool *pool, sni_program **out, sn_error *err) {
    return program_new(g, pool, 0, out, err);
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
    while (program->oldest) drop_planned(program, program->oldest);
    free_children(program);
    sni_common_free(&program->common);
    pthread_mutex_destroy(&program->lock);
    free(program);
}

/* The packed data of one graph. Called with the lock held. */
static sn_status tell_packed(const sni_common *c, sni_packed_fn fn, void *ctx) {
    for (const sni_node *n = sni_graph_first(c->graph); n; n = sni_graph_next(c->graph, n)) {
        for (const sni_prepared *p = c->prepared[n->id]; p; p = p->next) {
            sni_finished_key key = {.graph = c->number, .node = c->positions[n->id]};
            sni_candidate_name(p->impl, p->variant, key.impl);
            for (int32_t i = 0; i < p->pack.count; i++) SN_TRY(fn(ctx, &key, &p->pack.blobs[i]));
        }
    }
    return SN_OK;
}

sn_status sni_program_packed(sni_program *program, sni_packed_fn fn, void *ctx) {
    pthread_mutex_lock(&program->lock);
    sn_status status = tell_packed(&program->common, fn, ctx);
    pthread_mutex_unlock(&program->lock);
    for (int32_t id = 0; id < program->graph->node_count; id++)
        for (sni_program **child = program->children[id]; child && *child && status == SN_OK;
             child++)
            status = sni_program_packed(*child, fn, ctx);
    return status;
}

void sni_program_trim(sni_program *program) {
    pthread_mutex_lock(&program->lock);
    for (sni_planned *p = program->oldest, *newer; p; p = newer) {
        newer = p->newer;
        if (!p->busy) drop_planned(program, p);
    }
    pthread_mutex_unlock(&program->lock);
    for (int32_t id = 0; id < program->graph->node_count; id++)
        for (sni_program **child = program->children[id]; child && *child; child++)
            sni_program_trim(*child);
}

const sni_graph *sni_program_graph(const sni_program *program) {
    return program->graph;
}

sni_program *sni_program_child(const sni_program *program, const sni_node *node, int32_t index) {
    return program->children[node->id][index];
}
