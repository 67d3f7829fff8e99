/* embed_layer_norm.inc.c - template by type (typed.h): sums of embeddings. Instances:
 * embed_layer_norm.c, for float and double. */

/* Sums of embeddings for one type. */

/* Words [begin, end), counted over all batches. */
static void FN(embed_words)(void *ctx, int64_t begin, int64_t end) {
    const embedding *e = ctx;
    for (int64_t i = begin; i < end; i++) {
        const T *word = (const T *)e->tables[WORD] + e->rows[WORD][i] * e->n;
        const T *place = (const T *)e->tables[PLACE] + e->rows[PLACE][i] * e->n;
        T *y = (T *)e->sum + i * e->n;
        for (int64_t j = 0; j < e->n; j++) y[j] = word[j] + place[j];
        if (!e->tables[SEGMENT]) continue;
        const T *segment = (const T *)e->tables[SEGMENT] + e->rows[SEGMENT][i] * e->n;
        for (int64_t j = 0; j < e->n; j++) y[j] += segment[j];
    }
}
