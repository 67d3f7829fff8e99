/* topk.inc.c - template by type (typed.h): the reference kernel of TopK for one lane. Instances:
 * topk.c, for all numbers. */

/* True if element a of the lane goes before b in the result: NaN counts as the largest, equal
 * elements keep their order. */
static inline bool FN(before)(const T *v, int64_t a, int64_t b, bool largest) {
    T x = v[a], y = v[b];
#ifdef T_FLOAT
    bool x_nan = x != x, y_nan = y != y;
    if (x_nan || y_nan) return x_nan && y_nan ? a < b : largest ? x_nan : y_nan;
#endif
    if (x == y) return a < b;
    return largest ? x > y : x < y;
}

/* Lets the entry at `at` of a heap of n, whose root goes last, sink to its place. */
static void FN(sink)(const T *v, int64_t *heap, int64_t n, int64_t at, bool largest) {
    int64_t entry = heap[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= n) break;
        if (child + 1 < n && FN(before)(v, heap[child], heap[child + 1], largest)) child++;
        if (!FN(before)(v, entry, heap[child], largest)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = entry;
}

/* The first k positions of the lane's n elements in result order. */
static void FN(topk)(const void *lane, int64_t n, int64_t k, bool largest, int64_t *heap) {
    const T *v = lane;
    if (k == 0) return;
    for (int64_t i = 0; i < k; i++) heap[i] = i;
    for (int64_t i = k / 2; i-- > 0;) FN(sink)(v, heap, k, i, largest);
    for (int64_t i = k; i < n; i++) {
        if (!FN(before)(v, i, heap[0], largest)) continue;
        heap[0] = i;
        FN(sink)(v, heap, k, 0, largest);
    }
    for (int64_t m = k - 1; m > 0; m--) {
        int64_t last = heap[0];
        heap[0] = heap[m];
        heap[m] = last;
        FN(sink)(v, heap, m, 0, largest);
    }
}
