/* causal_conv.inc.c - template by type (typed.h): the taps of CausalConvWithState. Instances:
 * causal_conv.c, for float and double. */

/* Channels of a causal depthwise convolution for one type. */
static void FN(channels)(void *ctx, int64_t begin, int64_t end) {
    const causal *c = ctx;
    int64_t keep = c->kernel - 1;
    for (int64_t row = begin; row < end; row++) {
        int64_t channel = row % c->channels;
        const T *x = (const T *)c->x + row * c->length, *w = (const T *)c->w + channel * c->kernel;
        const T *past = c->past ? (const T *)c->past + row * keep : NULL;
        T *restrict y = c->y ? (T *)c->y + row * c->length : NULL;
        for (int64_t i = 0; y && i < c->length; i++)
            y[i] = c->bias ? ((const T *)c->bias)[channel] : 0;
        for (int64_t t = 0; y && t < c->kernel; t++) {
            int64_t shift = keep - t; /* tap t reads `shift` elements back */
            for (int64_t i = 0; past && i < shift && i < c->length; i++) y[i] += w[t] * past[i + t];
            for (int64_t i = shift; i < c->length; i++) y[i] += w[t] * x[i - shift];
        }
        for (int64_t i = 0; y && c->silu && i < c->length; i++) y[i] /= 1 + MATH(exp)(-y[i]);
        T *present = c->present ? (T *)c->present + row * keep : NULL;
        for (int64_t i = 0; present && i < keep; i++) {
            int64_t at = c->length - keep + i;
            present[i] = at >= 0 ? x[at] : past ? past[at + keep] : 0;
        }
    }
}
