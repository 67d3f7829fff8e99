/* move.inc.c - template: copies n elements of type T with strides in elements. Instances:
 * tensor_util.c, one for each width of 1, 2, 4, 8 and 16 bytes. SUFFIX is the width. */
static void FN(move)(void *to, int64_t to_stride, const void *from, int64_t from_stride,
                     int64_t n) {
    T *dst = to;
    const T *src = from;
    if (from_stride == 0) {
        T v = *src;
        if (to_stride == 1)
            for (int64_t i = 0; i < n; i++) dst[i] = v;
        else
            for (int64_t i = 0; i < n; i++) dst[i * to_stride] = v;
    } else if (to_stride == 1 && from_stride == 2) {
        for (int64_t i = 0; i < n; i++) dst[i] = src[2 * i];
    } else if (to_stride == 1 && from_stride == -1) {
        for (int64_t i = 0; i < n; i++) dst[i] = src[-i];
    } else if (to_stride == 1) {
        for (int64_t i = 0; i < n; i++) dst[i] = src[i * from_stride];
    } else {
        for (int64_t i = 0; i < n; i++) dst[i * to_stride] = src[i * from_stride];
    }
}
