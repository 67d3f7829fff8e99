/* symbol.c - arithmetic with dimensions. */
#include "graph/symbol.h"

#include "base/checked.h"
#include "graph/symbol_table.h"

static bool is_plain(sni_dim d) {
    return d >= SNI_DIM_LOWEST;
}

sni_dim sni_dim_add(sni_symbols *symbols, sni_dim a, sni_dim b) {
    sni_poly x, y;
    int64_t plain;
    if (is_plain(a) && is_plain(b) && sni_add_i64(a, b, &plain) && is_plain(plain)) return plain;
    if (a == SNI_DIM_FAIL || b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    sni_symbols_poly_of(symbols, a, &x);
    sni_symbols_poly_of(symbols, b, &y);
    return sni_poly_add(&x, &y, 1, &x) ? sni_symbols_intern(symbols, &x) : sni_dim_fresh(symbols);
}

sni_dim sni_dim_sub(sni_symbols *symbols, sni_dim a, sni_dim b) {
    sni_poly x, y;
    int64_t plain;
    if (is_plain(a) && is_plain(b) && sni_sub_i64(a, b, &plain) && is_plain(plain)) return plain;
    if (a == SNI_DIM_FAIL || b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    sni_symbols_poly_of(symbols, a, &x);
    sni_symbols_poly_of(symbols, b, &y);
    return sni_poly_add(&x, &y, -1, &x) ? sni_symbols_intern(symbols, &x) : sni_dim_fresh(symbols);
}

sni_dim sni_dim_mul(sni_symbols *symbols, sni_dim a, sni_dim b) {
    sni_poly x, y;
    int64_t plain;
    if (is_plain(a) && is_plain(b) && sni_mul_i64(a, b, &plain) && is_plain(plain)) return plain;
    if (a == SNI_DIM_FAIL || b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    sni_symbols_poly_of(symbols, a, &x);
    sni_symbols_poly_of(symbols, b, &y);
    return sni_poly_mul(&x, &y, &x) ? sni_symbols_intern(symbols, &x) : sni_dim_fresh(symbols);
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
static void split(sni_poly *x, int64_t c, sni_poly *quotient) {
    int32_t kept = 0;
    quotient->n = 0;
    for (int32_t i = 0; i < x->n; i++) {
        sni_poly_term q = x->terms[i], r = x->terms[i];
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
static void reduce(sni_poly *rest, int64_t *c) {
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
static bool unnest(const sni_symbols *s, sni_poly *rest, int64_t *c) {
    if (rest->n > 2 || rest->terms[0].n_factors != 1 || rest->terms[0].coef != 1) return false;
    const sni_atom *a = &s->atoms[rest->terms[0].factors[0]];
    int64_t r = sni_poly_constant(rest), wider;
    if (rest->n == 2 && r == 0) return false;
    if (a->kind != SNI_ATOM_FLOORDIV || sni_dim_is_symbol(a->b) || !sni_mul_i64(a->b, *c, &wider))
        return false;
    sni_poly x, shift;
    if (!sni_mul_i64(r, a->b, &r)) return false;
    sni_symbols_poly_of(s, a->a, &x);
    sni_poly_of_number(&shift, r);
    if (!sni_poly_add(&x, &shift, 1, &x)) return false;
    *rest = x;
    *c = wider;
    return true;
}

static sni_dim floordiv_by_number(sni_symbols *s, const sni_poly *x, int64_t c) {
    sni_poly total = {0}, rest = *x, quotient;
    bool again;
    do {
        split(&rest, c, &quotient);
        if (!sni_poly_add(&total, &quotient, 1, &total)) return sni_dim_fresh(s);
        if (sni_poly_is_number(&rest)) return sni_symbols_intern(s, &total); /* a number below c */
        reduce(&rest, &c);
        again = c > 1 && unnest(s, &rest, &c);
    } while (again || c == 1);
    sni_atom a = {
        .kind = SNI_ATOM_FLOORDIV, .b = c, .not_negative = sni_symbols_poly_not_negative(s, &rest)};
    a.a = sni_symbols_intern(s, &rest);
    sni_dim part = a.a == SNI_DIM_FAIL ? SNI_DIM_FAIL : sni_symbols_intern_atom(s, a);
    if (part == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    sni_poly p;
    sni_symbols_poly_of(s, part, &p);
    return sni_poly_add(&total, &p, 1, &total) ? sni_symbols_intern(s, &total) : sni_dim_fresh(s);
}

/* The operands of a division, the divisor's sign moved to x if it is a number below 0. False if the
 * quotient is not defined. */
static bool division(const sni_symbols *s, sni_dim a, sni_dim b, sni_poly *x, sni_poly *y) {
    const sni_poly nothing = {0};
    sni_symbols_poly_of(s, a, x);
    sni_symbols_poly_of(s, b, y);
    if (y->n == 0) return false;
    if (sni_dim_is_symbol(b) || b > 0) return true;
    return sni_poly_add(&nothing, x, -1, x) && sni_poly_add(&nothing, y, -1, y);
}

static sni_dim floordiv(sni_symbols *s, const sni_poly *x, const sni_poly *y) {
    sni_poly quotient;
    if (sni_poly_is_number(y)) return floordiv_by_number(s, x, sni_poly_constant(y));
    if (sni_poly_div_exact(x, y, &quotient)) return sni_symbols_intern(s, &quotient);
    sni_atom made = {.kind = SNI_ATOM_FLOORDIV,
                     .not_negative = sni_symbols_poly_not_negative(s, x) &&
                                     sni_symbols_poly_not_negative(s, y)};
    made.a = sni_symbols_intern(s, x);
    made.b = sni_symbols_intern(s, y);
    if (made.a == SNI_DIM_FAIL || made.b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    return sni_symbols_intern_atom(s, made);
}

/* Whether a quotient is one of numbers, whose signs make no difference. */
static bool is_plain_quotient(sni_dim a, sni_dim b) {
    return is_plain(a) && is_plain(b) && a >= 0 && b > 0;
}

sni_dim sni_dim_floordiv(sni_symbols *symbols, sni_dim a, sni_dim b) {
    sni_poly x, y;
    if (is_plain_quotient(a, b)) return a / b;
    if (a == SNI_DIM_FAIL || b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    return division(symbols, a, b, &x, &y) ? floordiv(symbols, &x, &y) : sni_dim_fresh(symbols);
}

/* ceil(x/y) is floor((x + y - 1)/y). */
sni_dim sni_dim_ceildiv(sni_symbols *symbols, sni_dim a, sni_dim b) {
    sni_poly x, y, one, exact;
    if (is_plain_quotient(a, b)) return a / b + (a % b != 0);
    if (a == SNI_DIM_FAIL || b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    if (!division(symbols, a, b, &x, &y)) return sni_dim_fresh(symbols);
    if (sni_poly_div_exact(&x, &y, &exact)) return sni_symbols_intern(symbols, &exact);
    sni_poly_of_number(&one, 1);
    if (!sni_poly_add(&x, &y, 1, &x) || !sni_poly_add(&x, &one, -1, &x))
        return sni_dim_fresh(symbols);
    return floordiv(symbols, &x, &y);
}

/* True if a >= b for all values of the symbols, as far as this can tell. */
static bool surely_not_less(const sni_symbols *s, sni_dim a, sni_dim b) {
    sni_poly x, y;
    if (a == INT64_MAX) return true; /* no dimension is larger */
    sni_symbols_poly_of(s, a, &x);
    sni_symbols_poly_of(s, b, &y);
    return sni_poly_add(&x, &y, -1, &x) && sni_symbols_poly_not_negative(s, &x);
}

static sni_dim extreme(sni_symbols *s, sni_atom_kind kind, sni_dim a, sni_dim b) {
    if (a == SNI_DIM_FAIL || b == SNI_DIM_FAIL) return SNI_DIM_FAIL;
    if (is_plain(a) && is_plain(b)) return (kind == SNI_ATOM_MAX) == (a > b) ? a : b;
    if (surely_not_less(s, a, b)) return kind == SNI_ATOM_MAX ? a : b;
    if (surely_not_less(s, b, a)) return kind == SNI_ATOM_MAX ? b : a;
    sni_poly x, y;
    sni_symbols_poly_of(s, a, &x);
    sni_symbols_poly_of(s, b, &y);
    bool first = sni_symbols_poly_not_negative(s, &x),
         second = sni_symbols_poly_not_negative(s, &y);
    bool in_order = is_plain(a) || (!is_plain(b) && a < b); /* numbers first, then older symbols */
    sni_atom made = {.kind = kind,
                     .a = in_order ? a : b,
                     .b = in_order ? b : a,
                     .not_negative = kind == SNI_ATOM_MAX ? first || second : first && second};
    return sni_symbols_intern_atom(s, made);
}

sni_dim sni_dim_max(sni_symbols *symbols, sni_dim a, sni_dim b) {
    return extreme(symbols, SNI_ATOM_MAX, a, b);
}

sni_dim sni_dim_min(sni_symbols *symbols, sni_dim a, sni_dim b) {
    return extreme(symbols, SNI_ATOM_MIN, a, b);
}

/* True if d is min(k, of) with a number k above 1: it is 1 only where `of` is. */
static bool is_capped(const sni_symbols *s, sni_dim d, sni_dim of) {
    const sni_expr *e = &s->exprs[d - SNI_DIM_SYMBOL];
    if (e->n != 1 || e->terms[0].coef != 1 || e->terms[0].n_factors != 1) return false;
    const sni_atom *at = &s->atoms[e->terms[0].factors[0]];
    return at->kind == SNI_ATOM_MIN && is_plain(at->a) && at->a > 1 && at->b == of;
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
