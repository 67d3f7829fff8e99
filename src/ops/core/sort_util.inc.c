static int FN(compare)(sn_dtype dtype, const void *a, const void *b) {
    (void)dtype;
    T x = *(const T *)a, y = *(const T *)b;
#ifdef T_FLOAT
    if (x != x || y != y) return (x != x) - (y != y);
#endif
    return (x > y) - (x < y);
}
