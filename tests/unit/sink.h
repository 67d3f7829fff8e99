/* sink.h - what the library writes, kept in memory as text. */
#ifndef SINK_H
#define SINK_H

#include "unit.h"

#include "sinter.h"

#include <stdlib.h>

typedef struct sink {
    char *p;
    size_t n;
} sink;

static inline int sink_append(void *ctx, const void *bytes, size_t size) {
    sink *s = ctx;
    s->p = realloc(s->p, s->n + size + 1);
    assert_non_null(s->p);
    memcpy(s->p + s->n, bytes, size);
    s->n += size;
    s->p[s->n] = 0;
    return 0;
}

#endif
