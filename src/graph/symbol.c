/* symbol.c - dimensions as interned polynomials.
 *
 * An expression is a sum of terms, coefficient * product of atoms. An atom is a named or fresh
 * symbol, or a quotient, maximum or minimum of two dimensions that could not be simplified. Terms
 * stand in graded lexicographic order, so equal sums are equal term by term, and interning makes
 * them the same number. */
#include "graph/symbol.h"

#include "base/checked.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MOST_TERMS = 24,
    MOST_FACTORS = 8, /* of one term */
    MOST_TEXT = 400   /* bytes: a longer expression becomes a fresh symbol */
};

typedef enum atom_kind { ATOM_NAMED, ATOM_FRESH, ATOM_FLOORDIV, ATOM_MAX, ATOM_MIN } atom_kind;

typedef struct atom {
    atom_kind kind;
    sni_str name; /* NAMED */
    sni_dim a, b; /* FLOORDIV, MAX, MIN */
    const char *text;
    bool not_negative;
} atom;

typedef struct term {
    int64_t coef;                  /* never 0 */
    int32_t factors[MOST_FACTORS]; /* atoms in rising order */
    int32_t n_factors;
} term;

/* Terms in falling order; the constant, if any, is last. */
typedef struct poly {
    int32_t n;
    term terms[MOST_TERMS];
} poly;

typedef struct expr {
    const term *terms;
    int32_t n;
    const char *text; /* made when first asked for */
} expr;

/* An open-addressing table from hash to index; -1 is free. */
typedef struct index_table {
    int32_t *slots;
    size_t capacity, count;
} index_table;

struct sni_symbols {
    sni_arena arena;
    atom *atoms;
    int32_t n_atoms, atoms_capacity;
    expr *exprs; /* dimension SNI_DIM_SYMBOL + i is exprs[i] */
    int32_t n_exprs, exprs_capacity;
    index_table atom_index, expr_index;
    int32_t n_fresh;
    uint64_t seed;             /* of hashes: differs from table to table */
    pthread_mutex_t text_lock; /* texts are made on demand, also by readers of a shared table */
    sni_arena text_arena;
};

/* ---- The tables ---- */

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

static bool copy_index(index_table *to, const index_table *from) {
    *to = *from;
    to->slots = NULL;
    return copy_array((void **)&to->slots, from->slots, from->capacity, sizeof *from->slots);
}

/* Texts and terms are copied into the new table's arena. */
static bool copy_contents(sni_symbols *to) {
    for (int32_t i = 0; i < to->n_atoms; i++) {
        atom *a = &to->atoms[i];
        a->text =
            sni_arena_str(&to->arena, a->kind == ATOM_NAMED ? a->name : sni_str_of(a->text)).p;
        if (!a->text) return false;
        if (a->kind == ATOM_NAMED) a->name.p = a->text;
    }
    for (int32_t i = 0; i < to->n_exprs; i++) {
        expr *e = &to->exprs[i];
        term *terms = SNI_NEW_ARRAY(&to->arena, term, e->n);
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

static uint64_t atom_hash(const sni_symbols *s, const atom *a) {
    uint64_t hash = mix(s->seed, (uint64_t)a->kind);
    for (size_t i = 0; i < a->name.n; i++) hash = mix(hash, (unsigned char)a->name.p[i]);
    return mix(mix(hash, (uint64_t)a->a), (uint64_t)a->b);
}

static bool atom_equal(const atom *x, const atom *y) {
    return x->kind == y->kind && x->a == y->a && x->b == y->b && sni_str_eq(x->name, y->name);
}

static uint64_t terms_hash(const sni_symbols *s, const term *t, int32_t n) {
    uint64_t hash = mix(s->seed, (uint64_t)n);
    for (int32_t i = 0; i < n; i++) {
        hash = mix(hash, (uint64_t)t[i].coef);
        for (int32_t k = 0; k < t[i].n_factors; k++) hash = mix(hash, (uint64_t)t[i].factors[k]);
    }
    return hash;
}

static int compare_factors(const term *x, const term *y) {
    if (x->n_factors != y->n_factors) return x->n_factors < y->n_factors ? -1 : 1;
    for (int32_t i = 0; i < x->n_factors; i++)
        if (x->factors[i] != y->factors[i]) return x->factors[i] > y->factors[i] ? -1 : 1;
    return 0;
}

static bool terms_equal(const term *x, int32_t nx, const term *y, int32_t ny) {
    if (nx != ny) return false;
    for (int32_t i = 0; i < nx; i++)
        if (x[i].coef != y[i].coef || compare_factors(&x[i], &y[i]) != 0) return false;
    return true;
}

/* Puts an index into a table that is not full. */
static void index_put(index_table *t, uint64_t hash, int32_t index) {
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
    index_table *t = atoms ? &s->atom_index : &s->expr_index;
    if ((t->count + 1) * 2 <= t->capacity) return true;
    index_table larger = {.capacity = t->capacity ? t->capacity * 2 : 64};
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

static void poly_of_number(poly *p, int64_t v) {
    p->n = v != 0;
    p->terms[0] = (term){.coef = v};
}

static void poly_of(const sni_symbols *s, sni_dim d, poly *p) {
    if (!sni_dim_is_symbol(d)) {
        poly_of_number(p, d);
        return;
    }
    const expr *e = &s->exprs[d - SNI_DIM_SYMBOL];
    p->n = e->n;
    memcpy(p->terms, e->terms, (size_t)e->n * sizeof *e->terms);
}

/* The constant term. */
static int64_t poly_constant(const poly *p) {
    return p->n && p->terms[p->n - 1].n_factors == 0 ? p->terms[p->n - 1].coef : 0;
}

static bool poly_is_number(const poly *p) {
    return p->n == 0 || (p->n == 1 && p->terms[0].n_factors == 0);
}

/* out = x + k * y; false if it does not fit. `out` may be x. */
static bool poly_add(const poly *x, const poly *y, int64_t k, poly *out) {
    poly sum = {0};
    int32_t i = 0, j = 0;
    while (i < x->n || j < y->n) {
        int order = i == x->n ? -1 : j == y->n ? 1 : compare_factors(&x->terms[i], &y->terms[j]);
        term t = order >= 0 ? x->terms[i] : y->terms[j];
        if (order < 0 && !sni_mul_i64(t.coef, k, &t.coef)) return false;
        if (order == 0) {
            int64_t more;
            if (!sni_mul_i64(y->terms[j].coef, k, &more) || !sni_add_i64(t.coef, more, &t.coef))
                return false;
        }
        i += order >= 0;
        j += order <= 0;
        if (t.coef == 0) continue;
        if (sum.n == MOST_TERMS) return false;
        sum.terms[sum.n++] = t;
    }
    *out = sum;
    return true;
}

static bool term_mul(const term *x, const term *y, term *out) {
    term t = {.n_factors = x->n_factors + y->n_factors};
    if (t.n_factors > MOST_FACTORS || !sni_mul_i64(x->coef, y->coef, &t.coef)) return false;
    for (int32_t i = 0, j = 0, k = 0; k < t.n_factors; k++) {
        bool first = j == y->n_factors || (i < x->n_factors && x->factors[i] <= y->factors[j]);
        t.factors[k] = first ? x->factors[i++] : y->factors[j++];
    }
    *out = t;
    return true;
}

/* out = x / y if y's factors and coefficient divide x's. */
static bool term_div(const term *x, const term *y, term *out) {
    if (y->coef == -1 && x->coef == INT64_MIN) return false;
    if (x->coef % y->coef != 0) return false;
    term t = {.coef = x->coef / y->coef};
    int32_t j = 0;
    for (int32_t i = 0; i < x->n_factors; i++) {
        if (j < y->n_factors && x->factors[i] == y->factors[j])
            j++;
        else
            t.factors[t.n_factors++] = x->factors[i];
    }
    if (j < y->n_factors) return false;
    *out = t;
    return true;
}

static bool poly_mul_term(const poly *x, const term *t, poly *out) {
    poly product = {.n = x->n};
    for (int32_t i = 0; i < x->n; i++)
        if (!term_mul(&x->terms[i], t, &product.terms[i])) return false;
    *out = product;
    return true;
}

static bool poly_mul(const poly *x, const poly *y, poly *out) {
    poly sum = {0};
    for (int32_t i = 0; i < y->n; i++) {
        poly part;
        if (!poly_mul_term(x, &y->terms[i], &part) || !poly_add(&sum, &part, 1, &sum)) return false;
    }
    *out = sum;
    return true;
}

/* out = x / y if that leaves no rest: long division by the leading term. */
static bool poly_div_exact(const poly *x, const poly *y, poly *out) {
    poly rest = *x, quotient = {0};
    for (int step = 0; rest.n; step++) {
        term t;
        poly part;
        if (step == MOST_TERMS || !term_div(&rest.terms[0], &y->terms[0], &t)) return false;
        quotient.terms[quotient.n++] = t;
        if (!poly_mul_term(y, &t, &part) || !poly_add(&rest, &part, -1, &rest)) return false;
    }
    *out = quotient;
    return true;
}

/* True if no value of the symbols makes it negative, as far as signs tell. */
static bool poly_not_negative(const sni_symbols *s, const poly *p) {
    for (int32_t i = 0; i < p->n; i++) {
        if (p->terms[i].coef < 0) return false;
        for (int32_t k = 0; k < p->terms[i].n_factors; k++)
            if (!s->atoms[p->terms[i].factors[k]].not_negative) return false;
    }
    return true;
}

/* ---- Text ---- */

typedef struct text {
    char p[MOST_TEXT + 1];
    size_t n;
    bool cut;
} text;

static void put(text *t, const char *c) {
    size_t n = strlen(c);
    if (n > MOST_TEXT - t->n) {
        t->cut = true;
        n = MOST_TEXT - t->n;
    }
    memcpy(t->p + t->n, c, n);
    t->n += n;
    t->p[t->n] = 0;
}

static void put_number(text *t, int64_t v) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, v);
    put(t, digits);
}

static void put_term(const sni_symbols *s, text *t, const term *x) {
    bool negative = x->coef < 0;
    if (t->n)
        put(t, negative ? " - " : " + ");
    else if (negative)
        put(t, "-");
    uint64_t size = negative ? -(uint64_t)x->coef : (uint64_t)x->coef;
    if (size != 1 || x->n_factors == 0) {
        char digits[24];
        snprintf(digits, sizeof digits, "%" PRIu64, size);
        put(t, digits);
    }
    for (int32_t i = 0; i < x->n_factors; i++) {
        if (i || size != 1) put(t, "*");
        put(t, s->atoms[x->factors[i]].text);
    }
}

/* What is added comes first, what is taken away after it. */
static void put_terms(const sni_symbols *s, text *t, const term *x, int32_t n) {
    text sum = {.n = 0};
    for (int negative = 0; negative < 2; negative++)
        for (int32_t i = 0; i < n; i++)
            if ((x[i].coef < 0) == (negative == 1)) put_term(s, &sum, &x[i]);
    put(t, sum.n ? sum.p : "0");
    t->cut |= sum.cut;
}

/* Parentheses around what does not stand by itself beside a "/". */
static void put_operand(const sni_symbols *s, text *t, const poly *p) {
    bool alone =
        p->n == 0 ||
        (p->n == 1 && p->terms[0].coef >= 0 &&
         (p->terms[0].n_factors == 0 || (p->terms[0].coef == 1 && p->terms[0].n_factors == 1)));
    if (!alone) put(t, "(");
    put_terms(s, t, p->terms, p->n);
    if (!alone) put(t, ")");
}

static void put_quotient(const sni_symbols *s, text *t, const atom *a) {
    poly x, y;
    poly_of(s, a->a, &x);
    poly_of(s, a->b, &y);
    bool up = a->b > 1 && poly_constant(&x) == a->b - 1;
    if (up) x.n--; /* floor((x + b - 1)/b) is ceil(x/b) */
    put(t, up ? "ceil(" : "floor(");
    put_operand(s, t, &x);
    put(t, "/");
    put_operand(s, t, &y);
    put(t, ")");
}

/* The text of an atom, in the arena; NULL when memory runs out. *cut: it was too long. */
static const char *atom_text(sni_symbols *s, const atom *a, bool *cut) {
    text t = {.n = 0};
    poly p;
    switch (a->kind) {
    case ATOM_NAMED:
        return sni_arena_str(&s->arena, a->name).p;
    case ATOM_FRESH:
        put(&t, "?");
        put_number(&t, a->a);
        break;
    case ATOM_FLOORDIV:
        put_quotient(s, &t, a);
        break;
    case ATOM_MAX:
    case ATOM_MIN:
        put(&t, a->kind == ATOM_MAX ? "max(" : "min(");
        poly_of(s, a->a, &p);
        put_terms(s, &t, p.terms, p.n);
        put(&t, ", ");
        poly_of(s, a->b, &p);
        put_terms(s, &t, p.terms, p.n);
        put(&t, ")");
        break;
    }
    *cut = t.cut;
    return sni_arena_str(&s->arena, (sni_str){t.p, t.n}).p;
}

const char *sni_dim_text(const sni_symbols *symbols, sni_dim d) {
    sni_symbols *s = (sni_symbols *)(uintptr_t)symbols; /* only texts are added, under a lock */
    const char *made = NULL;
    if (d == SNI_DIM_FAIL) return "?";
    pthread_mutex_lock(&s->text_lock);
    if (sni_dim_is_symbol(d)) made = s->exprs[d - SNI_DIM_SYMBOL].text;
    if (!made) {
        text t = {.n = 0};
        poly p;
        poly_of(s, d, &p);
        put_terms(s, &t, p.terms, p.n);
        made = sni_arena_str(&s->text_arena, (sni_str){t.p, t.n}).p;
        if (made && sni_dim_is_symbol(d)) s->exprs[d - SNI_DIM_SYMBOL].text = made;
    }
    pthread_mutex_unlock(&s->text_lock);
    return made ? made : "?";
}

/* ---- Interning ---- */

/* The dimension of a sum that is not a number. */
static sni_dim intern_terms(sni_symbols *s, const poly *p) {
    uint64_t hash = terms_hash(s, p->terms, p->n);
    const index_table *t = &s->expr_index;
    for (size_t i = hash & (t->capacity - 1); t->capacity && t->slots[i] >= 0;
         i = (i + 1) & (t->capacity - 1)) {
        const expr *e = &s->exprs[t->slots[i]];
        if (terms_equal(e->terms, e->n, p->terms, p->n)) return SNI_DIM_SYMBOL + t->slots[i];
    }
    if (!index_reserve(s, false) ||
        !grow((void **)&s->exprs, &s->exprs_capacity, s->n_exprs, sizeof *s->exprs))
        return SNI_DIM_FAIL;
    term *copy = SNI_NEW_ARRAY(&s->arena, term, p->n);
    if (!copy) return SNI_DIM_FAIL;
    memcpy(copy, p->terms, (size_t)p->n * sizeof *copy);
    s->exprs[s->n_exprs] = (expr){.terms = copy, .n = p->n};
    index_put(&s->expr_index, hash, s->n_exprs);
    return SNI_DIM_SYMBOL + s->n_exprs++;
}

/* The dimension that is one atom; a fresh one instead if its text would be too long. */
static sni_dim intern_atom(sni_symbols *s, atom a) {
    uint64_t hash = atom_hash(s, &a);
    const index_table *t = &s->atom_index;
    int32_t found = -1;
    for (size_t i = hash & (t->capacity - 1); t->capacity && t->slots[i] >= 0 && found < 0;
         i = (i + 1) & (t->capacity - 1))
        if (atom_equal(&s->atoms[t->slots[i]], &a)) found = t->slots[i];
    if (found < 0) {
        bool cut = false;
        a.text = atom_text(s, &a, &cut);
        if (!a.text) return SNI_DIM_FAIL;
        if (cut) return sni_dim_fresh(s);
        if (a.kind == ATOM_NAMED) a.name.p = a.text;
        if (!index_reserve(s, true) ||
            !grow((void **)&s->atoms, &s->atoms_capacity, s->n_atoms, sizeof *s->atoms))
            return SNI_DIM_FAIL;
        s->atoms[s->n_atoms] = a;
        index_put(&s->atom_index, hash, s->n_atoms);
        found = s->n_atoms++;
    }
    poly p = {.n = 1};
    p.terms[0] = (term){.coef = 1, .n_factors = 1, .factors = {found}};
    return intern_terms(s, &p);
}

static sni_dim intern(sni_symbols *s, const poly *p) {
    if (!poly_is_number(p)) return intern_terms(s, p);
    int64_t v = poly_constant(p);
    return v < SNI_DIM_LOWEST ? sni_dim_fresh(s) : v;
}

sni_dim sni_dim_named(sni_symbols *symbols, sni_str name) {
    return intern_atom(symbols, (atom){.kind = ATOM_NAMED, .name = name, .not_negative = true});
}

sni_dim sni_dim_fresh(sni_symbols *symbols) {
    return intern_atom(symbols, (atom){.kind = ATOM_FRESH, .a = symbols->n_fresh++});
}

/* ---- Arithmetic ---- */

static bool is_plain(sni_dim d) {
    return d >= SNI_DIM_LOWEST;
}

sni_dim sni_dim_add(sni_symbols *symbols, sni_dim a, sni_dim b) {
    poly x, y;
    int64_t plain;
    if (is_plain(a) && is_plain(b) && sni_add_i64(a, b, &plain) && is_plain(plain)) return plain;
    if (a == SNI_DIM_FAIL || b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    poly_of(symbols, a, &x);
    poly_of(symbols, b, &y);
    return poly_add(&x, &y, 1, &x) ? intern(symbols, &x) : sni_dim_fresh(symbols);
}

sni_dim sni_dim_sub(sni_symbols *symbols, sni_dim a, sni_dim b) {
    poly x, y;
    int64_t plain;
    if (is_plain(a) && is_plain(b) && sni_sub_i64(a, b, &plain) && is_plain(plain)) return plain;
    if (a == SNI_DIM_FAIL || b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    poly_of(symbols, a, &x);
    poly_of(symbols, b, &y);
    return poly_add(&x, &y, -1, &x) ? intern(symbols, &x) : sni_dim_fresh(symbols);
}

sni_dim sni_dim_mul(sni_symbols *symbols, sni_dim a, sni_dim b) {
    poly x, y;
    int64_t plain;
    if (is_plain(a) && is_plain(b) && sni_mul_i64(a, b, &plain) && is_plain(plain)) return plain;
    if (a == SNI_DIM_FAIL || b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    poly_of(symbols, a, &x);
    poly_of(symbols, b, &y);
    return poly_mul(&x, &y, &x) ? intern(symbols, &x) : sni_dim_fresh(symbols);
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* Splits x into c * quotient + rest, the rest's coefficients in [0, c); leaves the rest in x. */
static void split(poly *x, int64_t c, poly *quotient) {
    int32_t kept = 0;
    quotient->n = 0;
    for (int32_t i = 0; i < x->n; i++) {
        term q = x->terms[i], r = x->terms[i];
        r.coef = x->terms[i].coef % c;
        q.coef = x->terms[i].coef / c - (r.coef < 0);
        if (r.coef < 0) r.coef += c;
        if (q.coef) quotient->terms[quotient->n++] = q;
        if (r.coef) x->terms[kept++] = r;
    }
    x->n = kept;
}

/* floor((g*x + r)/(g*c)) is floor((x + floor(r/g))/c): divides a rest and c by what its symbols'
 * coefficients and c have in common. */
static void reduce(poly *rest, int64_t *c) {
    int64_t g = *c;
    for (int32_t i = 0; i < rest->n; i++)
        if (rest->terms[i].n_factors) g = gcd(g, rest->terms[i].coef);
    if (g == 1) return;
    *c /= g;
    int32_t kept = 0;
    for (int32_t i = 0; i < rest->n; i++) {
        rest->terms[i].coef /= g;
        if (rest->terms[i].coef) rest->terms[kept++] = rest->terms[i];
    }
    rest->n = kept;
}

/* floor((floor(x/d) + r)/c) is floor((x + r*d)/(d*c)). True if the rest was of that kind and was
 * replaced together with c. */
static bool unnest(const sni_symbols *s, poly *rest, int64_t *c) {
    if (rest->n > 2 || rest->terms[0].n_factors != 1 || rest->terms[0].coef != 1) return false;
    const atom *a = &s->atoms[rest->terms[0].factors[0]];
    int64_t r = poly_constant(rest), wider;
    if (rest->n == 2 && r == 0) return false;
    if (a->kind != ATOM_FLOORDIV || sni_dim_is_symbol(a->b) || !sni_mul_i64(a->b, *c, &wider))
        return false;
    poly x, shift;
    if (!sni_mul_i64(r, a->b, &r)) return false;
    poly_of(s, a->a, &x);
    poly_of_number(&shift, r);
    if (!poly_add(&x, &shift, 1, &x)) return false;
    *rest = x;
    *c = wider;
    return true;
}

static sni_dim floordiv_by_number(sni_symbols *s, const poly *x, int64_t c) {
    poly total = {0}, rest = *x, quotient;
    bool again;
    do {
        split(&rest, c, &quotient);
        if (!poly_add(&total, &quotient, 1, &total)) return sni_dim_fresh(s);
        if (poly_is_number(&rest)) return intern(s, &total); /* a number below c */
        reduce(&rest, &c);
        again = c > 1 && unnest(s, &rest, &c);
    } while (again || c == 1);
    atom a = {.kind = ATOM_FLOORDIV, .b = c, .not_negative = poly_not_negative(s, &rest)};
    a.a = intern(s, &rest);
    sni_dim part = a.a == SNI_DIM_FAIL ? SNI_DIM_FAIL : intern_atom(s, a);
    if (part == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    poly p;
    poly_of(s, part, &p);
    return poly_add(&total, &p, 1, &total) ? intern(s, &total) : sni_dim_fresh(s);
}

/* The operands of a division, the divisor's sign moved to x if it is a number below 0. False if the
 * quotient is not defined. */
static bool division(const sni_symbols *s, sni_dim a, sni_dim b, poly *x, poly *y) {
    const poly nothing = {0};
    poly_of(s, a, x);
    poly_of(s, b, y);
    if (y->n == 0) return false;
    if (sni_dim_is_symbol(b) || b > 0) return true;
    return poly_add(&nothing, x, -1, x) && poly_add(&nothing, y, -1, y);
}

static sni_dim floordiv(sni_symbols *s, const poly *x, const poly *y) {
    poly quotient;
    if (poly_is_number(y)) return floordiv_by_number(s, x, poly_constant(y));
    if (poly_div_exact(x, y, &quotient)) return intern(s, &quotient);
    atom made = {.kind = ATOM_FLOORDIV,
                 .not_negative = poly_not_negative(s, x) && poly_not_negative(s, y)};
    made.a = intern(s, x);
    made.b = intern(s, y);
    if (made.a == SNI_DIM_FAIL || made.b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    return intern_atom(s, made);
}

/* Whether a quotient is one of numbers, whose signs make no difference. */
static bool is_plain_quotient(sni_dim a, sni_dim b) {
    return is_plain(a) && is_plain(b) && a >= 0 && b > 0;
}

sni_dim sni_dim_floordiv(sni_symbols *symbols, sni_dim a, sni_dim b) {
    poly x, y;
    if (is_plain_quotient(a, b)) return a / b;
    if (a == SNI_DIM_FAIL || b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    return division(symbols, a, b, &x, &y) ? floordiv(symbols, &x, &y) : sni_dim_fresh(symbols);
}

/* ceil(x/y) is floor((x + y - 1)/y). */
sni_dim sni_dim_ceildiv(sni_symbols *symbols, sni_dim a, sni_dim b) {
    poly x, y, one, exact;
    if (is_plain_quotient(a, b)) return a / b + (a % b != 0);
    if (a == SNI_DIM_FAIL || b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    if (!division(symbols, a, b, &x, &y)) return sni_dim_fresh(symbols);
    if (poly_div_exact(&x, &y, &exact)) return intern(symbols, &exact);
    poly_of_number(&one, 1);
    if (!poly_add(&x, &y, 1, &x) || !poly_add(&x, &one, -1, &x)) return sni_dim_fresh(symbols);
    return floordiv(symbols, &x, &y);
}

/* True if a >= b for all values of the symbols, as far as this can tell. */
static bool surely_not_less(const sni_symbols *s, sni_dim a, sni_dim b) {
    poly x, y;
    if (a == INT64_MAX) return true; /* no dimension is larger */
    poly_of(s, a, &x);
    poly_of(s, b, &y);
    return poly_add(&x, &y, -1, &x) && poly_not_negative(s, &x);
}

static sni_dim extreme(sni_symbols *s, atom_kind kind, sni_dim a, sni_dim b) {
    if (a == SNI_DIM_FAIL || b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    if (is_plain(a) && is_plain(b)) return (kind == ATOM_MAX) == (a > b) ? a : b;
    if (surely_not_less(s, a, b)) return kind == ATOM_MAX ? a : b;
    if (surely_not_less(s, b, a)) return kind == ATOM_MAX ? b : a;
    poly x, y;
    poly_of(s, a, &x);
    poly_of(s, b, &y);
    bool first = poly_not_negative(s, &x), second = poly_not_negative(s, &y);
    bool in_order = is_plain(a) || (!is_plain(b) && a < b); /* numbers first, then older symbols */
    atom made = {.kind = kind,
                 .a = in_order ? a : b,
                 .b = in_order ? b : a,
                 .not_negative = kind == ATOM_MAX ? first || second : first && second};
    return intern_atom(s, made);
}

sni_dim sni_dim_max(sni_symbols *symbols, sni_dim a, sni_dim b) {
    return extreme(symbols, ATOM_MAX, a, b);
}

sni_dim sni_dim_min(sni_symbols *symbols, sni_dim a, sni_dim b) {
    return extreme(symbols, ATOM_MIN, a, b);
}

/* True if d is min(k, of) with a number k above 1: it is 1 only where `of` is. */
static bool is_capped(const sni_symbols *s, sni_dim d, sni_dim of) {
    const expr *e = &s->exprs[d - SNI_DIM_SYMBOL];
    if (e->n != 1 || e->terms[0].coef != 1 || e->terms[0].n_factors != 1) return false;
    const atom *at = &s->atoms[e->terms[0].factors[0]];
    return at->kind == ATOM_MIN && is_plain(at->a) && at->a > 1 && at->b == of;
}

sni_dim sni_dim_broadcast(sni_symbols *symbols, sni_dim a, sni_dim b, bool *ok) {
    *ok = true;
    if (a == SNI_DIM_FAIL || b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    if (a == b || b == 1) return a;
    if (a == 1) return b;
    if (is_plain(a) && is_plain(b)) {
        *ok = false;
        return a;
    }
    if (is_plain(a)) return a;
    if (is_plain(b)) return b;
    if (is_capped(symbols, b, a)) return a;
    if (is_capped(symbols, a, b)) return b;
    return sni_dim_fresh(symbols);
}
