/* buffer_cache.h - a cache of large buffers that were freed a moment ago, for whoever wants as much
 * again.
 *
 * A run's outputs are made and freed each time. The heap gives what is large back to the system at
 * once, and making the pages anew takes longer than writing them. The process has one such cache,
 * which keeps a bounded number of bytes, for a bounded number of calls. All functions are
 * thread-safe. */
#ifndef SNI_BASE_BUFFER_CACHE_H
#define SNI_BASE_BUFFER_CACHE_H

#include <stddef.h>

/* `bytes` of memory aligned to 64 bytes, not zero-filled; *size is what sni_buffer_cache_put() has
 * to be told. NULL: there is none. */
void *sni_buffer_cache_take(size_t bytes, size_t *size);
/* Gives it back, to the cache or to the system. */
void sni_buffer_cache_put(void *p, size_t size);

/* Frees what is kept, and returns how many bytes that were. */
size_t sni_buffer_cache_clear(void);

#endif
