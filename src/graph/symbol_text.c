/* symbol_text.c - dimensions as text. */
#include "graph/symbol_table.h"

#include <inttypes.h>
#include <stdio.h>

enum { MAX_TEXT = 400 }; /* bytes: a longer expression becomes a fresh symbol */

typedef struct text {
    char p[MAX_TEXT + 1];
    size_t n;
    bool cut;
} text;

static void put(text *t, const char *c) {
    size_t n = strlen(c);
    if (n > MAX_TEXT - t->n) {
        t->cut = true;
        n = MAX_TEXT - t->n;
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

static void put_term(const sni_symbols *s, text *t, const sni_poly_term *x) {
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
static void put_terms(const sni_symbols *s, text *t, const sni_poly_term *x, int32_t n) {
    text sum = {.n = 0};
    for (int negative = 0; negative < 2; negative++)
        for (int32_t i = 0; i < n; i++)
            if ((x[i].coef < 0) == (negative == 1)) put_term(s, &sum, &x[i]);
    put(t, sum.n ? sum.p : "0");
    t->cut |= sum.cut;
}

/* Parentheses around what does not stand by itself beside a "/". */
static void put_operand(const sni_symbols *s, text *t, const sni_poly *p) {
    bool alone =
        p->n == 0 ||
        (p->n == 1 && p->terms[0].coef >= 0 &&
         (p->terms[0].n_factors == 0 || (p->terms[0].coef == 1 && p->terms[0].n_factors == 1)));
    if (!alone) put(t, "(");
    put_terms(s, t, p->terms, p->n);
    if (!alone) put(t, ")");
}

static void put_quotient(const sni_symbols *s, text *t, const sni_atom *a) {
    sni_poly x, y;
    sni_symbols_poly_of(s, a->a, &x);
    sni_symbols_poly_of(s, a->b, &y);
    bool up = a->b > 1 && sni_poly_constant(&x) == a->b - 1;
    if (up) x.n--; /* floor((x + b - 1)/b) is ceil(x/b) */
    put(t, up ? "ceil(" : "floor(");
    put_operand(s, t, &x);
    put(t, "/");
    put_operand(s, t, &y);
    put(t, ")");
}

const char *sni_atom_text(sni_symbols *s, const sni_atom *a, bool *cut) {
    text t = {.n = 0};
    sni_poly p;
    switch (a->kind) {
    case SNI_ATOM_NAMED:
        return sni_arena_str(&s->arena, a->name).p;
    case SNI_ATOM_FRESH:
        put(&t, "?");
        put_number(&t, a->a);
        break;
    case SNI_ATOM_FLOORDIV:
        put_quotient(s, &t, a);
        break;
    case SNI_ATOM_MAX:
    case SNI_ATOM_MIN:
        put(&t, a->kind == SNI_ATOM_MAX ? "max(" : "min(");
        sni_symbols_poly_of(s, a->a, &p);
        put_terms(s, &t, p.terms, p.n);
        put(&t, ", ");
        sni_symbols_poly_of(s, a->b, &p);
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
        sni_poly p;
        sni_symbols_poly_of(s, d, &p);
        put_terms(s, &t, p.terms, p.n);
        made = sni_arena_str(&s->text_arena, (sni_str){t.p, t.n}).p;
        if (made && sni_dim_is_symbol(d)) s->exprs[d - SNI_DIM_SYMBOL].text = made;
    }
    pthread_mutex_unlock(&s->text_lock);
    return made ? made : "?";
}
