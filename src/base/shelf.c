/* shelf.c - large memory that was handed back a moment ago. */
#include "base/shelf.h"

#include "base/pages.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGN = 64,
    SLOTS = 64,
    PATIENCE = 256,             /* pieces handed back until one that nobody wanted is freed */
    LEAST = 128 << 10,          /* bytes of a piece from which on heaps ask the system */
    MOST = 64 << 20,            /* bytes of all pieces */
    LARGE = 2 * SNI_LARGE_PAGE, /* bytes from which on large pages are worth a call */
    SMALL_PAGE = 4 << 10,
    STEPS = 16 /* sizes come in steps of a sixteenth to an eighth: what grows finds room, too */
};

/* A sanitizer is to see what is used after it was freed. */
#if defined(__SANITIZE_ADDRESS__)
static const bool keeps = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
static const bool keeps = false;
#else
static const bool keeps = true;
#endif
#else
static const bool keeps = true;
#endif

typedef struct piece {
    void *p;
    size_t size;
    uint64_t put; /* when */
} piece;

/* The oldest come first. Who finds it locked does without: so does the child of a fork. */
static struct {
    pthread_mutex_t lock;
    piece pieces[SLOTS];
    size_t count, bytes;
    uint64_t puts;
} shelf = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void remove_at(size_t i) {
    shelf.bytes -= shelf.pieces[i].size;
    shelf.count--;
    memmove(shelf.pieces + i, shelf.pieces + i + 1, (shelf.count - i) * sizeof *shelf.pieces);
}

static void free_oldest(void) {
    free(shelf.pieces[0].p);
    remove_at(0);
}

/* The smallest piece of *size bytes or up to twice as many, which it becomes; NULL: none. */
static void *find(size_t *size) {
    void *p = NULL;
    size_t best = SLOTS;
    if (pthread_mutex_trylock(&shelf.lock) != 0) return NULL;
    for (size_t i = 0; i < shelf.count; i++) {
        size_t has = shelf.pieces[i].size;
        if (has < *size || has / 2 > *size) continue;
        if (best == SLOTS || has <= shelf.pieces[best].size) best = i; /* of equals the newest */
    }
    if (best < SLOTS) {
        p = shelf.pieces[best].p;
        *size = shelf.pieces[best].size;
        remove_at(best);
    }
    pthread_mutex_unlock(&shelf.lock);
    return p;
}

void *sni_shelf_take(size_t bytes, size_t *size) {
    size_t unit = ALIGN;
    if (bytes > SIZE_MAX / 2) return NULL;
    if (bytes >= LEAST) {
        for (unit = SMALL_PAGE; unit < bytes / STEPS;) unit *= 2;
    }
    *size = (bytes + unit - 1) / unit * unit;
    void *p = keeps && *size >= LEAST ? find(size) : NULL;
    if (p) return p;
    p = aligned_alloc(ALIGN, *size);
    if (p && *size >= LARGE) sni_pages_enlarge(p, *size);
    return p;
}

void sni_shelf_put(void *p, size_t size) {
    if (!p || !keeps || size < LEAST || size > MOST || pthread_mutex_trylock(&shelf.lock) != 0) {
        free(p);
        return;
    }
    shelf.puts++;
    while (shelf.count && (shelf.count == SLOTS || shelf.bytes + size > MOST ||
                           shelf.pieces[0].put + PATIENCE < shelf.puts))
        free_oldest();
    shelf.pieces[shelf.count++] = (piece){p, size, shelf.puts};
    shelf.bytes += size;
    pthread_mutex_unlock(&shelf.lock);
}

size_t sni_shelf_clear(void) {
    if (pthread_mutex_trylock(&shelf.lock) != 0) return 0;
    size_t bytes = shelf.bytes;
    while (shelf.count) free_oldest();
    pthread_mutex_unlock(&shelf.lock);
    return bytes;
}
