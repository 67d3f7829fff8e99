/* One reduction of one element type from OP (its name), ACC, EMPTY, STEP and RESULT, which are
 * undefined again. Long rows go to eight accumulators at once. SELECTS: a step picks one of its
 * operands, so accumulators are joined by a step too; otherwise by adding or multiplying. */
#define OP_FN(part) FN(SNI_PASTE(OP, part))

static void OP_FN(init)(void *acc, int64_t n) {
    ACC *a = acc;
    for (int64_t i = 0; i < n; i++) a[i] = EMPTY;
}

static void OP_FN(row)(void *acc, const void *x, int64_t n) {
    ACC *a = acc;
    const T *src = x;
    ACC lane[8] = {EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, EMPTY};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) lane[j] = STEP(lane[j], src[i + j]);
    for (; i < n; i++) lane[0] = STEP(lane[0], src[i]);
    for (int j = 0; j < 8; j++) {
#ifdef SELECTS
        a[0] = STEP(a[0], lane[j]);
#else
        a[0] = EMPTY ? a[0] * lane[j] : a[0] + lane[j];
#endif
    }
}

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

static const sni_reducer FN(OP) = {sizeof(ACC), OP_FN(init), OP_FN(row), OP_FN(col), OP_FN(finish)};

#undef OP
#undef ACC
#undef EMPTY
#undef STEP
#undef RESULT
#undef SELECTS
#undef OP_FN
