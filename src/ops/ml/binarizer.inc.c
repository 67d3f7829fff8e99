/* binarizer.inc.c - template by type (typed.h): Binarizer. Instances: ml_features.c, for float,
 * double and the signed integers. */

/* y = 1 where x is above the threshold, otherwise 0. */
static void FN(binarize)(const void *x, void *y, int64_t n, const void *params) {
    double threshold = (double)((const binarizer_params *)params)->threshold;
    const T *src = x;
    T *dst = y;
    for (int64_t i = 0; i < n; i++) dst[i] = (double)src[i] > threshold ? 1 : 0;
}
