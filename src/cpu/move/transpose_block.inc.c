/* A matrix of elements of type T turned in blocks of SIDE x SIDE, which vectors V of SIDE elements
 * hold. ZIP_LOW and ZIP_HIGH are indices of two vectors' elements in turns, of their first and of
 * their second halves. They are used up. */

static inline __attribute__((always_inline)) void FN(transpose_block)(V r[SIDE]) {
    UNROLL
    for (int round = 1; round < SIDE; round *= 2) {
        V t[SIDE];
        UNROLL
        for (int i = 0; i < SIDE / 2; i++) {
            t[2 * i] = __builtin_shufflevector(r[i], r[i + SIDE / 2], ZIP_LOW);
            t[2 * i + 1] = __builtin_shufflevector(r[i], r[i + SIDE / 2], ZIP_HIGH);
        }
        UNROLL
        for (int i = 0; i < SIDE; i++) r[i] = t[i];
    }
}

static void FN(transpose)(const void *source, int64_t from_step, int64_t rows, int64_t columns,
                          void *target, int64_t to_step) {
    const T *from = source;
    T *to = target;
    int64_t i = 0;
    for (; i + SIDE <= rows; i += SIDE) {
        int64_t j = 0;
        for (; j + SIDE <= columns; j += SIDE) {
            V r[SIDE];
            UNROLL
            for (int q = 0; q < SIDE; q++)
                memcpy(&r[q], from + (i + q) * from_step + j, sizeof r[q]);
            FN(transpose_block)(r);
            UNROLL
            for (int q = 0; q < SIDE; q++) memcpy(to + (j + q) * to_step + i, &r[q], sizeof r[q]);
        }
        for (; j < columns; j++)
            for (int q = 0; q < SIDE; q++) to[j * to_step + i + q] = from[(i + q) * from_step + j];
    }
    for (; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) to[j * to_step + i] = from[i * from_step + j];
}

#undef T
#undef SUFFIX
#undef V
#undef SIDE
#undef ZIP_LOW
#undef ZIP_HIGH
