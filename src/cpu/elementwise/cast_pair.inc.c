/* cast_pair.inc.c - template: one conversion from S to D, called FN_CAST. Instances:
 * cast_from.inc.c, seven for each S. TO_FLOAT, TO_INT or TO_BOOL   what D is LOW, HIGH TO_INT: the
 * first and last S in D's range BEYOND, MOST                  TO_INT: the first S above the range,
 * and the largest D WIDE                          TO_INT: the type by way of which S becomes D The
 * loop has no branches, so that compilers vectorise it. All but TO_* are undefined again. */
static void FN_CAST(const void *from, void *to, int64_t n, const void *params) {
    (void)params;
    const S *restrict x = from;
    D *restrict y = to;
    for (int64_t i = 0; i < n; i++) {
#if defined(TO_BOOL)
        y[i] = (D)(x[i] != 0);
#elif defined(TO_INT) && defined(S_FLOAT)
        S v = x[i] == x[i] ? x[i] : 0;
        v = v < (S)(LOW) ? (S)(LOW) : v;
        v = v > (S)(HIGH) ? (S)(HIGH) : v;
        y[i] = x[i] >= (S)(BEYOND) ? MOST : (D)(WIDE)v;
#else
        y[i] = (D)x[i];
#endif
    }
}
#undef D
#undef WIDE
#undef LOW
#undef HIGH
#undef BEYOND
#undef MOST
#undef FN_CAST
