/* polynomial.h - polynomials over atoms, which are numbers to whoever uses them.
 *
 * A polynomial is a sum of terms, coefficient * product of atoms, in graded lexicographic order:
 * equal ones are equal term by term. Functions that return bool are false, and leave `out` alone,
 * where a coefficient, the terms or the factors of one do not fit; `out` may be an operand. */
#ifndef SNI_GRAPH_POLYNOMIAL_H
#define SNI_GRAPH_POLYNOMIAL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SNI_POLY_TERMS = 24,
    SNI_TERM_FACTORS = 8 /* of one term */
};

typedef struct sni_poly_term {
    int64_t coef;                      /* never 0 */
    int32_t factors[SNI_TERM_FACTORS]; /* atoms in rising order */
    int32_t n_factors;
} sni_poly_term;

/* Terms in falling order; the constant, if any, is last. */
typedef struct sni_poly {
    int32_t n;
    sni_poly_term terms[SNI_POLY_TERMS];
} sni_poly;

/* The order of two terms by their factors, whatever the coefficients: -1, 0 or 1. */
int sni_term_compare(const sni_poly_term *x, const sni_poly_term *y);

void sni_poly_of_number(sni_poly *p, int64_t v);
int64_t sni_poly_constant(const sni_poly *p); /* the constant term */
bool sni_poly_is_number(const sni_poly *p);

/* out = x + k * y. */
bool sni_poly_add(const sni_poly *x, const sni_poly *y, int64_t k, sni_poly *out);
bool sni_poly_mul(const sni_poly *x, const sni_poly *y, sni_poly *out);
/* out = x / y if that leaves no rest; false otherwise, too. y must not be 0. */
bool sni_poly_div_exact(const sni_poly *x, const sni_poly *y, sni_poly *out);

#endif
