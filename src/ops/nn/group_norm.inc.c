/* group_norm.inc.c - template by type (typed.h): GroupNormalization and its relatives. Instances:
 * group_norm.c, for float and double. */

/* Normalisation of groups of channels for one type. */

static void FN(normalize_groups)(void *ctx, int64_t begin, int64_t end) {
    const group_job *j = ctx;
    int64_t n = j->per_group * j->plane;
    for (int64_t g = begin; g < end; g++) {
        const T *x = (const T *)j->x + g * n;
        T *restrict y = (T *)j->y + g * n;
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++) sum += (double)x[i];
        double mean = sum / (double)n;
        for (int64_t i = 0; i < n; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
        double inverse = 1 / sqrt(squares / (double)n + (double)j->epsilon);
        int64_t first = g % j->groups * j->per_group;
        for (int64_t c = 0; c < j->per_group; c++) {
            T factor = (T)(inverse * (double)((const T *)j->scale)[first + c]);
            T shift = ((const T *)j->shift)[first + c], center = (T)mean;
            for (int64_t i = c * j->plane; i < (c + 1) * j->plane; i++)
                y[i] = (x[i] - center) * factor + shift;
        }
    }
}
