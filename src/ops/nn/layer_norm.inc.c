/* layer_norm.inc.c - template by type (typed.h): layer normalisation of a row. Instances:
 * layer_norm.c, for float and double. */

/* Normalisation of rows for one type. */

static void FN(normalize_rows)(void *ctx, int64_t begin, int64_t end) {
    const sni_row_norm *j = ctx;
    for (int64_t r = begin; r < end; r++) {
        const T *x = (const T *)j->x + r * j->n;
        T *restrict y = j->y ? (T *)j->y + r * j->n : NULL;
        double sums[4] = {0}, mean = 0, squares[4] = {0};
        int64_t i = 0;
        if (j->centered) {
            for (; i + 4 <= j->n; i += 4)
                for (int q = 0; q < 4; q++) sums[q] += (double)x[i + q];
            for (; i < j->n; i++) sums[0] += (double)x[i];
            mean = (sums[0] + sums[1] + sums[2] + sums[3]) / (double)j->n;
        }
        for (i = 0; i + 4 <= j->n; i += 4)
            for (int q = 0; q < 4; q++) {
                double d = (double)x[i + q] - mean;
                squares[q] += d * d;
            }
        for (; i < j->n; i++) squares[0] += ((double)x[i] - mean) * ((double)x[i] - mean);
        double variance = (squares[0] + squares[1] + squares[2] + squares[3]) / (double)j->n;
        double inverse = 1 / sqrt(variance + (double)j->epsilon);
        if (j->mean) ((T *)j->mean)[r] = (T)mean;
        if (j->inverse) ((T *)j->inverse)[r] = (T)inverse;
        if (!y) continue;
        T center = (T)mean, factor = (T)inverse;
        const T *scale = (const T *)j->scale.data + r * j->scale.step;
        const T *shift = j->shift.data ? (const T *)j->shift.data + r * j->shift.step : NULL;
        if (shift)
            for (i = 0; i < j->n; i++) y[i] = (x[i] - center) * factor * scale[i] + shift[i];
        else
            for (i = 0; i < j->n; i++) y[i] = (x[i] - center) * factor * scale[i];
    }
}
