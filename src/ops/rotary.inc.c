/* Rotates one head in place of copying it, for one type. */
static void FN(rotate)(const rotary *r, const T *x, const T *cosines, const T *sines, T *y) {
    int64_t half = r->rotated / 2;
    for (int64_t i = 0; i < half; i++) {
        int64_t a = r->interleaved ? 2 * i : i, b = r->interleaved ? 2 * i + 1 : half + i;
        T u = x[a], v = x[b];
        y[a] = u * cosines[i] - v * sines[i];
        y[b] = u * sines[i] + v * cosines[i];
    }
    for (int64_t i = r->rotated; i < r->size; i++) y[i] = x[i];
}

/* Positions [begin, end), counted over all batches. */
static void FN(positions)(void *ctx, int64_t begin, int64_t end) {
    const rotary *r = ctx;
    for (int64_t i = begin; i < end; i++) {
        int64_t b = i / r->length, s = i % r->length;
        int64_t row = r->ids ? r->ids[i] : i;
        const T *c = (const T *)r->cosines + row * (r->rotated / 2);
        const T *d = (const T *)r->sines + row * (r->rotated / 2);
        for (int64_t h = 0; h < r->heads; h++) {
            int64_t at = b * r->batch_step + h * r->head_step + s * r->row_step;
            FN(rotate)(r, (const T *)r->x + at, c, d, (T *)r->y + at);
        }
    }
}
