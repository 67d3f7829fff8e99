/* symbol_table.h - the table behind sni_symbols: interned atoms and sums. For the symbol*.c files.
 *
 * An atom is a named or fresh symbol, or a quotient, maximum or minimum of two dimensions that
 * could not be simplified. A sum is a polynomial over atoms (polynomial.h). Interning makes equal
 * sums the same number. */
#ifndef SNI_GRAPH_SYMBOL_TABLE_H
#define SNI_GRAPH_SYMBOL_TABLE_H

#include "graph/polynomial.h"
#include "graph/symbol.h"

#include <pthread.h>

typedef enum sni_atom_kind {
    SNI_ATOM_NAMED,
    SNI_ATOM_FRESH,
    SNI_ATOM_FLOORDIV,
    SNI_ATOM_MAX,
    SNI_ATOM_MIN
} sni_atom_kind;

typedef struct sni_atom {
    sni_atom_kind kind;
    sni_str name; /* NAMED */
    sni_dim a, b; /* FLOORDIV, MAX, MIN */
    const char *text;
    bool not_negative;
} sni_atom;

/* A sum that is not a number. */
typedef struct sni_expr {
    const sni_poly_term *terms;
    int32_t n;
    const char *text; /* made when first asked for */
} sni_expr;

/* An open-addressing table from hash to index; -1 is free. */
typedef struct sni_index_table {
    int32_t *slots;
    size_t capacity, count;
} sni_index_table;

struct sni_symbols {
    sni_arena arena;
    sni_atom *atoms;
    int32_t n_atoms, atoms_capacity;
    sni_expr *exprs; /* dimension SNI_DIM_SYMBOL + i is exprs[i] */
    int32_t n_exprs, exprs_capacity;
    sni_index_table atom_index, expr_index;
    int32_t n_fresh;
    uint64_t seed;             /* of hashes: differs from table to table */
    pthread_mutex_t text_lock; /* texts are made on demand, also by readers of a shared table */
    sni_arena text_arena;
};

/* A dimension (not SNI_DIM_FAIL) as a polynomial. */
void sni_symbols_poly_of(const sni_symbols *s, sni_dim d, sni_poly *p);
/* True if no value of the symbols makes it negative, as far as signs tell. */
bool sni_symbols_poly_not_negative(const sni_symbols *s, const sni_poly *p);

/* The dimension of a polynomial; a fresh one if it is a number below SNI_DIM_LOWEST. */
sni_dim sni_symbols_intern(sni_symbols *s, const sni_poly *p);
/* The dimension that is one atom; a fresh one instead if its text would be too long. */
sni_dim sni_symbols_intern_atom(sni_symbols *s, sni_atom a);

/* symbol_text.c: the text of an atom, in the arena; NULL when memory runs out. *cut: it was too
 * long. */
const char *sni_atom_text(sni_symbols *s, const sni_atom *a, bool *cut);

#endif
