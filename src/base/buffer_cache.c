/* buffer_cache.c - large memory that was handed back a moment ago. */
#include "base/buffer_cache.h"

#include "base/pages.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGN = 64,
    SLOTS = 64,
    PATIENCE = 256,             /* buffers handed back until one that nobody wanted is freed */
    LEAST = 128 << 10,          /* bytes of a buffer from which on heaps ask the system */
    MOST = 64 << 20,            /* bytes of all buffers */
    LARGE = 2 * SNI_LARGE_PAGE, /* bytes from which on large pages are worth a call */
    SMALL_PAGE = 4 << 10,
    STEPS = 16 /* sizes come in steps of a sixteenth to an eighth: a tensor that grows a little
                  still fits */
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

typedef struct buffer {
    void *p;
    size_t size;
    uint64_t put; /* when */
} buffer;

/* The oldest come first. Who finds it locked does without: so does the child of a fork. */
static struct {
    pthread_mutex_t lock;
    buffer buffers[SLOTS];
    size_t count, bytes;
    uint64_t puts;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void remove_at(size_t i) {
    kept.bytes -= kept.buffers[i].size;
    kept.count--;
    memmove(kept.buffers + i, kept.buffers + i + 1, (kept.count - i) * sizeof *kept.buffers);
}

static void free_oldest(void) {
    free(kept.buffers[0].p);
    remove_at(0);
}

/* The smallest buffer of *size bytes or up to twice as many, which it becomes; NULL: none. */
static void *find(size_t *size) {
    void *p = NULL;
    size_t best = SLOTS;
    if (pthread_mutex_trylock(&kept.lock) != 0) return NULL;
    for (size_t i = 0; i < kept.count; i++) {
        size_t has = kept.buffers[i].size;
        if (has < *size || has / 2 > *size) continue;
        if (best == SLOTS || has <= kept.buffers[best].size) best = i; /* of equals the newest */
    }
    if (best < SLOTS) {
        p = kept.buffers[best].p;
        *size = kept.buffers[best].size;
        remove_at(best);
    }
    pthread_mutex_unlock(&kept.lock);
    return p;
}

void *sni_buffer_cache_take(size_t bytes, size_t *size) {
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

void sni_buffer_cache_put(void *p, size_t size) {
    if (!p || !keeps || size < LEAST || size > MOST || pthread_mutex_trylock(&kept.lock) != 0) {
        free(p);
        return;
    }
    kept.puts++;
    while (kept.count && (kept.count == SLOTS || kept.bytes + size > MOST ||
                          kept.buffers[0].put + PATIENCE < kept.puts))
        free_oldest();
    kept.buffers[kept.count++] = (buffer){p, size, kept.puts};
    kept.bytes += size;
    pthread_mutex_unlock(&kept.lock);
}

size_t sni_buffer_cache_clear(void) {
    if (pthread_mutex_trylock(&kept.lock) != 0) return 0;
    size_t bytes = kept.bytes;
    while (kept.count) free_oldest();
    pthread_mutex_unlock(&kept.lock);
    return bytes;
}
