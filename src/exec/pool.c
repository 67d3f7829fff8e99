/* pool.c - workspaces of runs: taken, grown, handed back, trimmed. */
#include "exec/pool.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
    PATIENCE = 64,           /* workspaces taken until one that was not among them is freed */
    KEPT_SCRATCH = 64 << 20, /* most bytes of working memory that a workspace keeps */
    KEPT_ARENA = 1 << 20     /* an arena of this size is never too large */
};

sn_status sni_pool_init(sni_pool *pool, size_t memory_limit, size_t plan_limit, sn_error *err) {
    *pool = (sni_pool){.packed.limit = memory_limit, .plan_limit = plan_limit};
    return pthread_mutex_init(&pool->lock, NULL) == 0 ? SN_OK : sni_fail_memory(err);
}

static size_t bytes_of(const sni_buffer *b) {
    return b ? b->bytes : 0;
}

static void workspace_free(sni_workspace *w) {
    sni_buffer_release(w->arena);
    sni_buffer_release(w->scratch);
    free(w);
}

void sni_pool_free(sni_pool *pool) {
    sni_pool_trim(pool);
    pthread_mutex_destroy(&pool->lock);
}

/* The smallest idle workspace whose arena is large enough, else the largest; NULL: none is idle. */
static sni_workspace **find_idle(sni_pool *pool, size_t bytes) {
    sni_workspace **best = NULL;
    for (sni_workspace **at = &pool->idle; *at; at = &(*at)->next) {
        size_t has = bytes_of((*at)->arena);
        size_t held = best ? bytes_of((*best)->arena) : 0;
        if (!best || (has >= bytes ? held < bytes || has < held : has > held)) best = at;
    }
    return best;
}

/* Takes what nobody needed lately from the idle ones, for the caller to free without the lock. */
static sni_workspace *take_stale(sni_pool *pool) {
    sni_workspace *stale = NULL;
    for (sni_workspace **at = &pool->idle; *at;) {
        sni_workspace *w = *at;
        if (pool->clock - w->used < PATIENCE) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->next = stale;
        stale = w;
    }
    return stale;
}

static void free_list(sni_workspace *list) {
    for (sni_workspace *next; list; list = next) {
        next = list->next;
        workspace_free(list);
    }
}

/* Forgets an arena that is more than twice what the last runs needed. */
static void shrink(sni_workspace *w, uint64_t clock) {
    if (clock - w->measured < PATIENCE) return;
    size_t has = bytes_of(w->arena);
    if (has > KEPT_ARENA && has / 2 > w->recent) {
        sni_buffer_release(w->arena);
        w->arena = NULL;
    }
    w->recent = 0;
    w->measured = clock;
}

/* Makes the scratch as large as steps have asked for, within reason. */
static void grow_scratch(sni_workspace *w) {
    sni_buffer *bigger;
    if (w->scratch_wanted <= bytes_of(w->scratch) || w->scratch_wanted > KEPT_SCRATCH) return;
    sni_buffer_release(w->scratch);
    w->scratch = NULL;
    if (sni_buffer_new(w->scratch_wanted, NULL, &bigger, NULL) == SN_OK) w->scratch = bigger;
}

/* Asks for large pages where they fit into the memory: fewer faults when it is first used, and
 * fewer translations. */
static void spread(sni_buffer *b) {
#ifdef MADV_HUGEPAGE
    enum { HUGE_PAGE = 2 << 20 };
    uintptr_t first = ((uintptr_t)b->data + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)b->data + b->bytes) & ~(uintptr_t)(HUGE_PAGE - 1);
    if (end > first) madvise((void *)first, end - first, MADV_HUGEPAGE);
#endif
}

static sn_status grow_arena(sni_workspace *w, size_t bytes, sn_error *err) {
    if (w->arena && w->arena->bytes >= bytes) return SN_OK;
    sni_buffer_release(w->arena);
    w->arena = NULL;
    SN_TRY(sni_buffer_new(bytes, NULL, &w->arena, err));
    spread(w->arena);
    return SN_OK;
}

sn_status sni_pool_take(sni_pool *pool, size_t arena_bytes, sni_workspace **out, sn_error *err) {
    pthread_mutex_lock(&pool->lock);
    uint64_t clock = ++pool->clock;
    sni_workspace **at = find_idle(pool, arena_bytes);
    sni_workspace *w = at ? *at : NULL;
    if (w) *at = w->next;
    sni_workspace *stale = take_stale(pool);
    pthread_mutex_unlock(&pool->lock);
    free_list(stale);
    if (!w) w = calloc(1, sizeof *w);
    if (!w) return sni_fail_memory(err);
    w->used = clock;
    if (arena_bytes > w->recent) w->recent = arena_bytes;
    shrink(w, clock);
    if (arena_bytes > w->recent) w->recent = arena_bytes;
    grow_scratch(w);
    sn_status status = grow_arena(w, arena_bytes, err);
    if (status != SN_OK) {
        workspace_free(w);
        return status;
    }
    *out = w;
    return SN_OK;
}

void sni_workspace_keep(sni_workspace *w, sni_buffer *extra) {
    if (extra->bytes > bytes_of(w->scratch) && extra->bytes <= KEPT_SCRATCH) {
        sni_buffer *smaller = w->scratch;
        sni_budget_give(extra->budget, extra->bytes);
        extra->budget = NULL;
        w->scratch = extra;
        extra = smaller;
    }
    sni_buffer_release(extra);
}

void sni_pool_return(sni_pool *pool, sni_workspace *w) {
    pthread_mutex_lock(&pool->lock);
    w->next = pool->idle;
    pool->idle = w;
    pthread_mutex_unlock(&pool->lock);
}

size_t sni_pool_trim(sni_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    sni_workspace *idle = pool->idle;
    pool->idle = NULL;
    pthread_mutex_unlock(&pool->lock);
    size_t bytes = 0;
    for (const sni_workspace *w = idle; w; w = w->next)
        bytes += bytes_of(w->arena) + bytes_of(w->scratch);
    free_list(idle);
    return bytes;
}
