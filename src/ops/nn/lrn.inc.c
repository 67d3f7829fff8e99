/* lrn.inc.c - template by type (typed.h): LRN. Instances: lrn.c, for float and double. */

/* Local response normalisation of images for one type. */
static void FN(images)(void *ctx, int64_t begin, int64_t end) {
    const lrn *l = ctx;
    int64_t before = (l->size - 1) / 2, after = l->size - 1 - before;
    for (int64_t row = begin; row < end; row++) {
        int64_t c = row % l->channels;
        const T *image = (const T *)l->x + (row - c) * l->plane, *x = image + c * l->plane;
        T *restrict y = (T *)l->y + row * l->plane;
        int64_t from = c > before ? c - before : 0;
        int64_t to = l->channels - 1 - c > after ? c + after : l->channels - 1;
        for (int64_t i = 0; i < l->plane; i++) y[i] = 0;
        for (int64_t n = from; n <= to; n++) {
            const T *v = image + n * l->plane;
            for (int64_t i = 0; i < l->plane; i++) y[i] += v[i] * v[i];
        }
        T factor = (T)(l->alpha / (double)l->size);
        for (int64_t i = 0; i < l->plane; i++)
            y[i] = x[i] / MATH(pow)((T)l->bias + factor * y[i], (T)l->beta);
    }
}
