/* symbol_table.c - the table behind sni_symbols: interned atoms and sums. */
#include "graph/symbol_table.h"

#include <stdlib.h>

/* ---- Tables ---- */

sni_symbols *sni_symbols_new(void) {
    sni_symbols *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    if (pthread_mutex_init(&s->text_lock, NULL) != 0) {
        free(s);
        return NULL;
    }
    s->seed = (uint64_t)(uintptr_t)s;
    sni_arena_init(&s->arena, 0);
    sni_arena_init(&s->text_arena, 0);
    return s;
}

void sni_symbols_free(sni_symbols *s) {
    if (!s) return;
    sni_arena_free(&s->arena);
    sni_arena_free(&s->text_arena);
    free(s->atoms);
    free(s->exprs);
    free(s->atom_index.slots);
    free(s->expr_index.slots);
    pthread_mutex_destroy(&s->text_lock);
    free(s);
}

/* Copies an array of `count` elements of `size` bytes; false when memory runs out. */
static bool copy_array(void **to, const void *from, size_t count, size_t size) {
    if (!count) return true;
    *to = malloc(count * size);
    if (*to) memcpy(*to, from, count * size);
    return *to != NULL;
}

static bool copy_index(sni_index_table *to, const sni_index_table *from) {
    *to = *from;
    to->slots = NULL;
    return copy_array((void **)&to->slots, from->slots, from->capacity, sizeof *from->slots);
}

/* Texts and terms are copied into the new table's arena. */
static bool copy_contents(sni_symbols *to) {
    for (int32_t i = 0; i < to->n_atoms; i++) {
        sni_atom *a = &to->atoms[i];
        a->text =
            sni_arena_str(&to->arena, a->kind == SNI_ATOM_NAMED ? a->name : sni_str_of(a->text)).p;
        if (!a->text) return false;
        if (a->kind == SNI_ATOM_NAMED) a->name.p = a->text;
    }
    for (int32_t i = 0; i < to->n_exprs; i++) {
        sni_expr *e = &to->exprs[i];
        sni_poly_term *terms = SNI_NEW_ARRAY(&to->arena, sni_poly_term, e->n);
        if (!terms) return false;
        memcpy(terms, e->terms, (size_t)e->n * sizeof *terms);
        e->terms = terms;
        e->text = NULL;
    }
    return true;
}

sni_symbols *sni_symbols_clone(const sni_symbols *symbols) {
    sni_symbols *s = sni_symbols_new();
    if (!s) return NULL;
    s->seed = symbols->seed; /* the index tables hold positions by hash */
    s->n_fresh = symbols->n_fresh;
    bool ok = copy_array((void **)&s->atoms, symbols->atoms, (size_t)symbols->n_atoms,
                         sizeof *s->atoms) &&
              copy_array((void **)&s->exprs, symbols->exprs, (size_t)symbols->n_exprs,
                         sizeof *s->exprs) &&
              copy_index(&s->atom_index, &symbols->atom_index) &&
              copy_index(&s->expr_index, &symbols->expr_index);
    if (ok) {
        s->n_atoms = s->atoms_capacity = symbols->n_atoms;
        s->n_exprs = s->exprs_capacity = symbols->n_exprs;
        ok = copy_contents(s);
    }
    if (ok) return s;
    sni_symbols_free(s);
    return NULL;
}

static bool grow(void **array, int32_t *capacity, int32_t count, size_t size) {
    if (count < *capacity) return true;
    if (*capacity > INT32_MAX / 4) return false;
    int32_t wanted = *capacity ? *capacity * 2 : 32;
    void *larger = realloc(*array, (size_t)wanted * size);
    if (!larger) return false;
    *array = larger;
    *capacity = wanted;
    return true;
}

static uint64_t mix(uint64_t hash, uint64_t v) {
    hash = (hash ^ v) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t atom_hash(const sni_symbols *s, const sni_atom *a) {
    uint64_t hash = mix(s->seed, (uint64_t)a->kind);
    for (size_t i = 0; i < a->name.n; i++) hash = mix(hash, (unsigned char)a->name.p[i]);
    return mix(mix(hash, (uint64_t)a->a), (uint64_t)a->b);
}

static bool atom_equal(const sni_atom *x, const sni_atom *y) {
    return x->kind == y->kind && x->a == y->a && x->b == y->b && sni_str_eq(x->name, y->name);
}

static uint64_t terms_hash(const sni_symbols *s, const sni_poly_term *t, int32_t n) {
    uint64_t hash = mix(s->seed, (uint64_t)n);
    for (int32_t i = 0; i < n; i++) {
        hash = mix(hash, (uint64_t)t[i].coef);
        for (int32_t k = 0; k < t[i].n_factors; k++) hash = mix(hash, (uint64_t)t[i].factors[k]);
    }
    return hash;
}

static bool terms_equal(const sni_poly_term *x, int32_t nx, const sni_poly_term *y, int32_t ny) {
    if (nx != ny) return false;
    for (int32_t i = 0; i < nx; i++)
        if (x[i].coef != y[i].coef || sni_term_compare(&x[i], &y[i]) != 0) return false;
    return true;
}

/* Puts an index into a table that is not full. */
static void index_put(sni_index_table *t, uint64_t hash, int32_t index) {
    size_t i = hash & (t->capacity - 1);
    while (t->slots[i] >= 0) i = (i + 1) & (t->capacity - 1);
    t->slots[i] = index;
    t->count++;
}

static uint64_t hash_at(const sni_symbols *s, bool atoms, int32_t i) {
    return atoms ? atom_hash(s, &s->atoms[i]) : terms_hash(s, s->exprs[i].terms, s->exprs[i].n);
}

/* Makes the table large enough for one more index. Fresh atoms and their sums are indexed like all
 * others. */
static bool index_reserve(sni_symbols *s, bool atoms) {
    sni_index_table *t = atoms ? &s->atom_index : &s->expr_index;
    if ((t->count + 1) * 2 <= t->capacity) return true;
    sni_index_table larger = {.capacity = t->capacity ? t->capacity * 2 : 64};
    larger.slots = malloc(larger.capacity * sizeof *larger.slots);
    if (!larger.slots) return false;
    memset(larger.slots, 0xff, larger.capacity * sizeof *larger.slots);
    for (size_t i = 0; i < t->capacity; i++)
        if (t->slots[i] >= 0) index_put(&larger, hash_at(s, atoms, t->slots[i]), t->slots[i]);
    free(t->slots);
    *t = larger;
    return true;
}

/* ---- Sums ---- */

void sni_symbols_poly_of(const sni_symbols *s, sni_dim d, sni_poly *p) {
    if (!sni_dim_is_symbol(d)) {
        sni_poly_of_number(p, d);
        return;
    }
    const sni_expr *e = &s->exprs[d - SNI_DIM_SYMBOL];
    p->n = e->n;
    memcpy(p->terms, e->terms, (size_t)e->n * sizeof *e->terms);
}

bool sni_symbols_poly_not_negative(const sni_symbols *s, const sni_poly *p) {
    for (int32_t i = 0; i < p->n; i++) {
        if (p->terms[i].coef < 0) return false;
        for (int32_t k = 0; k < p->terms[i].n_factors; k++)
            if (!s->atoms[p->terms[i].factors[k]].not_negative) return false;
    }
    return true;
}

/* ---- Interning ---- */

/* The dimension of a sum that is not a number. */
static sni_dim intern_terms(sni_symbols *s, const sni_poly *p) {
    uint64_t hash = terms_hash(s, p->terms, p->n);
    const sni_index_table *t = &s->expr_index;
    for (size_t i = hash & (t->capacity - 1); t->capacity && t->slots[i] >= 0;
         i = (i + 1) & (t->capacity - 1)) {
        const sni_expr *e = &s->exprs[t->slots[i]];
        if (terms_equal(e->terms, e->n, p->terms, p->n)) return SNI_DIM_SYMBOL + t->slots[i];
    }
    if (!index_reserve(s, false) ||
        !grow((void **)&s->exprs, &s->exprs_capacity, s->n_exprs, sizeof *s->exprs))
        return SNI_DIM_FAIL;
    sni_poly_term *copy = SNI_NEW_ARRAY(&s->arena, sni_poly_term, p->n);
    if (!copy) return SNI_DIM_FAIL;
    memcpy(copy, p->terms, (size_t)p->n * sizeof *copy);
    s->exprs[s->n_exprs] = (sni_expr){.terms = copy, .n = p->n};
    index_put(&s->expr_index, hash, s->n_exprs);
    return SNI_DIM_SYMBOL + s->n_exprs++;
}

sni_dim sni_symbols_intern_atom(sni_symbols *s, sni_atom a) {
    uint64_t hash = atom_hash(s, &a);
    const sni_index_table *t = &s->atom_index;
    int32_t found = -1;
    for (size_t i = hash & (t->capacity - 1); t->capacity && t->slots[i] >= 0 && found < 0;
         i = (i + 1) & (t->capacity - 1))
        if (atom_equal(&s->atoms[t->slots[i]], &a)) found = t->slots[i];
    if (found < 0) {
        bool cut = false;
        a.text = sni_atom_text(s, &a, &cut);
        if (!a.text) return SNI_DIM_FAIL;
        if (cut) return sni_dim_fresh(s);
        if (a.kind == SNI_ATOM_NAMED) a.name.p = a.text;
        if (!index_reserve(s, true) ||
            !grow((void **)&s->atoms, &s->atoms_capacity, s->n_atoms, sizeof *s->atoms))
            return SNI_DIM_FAIL;
        s->atoms[s->n_atoms] = a;
        index_put(&s->atom_index, hash, s->n_atoms);
        found = s->n_atoms++;
    }
    sni_poly p = {.n = 1};
    p.terms[0] = (sni_poly_term){.coef = 1, .n_factors = 1, .factors = {found}};
    return intern_terms(s, &p);
}

sni_dim sni_symbols_intern(sni_symbols *s, const sni_poly *p) {
    if (!sni_poly_is_number(p)) return intern_terms(s, p);
    int64_t v = sni_poly_constant(p);
    return v < SNI_DIM_LOWEST ? sni_dim_fresh(s) : v;
}

sni_dim sni_dim_named(sni_symbols *symbols, sni_str name) {
    return sni_symbols_intern_atom(
        symbols, (sni_atom){.kind = SNI_ATOM_NAMED, .name = name, .not_negative = true});
}

sni_dim sni_dim_fresh(sni_symbols *symbols) {
    return sni_symbols_intern_atom(symbols,
                                   (sni_atom){.kind = SNI_ATOM_FRESH, .a = symbols->n_fresh++});
}
