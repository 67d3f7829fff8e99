/* Position of the extreme of n elements that lie `step` apart; NaN counts as one. Of equal ones
 * the first, or the last. */
static int64_t FN(argmax)(const void *from, int64_t n, int64_t step, bool last) {
    const T *x = from;
    int64_t best = 0;
    T most = x[0];
    for (int64_t i = 1; i < n; i++) {
        T v = x[i * step];
#ifdef T_FLOAT
        bool better = most != most ? last && v != v : v != v || v > most;
#else
        bool better = v > most;
#endif
        if (better || (last && v == most)) {
            best = i;
            most = v;
        }
    }
    return best;
}

static int64_t FN(argmin)(const void *from, int64_t n, int64_t step, bool last) {
    const T *x = from;
    int64_t best = 0;
    T most = x[0];
    for (int64_t i = 1; i < n; i++) {
        T v = x[i * step];
#ifdef T_FLOAT
        bool better = most != most ? last && v != v : v != v || v < most;
#else
        bool better = v < most;
#endif
        if (better || (last && v == most)) {
            best = i;
            most = v;
        }
    }
    return best;
}
