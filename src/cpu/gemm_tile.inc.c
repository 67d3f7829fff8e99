/* gemm_tile.inc.c - the GEMM micro-kernel: a tile of C stays in registers over all of k. */

#if LANES == 16
enum { MR = 14, NV = 2 };
#elif LANES == 8
enum { MR = 6, NV = 2 };
#else
enum { MR = 4, NV = 2 };
#endif
enum { NR = NV * LANES };

/* `rows` is a constant at every call, so that the loops unroll and the tile needs no memory. */
static inline __attribute__((always_inline)) void tile(int rows, int64_t k, const float *restrict a,
                                                       const float *restrict b, float *restrict c,
                                                       int64_t c_row, bool add) {
    vf sum[MR][NV];
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < NV; j++) sum[i][j] = splat(0);
    for (int64_t p = 0; p < k; p++, a += MR, b += NR) {
        vf right[NV];
        UNROLL
        for (int j = 0; j < NV; j++) right[j] = load(b + j * LANES);
        UNROLL
        for (int i = 0; i < rows; i++) {
            vf left = splat(a[i]);
            UNROLL
            for (int j = 0; j < NV; j++) sum[i][j] += left * right[j];
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < NV; j++) {
        float *at = c + i * c_row + j * LANES;
        store(at, add ? load(at) + sum[i][j] : sum[i][j]);
    }
}

#define TILE(rows)                                                                              \
    static void tile_##rows(int64_t k, const float *a, const float *b, float *c, int64_t c_row, \
                            bool add) {                                                         \
        tile(rows, k, a, b, c, c_row, add);                                                     \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
#if LANES > 4
TILE(5)
TILE(6)
#endif
#if LANES > 8
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
TILE(13)
TILE(14)
#endif
#undef TILE
