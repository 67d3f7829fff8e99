/* activation_run.inc.c - template by type (typed.h): an activation over a row. Instances:
 * activation.c, for float and double. */

/* Activation of a row for one float type. `kind` is a constant where it is called, so that each
 * loop holds one function only. */

static inline void FN(each)(sni_fn kind, const sni_activation *f, T *y, const T *more, int64_t n) {
    sni_activation fixed = {kind, f->alpha, f->beta};
    if (more)
        for (int64_t i = 0; i < n; i++) y[i] = FN(sni_activation_of)(&fixed, y[i] + more[i]);
    else
        for (int64_t i = 0; i < n; i++) y[i] = FN(sni_activation_of)(&fixed, y[i]);
}

static void FN(activate)(const sni_activation *f, void *y, const void *more, int64_t n) {
    switch (f->kind) {
    case SNI_FN_NONE:
        FN(each)(SNI_FN_NONE, f, y, more, n);
        break;
    case SNI_FN_RELU:
        FN(each)(SNI_FN_RELU, f, y, more, n);
        break;
    case SNI_FN_AFFINE:
        FN(each)(SNI_FN_AFFINE, f, y, more, n);
        break;
    case SNI_FN_LEAKY_RELU:
        FN(each)(SNI_FN_LEAKY_RELU, f, y, more, n);
        break;
    case SNI_FN_CLIP:
        FN(each)(SNI_FN_CLIP, f, y, more, n);
        break;
    case SNI_FN_HARD_SIGMOID:
        FN(each)(SNI_FN_HARD_SIGMOID, f, y, more, n);
        break;
    case SNI_FN_HARD_SWISH:
        FN(each)(SNI_FN_HARD_SWISH, f, y, more, n);
        break;
    default:
        FN(each)(f->kind, f, y, more, n);
    }
}
