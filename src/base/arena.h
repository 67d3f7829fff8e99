/* arena.h - memory that is freed all at once. Addresses are stable. Not thread-safe. */
#ifndef SNI_BASE_ARENA_H
#define SNI_BASE_ARENA_H

#include "base/str.h"

typedef struct sni_arena_block sni_arena_block;

typedef struct sni_arena {
    sni_arena_block *blocks; /* newest first */
    size_t used;             /* bytes given out, alignment included */
    size_t limit;            /* max bytes it may give out; 0: no limit */
    bool over_limit;         /* a request was refused because of `limit` */
} sni_arena;

/* An empty arena; its first block comes with the first request. */
void sni_arena_init(sni_arena *arena, size_t limit);
void sni_arena_free(sni_arena *arena); /* frees every block; the arena may be used again */

/* Takes everything back but keeps one block for what comes next. */
void sni_arena_reset(sni_arena *arena);

/* Zero-filled memory aligned for any type; NULL when there is none left or `limit` is reached.
 * A size of 0 gives a valid pointer. */
void *sni_arena_alloc(sni_arena *arena, size_t size);

/* `count` elements of `size` bytes; NULL also when the product does not fit. */
void *sni_arena_array(sni_arena *arena, size_t count, size_t size);

/* A copy, with a NUL after it. `p` is NULL on failure. */
sni_str sni_arena_str(sni_arena *arena, sni_str text);

/* printf into the arena; `p` is NULL on failure. */
sni_str sni_arena_printf(sni_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define SNI_NEW(arena, type) ((type *)sni_arena_alloc((arena), sizeof(type)))
#define SNI_NEW_ARRAY(arena, type, count) \
    ((type *)sni_arena_array((arena), (size_t)(count), sizeof(type)))

#endif
