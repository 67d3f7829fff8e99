/* binary_loop.inc.c - template: a sni_binary_fn called OP for type T: y = EXPR, an expression of u
 * and v (T, the first and the second operand) and, where PARAMS is defined as a type, of p (a
 * pointer to the node's parameters). R, if defined, is the type of y. Instances: every family of
 * binary operators. OP and EXPR are undefined again. */
#ifndef R
#define R T
#define R_IS_T 1
#endif
static void FN(OP)(const void *a, const void *b, void *y, int64_t n, int64_t sa, int64_t sb,
                   const void *params) {
    const T *first = a, *second = b;
    R *dst = y;
#ifdef PARAMS
    const PARAMS *p = params;
    (void)p;
#else
    (void)params;
#endif
    if (sa && sb) {
        for (int64_t i = 0; i < n; i++) {
            const T u = first[i], v = second[i];
            dst[i] = (R)(EXPR);
        }
    } else if (sa) {
        const T v = *second;
        for (int64_t i = 0; i < n; i++) {
            const T u = first[i];
            dst[i] = (R)(EXPR);
        }
    } else if (sb) {
        const T u = *first;
        for (int64_t i = 0; i < n; i++) {
            const T v = second[i];
            dst[i] = (R)(EXPR);
        }
    } else {
        const T u = *first, v = *second;
        const R r = (R)(EXPR);
        for (int64_t i = 0; i < n; i++) dst[i] = r;
    }
}
#undef OP
#undef EXPR
#ifdef R_IS_T
#undef R
#undef R_IS_T
#endif
