/* reduce_op.inc.c - template: one reduction of type T from OP (its name), ACC (the accumulator's
 * type), EMPTY (its initial value), STEP and RESULT. Long rows use SNI_REDUCE_LANES accumulators at
 * once. SELECTS: a step selects one of its operands, and accumulators are combined by a step, too;
 * otherwise by adding or multiplying. ROW and COLS: functions that sum a row, and add rows as
 * sni_reducer.cols does. PICK: a function that selects from a row, or says that it cannot.
 * EXTREMES: the plain loop, which compilers vectorise. Instances: reduce.inc.c, nine. All
 * parameters are undefined again. */
#define OP_FN(part) FN(SNI_PASTE(OP, part))
#ifdef SELECTS
#define OP_JOIN(a, b) STEP(a, b)
#else
#define OP_JOIN(a, b) (EMPTY ? (a) * (b) : (a) + (b))
#endif

static void OP_FN(init)(void *acc, int64_t n) {
    ACC *a = acc;
    for (int64_t i = 0; i < n; i++) a[i] = EMPTY;
}

#ifdef ROW
static void OP_FN(row)(void *acc, const void *x, int64_t n) {
    *(ACC *)acc += ROW(x, n);
}
#elif defined(EXTREMES)
static void OP_FN(row)(void *acc, const void *x, int64_t n) {
    ACC *a = acc, best = EMPTY;
    const T *src = x;
    for (int64_t i = 0; i < n; i++) best = STEP(best, src[i]);
    a[0] = STEP(a[0], best);
}
#else
static void OP_FN(row)(void *acc, const void *x, int64_t n) {
    ACC *a = acc;
    const T *src = x;
#ifdef PICK
    ACC best;
    if (PICK(src, n, &best)) {
        a[0] = STEP(a[0], best);
        return;
    }
#endif
    ACC lane[SNI_REDUCE_LANES];
    int64_t i = 0;
    for (int j = 0; j < SNI_REDUCE_LANES; j++) lane[j] = EMPTY;
    for (; i + SNI_REDUCE_LANES <= n; i += SNI_REDUCE_LANES)
        for (int j = 0; j < SNI_REDUCE_LANES; j++) lane[j] = STEP(lane[j], src[i + j]);
    for (; i < n; i++) lane[0] = STEP(lane[0], src[i]);
    for (int half = SNI_REDUCE_LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++) lane[j] = OP_JOIN(lane[j], lane[j + half]);
    a[0] = OP_JOIN(a[0], lane[0]);
}
#endif

static void OP_FN(col)(void *acc, const void *x, int64_t n) {
    ACC *a = acc;
    const T *src = x;
    for (int64_t i = 0; i < n; i++) a[i] = STEP(a[i], src[i]);
}

static void OP_FN(finish)(const void *acc, void *y, int64_t n, int64_t count) {
    const ACC *a = acc;
    T *dst = y;
    (void)count;
    for (int64_t i = 0; i < n; i++) dst[i] = RESULT(a[i], count);
}

#ifdef COLS
static void OP_FN(cols)(void *acc, const void *x, int64_t n, int64_t rows, int64_t step) {
    COLS(acc, x, n, rows, step);
}
#define OP_COLS OP_FN(cols)
#else
#define OP_COLS NULL
#endif

static const sni_reducer FN(OP) = {sizeof(ACC), OP_FN(init),   OP_FN(row),
                                   OP_FN(col),  OP_FN(finish), OP_COLS};

#undef OP
#undef ACC
#undef EMPTY
#undef STEP
#undef RESULT
#undef SELECTS
#undef ROW
#undef PICK
#undef COLS
#undef OP_COLS
#undef OP_FN
#undef OP_JOIN
