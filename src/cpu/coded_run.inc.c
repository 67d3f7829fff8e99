/* coded_run.inc.c - kernels on coded pieces, once NAME(read_group) has been defined. */

TARGET static void NAME(decode)(sni_coded_piece *piece, int64_t k, float *to, const void *fetch,
                                int64_t lines) {
    int64_t groups = (k + SNI_CODED_ROWS - 1) / SNI_CODED_ROWS;
    int64_t each = groups ? (lines + groups - 1) / groups : 0;
    const char *ahead = fetch;
    reader r = reader_of(piece);
    for (int64_t g = 0; g < groups; g++, to += SNI_CODED_ROWS * NR) {
        vf v[SNI_CODED_ROWS][NV];
        for (int64_t i = 0; i < each && lines > 0; i++, lines--, ahead += 64)
            __builtin_prefetch(ahead, 0, 2);
        UNROLL
        for (int i = 0; i < GROUP; i += 64) __builtin_prefetch(r.group + DECODE_NEAR + i, 0, 3);
        NAME(read_group)(&r, v);
        UNROLL
        for (int s = 0; s < SNI_CODED_ROWS; s++) UNROLL
        for (int j = 0; j < NV; j++) store(to + s * NR + j * LANES, v[s][j]);
    }
    piece->groups = r.group;
    piece->more = r.more;
}

/* Sums are those of gemm_row in the same order: one for each row of a group, and what is left of a
 * last group to the first of them. */
TARGET static void NAME(row)(int64_t k, const float *a, const sni_coded_piece *piece, float *c,
                             bool add) {
    vf sum[SNI_CODED_ROWS][NV], v[SNI_CODED_ROWS][NV];
    UNROLL
    for (int s = 0; s < SNI_CODED_ROWS; s++) UNROLL
    for (int j = 0; j < NV; j++) sum[s][j] = splat(0);
    reader r = reader_of(piece);
    int64_t p = 0;
    for (; p + SNI_CODED_ROWS <= k; p += SNI_CODED_ROWS) {
        UNROLL
        for (int i = 0; i < GROUP; i += 64) {
            __builtin_prefetch(r.group + SNI_CODED_AHEAD + i, 0, 2);
            __builtin_prefetch(r.group + NEAR + i, 0, 3);
        }
        NAME(read_group)(&r, v);
        UNROLL
        for (int s = 0; s < SNI_CODED_ROWS; s++) {
            vf x = splat(a[p + s]);
            UNROLL
            for (int j = 0; j < NV; j++) sum[s][j] += x * v[s][j];
        }
    }
    if (p < k) {
        NAME(read_group)(&r, v);
        for (int s = 0; s < k - p; s++) {
            vf x = splat(a[p + s]);
            UNROLL
            for (int j = 0; j < NV; j++) sum[0][j] += x * v[s][j];
        }
    }
    UNROLL
    for (int j = 0; j < NV; j++) {
        vf total = sum[0][j];
        UNROLL
        for (int s = 1; s < SNI_CODED_ROWS; s++) total += sum[s][j];
        store(c + j * LANES, add ? load(c + j * LANES) + total : total);
    }
}
