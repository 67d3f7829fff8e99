/* polynomial.c - polynomials over atoms. */
#include "graph/polynomial.h"

#include "base/checked.h"

int sni_term_compare(const sni_poly_term *x, const sni_poly_term *y) {
    if (x->n_factors != y->n_factors) return x->n_factors < y->n_factors ? -1 : 1;
    for (int32_t i = 0; i < x->n_factors; i++)
        if (x->factors[i] != y->factors[i]) return x->factors[i] > y->factors[i] ? -1 : 1;
    return 0;
}

void sni_poly_of_number(sni_poly *p, int64_t v) {
    p->n = v != 0;
    p->terms[0] = (sni_poly_term){.coef = v};
}

int64_t sni_poly_constant(const sni_poly *p) {
    return p->n && p->terms[p->n - 1].n_factors == 0 ? p->terms[p->n - 1].coef : 0;
}

bool sni_poly_is_number(const sni_poly *p) {
    return p->n == 0 || (p->n == 1 && p->terms[0].n_factors == 0);
}

bool sni_poly_add(const sni_poly *x, const sni_poly *y, int64_t k, sni_poly *out) {
    sni_poly sum = {0};
    int32_t i = 0, j = 0;
    while (i < x->n || j < y->n) {
        int order = i == x->n ? -1 : j == y->n ? 1 : sni_term_compare(&x->terms[i], &y->terms[j]);
        sni_poly_term t = order >= 0 ? x->terms[i] : y->terms[j];
        if (order < 0 && !sni_mul_i64(t.coef, k, &t.coef)) return false;
        if (order == 0) {
            int64_t more;
            if (!sni_mul_i64(y->terms[j].coef, k, &more) || !sni_add_i64(t.coef, more, &t.coef))
                return false;
        }
        i += order >= 0;
        j += order <= 0;
        if (t.coef == 0) continue;
        if (sum.n == SNI_POLY_TERMS) return false;
        sum.terms[sum.n++] = t;
    }
    *out = sum;
    return true;
}

static bool term_mul(const sni_poly_term *x, const sni_poly_term *y, sni_poly_term *out) {
    sni_poly_term t = {.n_factors = x->n_factors + y->n_factors};
    if (t.n_factors > SNI_TERM_FACTORS || !sni_mul_i64(x->coef, y->coef, &t.coef)) return false;
    for (int32_t i = 0, j = 0, k = 0; k < t.n_factors; k++) {
        bool first = j == y->n_factors || (i < x->n_factors && x->factors[i] <= y->factors[j]);
        t.factors[k] = first ? x->factors[i++] : y->factors[j++];
    }
    *out = t;
    return true;
}

/* out = x / y if y's factors and coefficient divide x's. */
static bool term_div(const sni_poly_term *x, const sni_poly_term *y, sni_poly_term *out) {
    if (y->coef == -1 && x->coef == INT64_MIN) return false;
    if (x->coef % y->coef != 0) return false;
    sni_poly_term t = {.coef = x->coef / y->coef};
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

static bool poly_mul_term(const sni_poly *x, const sni_poly_term *t, sni_poly *out) {
    sni_poly product = {.n = x->n};
    for (int32_t i = 0; i < x->n; i++)
        if (!term_mul(&x->terms[i], t, &product.terms[i])) return false;
    *out = product;
    return true;
}

bool sni_poly_mul(const sni_poly *x, const sni_poly *y, sni_poly *out) {
    sni_poly sum = {0};
    for (int32_t i = 0; i < y->n; i++) {
        sni_poly part;
        if (!poly_mul_term(x, &y->terms[i], &part) || !sni_poly_add(&sum, &part, 1, &sum))
            return false;
    }
    *out = sum;
    return true;
}

/* Long division by the leading term. */
bool sni_poly_div_exact(const sni_poly *x, const sni_poly *y, sni_poly *out) {
    sni_poly rest = *x, quotient = {0};
    for (int step = 0; rest.n; step++) {
        sni_poly_term t;
        sni_poly part;
        if (step == SNI_POLY_TERMS || !term_div(&rest.terms[0], &y->terms[0], &t)) return false;
        quotient.terms[quotient.n++] = t;
        if (!poly_mul_term(y, &t, &part) || !sni_poly_add(&rest, &part, -1, &rest)) return false;
    }
    *out = quotient;
    return true;
}
