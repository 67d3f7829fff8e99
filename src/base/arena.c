#include "base/arena.h"

#include "base/checked.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20, ALIGN = 16 };

struct sni_arena_block {
    sni_arena_block *next;
    size_t size; /* of `bytes` */
    size_t used;
    size_t pad;
    unsigned char bytes[];
};

void sni_arena_init(sni_arena *arena, size_t limit) {
    *arena = (sni_arena){.limit = limit};
}

void sni_arena_free(sni_arena *arena) {
    for (sni_arena_block *b = arena->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    sni_arena_init(arena, arena->limit);
}

void sni_arena_reset(sni_arena *arena) {
    sni_arena_block *keep = arena->blocks;
    if (!keep) return;
    arena->blocks = keep->next;
    sni_arena_free(arena);
    keep->next = NULL;
    memset(keep->bytes, 0, keep->used);
    keep->used = 0;
    arena->blocks = keep;
}

/* A block of at least `size` bytes; a block twice the last one's size serves many small requests.
 */
static sni_arena_block *add_block(sni_arena *arena, size_t size) {
    size_t want = arena->blocks ? arena->blocks->size * 2 : FIRST_BLOCK;
    if (want > LARGEST_BLOCK) want = LARGEST_BLOCK;
    if (want < size) want = size;
    size_t total;
    if (!sni_add_size(want, sizeof(sni_arena_block), &total)) return NULL;
    sni_arena_block *b = calloc(1, total);
    if (!b) return NULL;
    b->size = want;
    b->next = arena->blocks;
    arena->blocks = b;
    return b;
}

void *sni_arena_alloc(sni_arena *arena, size_t size) {
    size_t rounded, used;
    if (!sni_add_size(size, ALIGN - 1, &rounded)) return NULL;
    rounded &= ~(size_t)(ALIGN - 1);
    if (rounded == 0) rounded = ALIGN;
    if (!sni_add_size(arena->used, rounded, &used)) return NULL;
    if (arena->limit && used > arena->limit) {
        arena->over_limit = true;
        return NULL;
    }
    sni_arena_block *b = arena->blocks;
    if (!b || b->size - b->used < rounded) b = add_block(arena, rounded);
    if (!b) return NULL;
    void *p = b->bytes + b->used;
    b->used += rounded;
    arena->used = used;
    return p;
}

void *sni_arena_array(sni_arena *arena, size_t count, size_t size) {
    size_t total;
    return sni_mul_size(count, size, &total) ? sni_arena_alloc(arena, total) : NULL;
}

sni_str sni_arena_str(sni_arena *arena, sni_str text) {
    size_t size;
    char *p = sni_add_size(text.n, 1, &size) ? sni_arena_alloc(arena, size) : NULL;
    if (!p) return (sni_str){0};
    if (text.n) memcpy(p, text.p, text.n);
    return (sni_str){p, text.n};
}

sni_str sni_arena_printf(sni_arena *arena, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *p = n < 0 ? NULL : sni_arena_alloc(arena, (size_t)n + 1);
    if (p) vsnprintf(p, (size_t)n + 1, format, again);
    va_end(again);
    return p ? (sni_str){p, (size_t)n} : (sni_str){0};
}
