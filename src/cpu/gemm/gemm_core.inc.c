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

/* The left operand: packed, SNI_LEFT_STEPS of k of each row after the other, or rows that lie as
 * they are, `row` bytes apart. Of those every REACH-th is a base, from which the next ones are
 * reached by sums that an instruction's address has room for. */
enum {
    REACH = 5,
    BASES = (MR + REACH - 1) / REACH,
    LINES_AHEAD = LANES == 16 ? 2 : 4 /* lines of a row that are fetched ahead */
};
typedef struct tile_left {
    const float *a[BASES];
    bool packed; /* a constant at every call */
    int64_t row, three_rows;
} tile_left;

static inline __attribute__((always_inline)) tile_left left_packed(const float *a) {
    return (tile_left){.a = {a}, .packed = true};
}

/* How many of the bases a tile needs. */
static inline __attribute__((always_inline)) int bases(int rows) {
    return (rows + REACH - 1) / REACH;
}

static inline __attribute__((always_inline)) tile_left left_strided(int rows, const float *a,
                                                                    int64_t row) {
    tile_left l = {.row = row * (int64_t)sizeof *a, .three_rows = 3 * row * (int64_t)sizeof *a};
    UNROLL
    for (int i = 0; i < bases(rows); i++) l.a[i] = a + i * REACH * row;
    return l;
}

/* Where row i is, a constant. */
static inline __attribute__((always_inline)) const float *left_at(const tile_left *l, int i) {
    if (l->packed) return l->a[0] + i * SNI_LEFT_STEPS;
    const char *first = (const char *)l->a[i / REACH];
    const int64_t behind = i % REACH == 3 ? l->three_rows : i % REACH * l->row;
    return (const float *)(const void *)(first + behind);
}

/* Moves on by `steps` of k within what is packed together. */
static inline __attribute__((always_inline)) void left_on(int rows, tile_left *l, int steps) {
    const int count = l->packed ? 1 : bases(rows);
    UNROLL
    for (int i = 0; i < count; i++) l->a[i] += steps;
}

/* One step of k, `step` of them from what `left` and `right` point to. */
static inline __attribute__((always_inline)) void
tile_step(int rows, const tile_left *l, const tile_right *r, int step, vf sum[MR][NV]) {
    const float *b = r->b + step * NR;
    vf right[NV];
    UNROLL
    for (int j = 0; j < r->vectors; j++) {
        right[j] = load(b + j * LANES);
        if (r->minus) right[j] -= load(b + r->less + j * LANES);
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        vf left = splat(((const sni_unaligned_float *)left_at(l, i))[step]);
        UNROLL
        for (int j = 0; j < r->vectors; j++) add_product(&sum[i][j], left, right[j]);
    }
}

/* What a tile fetches: the rows of C, the next lines of A and what it is asked for, a few lines
 * at a time, all along: memory has its own pace, and what waits for it must not fill the places
 * that the tile's own loads need. */
typedef struct tile_prefetch {
    const float *c, *last, *fetch;
    int64_t c_row, lines;
    uint32_t each; /* lines of `fetch` along with SNI_LEFT_STEPS of k */
} tile_prefetch;

static inline __attribute__((always_inline)) tile_prefetch
prefetch_of(int rows, int64_t k, const float *c, int64_t c_row, const float *fetch, int64_t lines) {
    uint32_t blocks = (uint32_t)(k / SNI_LEFT_STEPS); /* small numbers: a quick division */
    return (tile_prefetch){.c = c,
                           .last = c + (rows - 1) * c_row,
                           .fetch = fetch,
                           .c_row = c_row,
                           .lines = lines,
                           .each = blocks ? ((uint32_t)lines + blocks - 1) / blocks : 0};
}

/* SNI_LEFT_STEPS of k; both operands move behind them. Several steps make one round of the loop:
 * its counting would otherwise take the multipliers' place. */
static inline __attribute__((always_inline)) void tile_block(int rows, tile_left *l, tile_right *r,
                                                             vf sum[MR][NV], tile_prefetch *f) {
    for (uint32_t i = 0; i < f->each && f->lines > 0; i++, f->lines--, f->fetch += 16)
        __builtin_prefetch(f->fetch, 0, 2);
    UNROLL
    for (int j = 0; j < r->vectors * LANES; j += 16) __builtin_prefetch(f->c + j, 1);
    f->c = f->c < f->last ? f->c + f->c_row : f->last;
    UNROLL
    for (int i = 0; i < rows; i++)
        __builtin_prefetch(left_at(l, i) + (l->packed ? MR : LINES_AHEAD) * SNI_LEFT_STEPS);
    for (const float *end = l->a[0] + SNI_LEFT_STEPS; l->a[0] < end; r->b += STEPS * NR) {
        UNROLL
        for (int s = 0; s < STEPS; s++) tile_step(rows, l, r, s, sum);
        left_on(rows, l, STEPS);
    }
    if (l->packed) left_on(rows, l, SNI_LEFT_STEPS * (MR - 1));
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
static inline __attribute__((always_inline)) void tile(int rows, int64_t k, tile_left left,
                                                       tile_right right, float *c, int64_t c_row,
                                                       bool add, const float *so_far, float *apart,
                                                       const float *fetch, int64_t lines) {
    vf sum[MR][NV];
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < right.vectors; j++)
        sum[i][j] = so_far ? load(so_far + i * NR + j * LANES) : splat(0);
    tile_prefetch prefetch = prefetch_of(rows, k, c, c_row, fetch, lines);
    for (; k >= SNI_LEFT_STEPS; k -= SNI_LEFT_STEPS)
        tile_block(rows, &left, &right, sum, &prefetch);
    for (; k > 0; k--, right.b += NR) {
        tile_step(rows, &left, &right, 0, sum);
        left_on(rows, &left, 1);
    }
    tile_end(rows, right.vectors, sum, apart ? apart : c, apart ? NR : c_row, add && !apart);
}
