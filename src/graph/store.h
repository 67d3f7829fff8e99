/* store.h - who owns the memory of graphs: an arena, files and buffers that live as long as the
 * last graph, model or session that refers to them. */
#ifndef SNI_GRAPH_STORE_H
#define SNI_GRAPH_STORE_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct sni_owned {
    void (*free)(void *object);
    void *object;
    struct sni_owned *next;
} sni_owned;

/* Something that the specification forbids and a reader let pass. */
typedef struct sni_note {
    sni_str text;
    struct sni_note *next;
} sni_note;

enum { SNI_MOST_NOTES = 64 }; /* of a store: what follows is let pass without one */

typedef struct sni_store {
    atomic_int refs;
    pthread_mutex_t lock;     /* guards lazy loading of weights after creation; recursive */
    sni_arena arena;          /* used by one thread: whoever builds */
    sni_owned *owned;         /* freed in reverse order of registration */
    struct sni_store *parent; /* kept alive by this one; may be NULL */
    bool strict;              /* nothing that the specification forbids passes */
    sni_note *notes;          /* in order; in the arena */
    int n_notes;
} sni_store;

/* A store with one reference. `limit` is that of its arena. */
sn_status sni_store_new(sni_store *parent, size_t limit, sni_store **out, sn_error *err);
/* One more reference, one less: the last one frees the arena and all that is owned. NULL is fine
 * for release. Thread-safe. */
sni_store *sni_store_retain(sni_store *store);
void sni_store_release(sni_store *store);

/* Has `object` freed with the store, before what was registered earlier. On failure it is freed at
 * once. */
sn_status sni_store_own(sni_store *store, void *object, void (*free_fn)(void *), sn_error *err);

/* Lets pass what the specification forbids and other engines accept: SN_OK, and the message, with
 * the node's name before it (n 0: none), is a note of the store. SN_INVALID_MODEL with the message
 * where the store is strict. */
sn_status sni_store_tolerate(sni_store *store, sni_str node, sn_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Why the store's arena gave nothing: SN_LIMIT if it may not, SN_NO_MEMORY if it cannot. */
sn_status sni_store_no_memory(const sni_store *store, sn_error *err);

#endif
