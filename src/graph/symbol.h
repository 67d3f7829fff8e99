/* symbol.h - dimensions that are not known yet.
 *
 * A dimension is an int64_t: a plain integer, or a symbol of the table, which is a number far below
 * 0 (sni_dim_is_symbol). Plain negative integers occur in lists of dimensions that a graph computes
 * with (such as the -1 of Reshape), never in shapes. Symbols are interned expressions over named
 * inputs ("N", "2*S + 1", "floor(H/2)"): two dimensions that are equal as integers are equal for
 * certain; two unequal symbols may still turn out equal.
 * Functions that make symbols return SNI_DIM_FAIL when memory runs out. A table is used by one
 * thread at a time. */
#ifndef SNI_GRAPH_SYMBOL_H
#define SNI_GRAPH_SYMBOL_H

#include "base/arena.h"

#include <stdint.h>

typedef int64_t sni_dim;
#define SNI_DIM_FAIL INT64_MIN

typedef struct sni_symbols sni_symbols;

/* Symbol number s is SNI_DIM_SYMBOL + s; plain integers are at least SNI_DIM_LOWEST. */
#define SNI_DIM_SYMBOL (-((int64_t)1 << 62))
#define SNI_DIM_LOWEST (-((int64_t)1 << 60))

static inline bool sni_dim_is_symbol(sni_dim d) {
    return d < SNI_DIM_LOWEST;
}

/* A size: neither a symbol nor negative. */
static inline bool sni_dim_known(sni_dim d) {
    return d >= 0;
}

/* True if both are known and not the same. */
static inline bool sni_dim_differ(sni_dim a, sni_dim b) {
    return sni_dim_known(a) && sni_dim_known(b) && a != b;
}

sni_symbols *sni_symbols_new(void);                         /* NULL: out of memory */
sni_symbols *sni_symbols_clone(const sni_symbols *symbols); /* the same numbers mean the same */
void sni_symbols_free(sni_symbols *symbols);                /* NULL is fine */

sni_dim sni_dim_named(sni_symbols *symbols, sni_str name); /* the same name gives the same symbol */
sni_dim sni_dim_fresh(sni_symbols *symbols);               /* equal to no other */

/* Arithmetic. Plain operands give plain results; a result that does not fit or divides by 0 gives a
 * fresh symbol (the kernel will report it). */
sni_dim sni_dim_add(sni_symbols *symbols, sni_dim a, sni_dim b);
sni_dim sni_dim_sub(sni_symbols *symbols, sni_dim a, sni_dim b);
sni_dim sni_dim_mul(sni_symbols *symbols, sni_dim a, sni_dim b);
sni_dim sni_dim_floordiv(sni_symbols *symbols, sni_dim a, sni_dim b);
sni_dim sni_dim_ceildiv(sni_symbols *symbols, sni_dim a, sni_dim b);
sni_dim sni_dim_max(sni_symbols *symbols, sni_dim a, sni_dim b);
sni_dim sni_dim_min(sni_symbols *symbols, sni_dim a, sni_dim b);

/* The dimension of two operands that are broadcast: a 1 gives way; a symbol gives way to a size
 * above 1; min(k, N) to N (they fit only where they are equal); two unlike symbols give a fresh
 * one. *ok says whether they fit. */
sni_dim sni_dim_broadcast(sni_symbols *symbols, sni_dim a, sni_dim b, bool *ok);

/* The text of a dimension: "3", "N", "2*S + 1"; "?" followed by a number for a fresh one.
 * Borrowed from the table. */
const char *sni_dim_text(const sni_symbols *symbols, sni_dim d);

#endif
