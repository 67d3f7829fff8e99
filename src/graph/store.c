/* store.c - reference-counted owners of graph memory. */
#include "graph/store.h"

#include <stdlib.h>

sn_status sni_store_new(sni_store *parent, size_t limit, sni_store **out, sn_error *err) {
    sni_store *s = calloc(1, sizeof *s);
    if (!s) return sni_fail_memory(err);
    pthread_mutexattr_t attributes;
    bool made = pthread_mutexattr_init(&attributes) == 0;
    if (made) {
        /* Contents may be worked out from those of other constants of the store. */
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
        made = pthread_mutex_init(&s->lock, &attributes) == 0;
        pthread_mutexattr_destroy(&attributes);
    }
    if (!made) {
        free(s);
        return sni_fail_memory(err);
    }
    atomic_init(&s->refs, 1);
    sni_arena_init(&s->arena, limit);
    s->parent = sni_store_retain(parent);
    *out = s;
    return SN_OK;
}

sni_store *sni_store_retain(sni_store *store) {
    if (store) atomic_fetch_add(&store->refs, 1);
    return store;
}

void sni_store_release(sni_store *store) {
    while (store && atomic_fetch_sub(&store->refs, 1) == 1) {
        for (sni_owned *o = store->owned, *next; o; o = next) {
            next = o->next;
            o->free(o->object);
            free(o);
        }
        sni_arena_free(&store->arena);
        pthread_mutex_destroy(&store->lock);
        sni_store *parent = store->parent;
        free(store);
        store = parent;
    }
}

sn_status sni_store_own(sni_store *store, void *object, void (*free_fn)(void *), sn_error *err) {
    sni_owned *o = malloc(sizeof *o);
    if (!o) {
        free_fn(object);
        return sni_fail_memory(err);
    }
    *o = (sni_owned){.free = free_fn, .object = object, .next = store->owned};
    store->owned = o;
    return SN_OK;
}

sn_status sni_store_no_memory(const sni_store *store, sn_error *err) {
    if (store->arena.over_limit)
        return sni_fail(err, SN_LIMIT, "the model needs more than the %zu bytes of heap allowed",
                        store->arena.limit);
    return sni_fail_memory(err);
}
