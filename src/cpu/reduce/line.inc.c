/* line.inc.c - sums over taps for a few rows of results at once: what loops.h calls `line`. */

#if LANES == 16
enum { LINE_ROWS = 8 };
#else
enum { LINE_ROWS = 4 };
#endif

/* `rows` and `vectors` are constants at every call; the last vector has n elements of its own. */
static inline __attribute__((always_inline)) void line_tile(const sni_line *l, int rows,
                                                            int vectors, int64_t first, int64_t n) {
    vf sum[LINE_ROWS][8];
    const bool whole = n == LANES;
    const float *w = l->w, *x = l->x + first;
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = splat(l->bias ? l->bias[r] : 0);
    }
    for (int64_t j = 0; j < l->count; j++, w += rows) {
        const float *from = x + l->at[j];
        vf in[8];
        UNROLL for (int v = 0; v < vectors; v++) in[v] =
            whole ? load(from + v * LANES) : load_some(from, n, 0);
        UNROLL for (int r = 0; r < rows; r++) {
            vf weight = splat(w[r]);
            UNROLL for (int v = 0; v < vectors; v++) sum[r][v] += weight * in[v];
        }
    }
    UNROLL for (int r = 0; r < rows; r++) {
        float *y = l->y + r * l->y_row + first;
        UNROLL for (int v = 0; v < vectors; v++) {
            if (whole)
                store(y + v * LANES, sum[r][v]);
            else
                store_some(y, n, sum[r][v]);
        }
    }
}

static inline __attribute__((always_inline)) void line_rows(const sni_line *l, int rows,
                                                            int vectors) {
    int64_t i = 0, step = (int64_t)vectors * LANES;
    for (; i + step <= l->n; i += step) line_tile(l, rows, vectors, i, LANES);
    for (; i + LANES <= l->n; i += LANES) line_tile(l, rows, 1, i, LANES);
    if (i < l->n) line_tile(l, rows, 1, i, l->n - i);
}

static void line(const sni_line *l) {
    switch (l->rows) {
    case 1:
        line_rows(l, 1, LANES == 16 ? 8 : 6);
        break;
    case 2:
        line_rows(l, 2, LANES == 16 ? 6 : 4);
        break;
    case 4:
        line_rows(l, 4, LANES == 16 ? 4 : 2);
        break;
#if LANES == 16
    default:
        line_rows(l, 8, 3);
#else
    default:
        break;
#endif
    }
}
