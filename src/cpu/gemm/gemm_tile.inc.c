/* gemm_tile.inc.c - the tier's GEMM tiles, and products of one row. */
#include "cpu/gemm/gemm_core.inc.c"

#define TILE(rows)                                                                                 \
    static void tile_##rows(int64_t k, const float *a, const float *b, const float *sums,          \
                            float *c, int64_t c_row, bool add, float *apart, const float *fetch,   \
                            int64_t lines) {                                                       \
        tile(rows, k, left_packed(a), (tile_right){.b = b, .vectors = NV}, c, c_row, add, sums,    \
             apart, fetch, lines);                                                                 \
    }                                                                                              \
    static void half_##rows(int64_t k, const float *a, const float *b, const float *sums,          \
                            float *c, int64_t c_row, bool add, float *apart, const float *fetch,   \
                            int64_t lines) {                                                       \
        tile(rows, k, left_packed(a), (tile_right){.b = b, .vectors = NV / 2}, c, c_row, add,      \
             sums, apart, fetch, lines);                                                           \
    }                                                                                              \
    static void strided_##rows(int64_t k, const float *a, int64_t a_row, const float *b, float *c, \
                               int64_t c_row, bool add, float *apart, const float *fetch,          \
                               int64_t lines) {                                                    \
        tile(rows, k, left_strided(rows, a, a_row), (tile_right){.b = b, .vectors = NV}, c, c_row, \
             add, NULL, apart, fetch, lines);                                                      \
    }                                                                                              \
    static void strided_half_##rows(int64_t k, const float *a, int64_t a_row, const float *b,      \
                                    float *c, int64_t c_row, bool add, float *apart,               \
                                    const float *fetch, int64_t lines) {                           \
        tile(rows, k, left_strided(rows, a, a_row), (tile_right){.b = b, .vectors = NV / 2}, c,    \
             c_row, add, NULL, apart, fetch, lines);                                               \
    }                                                                                              \
    static void less_##rows(int64_t k, const float *a, const float *b, const float *less,          \
                            const float *sums, float *c, int64_t c_row, float *apart,              \
                            const float *fetch, int64_t lines) {                                   \
        tile(rows, k, left_packed(a),                                                              \
             (tile_right){.b = b, .vectors = NV, .minus = true, .less = less - b}, c, c_row,       \
             false, sums, apart, fetch, lines);                                                    \
    }
#include "cpu/gemm/gemm_sizes.inc.c"
#undef TILE

enum { WAYS = 4 }; /* steps of k that gemm_row adds up apart */

/* One row of C: A's row is read where it lies. Each of WAYS steps has sums of its own, so that
 * additions need not wait for each other. */
static void gemm_row(int64_t k, const float *restrict a, const float *restrict b, float *restrict c,
                     bool add) {
    vf sum[WAYS][NV];
    UNROLL
    for (int w = 0; w < WAYS; w++) UNROLL
    for (int j = 0; j < NV; j++) sum[w][j] = splat(0);
    int64_t p = 0;
    for (; p + WAYS <= k; p += WAYS, b += WAYS * NR) {
        UNROLL
        for (int w = 0; w < WAYS; w++) {
            vf x = splat(a[p + w]);
            UNROLL
            for (int j = 0; j < NV; j++) sum[w][j] += x * load(b + w * NR + j * LANES);
        }
    }
    for (; p < k; p++, b += NR) {
        vf x = splat(a[p]);
        UNROLL
        for (int j = 0; j < NV; j++) sum[0][j] += x * load(b + j * LANES);
    }
    UNROLL
    for (int j = 0; j < NV; j++) {
        vf total = sum[0][j];
        UNROLL
        for (int w = 1; w < WAYS; w++) total += sum[w][j];
        store(c + j * LANES, add ? load(c + j * LANES) + total : total);
    }
}
