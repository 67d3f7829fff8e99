/* global_average.inc.c - template by type (typed.h): means of whole planes. Instances:
 * average_pool.c, for float and double. */

/* The mean of a whole plane for one type. */

static void FN(global_average)(const sni_pool_window *pool, int64_t plane, int64_t row) {
    (void)row;
    const T *x = (const T *)pool->x + plane * pool->in_plane;
    T sums[8] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 8 <= pool->in_plane; i += 8)
        for (int j = 0; j < 8; j++) sums[j] += x[i + j];
    for (; i < pool->in_plane; i++) sum += x[i];
    for (int j = 0; j < 8; j++) sum += sums[j];
    ((T *)pool->y)[plane] = sum / (T)pool->in_plane;
}
