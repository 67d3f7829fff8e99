/* batch_norm.inc.c - template by type (typed.h): BatchNormalization, also in training mode.
 * Instances: batch_norm.c, for float and double. */

/* Batch normalisation of one channel for one type. */

/* Mean and (population) variance of channel c over batch and plane. */
static void FN(moments)(const norm_job *j, int64_t c, double *mean, double *variance) {
    double n = (double)j->batch * (double)j->plane, sum = 0, squares = 0;
    for (int64_t b = 0; b < j->batch; b++) {
        const T *x = (const T *)j->x + (b * j->channels + c) * j->plane;
        for (int64_t i = 0; i < j->plane; i++) sum += (double)x[i];
    }
    *mean = sum / n;
    for (int64_t b = 0; b < j->batch; b++) {
        const T *x = (const T *)j->x + (b * j->channels + c) * j->plane;
        for (int64_t i = 0; i < j->plane; i++) {
            double d = (double)x[i] - *mean;
            squares += d * d;
        }
    }
    *variance = squares / n;
}

/* (x - mean) * scale / sqrt(variance + epsilon) + shift for channel c. */
static void FN(normalize)(const norm_job *j, int64_t c) {
    double mean, variance;
    const T *in_mean = j->mean, *in_variance = j->variance;
    if (j->training) {
        FN(moments)(j, c, &mean, &variance);
        double m = (double)j->momentum,
               out[4] = {(double)in_mean[c] * m + mean * (1 - m),
                         (double)in_variance[c] * m + variance * (1 - m), mean, variance};
        for (int i = 0; i < 4; i++)
            if (j->stats[i]) ((T *)j->stats[i])[c] = (T)out[i];
    } else {
        mean = (double)in_mean[c];
        variance = (double)in_variance[c];
    }
    if (!j->y) return;
    T factor = (T)((double)((const T *)j->scale)[c] / sqrt(variance + (double)j->epsilon));
    T shift = ((const T *)j->shift)[c], center = (T)mean;
    for (int64_t b = 0; b < j->batch; b++) {
        const T *x = (const T *)j->x + (b * j->channels + c) * j->plane;
        T *restrict y = (T *)j->y + (b * j->channels + c) * j->plane;
        for (int64_t i = 0; i < j->plane; i++) y[i] = (x[i] - center) * factor + shift;
    }
}

static void FN(channels)(void *ctx, int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c++) FN(normalize)(ctx, c);
}
