/* gridsample.inc.c - template by type (typed.h): a sample of GridSample. Instances: gridsample.c,
 * for float and double. */

/* One point of every channel of an image. */
static void FN(blend_point)(const grid_job *j, const taps *t, int64_t image, int64_t point) {
    T weight[TAPS];
    for (int i = 0; i < t->count; i++) weight[i] = (T)t->weight[i];
    for (int64_t c = 0; c < j->channels; c++) {
        int64_t channel = image * j->channels + c;
        const T *src = (const T *)j->src + channel * j->volume;
        T sum = 0;
        for (int i = 0; i < t->count; i++) sum += weight[i] * src[t->offset[i]];
        ((T *)j->dst)[channel * j->points + point] = sum;
    }
}
