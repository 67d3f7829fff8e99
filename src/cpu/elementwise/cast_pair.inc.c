/* One conversion from S to D (C types) called FN_CAST: as sni_convert does it, but without
 * branches. Floats out of an integer's range give its nearest end, NaN gives 0; integers keep their
 * low bits. TO_BOOL, TO_FLOAT or TO_INT with LOW and HIGH (the last S within D's range) say what D
 * is; MOST is D's largest number and BEYOND the first S above it. All of these but
 * the kind of D are used up. */
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
