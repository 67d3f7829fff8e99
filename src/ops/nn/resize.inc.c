/* resize.inc.c - template by type (typed.h): weighted sums of Resize. Instances: resize_run.c, for
 * float and double. */

/* Weighted sums along one axis, elements of weight 0 left out: rows [begin, end) of the (outer *
 * out) rows of `inner` elements. */
static void FN(blend)(void *ctx, int64_t begin, int64_t end) {
    const blend_job *j = ctx;
    const tap_table *t = j->table;
    int64_t inner = j->inner;
    for (int64_t r = begin; r < end; r++) {
        const T *src = (const T *)j->src + r / t->out * t->in * inner;
        T *dst = (T *)j->dst + r * inner;
        const int64_t *index = t->index + r % t->out * t->taps;
        const double *weight = t->weight + r % t->out * t->taps;
        if (inner == 1) {
            T sum = 0;
            for (int64_t i = 0; i < t->taps; i++)
                if (weight[i] != 0) sum += (T)weight[i] * src[index[i]];
            dst[0] = sum;
            continue;
        }
        for (int64_t i = 0; i < t->taps; i++) {
            const T *row = src + index[i] * inner;
            T w = (T)weight[i];
            if (i == 0)
                for (int64_t n = 0; n < inner; n++) dst[n] = w != 0 ? w * row[n] : 0;
            else if (w != 0)
                for (int64_t n = 0; n < inner; n++) dst[n] += w * row[n];
        }
    }
}
