/* gemm_unpacked.inc.c - products of operands that are read where they lie: nothing is packed. */

#define INLINE inline __attribute__((always_inline))

/* ---- Both along k ---- */

enum { MOST_DOT_SUMS = LANES == 16 ? 24 : 12 }; /* that registers have room for */

/* Rows that are taken at once with so many columns. */
static INLINE int rows_at_once(int cols) {
    const int rows = MOST_DOT_SUMS / cols;
    return rows < 8 ? rows : 8;
}

/* Rows of C from row i on. `rows` and `cols` are constants at every call. */
static INLINE void dot_tile(const sni_unpacked_product *x, int64_t i, int rows, int cols) {
    const int64_t k = x->k, a_row = x->a_row, b_col = x->b_col;
    const float *a = x->a + i * a_row, *b = x->b;
    vf sum[MOST_DOT_SUMS];
    UNROLL
    for (int s = 0; s < rows * cols; s++) sum[s] = splat(0);
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
        float *at = x->c + (i + r) * x->c_row + j * x->c_col, total = sum_lanes(sum[r * cols + j]);
        *at = x->add ? *at + total : total;
    }
}

#define DOTS(cols)                                                      \
    case cols:                                                          \
        for (; i + rows_at_once(cols) <= x->m; i += rows_at_once(cols)) \
            dot_tile(x, i, rows_at_once(cols), cols);                   \
        for (; i < x->m; i++) dot_tile(x, i, 1, cols);                  \
        break;

static void gemm_dots(const sni_unpacked_product *x) {
    int64_t i = 0;
    switch (x->n) {
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

/* Rows of C from row i and some vectors of columns from column j on, the last of which is one of
 * `last` elements; 0: a whole one. Sums are those of a tile of packed operands, in the same order.
 * `rows` and `vectors` are constants at every call, and so is `last` where it is 0. */
static INLINE void across_tile(const sni_unpacked_product *x, int64_t i, int64_t j, int rows,
                               int vectors, int64_t last) {
    const bool whole = last == 0, add = x->add;
    const int64_t k = x->k, a_row = x->a_row, a_col = x->a_col, b_row = x->b_row;
    const float *a = x->a + i * a_row, *b = x->b + j;
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
        float *at = x->c + (i + r) * x->c_row + j + v * LANES;
        if (whole || v < vectors - 1)
            store(at, add ? load(at) + sum[r][v] : sum[r][v]);
        else
            store_some(at, last, add ? load_some(at, last, 0) + sum[r][v] : sum[r][v]);
    }
}

/* All columns of some rows, a constant number of them. */
static INLINE void across(const sni_unpacked_product *x, int64_t i, int rows) {
    const int wide = rows > 2 ? 2 : 4; /* enough sums that they need not wait for each other */
    const int64_t n = x->n;
    int64_t j = 0;
    for (; j + wide * LANES <= n; j += wide * LANES) across_tile(x, i, j, rows, wide, 0);
    if (wide > 2 && j + 2 * LANES <= n) {
        across_tile(x, i, j, rows, 2, 0);
        j += 2 * LANES;
    }
    if (j + LANES < n)
        across_tile(x, i, j, rows, 2, n - j - LANES);
    else if (j + LANES == n)
        across_tile(x, i, j, rows, 1, 0);
    else if (j < n)
        across_tile(x, i, j, rows, 1, n - j);
}

static void gemm_across(const sni_unpacked_product *x) {
    int64_t i = 0;
#define ROWS(count) \
    for (; i + count <= x->m; i += count) across(x, i, count)
    if (MOST_ACROSS == 8) ROWS(8);
    ROWS(4);
    ROWS(2);
    ROWS(1);
#undef ROWS
}

/* One row of C, to which so many rows of B from row p on are added at once, each read from end to
 * end. */
static INLINE void add_rows(const sni_unpacked_product *x, int64_t p, int count) {
    const bool add = x->add || p > 0;
    const int64_t n = x->n, b_row = x->b_row;
    const float *b = x->b + p * b_row;
    float *c = x->c;
    vf left[8];
    UNROLL
    for (int r = 0; r < count; r++) left[r] = splat(x->a[(p + r) * x->a_col]);
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

static void gemm_along(const sni_unpacked_product *x) {
    int64_t p = 0;
    for (; p + 8 <= x->k; p += 8) add_rows(x, p, 8);
    for (; p < x->k; p++) add_rows(x, p, 1);
}

#undef INLINE
