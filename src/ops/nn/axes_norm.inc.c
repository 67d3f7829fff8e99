/* axes_norm.inc.c - template by type (typed.h): LpNormalization and MeanVarianceNormalization.
 * Instances: axes_norm.c, for float and double. */

/* Normalisation of rows for one type. */

/* x / norm; 0 where the norm is. */
static void FN(lp_row)(T *v, int64_t n, int64_t p) {
    T norm = 0;
    for (int64_t i = 0; i < n; i++) norm += p == 1 ? MATH(fabs)(v[i]) : v[i] * v[i];
    if (p == 2) norm = MATH(sqrt)(norm);
    for (int64_t i = 0; i < n; i++) v[i] = norm != 0 ? v[i] / norm : 0;
}

/* (x - mean) / (deviation + 1e-9). */
static void FN(moment_row)(T *v, int64_t n) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)v[i];
    double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) squares += ((double)v[i] - mean) * ((double)v[i] - mean);
    double deviation = sqrt(squares / (double)n) + 1e-9;
    for (int64_t i = 0; i < n; i++) v[i] = (T)(((double)v[i] - mean) / deviation);
}

static void FN(rows)(void *ctx, int64_t begin, int64_t end) {
    const rows_job *j = ctx;
    for (int64_t r = begin; r < end; r++) {
        T *row = (T *)j->work + r * j->n;
        if (j->p)
            FN(lp_row)(row, j->n, j->p);
        else
            FN(moment_row)(row, j->n);
    }
}
