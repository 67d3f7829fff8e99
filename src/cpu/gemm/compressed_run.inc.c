/* compressed_run.inc.c - kernels on compressed pieces. TARGET and NAME say with which instructions;
 * NAME(tops_of) gives a quad's highest bytes, NAME(join_quad) its floats. */

/* Writes the floats of the group at p->groups, but for what the list says. A few lines at a time
 * are fetched from `near` bytes ahead to the first-level cache and from `far` on to the second, an
 * even share of `lines` by each quad. */
TARGET static inline __attribute__((always_inline)) void NAME(read_group)(sni_compressed_piece *p,
                                                                          bits table, int near,
                                                                          const uint8_t *far,
                                                                          int64_t each, float *to) {
    const uint8_t *group = p->groups;
    UNROLL
    for (int q = 0; q < QUADS; q++, to += QUAD) {
        for (int64_t i = 0; i < each; i++, far += 64) __builtin_prefetch(far, 0, 2);
        UNROLL
        for (int i = LINES * q / QUADS; i < LINES * (q + 1) / QUADS; i++)
            __builtin_prefetch(group + near + i * 64, 0, 3);
        bits codes = read_codes(group + q / 2 * CODES);
        NAME(join_quad)(group + KEPT_AT + q * KEPT, NAME(tops_of)(codes, q & 1, table), to);
    }
    p->groups = group + GROUP;
}

TARGET static void NAME(decode)(sni_compressed_piece *piece, int64_t k, float *to,
                                const void *fetch, int64_t lines) {
    int64_t groups = (k + SNI_COMPRESSED_ROWS - 1) / SNI_COMPRESSED_ROWS;
    int64_t each = groups ? (lines + groups * QUADS - 1) / (groups * QUADS) : 0;
    const uint8_t *prefetch = lines > 0 ? fetch : piece->groups;
    sni_compressed_piece p = *piece;
    bits table = table_of(p.base);
    for (int64_t count; groups > 0; groups -= count, to += count * SNI_COMPRESSED_ROWS * NR) {
        count = groups < SLAB ? groups : SLAB;
        for (int64_t g = 0; g < count; g++, lines -= each * QUADS, prefetch += each * QUADS * 64)
            NAME(read_group)
        (&p, table, DECODE_NEAR, prefetch, lines > 0 ? each : 0, to + g * SNI_COMPRESSED_ROWS * NR);
        set_more(&p, count * SNI_COMPRESSED_ROWS * NR, to);
    }
    *piece = p;
}

/* Sums are those of gemm_row in the same order. */
TARGET static void NAME(row)(int64_t k, const float *a, const sni_compressed_piece *piece, float *c,
                             bool add) {
    _Alignas(64) float b[SNI_COMPRESSED_ROWS * NR];
    vf sum[WAYS][NV];
    UNROLL
    for (int s = 0; s < WAYS; s++) UNROLL
    for (int j = 0; j < NV; j++) sum[s][j] = splat(0);
    sni_compressed_piece p = *piece;
    bits table = table_of(p.base);
    for (int64_t rows; k > 0; k -= rows, a += rows) {
        int64_t r = 0;
        rows = k < SNI_COMPRESSED_ROWS ? k : SNI_COMPRESSED_ROWS;
        NAME(read_group)
        (&p, table, NEAR, p.groups + SNI_COMPRESSED_AHEAD, (LINES + QUADS - 1) / QUADS, b);
        set_more(&p, SNI_COMPRESSED_ROWS * NR, b);
        for (; r + WAYS <= rows; r += WAYS) {
            UNROLL
            for (int s = 0; s < WAYS; s++) {
                vf x = splat(a[r + s]);
                UNROLL
                for (int j = 0; j < NV; j++) sum[s][j] += x * load(b + (r + s) * NR + j * LANES);
            }
        }
        for (; r < rows; r++) {
            vf x = splat(a[r]);
            UNROLL
            for (int j = 0; j < NV; j++) sum[0][j] += x * load(b + r * NR + j * LANES);
        }
    }
    UNROLL
    for (int j = 0; j < NV; j++) {
        vf total = sum[0][j];
        UNROLL
        for (int s = 1; s < WAYS; s++) total += sum[s][j];
        store(c + j * LANES, add ? load(c + j * LANES) + total : total);
    }
}

/* Writes the next group of *p as group g of those at b. */
TARGET static inline __attribute__((always_inline)) void
NAME(next_group)(sni_compressed_piece *p, bits table, float *b, int g) {
    float *to = b + g * SNI_COMPRESSED_ROWS * NR;
    NAME(read_group)(p, table, DECODE_NEAR, p->groups, 0, to);
    set_more(p, SNI_COMPRESSED_ROWS * NR, to);
}

/* tile() of gemm_core.inc.c that writes its B, a piece, to `b` as it goes. A group is decoded two
 * groups before its products: behind those of another, which keep the multipliers at work, and so
 * long before that what the list has set, a byte, has left the queue of stores (a load of more than
 * that byte would have to wait for it). */
TARGET static inline __attribute__((always_inline)) void
NAME(first)(int rows, int64_t k, const float *a, sni_compressed_piece p, float *b, float *c,
            int64_t c_row, bool add, float *apart, const float *fetch, int64_t lines) {
    vf sum[MR][NV];
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < NV; j++) sum[i][j] = splat(0);
    tile_left left = left_packed(a);
    tile_right right = {.b = b, .vectors = NV};
    bits table = table_of(p.base);
    tile_prefetch prefetch = prefetch_of(rows, k, c, c_row, fetch, lines);
    for (int g = 0; g < FIRST_AHEAD && g * SNI_COMPRESSED_ROWS < k; g++)
        NAME(next_group)(&p, table, b, g);
    for (; k >= SNI_COMPRESSED_ROWS; k -= SNI_COMPRESSED_ROWS) {
        tile_block(rows, &left, &right, sum, &prefetch);
        if (k > FIRST_AHEAD * SNI_COMPRESSED_ROWS) NAME(next_group)(&p, table, b, FIRST_AHEAD);
        b += SNI_COMPRESSED_ROWS * NR;
    }
    for (; k > 0; k--, right.b += NR) {
        tile_step(rows, &left, &right, 0, sum);
        left_on(rows, &left, 1);
    }
    tile_end(rows, NV, sum, apart ? apart : c, apart ? NR : c_row, add && !apart);
}

#define TILE(rows)                                                                        \
    TARGET static void NAME(first_##rows)(                                                \
        int64_t k, const float *a, const sni_compressed_piece *piece, float *b, float *c, \
        int64_t c_row, bool add, float *apart, const float *fetch, int64_t lines) {       \
        NAME(first)(rows, k, a, *piece, b, c, c_row, add, apart, fetch, lines);           \
    }
#include "cpu/gemm/gemm_sizes.inc.c"
#undef TILE

static const sni_compressed_first_fn NAME(firsts)[SNI_MAX_MR + 1] = {
#define TILE(rows) [rows] = NAME(first_##rows),
#include "cpu/gemm/gemm_sizes.inc.c"
#undef TILE
};
