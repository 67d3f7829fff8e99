/* merge.inc.c - template: a stable merge sort of entries of type E, named by SUFFIX, from runs that
 * are sorted by insertion. Instances: topk.c, for keys of 32 and of 64 bits. BEFORE(a, b)   whether
 * a goes before b All parameters are undefined again. */

enum { SNI_PASTE(RUN, SUFFIX) = 12 };

/* Sorts n entries; both arrays have n. Returns the one with the result. */
static E *SNI_PASTE(sort, SUFFIX)(E *a, E *b, int64_t n) {
    const int64_t run = SNI_PASTE(RUN, SUFFIX);
    for (int64_t from = 0; from < n; from += run) {
        int64_t end = from + run < n ? from + run : n;
        for (int64_t i = from + 1; i < end; i++) {
            E e = a[i];
            int64_t j = i;
            for (; j > from && BEFORE(e, a[j - 1]); j--) a[j] = a[j - 1];
            a[j] = e;
        }
    }
    for (int64_t size = run; size < n; size *= 2) {
        for (int64_t from = 0; from < n; from += 2 * size) {
            int64_t i = from, middle = from + size < n ? from + size : n, j = middle;
            int64_t end = middle + size < n ? middle + size : n, to = from;
            while (i < middle && j < end) {
                bool second = BEFORE(a[j], a[i]);
                b[to++] = a[second ? j : i];
                i += !second;
                j += second;
            }
            for (; i < middle; i++) b[to++] = a[i];
            for (; j < end; j++) b[to++] = a[j];
        }
        E *swap = a;
        a = b;
        b = swap;
    }
    return a;
}

#undef E
#undef SUFFIX
#undef BEFORE
