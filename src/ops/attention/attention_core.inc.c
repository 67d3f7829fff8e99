/* attention_core.inc.c - template by type (typed.h): the reference kernel of attention: scores,
 * masks, softmax. Instances: attention_core.c, for float and double. */

/* Scores to probabilities for one type. */

/* What masks add to the scores of one query: bias (total) for image b, head h, query q. */
static void FN(make_bias)(const sni_attention *a, int64_t b, int64_t h, int64_t q, T *bias) {
    int64_t n = a->mask ? a->mask_length : a->total;
    int64_t at =
        a->mask ? b * a->mask_stride[0] + h * a->mask_stride[1] + q * a->mask_stride[2] : 0;
    const T *padding = a->padding;
    const T hidden =
        a->lowest ? -(T)(sizeof(T) == sizeof(float) ? (double)FLT_MAX : DBL_MAX) : -(T)INFINITY;
    if (padding) padding += b * a->padding_stride[0] + q * a->padding_stride[1];
    for (int64_t j = 0; j < a->total; j++) {
        T v = 0;
        if (j >= n)
            v = -(T)INFINITY;
        else if (a->mask)
            v = a->bool_mask ? (((const uint8_t *)a->mask)[at + j] ? 0 : -(T)INFINITY)
                             : ((const T *)a->mask)[at + j];
        if (padding) v += padding[j];
        if (!is_seen(a, b, q, j)) v = hidden;
        bias[j] = v;
    }
}

/* One row of products (total) to scores, in place. */
static void FN(score)(const sni_attention *a, int64_t row, T *s, T *bias, T *kept) {
    int64_t q = row % a->q_length, h = row / a->q_length % a->q_heads,
            b = row / a->q_length / a->q_heads;
    T scale = (T)a->scale, cap = (T)a->softcap;
    FN(make_bias)(a, b, h, q, bias);
    for (int64_t j = 0; j < a->total; j++) {
        s[j] *= scale;
        if (kept && a->keep == SNI_SCORES_SCALED) kept[j] = s[j];
        if (cap > 0) s[j] = cap * MATH(tanh)(s[j] / cap);
        if (kept && a->keep == SNI_SCORES_CAPPED) kept[j] = s[j];
        /* A masked key has no part, whatever its score: even NaN. */
        s[j] = bias[j] == -(T)INFINITY ? bias[j] : s[j] + bias[j];
        if (kept && a->keep == SNI_SCORES_MASKED) kept[j] = s[j];
    }
}

/* One row of scores of head h to probabilities, in place: all 0 where every key is masked. */
static void FN(softmax)(const sni_attention *a, int64_t h, T *s, const T *bias, T *kept) {
    T most = -(T)INFINITY, sum = 0;
    bool any = false;
    for (int64_t j = 0; j < a->total; j++) {
        any |= bias[j] != -(T)INFINITY;
        most = s[j] > most ? s[j] : most;
    }
    if (a->sink) {
        T sink = ((const T *)a->sink)[h];
        most = sink > most ? sink : most;
        sum = MATH(exp)(sink - most);
    }
    for (int64_t j = 0; j < a->total; j++) {
        s[j] = any && bias[j] != -(T)INFINITY ? MATH(exp)(s[j] - most) : 0;
        sum += s[j];
    }
    for (int64_t j = 0; j < a->total && any; j++) s[j] /= sum;
    for (int64_t j = 0; kept && a->keep == SNI_SCORES_PROBABILITIES && j < a->total; j++)
        kept[j] = s[j];
}

/* Rows [begin, end) of the chunk of heads under way; each has its own place for the bias. */
static void FN(rows)(void *ctx, int64_t begin, int64_t end) {
    const sni_attention *a = ctx;
    for (int64_t r = begin; r < end; r++) {
        int64_t row = a->first * a->q_length + r;
        T *s = (T *)a->scores + r * a->total, *bias = (T *)a->bias + r * a->total;
        T *kept = a->kept ? (T *)a->kept + row * a->total : NULL;
        if (a->stages & SCORES) FN(score)(a, row, s, bias, kept);
        if (a->stages & PROBABILITIES)
            FN(softmax)(a, row / a->q_length % a->q_heads, s, bias, kept);
    }
}
