/* matmul_core.inc.c - template by type (typed.h): A block of a matrix product for one element
 * type; T is float, double, uint32_t or uint64_t. Tiles have MR rows of TILE_VECTORS vectors of
 * TILE_BYTES. Instances: matmul_core.c, for float; matmul_types.inc.c, for double, uint32_t and
 * uint64_t. */
#define NR (TILE_VECTORS * TILE_BYTES / (int)sizeof(T)) /* columns of a tile */

typedef T FN(vector) __attribute__((vector_size(TILE_BYTES), aligned(sizeof(T)), may_alias));

/* Rows of A [i0, i0 + MR) that exist, others repeat the last one. */
static void FN(rows_of)(const sni_gemm *g, int64_t i0, int64_t k0, int64_t m_end,
                        const T *rows[MR]) {
    for (int64_t r = 0; r < MR; r++) {
        int64_t i = i0 + r < m_end ? i0 + r : m_end - 1;
        rows[r] = (const T *)g->a + i * g->a_row + k0 * g->a_col;
    }
}

/* out (MR, NR) = rows (MR, depth) times panel (depth, NR). */
static void FN(tile)(const T *const rows[MR], int64_t step, const T *panel, int64_t depth,
                     T *restrict out) {
    FN(vector) acc[MR][TILE_VECTORS];
    const T *from[MR];
    SNI_ALL_ROUNDS for (int r = 0; r < MR; r++) {
        from[r] = rows[r];
        SNI_ALL_ROUNDS for (int v = 0; v < TILE_VECTORS; v++) acc[r][v] = (FN(vector)){0};
    }
    for (int64_t at = 0; depth > 0; depth--, at += step, panel += PANEL_STRIDE) {
        const FN(vector) *b = (const FN(vector) *)panel;
        SNI_ALL_ROUNDS for (int r = 0; r < MR; r++) {
            T a = from[r][at];
            SNI_ALL_ROUNDS for (int v = 0; v < TILE_VECTORS; v++) acc[r][v] += a * b[v];
        }
    }
    SNI_ALL_ROUNDS for (int r = 0; r < MR; r++)
        SNI_ALL_ROUNDS for (int v = 0; v < TILE_VECTORS; v++)((FN(vector) *)(out + r * NR))[v] =
            acc[r][v];
}

static void FN(store)(const T *acc, T *c, int64_t c_row, int64_t rows, int64_t cols, bool add) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            c[r * c_row + j] = (add ? c[r * c_row + j] : 0) + acc[r * NR + j];
}

/* Rows [k0, k0 + depth) and columns [n0, n0 + cols) of B; columns up to a multiple of NR are 0. */
static void FN(pack)(const sni_gemm *g, int64_t k0, int64_t depth, int64_t n0, int64_t cols,
                     T *panel) {
    if (g->fill) {
        g->fill(g->fill_ctx, g->product, k0, depth, n0, cols, panel, PANEL_STRIDE);
    } else if (g->b_col == 1) {
        for (int64_t p = 0; p < depth; p++)
            memcpy(panel + p * PANEL_STRIDE, (const T *)g->b + (k0 + p) * g->b_row + n0,
                   (size_t)cols * sizeof(T));
    } else {
        for (int64_t j = 0; j < cols; j++) {
            const T *b = (const T *)g->b + k0 * g->b_row + (n0 + j) * g->b_col;
            for (int64_t p = 0; p < depth; p++) panel[p * PANEL_STRIDE + j] = b[p * g->b_row];
        }
    }
    if (cols % NR)
        for (int64_t p = 0; p < depth; p++)
            for (int64_t j = cols; j % NR; j++) panel[p * PANEL_STRIDE + j] = 0;
}

/* One row of C from a panel, without tiles: for fewer rows than a tile has. */
static void FN(thin)(const sni_gemm *g, int64_t i, int64_t k0, int64_t depth, const T *panel,
                     int64_t n0, int64_t cols) {
    const T *a = (const T *)g->a + i * g->a_row + k0 * g->a_col;
    T *restrict c = (T *)g->c + i * g->c_row + n0;
    if (!g->add && k0 == 0)
        for (int64_t j = 0; j < cols; j++) c[j] = 0;
    for (int64_t p = 0; p < depth; p++) {
        const T *b = panel + p * PANEL_STRIDE;
        T s = a[p * g->a_col];
        for (int64_t j = 0; j < cols; j++) c[j] += s * b[j];
    }
}

/* Rows [m0, m1) and columns [n0, n0 + cols) of C, cols at most PANEL_COLS. */
static void FN(block)(const sni_gemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t cols) {
    enum { DEPTH = PANEL_BYTES / (PANEL_STRIDE * (int)sizeof(T)) };
    _Alignas(SNI_ALIGN) T panel[DEPTH * PANEL_STRIDE];
    T acc[MR * NR];
    for (int64_t k0 = 0; k0 < g->k; k0 += DEPTH) {
        int64_t depth = g->k - k0 < DEPTH ? g->k - k0 : DEPTH;
        FN(pack)(g, k0, depth, n0, cols, panel);
        if (m1 - m0 <= FEW_ROWS) {
            for (int64_t i = m0; i < m1; i++) FN(thin)(g, i, k0, depth, panel, n0, cols);
            continue;
        }
        for (int64_t j = 0; j < cols; j += NR) {
            int64_t width = cols - j < NR ? cols - j : NR;
            for (int64_t i = m0; i < m1; i += MR) {
                const T *rows[MR];
                FN(rows_of)(g, i, k0, m1, rows);
                FN(tile)(rows, g->a_col, panel + j, depth, acc);
                FN(store)
                (acc, (T *)g->c + i * g->c_row + n0 + j, g->c_row, m1 - i < MR ? m1 - i : MR, width,
                 g->add || k0 > 0);
            }
        }
    }
}

/* One row of C over columns [n0, n1) straight from B: packing does not pay for so few rows. */
static void FN(row)(const sni_gemm *g, int64_t i, int64_t n0, int64_t n1) {
    const T *a = (const T *)g->a + i * g->a_row;
    T *restrict c = (T *)g->c + i * g->c_row;
    if (g->b_col == 1) {
        if (!g->add)
            for (int64_t j = n0; j < n1; j++) c[j] = 0;
        for (int64_t p = 0; p < g->k; p++) {
            const T *b = (const T *)g->b + p * g->b_row;
            T s = a[p * g->a_col];
            for (int64_t j = n0; j < n1; j++) c[j] += s * b[j];
        }
        return;
    }
    for (int64_t j = n0; j < n1; j++) {
        const T *b = (const T *)g->b + j * g->b_col;
        T sums[8] = {0}, sum = 0;
        int64_t p = 0;
        for (; p + 8 <= g->k && g->a_col == 1 && g->b_row == 1; p += 8)
            for (int q = 0; q < 8; q++) sums[q] += a[p + q] * b[p + q];
        for (; p < g->k; p++) sum += a[p * g->a_col] * b[p * g->b_row];
        for (int q = 0; q < 8; q++) sum += sums[q];
        c[j] = (g->add ? c[j] : 0) + sum;
    }
}

static void FN(zero)(const sni_gemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    for (int64_t i = m0; i < m1; i++)
        for (int64_t j = n0; j < n1; j++) ((T *)g->c)[i * g->c_row + j] = 0;
}

static const sni_gemm_core FN(gemm_core) = {FN(block), FN(row), FN(zero)};
#undef NR
