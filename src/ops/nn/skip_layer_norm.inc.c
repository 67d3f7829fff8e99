/* skip_layer_norm.inc.c - template by type (typed.h): sums of SkipLayerNormalization. Instances:
 * skip_layer_norm.c, for float and double. */

/* Sums of rows for one type. */

/* Rows [begin, end) of input + skip + bias. */
static void FN(add_rows)(void *ctx, int64_t begin, int64_t end) {
    const skip_sum *s = ctx;
    for (int64_t r = begin; r < end; r++) {
        const T *x = (const T *)s->x + r * s->n;
        const T *skip = (const T *)s->skip + r % s->skip_rows * s->n;
        const T *bias = s->bias;
        T *y = (T *)s->y + r * s->n;
        if (bias)
            for (int64_t i = 0; i < s->n; i++) y[i] = x[i] + skip[i] + bias[i];
        else
            for (int64_t i = 0; i < s->n; i++) y[i] = x[i] + skip[i];
    }
}
