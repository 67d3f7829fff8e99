/* linear_attention.inc.c - template by type (typed.h): the steps of linear attention for one head.
 * Instances: linear_attention.c, for float and double. */

/* The recurrence of one head of keys and values for one type. */
static void FN(head_steps)(const linear *l, int64_t b, int64_t h) {
    int64_t dk = l->dk, dv = l->dv, group = l->q_heads / l->kv_heads;
    T *s = (T *)l->state + (b * l->kv_heads + h) * dk * dv;
    T *write = (T *)l->write + (b * l->kv_heads + h) * dv;
    for (int64_t t = 0; t < l->steps; t++) {
        int64_t at = b * l->steps + t;
        const T *key = (const T *)l->k + (at * l->kv_heads + h) * dk;
        const T *value = (const T *)l->v + (at * l->kv_heads + h) * dv;
        const T *decay =
            l->decay ? (const T *)l->decay + at * l->decay_row + h * l->decay_each : NULL;
        for (int64_t i = 0; decay && i < dk; i++) {
            T keep = MATH(exp)(decay[l->decay_each == dk ? i : 0]);
            for (int64_t j = 0; j < dv; j++) s[i * dv + j] *= keep;
        }
        for (int64_t j = 0; j < dv; j++) write[j] = value[j];
        if (l->beta) {
            T beta = ((const T *)l->beta)[at * l->beta_row + (l->beta_row == 1 ? 0 : h)];
            for (int64_t i = 0; i < dk; i++)
                for (int64_t j = 0; j < dv; j++) write[j] -= key[i] * s[i * dv + j];
            for (int64_t j = 0; j < dv; j++) write[j] *= beta;
        }
        for (int64_t i = 0; i < dk; i++)
            for (int64_t j = 0; j < dv; j++) s[i * dv + j] += key[i] * write[j];
        for (int64_t g = h * group; l->y && g < (h + 1) * group; g++) {
            const T *query = (const T *)l->q + (at * l->q_heads + g) * dk;
            T *y = (T *)l->y + (at * l->q_heads + g) * dv;
            for (int64_t j = 0; j < dv; j++) y[j] = 0;
            for (int64_t i = 0; i < dk; i++)
                for (int64_t j = 0; j < dv; j++) y[j] += query[i] * s[i * dv + j];
            for (int64_t j = 0; j < dv; j++) y[j] *= (T)l->scale;
        }
    }
}

static void FN(heads)(void *ctx, int64_t begin, int64_t end) {
    const linear *l = ctx;
    for (int64_t i = begin; i < end; i++) FN(head_steps)(l, i / l->kv_heads, i % l->kv_heads);
}
