/* store.c - reference-counted owners of graph memory. */
#include "graph/store.h"

#include <stdarg.h>
#include <stdio.h>
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

/* A note's text: its message, after the name of a node. */
static sn_status add_note(sni_store *store, sni_str node, const char *message, sn_error *err) {
    char text[sizeof(((sn_error *)0)->message) + 256];
    if (store->n_notes == SNI_MOST_NOTES) return SN_OK;
    if (node.n)
        snprintf(text, sizeof text, "node '%.*s': %s", SNI_FMT(node), message);
    else
        snprintf(text, sizeof text, "%s", message);
    sni_note *note = SNI_NEW(&store->arena, sni_note), **last = &store->notes;
    if (!note) return sni_store_no_memory(store, err);
    note->text = sni_arena_str(&store->arena, sni_str_of(text));
    if (!note->text.p) return sni_store_no_memory(store, err);
    while (*last) last = &(*last)->next;
    *last = note;
    store->n_notes++;
    return SN_OK;
}

sn_status sni_store_tolerate(sni_store *store, sni_str node, sn_error *err, const char *format,
                             ...) {
    char message[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (store->strict) return sni_fail(err, SN_INVALID_MODEL, "%s", message);
    return add_note(store, node, message, err);
}

sn_status sni_store_no_memory(const sni_store *store, sn_error *err) {
    if (store->arena.over_limit)
        return sni_fail(err, SN_LIMIT, "the model needs more than the %zu bytes of heap allowed",
                        store->arena.limit);
    return sni_fail_memory(err);
}
