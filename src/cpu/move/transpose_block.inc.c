/* transpose_block.inc.c - template: transposes a matrix of elements of type T, named by SUFFIX, in
 * blocks of SIDE x SIDE. Instances: moves.isa.c, one for each width of 1, 2, 4 and 8 bytes.
 *   V                   a vector of SIDE elements
 *   ZIP_LOW, ZIP_HIGH   indices that interleave the first, and the second, halves of two vectors
 * A block takes log2(SIDE) rounds of SIDE shuffles in registers. All parameters are undefined
 * again. */

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
