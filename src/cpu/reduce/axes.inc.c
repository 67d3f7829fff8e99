/* axes.inc.c - sums in double, and elements measured by them: what LpNormalization and
 * MeanVarianceNormalization are made of. */

static inline __attribute__((always_inline)) vd widen_floats(vf v) {
    vd wide = {{0}, {0}};
    add_floats(&wide, v);
    return wide;
}

static inline __attribute__((always_inline)) vf narrow_doubles(vd v) {
#if defined(__AVX512F__)
    return (vf)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)v.low)),
                                  _mm512_cvtpd_ps((__m512d)v.high), 1);
#elif defined(__AVX2__)
    return (vf)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps((__m256d)v.low)),
                                    _mm256_cvtpd_ps((__m256d)v.high), 1);
#else
    return (vf){(float)v.low[0], (float)v.low[1], (float)v.high[0], (float)v.high[1]};
#endif
}

static inline __attribute__((always_inline)) vd splat_double(double x) {
    half_vd half = (half_vd){0} + x;
    return (vd){half, half};
}

/* `term` is a constant at every call of what follows. */
static inline __attribute__((always_inline)) vd add_term(sni_term term, vd to, vf v, vd center) {
    vd wide = widen_floats(term == SNI_TERM_SIZE ? abs_vf(v) : v);
    if (term == SNI_TERM_SQUARE) {
        wide.low -= center.low;
        wide.high -= center.high;
        wide.low *= wide.low;
        wide.high *= wide.high;
    }
    return (vd){to.low + wide.low, to.high + wide.high};
}

static inline __attribute__((always_inline)) double term_of(sni_term term, float x, double center) {
    double d = (double)x;
    return term == SNI_TERM_SELF   ? d
           : term == SNI_TERM_SIZE ? fabs(d)
                                   : (d - center) * (d - center);
}

static inline __attribute__((always_inline)) double row_terms_of(sni_term term, const float *x,
                                                                 int64_t n, double center) {
    vd total[2] = {{{0}, {0}}, {{0}, {0}}}, middle = splat_double(center);
    double rest = 0;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        total[0] = add_term(term, total[0], load(x + i), middle);
        total[1] = add_term(term, total[1], load(x + i + LANES), middle);
    }
    for (; i + LANES <= n; i += LANES) total[0] = add_term(term, total[0], load(x + i), middle);
    for (; i < n; i++) rest += term_of(term, x[i], center);
    total[0].low += total[1].low;
    total[0].high += total[1].high;
    return sum_doubles(&total[0]) + rest;
}

static double row_terms(sni_term term, const float *x, int64_t n, double center) {
    if (term == SNI_TERM_SELF) return row_terms_of(SNI_TERM_SELF, x, n, 0);
    if (term == SNI_TERM_SIZE) return row_terms_of(SNI_TERM_SIZE, x, n, 0);
    return row_terms_of(SNI_TERM_SQUARE, x, n, center);
}

static inline __attribute__((always_inline)) void
column_terms_of(sni_term term, const float *x, int64_t n, const double *centers, double *sums) {
    for (int64_t i = 0; i < n; i += LANES) {
        vf v = i + LANES <= n ? load(x + i) : load_some(x + i, n - i, 0);
        store_doubles(sums + i,
                      add_term(term, load_doubles(sums + i), v, load_doubles(centers + i)));
    }
}

static void column_terms(sni_term term, const float *x, int64_t n, const double *centers,
                         double *sums) {
    if (term == SNI_TERM_SELF)
        column_terms_of(SNI_TERM_SELF, x, n, centers, sums);
    else if (term == SNI_TERM_SIZE)
        column_terms_of(SNI_TERM_SIZE, x, n, centers, sums);
    else
        column_terms_of(SNI_TERM_SQUARE, x, n, centers, sums);
}

static inline __attribute__((always_inline)) void measure_of(bool each, const float *x, float *y,
                                                             int64_t n, const double *centers,
                                                             const double *factors) {
    vd center = splat_double(*centers), factor = splat_double(*factors);
    for (int64_t i = 0; i < n; i += LANES) {
        bool whole = i + LANES <= n;
        vd v = widen_floats(whole ? load(x + i) : load_some(x + i, n - i, 0));
        if (each) {
            center = load_doubles(centers + i);
            factor = load_doubles(factors + i);
        }
        vf result = narrow_doubles(
            (vd){(v.low - center.low) * factor.low, (v.high - center.high) * factor.high});
        if (whole)
            store(y + i, result);
        else
            store_some(y + i, n - i, result);
    }
}

static void measure(const float *x, float *y, int64_t n, const double *centers,
                    const double *factors, bool each) {
    if (each)
        measure_of(true, x, y, n, centers, factors);
    else
        measure_of(false, x, y, n, centers, factors);
}
