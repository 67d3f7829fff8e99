/* gemm_unpacked.inc.c - products of operands that are read where they lie: nothing is packed. */

#define INLINE inline __attribute__((always_inline))

/* ---- Both along k ---- */

enum { MOST_DOT_SUMS = LANES == 16 ? 24 : 12 }; /* that registers have room for */

/* Rows that are taken at once with so many columns. */
static INLINE int rows_at_once(int cols) {
    const int rows = MOST_DOT_SUMS / cols;
    return rows < 8 ? rows : 8;
}

/* `rows` and `cols` are constants at every call. */
static INLINE void dot_tile(int rows, int cols, int64_t k, const float *a, int64_t a_row,
                            const float *b, int64_t b_col, float *c, int64_t c_row, int64_t c_col,
                            bool add) {
    vf sum[MOST_DOT_SUMS];
    UNROLL
    for (int i = 0; i < rows * cols; i++) sum[i] = splat(0);
    int64_t p = 0;
    for (; p + LANES <= k; p += LANES) {
        vf left[8];
        UNROLL
        for (int r = 0; r < rows; r++) left[r] = load(a + r * a_row + p);
        UNROLL
        for (int j = 0; j < cols; j++) {
            vf right = load(b + j * b_col + p);
            UNROLL
            for (int r = 0; r < rows; r++) add_product(&sum[r * cols + j], left[r], right);
        }
    }
    if (p < k) {
        UNROLL
        for (int j = 0; j < cols; j++) {
            vf right = load_some(b + j * b_col + p, k - p, 0);
            UNROLL
            for (int r = 0; r < rows; r++)
                sum[r * cols + j] += load_some(a + r * a_row + p, k - p, 0) * right;
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) UNROLL
    for (int j = 0; j < cols; j++) {
        float *at = c + r * c_row + j * c_col, total = sum_lanes(sum[r * cols + j]);
        *at = add ? *at + total : total;
    }
}

#define DOTS(cols)                                                                               \
    case cols:                                                                                   \
        for (; i + rows_at_once(cols) <= rows; i += rows_at_once(cols))                          \
            dot_tile(rows_at_once(cols), cols, k, a + i * a_row, a_row, b, b_col, c + i * c_row, \
                     c_row, c_col, add);                                                         \
        for (; i < rows; i++)                                                                    \
            dot_tile(1, cols, k, a + i * a_row, a_row, b, b_col, c + i * c_row, c_row, c_col,    \
                     add);                                                                       \
        break;

static void gemm_dots(int64_t rows, int cols, int64_t k, const float *a, int64_t a_row,
                      const float *b, int64_t b_col, float *c, int64_t c_row, int64_t c_col,
                      bool add) {
    int64_t i = 0;
    switch (cols) {
        DOTS(1)
        DOTS(2)
        DOTS(3)
        DOTS(4)
        DOTS(5)
        DOTS(6)
        DOTS(7)
        DOTS(8)
    }
}
#undef DOTS

/* ---- B along n ---- */

enum { MOST_ACROSS = LANES == 16 ? 8 : 4 }; /* rows that are taken at once */

/* Some vectors of columns, the last of which is one of `last` elements unless they are `whole`.
 * Sums are those of a tile of packed operands, in the same order. All but `last`, of the first
 * three, are constants at every call. */
static INLINE void across_tile(int rows, int vectors, bool whole, int64_t last, int64_t k,
                               const float *a, int64_t a_row, int64_t a_col, const float *b,
                               int64_t b_row, float *c, int64_t c_row, bool add) {
    vf sum[MOST_ACROSS][4];
    UNROLL
    for (int r = 0; r < rows; r++) UNROLL
    for (int v = 0; v < vectors; v++) sum[r][v] = splat(0);
    for (int64_t p = 0; p < k; p++, a += a_col, b += b_row) {
        vf right[4];
        UNROLL
        for (int v = 0; v < vectors; v++)
            right[v] =
                whole || v < vectors - 1 ? load(b + v * LANES) : load_some(b + v * LANES, last, 0);
        UNROLL
        for (int r = 0; r < rows; r++) {
            vf left = splat(a[r * a_row]);
            UNROLL
            for (int v = 0; v < vectors; v++) add_product(&sum[r][v], left, right[v]);
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) UNROLL
    for (int v = 0; v < vectors; v++) {
        float *at = c + r * c_row + v * LANES;
        if (whole || v < vectors - 1)
            store(at, add ? load(at) + sum[r][v] : sum[r][v]);
        else
            store_some(at, last, add ? load_some(at, last, 0) + sum[r][v] : sum[r][v]);
    }
}

/* All columns of some rows, a constant number of them. */
static INLINE void across(int rows, int64_t k, const float *a, int64_t a_row, int64_t a_col,
                          const float *b, int64_t b_row, int64_t n, float *c, int64_t c_row,
                          bool add) {
#define STRIP(vectors, whole, last) \
    across_tile(rows, vectors, whole, last, k, a, a_row, a_col, b + j, b_row, c + j, c_row, add)
    const int wide = rows > 2 ? 2 : 4; /* enough sums that they need not wait for each other */
    int64_t j = 0;
    for (; j + wide * LANES <= n; j += wide * LANES) STRIP(wide, true, 0);
    if (wide > 2 && j + 2 * LANES <= n) {
        STRIP(2, true, 0);
        j += 2 * LANES;
    }
    if (j + LANES < n)
        STRIP(2, false, n - j - LANES);
    else if (j + LANES == n)
        STRIP(1, true, 0);
    else if (j < n)
        STRIP(1, false, n - j);
#undef STRIP
}

static void gemm_across(int64_t rows, int64_t k, const float *a, int64_t a_row, int64_t a_col,
                        const float *b, int64_t b_row, int64_t n, float *c, int64_t c_row,
                        bool add) {
    int64_t i = 0;
#define ROWS(count)                       \
    for (; i + count <= rows; i += count) \
    across(count, k, a + i * a_row, a_row, a_col, b, b_row, n, c + i * c_row, c_row, add)
    if (MOST_ACROSS == 8) ROWS(8);
    ROWS(4);
    ROWS(2);
    ROWS(1);
#undef ROWS
}

/* One row of C, to which so many rows of B are added at once, each read from end to end. */
static INLINE void add_rows(int count, const float *a, int64_t a_col, const float *b, int64_t b_row,
                            int64_t n, float *c, bool add) {
    vf left[8];
    UNROLL
    for (int r = 0; r < count; r++) left[r] = splat(a[r * a_col]);
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        vf sum = add ? load(c + j) : splat(0);
        UNROLL
        for (int r = 0; r < count; r++) add_product(&sum, left[r], load(b + r * b_row + j));
        store(c + j, sum);
    }
    if (j == n) return;
    vf sum = add ? load_some(c + j, n - j, 0) : splat(0);
    UNROLL
    for (int r = 0; r < count; r++) sum += left[r] * load_some(b + r * b_row + j, n - j, 0);
    store_some(c + j, n - j, sum);
}

static void gemm_along(int64_t k, const float *a, int64_t a_col, const float *b, int64_t b_row,
                       int64_t n, float *c, bool add) {
    int64_t p = 0;
    for (; p + 8 <= k; p += 8)
        add_rows(8, a + p * a_col, a_col, b + p * b_row, b_row, n, c, add || p > 0);
    for (; p < k; p++) add_rows(1, a + p * a_col, a_col, b + p * b_row, b_row, n, c, add || p > 0);
}

#undef INLINE
