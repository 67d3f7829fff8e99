/* unary_loop.inc.c - template: a sni_unary_fn called OP for type T: y = EXPR, an expression of v
 * (T) and, where PARAMS is defined as a type, of p (a pointer to the node's parameters). R, if
 * defined, is the type of y. Instances: every family of unary operators. OP and EXPR are undefined
 * again. */
#ifndef R
#define R T
#define R_IS_T 1
#endif
static void FN(OP)(const void *x, void *y, int64_t n, const void *params) {
    const T *src = x;
    R *dst = y;
#ifdef PARAMS
    const PARAMS *p = params;
    (void)p;
#else
    (void)params;
#endif
    for (int64_t i = 0; i < n; i++) {
        const T v = src[i];
        dst[i] = (R)(EXPR);
    }
}
#undef OP
#undef EXPR
#ifdef R_IS_T
#undef R
#undef R_IS_T
#endif
