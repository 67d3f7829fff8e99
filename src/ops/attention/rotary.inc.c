/* rotary.inc.c - template by type (typed.h): rotation of the pairs of a head. Instances: rotary.c,
 * for float and double. */

/* Rotates heads for one type. */
static void FN(rotate_head)(const sni_rotary *r, const T *x, const T *cosines, const T *sines,
                            T *y) {
    int64_t half = r->rotated / 2;
    if (r->hook) r->hook(x, cosines, sines, half, y);
    for (int64_t i = 0; i < half && !r->hook; i++) {
        int64_t a = r->interleaved ? 2 * i : i, b = r->interleaved ? 2 * i + 1 : half + i;
        T u = x[a], v = x[b];
        y[a] = u * cosines[i] - v * sines[i];
        y[b] = u * sines[i] + v * cosines[i];
    }
    for (int64_t i = r->rotated; i < r->size; i++) y[i] = x[i];
}

/* Positions [begin, end), counted over all batches. */
static void FN(rotate_positions)(void *ctx, int64_t begin, int64_t end) {
    const sni_rotary *r = ctx;
    for (int64_t i = begin; i < end; i++) {
        int64_t b = i / r->length, s = i % r->length;
        int64_t row = r->ids ? r->ids[i] : i;
        const T *c = (const T *)r->cosines + row * (r->rotated / 2);
        const T *d = (const T *)r->sines + row * (r->rotated / 2);
        for (int64_t h = 0; h < r->heads; h++) {
            int64_t from = b * r->x.batch + h * r->x.head + s * r->x.row;
            int64_t to = b * r->y.batch + h * r->y.head + s * r->y.row;
            FN(rotate_head)
            (r, (const T *)r->x.data + from, c, d, (T *)(uintptr_t)r->y.data + to);
        }
    }
}
