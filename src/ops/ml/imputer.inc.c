/* imputer.inc.c - template by type (typed.h): Imputer. Instances: ml_features.c, for float, double
 * and the signed integers. */

/* Elements equal to the replaced value (NaN equals NaN) become the imputed value of their column;
 * n of those, or 1 for all. x may be y. */
static void FN(impute)(const imputer_params *p, const void *x, void *y, int64_t count, int64_t n) {
    const T *src = x;
    T *dst = y;
    for (int64_t i = 0; i < count; i++) {
        bool missing = src[i] == p->REPLACED;
#ifdef T_FLOAT
        missing = missing || (isnan(p->REPLACED) && isnan(src[i]));
#endif
        dst[i] = missing ? (T)p->IMPUTED.v[n > 1 ? i % n : 0] : src[i];
    }
}
