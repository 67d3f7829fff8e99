/* pool.c - workspaces of runs: taken, grown, handed back, trimmed. */
#include "exec/pool.h"

#include "base/checked.h"
#include "base/pages.h"
#include "base/buffer_cache.h"

#include <stdlib.h>

enum {
    PATIENCE = 64,           /* workspaces taken until one that was not among them is freed */
    KEPT_SCRATCH = 64 << 20, /* max bytes of scratch that a workspace keeps */
    KEPT_ARENA = 1 << 20,    /* an arena of this size is never too large */
    KEPT_TYPES = 4096,       /* bytes of inferred types whose memory stays */
    LARGE = SNI_LARGE_PAGE,  /* from here on arenas have pages of their own */
    MIN_GROWTH = 256 << 10,  /* from here on arenas that grow are made larger than needed */
    LARGE_SCRATCH = 512 << 10
};

sn_status sni_pool_init(sni_pool *pool, size_t memory_limit, size_t plan_limit, sn_error *err) {
    *pool = (sni_pool){.packed.limit = memory_limit, .plan_limit = plan_limit};
    return pthread_mutex_init(&pool->lock, NULL) == 0 ? SN_OK : sni_fail_memory(err);
}

static size_t bytes_of(const sni_buffer *b) {
    return b ? b->bytes : 0;
}

/* ---- Arenas ---- */

static void run_buffer_free(sni_run_buffer *r) {
    if (r->size >= LARGE)
        sni_pages_unmap(r->data, r->size);
    else
        free(r->data);
    *r = (sni_run_buffer){0};
}

/* `size` bytes, of which `bytes` are wanted. False: there are none. */
static bool run_buffer_make(sni_run_buffer *r, size_t bytes, size_t size) {
    size_t unit = size >= LARGE ? LARGE : SNI_ALIGN;
    if (size > SIZE_MAX / 2) return false;
    size = size ? (size + unit - 1) / unit * unit : unit;
    void *data = size >= LARGE ? sni_pages_map(size) : aligned_alloc(SNI_ALIGN, size);
    if (!data) return false;
    if (size >= LARGE) sni_pages_use(data, bytes);
    *r = (sni_run_buffer){.data = data, .bytes = bytes, .size = size};
    return true;
}

/* One that has to grow gets addresses for as much again: longer inputs then cost the pages that
 * they add, not a new arena. Pages that are not used take no memory. */
static sn_status run_buffer_grow(sni_run_buffer *r, size_t bytes, sn_error *err) {
    if (r->data && bytes <= r->bytes) return SN_OK;
    if (r->data && bytes <= r->size) {
        if (r->size >= LARGE) sni_pages_use(r->data + r->bytes, bytes - r->bytes);
        r->bytes = bytes;
        return SN_OK;
    }
    size_t more;
    bool grows = r->data && bytes >= MIN_GROWTH && sni_mul_size(bytes, 2, &more);
    run_buffer_free(r);
    if ((grows && run_buffer_make(r, bytes, more)) || run_buffer_make(r, bytes, bytes))
        return SN_OK;
    return sni_fail(err, SN_NO_MEMORY, "out of memory allocating %zu bytes", bytes);
}

/* ---- Workspaces ---- */

static void workspace_free(sni_workspace *w) {
    run_buffer_free(&w->arena);
    sni_buffer_release(w->scratch);
    sni_arena_free(&w->types);
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
        size_t has = (*at)->arena.bytes, held = best ? (*best)->arena.bytes : 0;
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
    if (w->arena.bytes > KEPT_ARENA && w->arena.bytes / 2 > w->recent) run_buffer_free(&w->arena);
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
    w->scratch_touched = bytes_of(w->scratch);
}

bool sni_workspace_reserve(sni_workspace *w, size_t asked, sni_buffer **old) {
    sni_buffer *large;
    if (asked < LARGE_SCRATCH || asked > KEPT_SCRATCH || bytes_of(w->scratch) >= KEPT_SCRATCH ||
        sni_buffer_new_mapped(KEPT_SCRATCH, NULL, &large, NULL) != SN_OK)
        return false;
    *old = w->scratch;
    w->scratch = large;
    w->scratch_touched = 0;
    return true;
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
    sn_status status = run_buffer_grow(&w->arena, arena_bytes, err);
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
        w->scratch_touched = extra->bytes;
        extra = smaller;
    }
    sni_buffer_release(extra);
}

void sni_pool_return(sni_pool *pool, sni_workspace *w) {
    if (w->types.used > KEPT_TYPES) sni_arena_free(&w->types);
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
        bytes += w->arena.bytes + w->scratch_touched;
    free_list(idle);
    sni_buffer_cache_clear();
    return bytes;
}
