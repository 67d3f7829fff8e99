/* OP for type T, where BEATS says which of two elements goes before the other. Both are used up.
 *
 * For each of `width` elements side by side, at most ARG_COLUMNS, the position among n rows that
 * lie `step` apart. */
static void FN(OP)(const void *from, int64_t n, int64_t step, int64_t width, bool last,
                   int64_t *out) {
    const T *x = from;
    T most[ARG_COLUMNS];
    int32_t best[ARG_COLUMNS];
    for (int64_t j = 0; j < width; j++) {
        most[j] = x[j];
        best[j] = 0;
    }
    const int also = last;
    for (int64_t i = 1; i < n; i++) {
        const T *row = x + i * step;
        for (int64_t j = 0; j < width; j++) {
            const T v = row[j], m = most[j];
#ifdef T_FLOAT
            const int better =
                ((m == m) & (BEATS(v, m) | (v != v))) | (also & ((v == m) | ((v != v) & (m != m))));
#else
            const int better = BEATS(v, m) | (also & (v == m));
#endif
            best[j] = better ? (int32_t)i : best[j];
            most[j] = better ? v : m;
        }
    }
    for (int64_t j = 0; j < width; j++) out[j] = best[j];
}

/* Of one row of n elements: the value first, then its place. */
static int64_t FN(SNI_PASTE(OP, row))(const void *from, int64_t n, bool last) {
    const T *x = from;
    T lanes[ARG_LANES];
    int odd = 0; /* whether there is a NaN */
    int64_t i = 0;
    for (int j = 0; j < ARG_LANES; j++) lanes[j] = x[0];
    for (; i + ARG_LANES <= n; i += ARG_LANES)
        for (int j = 0; j < ARG_LANES; j++) {
            lanes[j] = BEATS(x[i + j], lanes[j]) ? x[i + j] : lanes[j];
            odd |= x[i + j] != x[i + j];
        }
    for (; i < n; i++) {
        lanes[0] = BEATS(x[i], lanes[0]) ? x[i] : lanes[0];
        odd |= x[i] != x[i];
    }
    T most = lanes[0];
    for (int j = 1; j < ARG_LANES; j++) most = BEATS(lanes[j], most) ? lanes[j] : most;
    int64_t step = last ? -1 : 1, at = last ? n - 1 : 0;
    while (odd ? x[at] == x[at] : x[at] != most) at += step;
    return at;
}
#undef OP
#undef BEATS
