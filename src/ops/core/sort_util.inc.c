/* sort_util.inc.c - template by type (typed.h): the comparison of two elements. Instances:
 * sort_util.c, for all numbers. */

static int FN(compare)(sn_dtype dtype, const void *a, const void *b) {
    (void)dtype;
    T x = *(const T *)a, y = *(const T *)b;
#ifdef T_FLOAT
    if (x != x || y != y) return (x != x) - (y != y);
#endif
    return (x > y) - (x < y);
}
