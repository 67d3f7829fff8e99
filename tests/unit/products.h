/* products.h - what tests of matrix products with fewer products share: random operands, and errors
 * against double precision. */
#ifndef PRODUCTS_H
#define PRODUCTS_H

#include "unit.h"

#include <math.h>
#include <stdlib.h>

/* `count` random numbers from -1 to 1. */
static inline float *product_floats(int64_t count, uint64_t seed) {
    float *p = malloc((size_t)count * sizeof *p);
    assert_non_null(p);
    for (int64_t i = 0; i < count; i++)
        p[i] = (float)(int)(unit_random(&seed) % 20001) / 10000.0f - 1.0f;
    return p;
}

/* The largest error of a row of C = A B or, by column, of a column, against its largest result. One
 * whose results are all 0 has to be exact. */
static inline double product_worst(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                                   const float *c, bool by_column) {
    double result = 0;
    for (int64_t o = 0; o < (by_column ? n : m); o++) {
        double error = 0, most = 0;
        for (int64_t q = 0; q < (by_column ? m : n); q++) {
            int64_t i = by_column ? q : o, j = by_column ? o : q;
            double sum = 0;
            for (int64_t p = 0; p < k; p++) sum += (double)a[i * k + p] * (double)b[p * n + j];
            double off = fabs(sum - (double)c[i * n + j]);
            error = isnan(off) ? INFINITY : fmax(error, off);
            most = fmax(most, fabs(sum));
        }
        if (most > 0) result = fmax(result, error / most);
        if (most == 0) assert_true(error == 0);
    }
    return result;
}

/* The root of the mean square of all errors against that of all results. */
static inline double product_error(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                                   const float *c) {
    double errors = 0, results = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < k; p++) sum += (double)a[i * k + p] * (double)b[p * n + j];
            errors += (sum - (double)c[i * n + j]) * (sum - (double)c[i * n + j]);
            results += sum * sum;
        }
    return sqrt(errors / results);
}

#endif
