/* argminmax_op.inc.c - template: OP for type T, where BEATS tells which of two elements comes
 * first. For each of `width` <= ARG_COLUMNS columns, finds the position among n rows that are
 * `step` apart. Instances: argminmax.inc.c, ArgMax and ArgMin. OP and BEATS are undefined again. */
#ifdef T_FLOAT
#define IS_NAN(v) ((v) != (v))
#else
#define IS_NAN(v) 0
#endif

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
            const int better = ((IS_NAN(m) == 0) & (BEATS(v, m) | IS_NAN(v))) |
                               (also & ((v == m) | (IS_NAN(v) & IS_NAN(m))));
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
            odd |= IS_NAN(x[i + j]);
        }
    for (; i < n; i++) {
        lanes[0] = BEATS(x[i], lanes[0]) ? x[i] : lanes[0];
        odd |= IS_NAN(x[i]);
    }
    T most = lanes[0];
    for (int j = 1; j < ARG_LANES; j++) most = BEATS(lanes[j], most) ? lanes[j] : most;
    int64_t step = last ? -1 : 1, at = last ? n - 1 : 0;
    while (odd ? !IS_NAN(x[at]) : x[at] != most) at += step;
    return at;
}
#undef IS_NAN
#undef OP
#undef BEATS
