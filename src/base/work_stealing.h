/* work_stealing.h - threads of a loop that help each other.
 *
 * A loop that has one part for each thread ends when the slowest is done, and a CPU is often slower
 * than another: its core or its time belongs to others as well. So a part goes through its work in
 * units, from the first on, and a part that has no work left takes units of others from the last
 * on. What is computed must not depend on who does it. */
#ifndef SNI_BASE_WORK_STEALING_H
#define SNI_BASE_WORK_STEALING_H

#include "base/threadpool.h"

/* What a part has in hand. */
typedef struct sni_stealing_part {
    const void *work;
    bool begun;                 /* the part has had work */
    atomic_uint_least64_t left; /* first unit, and one past the last, that nobody has taken */
    atomic_int helpers;         /* who may be at it beside the part itself */
} sni_stealing_part;

typedef struct sni_stealing {
    int parts;
    bool helpful;    /* there is a CPU for each: otherwise waiting for a helper takes long */
    atomic_int busy; /* parts that have begun and may still have units */
    /* Does a unit of some part's work; `part` is whose thread does it. */
    void (*run)(void *ctx, int part, const void *work, int64_t unit);
    void *ctx;
    sni_stealing_part hands[SNI_MAX_PARTS];
} sni_stealing;

/* For a loop of 1 to SNI_MAX_PARTS parts. */
void sni_stealing_init(sni_stealing *stealing, int parts,
                       void (*run)(void *ctx, int part, const void *work, int64_t unit), void *ctx);

/* Does a part's work, `units` units of it (at most INT32_MAX), and returns when all of them are
 * done. */
void sni_stealing_do(sni_stealing *stealing, int part, const void *work, int64_t units);

/* A part has no work of its own any more: it helps others that have begun as long as there are
 * units to take. Every part calls it once. */
void sni_stealing_help(sni_stealing *stealing, int part);

#endif
