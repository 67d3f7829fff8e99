/* gemm_core.inc.c - the GEMM micro-kernel: a tile of C stays in registers over all of k. */

#if LANES == 16
enum { MR = 14, NV = 2, KC = 768 };
#elif LANES == 8
enum { MR = 6, NV = 2, KC = 384 };
#else
enum { MR = 4, NV = 2, KC = 384 };
#endif
enum {
    NR = NV * LANES,
    STEPS = 4 /* of k in one round of the loop */
};

/* The right operand of a tile, k after k: the first `vectors` of NV that stand there, or with
 * `minus` those less what stands `less` elements further on. Both are constants at every call. */
typedef struct tile_right {
    const float *b;
    int vectors;
    bool minus;
    int64_t less;
} tile_right;

/* One step of k, `step` of them from what `right` points to: `a` points to the first row's element.
 */
static inline __attribute__((always_inline)) void
tile_step(int rows, const float *a, const tile_right *r, int step, vf sum[MR][NV]) {
    const float *b = r->b + step * NR;
    vf right[NV];
    UNROLL
    for (int j = 0; j < r->vectors; j++) {
        right[j] = load(b + j * LANES);
        if (r->minus) right[j] -= load(b + r->less + j * LANES);
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        vf left = splat(a[i * SNI_LEFT_STEPS]);
        UNROLL
        for (int j = 0; j < r->vectors; j++) add_product(&sum[i][j], left, right[j]);
    }
}

/* What a tile fetches: the rows of C, the next lines of A and what it is asked for, a few lines
 * at a time, all along: memory has its own pace, and what waits for it must not fill the places
 * that the tile's own loads need. */
typedef struct tile_ahead {
    const float *c, *last, *fetch;
    int64_t c_row, lines;
    uint32_t each; /* lines of `fetch` along with SNI_LEFT_STEPS of k */
} tile_ahead;

static inline __attribute__((always_inline)) tile_ahead
ahead_of(int rows, int64_t k, const float *c, int64_t c_row, const float *fetch, int64_t lines) {
    uint32_t blocks = (uint32_t)(k / SNI_LEFT_STEPS); /* small numbers: a quick division */
    return (tile_ahead){.c = c,
                        .last = c + (rows - 1) * c_row,
                        .fetch = fetch,
                        .c_row = c_row,
                        .lines = lines,
                        .each = blocks ? ((uint32_t)lines + blocks - 1) / blocks : 0};
}

/* SNI_LEFT_STEPS of k; *a moves on within its line, r->b behind them. Several steps make one round
 * of the loop: its counting would otherwise take the multipliers' place. */
static inline __attribute__((always_inline)) void
tile_block(int rows, const float **a, tile_right *r, vf sum[MR][NV], tile_ahead *f) {
    for (uint32_t i = 0; i < f->each && f->lines > 0; i++, f->lines--, f->fetch += 16)
        __builtin_prefetch(f->fetch, 0, 2);
    UNROLL
    for (int j = 0; j < r->vectors * LANES; j += 16) __builtin_prefetch(f->c + j, 1);
    f->c = f->c < f->last ? f->c + f->c_row : f->last;
    UNROLL
    for (int i = 0; i < rows; i++) __builtin_prefetch(*a + (MR + i) * SNI_LEFT_STEPS);
    for (const float *end = *a + SNI_LEFT_STEPS; *a < end; *a += STEPS, r->b += STEPS * NR) {
        UNROLL
        for (int s = 0; s < STEPS; s++) tile_step(rows, *a + s, r, s, sum);
    }
}

static inline __attribute__((always_inline)) void tile_end(int rows, int vectors, vf sum[MR][NV],
                                                           float *c, int64_t c_row, bool add) {
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < vectors; j++) {
        float *at = c + i * c_row + j * LANES;
        store(at, add ? load(at) + sum[i][j] : sum[i][j]);
    }
}

/* `so_far` (rows x NR) are sums that go on as if they had never left the registers; NULL: none.
 * `rows` is a constant at every call, so that the loops unroll and the tile needs no memory. */
static inline __attribute__((always_inline)) void tile(int rows, int64_t k, const float *a,
                                                       tile_right right, float *c, int64_t c_row,
                                                       bool add, const float *so_far, float *apart,
                                                       const float *fetch, int64_t lines) {
    vf sum[MR][NV];
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < right.vectors; j++)
        sum[i][j] = so_far ? load(so_far + i * NR + j * LANES) : splat(0);
    tile_ahead ahead = ahead_of(rows, k, c, c_row, fetch, lines);
    for (; k >= SNI_LEFT_STEPS; k -= SNI_LEFT_STEPS, a += SNI_LEFT_STEPS * (MR - 1))
        tile_block(rows, &a, &right, sum, &ahead);
    for (; k > 0; k--, a++, right.b += NR) tile_step(rows, a, &right, 0, sum);
    tile_end(rows, right.vectors, sum, apart ? apart : c, apart ? NR : c_row, add && !apart);
}
