/* winograd.isa.c - the vector parts, for one instruction-set tier (see tier.isa.c), of Winograd
 * convolution: transforms of input, weights and output, and the products between them.
 *
 * A transform along one axis has t = 2 p + 2 points: 0, infinity and p pairs +-a. With P(z) the
 * product of (z - a^2) over all pairs and Q_j the same without pair j, the input transform is
 *   y[0] = sum P[k] d[2k], y[t-1] = sum P[k] d[2k+1],
 *   y[1+2j], y[2+2j] = sum Qj[k] d[2k+2] +- a_j sum Qj[k] d[2k+1],
 * and the output transform gives row i the sum of a^i over the points, infinity going to the last
 * row alone. Points were chosen for small errors; all constants are exact in float. */
#include "cpu/blocked/block.h"
#include "cpu/conv/winograd/winograd.h"

#if LANES == 16
enum { ROWS = 14 };
#elif LANES == 8
enum { ROWS = 6 };
#else
enum { ROWS = 2 };
#endif
enum { PAIRS = 4, POINTS = SNI_WINO_POINTS };
enum { TAPS_POINTS = 6, TAPS_TILES = LANES == 16 ? 4 : 2 };

/* By p - 1. */
static const float points[PAIRS][PAIRS] = {
    {1}, {0.75f, 1.5f}, {0.5f, 1, 2}, {0.375f, 0.75f, 1.25f, 2.5f}};
static const float whole[PAIRS][PAIRS + 1] = {
    {-1, 1},
    {1.265625f, -2.8125f, 1},
    {-1, 5.25f, -5.25f, 1},
    {0.7724761962890625f, -7.48443603515625f, 15.337890625f, -8.515625f, 1}};
static const float partial[PAIRS][PAIRS][PAIRS] = {
    {{1}},
    {{-2.25f, 1}, {-0.5625f, 1}},
    {{4, -5, 1}, {1, -4.25f, 1}, {0.25f, -1.25f, 1}},
    {{-5.4931640625f, 14.16015625f, -8.375f, 1},
     {-1.373291015625f, 10.8642578125f, -7.953125f, 1},
     {-0.494384765625f, 4.4736328125f, -6.953125f, 1},
     {-0.12359619140625f, 1.177734375f, -2.265625f, 1}}};

/* ---- Along one axis; `t` and `m` are constants at every call ---- */

INLINE void in_line(int t, const vb *d, vb *y) {
    const int p = t / 2 - 1;
    if (t == 1) { /* no transform along this axis */
        y[0] = d[0];
        return;
    }
    vb zero = whole[p - 1][0] * d[0], last = whole[p - 1][0] * d[1];
    UNROLL
    for (int k = 1; k < p; k++) {
        zero += whole[p - 1][k] * d[2 * k];
        last += whole[p - 1][k] * d[2 * k + 1];
    }
    y[0] = zero + d[t - 2];
    y[t - 1] = last + d[t - 1];
    UNROLL
    for (int j = 0; j < p; j++) {
        vb even = d[2 * p], odd = d[2 * p - 1];
        UNROLL
        for (int k = p - 2; k >= 0; k--) {
            even += partial[p - 1][j][k] * d[2 * k + 2];
            odd += partial[p - 1][j][k] * d[2 * k + 1];
        }
        y[1 + 2 * j] = even + points[p - 1][j] * odd;
        y[2 + 2 * j] = even - points[p - 1][j] * odd;
    }
}

INLINE void out_line(int t, int m, const vb *d, vb *y) {
    const int p = t / 2 - 1;
    if (t == 1) {
        y[0] = d[0];
        return;
    }
    vb sum[PAIRS], difference[PAIRS];
    UNROLL
    for (int j = 0; j < p; j++) {
        sum[j] = d[1 + 2 * j] + d[2 + 2 * j];
        difference[j] = d[1 + 2 * j] - d[2 + 2 * j];
    }
    float power[PAIRS] = {1, 1, 1, 1};
    UNROLL
    for (int i = 0; i < m; i++) {
        vb v = i == 0 ? d[0] : i == m - 1 ? d[t - 1] : (vb){0};
        UNROLL
        for (int j = 0; j < p; j++) {
            v += power[j] * (i % 2 ? difference[j] : sum[j]);
            power[j] *= points[p - 1][j];
        }
        y[i] = v;
    }
}

/* ---- Input: (t_h x t_w) pixels of one channel block for each of some tiles in a row ---- */

/* Columns [s->from, s->to) down into `strip`, whose rows are `pitch` vectors apart. */
INLINE void in_columns(int t, const sni_wino_input *s, float *strip, int64_t pitch) {
    for (int64_t w = s->from, at = 0; w < s->to; w++, at += s->column) {
        vb d[POINTS], y[POINTS];
        UNROLL
        for (int i = 0; i < t; i++) d[i] = VB_CONST(s->rows[i] + at);
        in_line(t, d, y);
        UNROLL
        for (int i = 0; i < t; i++) VB(strip + (i * pitch + w) * BLOCK) = y[i];
    }
}

/* One row of a tile across into elements `step` floats apart. */
INLINE void in_rows(int t, int rows, const float *strip, int64_t pitch, float *v, int64_t step) {
    for (int i = 0; i < rows; i++, strip += pitch * BLOCK, v += t * step) {
        vb d[POINTS], y[POINTS];
        UNROLL
        for (int j = 0; j < t; j++) d[j] = VB_CONST(strip + j * BLOCK);
        in_line(t, d, y);
        UNROLL
        for (int j = 0; j < t; j++) VB(v + j * step) = y[j];
    }
}

static void input(const sni_wino_input *s) {
    float strip[POINTS * SNI_WINO_STRIP * BLOCK] __attribute__((aligned(64)));
    const int64_t pitch = SNI_WINO_STRIP;
    for (int i = 0; i < s->t_h; i++) {
        float *row = strip + i * pitch * BLOCK;
        for (int64_t w = 0; w < s->from; w++) VB(row + w * BLOCK) = (vb){0};
        for (int64_t w = s->to; w < s->columns; w++) VB(row + w * BLOCK) = (vb){0};
    }
    switch (s->t_h) {
    case 1:
        in_columns(1, s, strip, pitch);
        break;
    case 4:
        in_columns(4, s, strip, pitch);
        break;
    case 6:
        in_columns(6, s, strip, pitch);
        break;
    case 8:
        in_columns(8, s, strip, pitch);
        break;
    default:
        in_columns(10, s, strip, pitch);
        break;
    }
    for (int k = 0; k < s->tiles; k++) {
        const float *at = strip + k * s->m_w * BLOCK;
        switch (s->t_w) {
        case 1:
            in_rows(1, s->t_h, at, pitch, s->v[k], s->step);
            break;
        case 4:
            in_rows(4, s->t_h, at, pitch, s->v[k], s->step);
            break;
        case 6:
            in_rows(6, s->t_h, at, pitch, s->v[k], s->step);
            break;
        case 8:
            in_rows(8, s->t_h, at, pitch, s->v[k], s->step);
            break;
        default:
            in_rows(10, s->t_h, at, pitch, s->v[k], s->step);
            break;
        }
    }
}

/* ---- Output: one tile of one channel block ---- */

INLINE void out_columns(int t, int m, int t_w, const float *from, int64_t step, float *tile) {
    for (int j = 0; j < t_w; j++) {
        vb d[POINTS], y[POINTS];
        UNROLL
        for (int i = 0; i < t; i++) d[i] = VB_CONST(from + (i * t_w + j) * step);
        out_line(t, m, d, y);
        UNROLL
        for (int i = 0; i < m; i++) VB(tile + (i * t_w + j) * BLOCK) = y[i];
    }
}

INLINE void out_rows(int t, int m, const sni_wino_output *s, const float *tile) {
    vb bias = {0};
    const vb least = VB_SPLAT(s->least), most = VB_SPLAT(s->most);
    if (s->bias) bias = VB_CONST(s->bias);
    for (int i = 0; i < s->rows; i++, tile += t * BLOCK) {
        vb d[POINTS], y[POINTS];
        UNROLL
        for (int j = 0; j < t; j++) d[j] = VB_CONST(tile + j * BLOCK);
        out_line(t, m, d, y);
        UNROLL
        for (int j = 0; j < m; j++) {
            if (j >= s->columns) break;
            int64_t at = i * s->row + j * BLOCK;
            vb v = y[j] + bias;
            if (s->residual) v += VB_CONST(s->residual + at);
            clamp_vb(&v, &least, &most);
            VB(s->y + at) = v;
        }
    }
}

/* The pairs of points and outputs per axis: kernels of 2, 3, 4, 5 and 7. */
#define EACH_PAIR(pair)                                                                     \
    pair(1, 1) pair(4, 3) pair(4, 2) pair(6, 5) pair(6, 4) pair(6, 3) pair(6, 2) pair(8, 7) \
        pair(8, 6) pair(8, 5) pair(8, 4) pair(8, 2) pair(10, 9) pair(10, 8) pair(10, 7)     \
            pair(10, 6) pair(10, 4)

static void output(const sni_wino_output *s) {
    float tile[POINTS * POINTS * BLOCK] __attribute__((aligned(64)));
    switch (s->t_h * 16 + s->m_h) {
#define COLUMNS(t, m)                                      \
    case t * 16 + m:                                       \
        out_columns(t, m, s->t_w, s->from, s->step, tile); \
        break;
        EACH_PAIR(COLUMNS)
#undef COLUMNS
    }
    switch (s->t_w * 16 + s->m_w) {
#define ROWS(t, m)               \
    case t * 16 + m:             \
        out_rows(t, m, s, tile); \
        break;
        EACH_PAIR(ROWS)
#undef ROWS
    }
}
#undef EACH_PAIR

/* ---- Products ---- */

/* `rows` tiles by `nv` channel blocks; both are constants at every call. */
INLINE void multiply(int rows, int nv, int64_t phases, int64_t channels, const float *restrict a,
                     int64_t a_step, const float *restrict b, float *restrict c, int64_t c_step,
                     const float *next, int64_t step, int64_t second) {
    vb sum[ROWS][2];
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < nv; j++) sum[i][j] = (vb){0};
    int64_t left = channels;
    for (; phases > 0; a += a_step) {
        const int64_t n = left < BLOCK ? left : BLOCK;
        left -= n;
        if (left == 0) {
            phases--;
            left = channels;
        }
        for (int64_t q = 0; q < n; q++, b += nv * BLOCK, next += step) {
            __builtin_prefetch(next, 0, 2);
            __builtin_prefetch(next + second, 0, 2);
            vb right[2];
            UNROLL
            for (int j = 0; j < nv; j++) right[j] = VB_CONST(b + j * BLOCK);
            UNROLL
            for (int i = 0; i < rows; i++) {
                vb one = VB_SPLAT(a[i * BLOCK + q]);
                UNROLL
                for (int j = 0; j < nv; j++) sum[i][j] += one * right[j];
            }
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < nv; j++) VB(c + j * c_step + i * BLOCK) = sum[i][j];
}

static void product(int rows, int nv, int64_t phases, int64_t channels, const float *a,
                    int64_t a_step, const float *b, float *c, int64_t c_step, const float *next,
                    int64_t step, int64_t second) {
    switch (rows * 2 + nv - 1) {
#define CASE(rows_)                                                                        \
    case rows_ * 2:                                                                        \
        multiply(rows_, 1, phases, channels, a, a_step, b, c, c_step, next, step, second); \
        break;                                                                             \
    case rows_ * 2 + 1:                                                                    \
        multiply(rows_, 2, phases, channels, a, a_step, b, c, c_step, next, step, second); \
        break;
        CASE(1)
        CASE(2)
#if LANES > 4
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
#endif
#if LANES > 8
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
        CASE(13)
        CASE(14)
#endif
#undef CASE
    }
}

/* ---- Products with weights that are transformed on the way ---- */

/* Three taps to point `i` of 6, without the factor that taps_scale gives the other side. */
INLINE void tap_line(int i, const vb *a, const vb *b, const vb *c, vb *u) {
    const float x = points[1][i > 2], square = x * x;
    if (i == 0)
        *u = *a;
    else if (i == 5)
        *u = *c;
    else if (i % 2)
        *u = (*a + square * *c) + x * *b;
    else
        *u = (*a + square * *c) - x * *b;
}

/* `row` is a constant at every call. */
INLINE void taps_row(int row, const sni_wino_taps *s) {
    vb sum[TAPS_POINTS][TAPS_TILES];
    const float *w = s->w, *v = s->v, *next = s->next;
    float *m = s->m + row * TAPS_POINTS * s->m_step;
    UNROLL
    for (int j = 0; j < TAPS_POINTS; j++) UNROLL
    for (int k = 0; k < TAPS_TILES; k++) {
        sum[j][k] = (vb){0};
        if (s->add) sum[j][k] = VB_CONST(m + j * s->m_step + k * BLOCK);
    }
    v += row * TAPS_POINTS * TAPS_TILES * BLOCK;
    for (int64_t channels = s->channels; channels > 0; channels -= BLOCK, v += s->v_block) {
        const int64_t n = channels < BLOCK ? channels : BLOCK;
        for (int64_t q = 0; q < n; q++, w += 9 * BLOCK, next += 2 * s->step) {
            vb t[3];
            __builtin_prefetch(next, 0, 2);
            __builtin_prefetch(next + s->step, 0, 2);
            UNROLL
            for (int i = 0; i < 3; i++) {
                vb first = VB_CONST(w + i * BLOCK), second = VB_CONST(w + (3 + i) * BLOCK);
                vb third = VB_CONST(w + (6 + i) * BLOCK);
                tap_line(row, &first, &second, &third, &t[i]);
            }
            UNROLL
            for (int j = 0; j < TAPS_POINTS; j++) {
                vb u;
                tap_line(j, &t[0], &t[1], &t[2], &u);
                UNROLL
                for (int k = 0; k < TAPS_TILES; k++)
                    sum[j][k] += VB_SPLAT(v[(j * TAPS_TILES + k) * BLOCK + q]) * u;
            }
        }
    }
    UNROLL
    for (int j = 0; j < TAPS_POINTS; j++) UNROLL
    for (int k = 0; k < TAPS_TILES; k++) VB(m + j * s->m_step + k * BLOCK) = sum[j][k];
}

static void taps(int row, const sni_wino_taps *s) {
    switch (row) {
#define CASE(row_)         \
    case row_:             \
        taps_row(row_, s); \
        break;
        CASE(0)
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
#undef CASE
    }
}

/* ---- Weights, in double ---- */

/* Half a block, which as doubles is one register. */
typedef float half_float __attribute__((vector_size(BLOCK / 2 * sizeof(float))));
typedef float half_anywhere
    __attribute__((vector_size(BLOCK / 2 * sizeof(float)), aligned(4), may_alias));
typedef double half_double __attribute__((vector_size(BLOCK / 2 * sizeof(double))));

/* What taps give points along one axis: row 0 its first tap times the first factor, the last row
 * its last tap as it is, each pair of points the sums of even and of odd taps times theirs, added
 * and subtracted. */
typedef struct weight_factors {
    double of[POINTS][SNI_WINO_TAPS]; /* by point and tap */
} weight_factors;

static void find_factors(int t, int r, weight_factors *f) {
    const int p = t / 2 - 1;
    *f = (weight_factors){0};
    f->of[t - 1][r - 1] = 1;
    if (t == 1) return;
    f->of[0][0] = 1 / (double)whole[p - 1][0];
    for (int j = 0; j < p; j++) {
        const double a = points[p - 1][j];
        double scale = 2 * a * a, power = 1;
        for (int i = 0; i < p; i++) {
            double other = points[p - 1][i];
            if (i != j) scale *= a * a - other * other;
        }
        for (int k = 0; k < r; k++, power *= a) {
            f->of[1 + 2 * j][k] = power / scale;
            f->of[2 + 2 * j][k] = k % 2 ? -power / scale : power / scale;
        }
    }
}

static void taps_scale(float *v, int64_t count) {
    weight_factors f;
    find_factors(TAPS_POINTS, 3, &f);
    f.of[TAPS_POINTS - 1][0] = 1;
    for (; count > 0; count--)
        for (int i = 0; i < TAPS_POINTS * TAPS_POINTS; i++) {
            const float factor = (float)(f.of[i / TAPS_POINTS][0] * f.of[i % TAPS_POINTS][0]);
            for (int k = 0; k < TAPS_TILES; k++, v += BLOCK) VB(v) = VB_CONST(v) * factor;
        }
}

/* Taps of one row of points to its `t` points, `at` floats behind u[]; `t` and `r` are constants.
 */
INLINE void weight_row(int t, int r, const weight_factors *f, const half_double *w, float *const *u,
                       int64_t at) {
    half_double out[POINTS];
    out[t - 1] = w[r - 1];
    if (t > 1) out[0] = f->of[0][0] * w[0];
    UNROLL
    for (int j = 1; j + 1 < t; j += 2) {
        half_double even = f->of[j][0] * w[0], odd = f->of[j][1] * w[1];
        UNROLL
        for (int k = 2; k < r; k++) {
            if (k % 2)
                odd += f->of[j][k] * w[k];
            else
                even += f->of[j][k] * w[k];
        }
        out[j] = even + odd;
        out[j + 1] = even - odd;
    }
    UNROLL
    for (int j = 0; j < t; j++)
        if (u[j]) *(half_anywhere *)(u[j] + at) = __builtin_convertvector(out[j], half_float);
}

/* All input channels, one row of points after the other, so that few places are written at once. */
INLINE void weight_rows(int t, int r, const sni_wino_weights *s) {
    weight_factors down, across;
    find_factors(s->t_h, s->r_h, &down);
    find_factors(t, r, &across);
    for (int i = 0; i < s->t_h; i++) {
        const float *from = s->taps;
        for (int64_t c = 0; c < s->channels; c++, from += s->r_h * r * BLOCK) {
            for (int h = 0; h < BLOCK; h += BLOCK / 2) {
                half_double w[SNI_WINO_TAPS];
                UNROLL
                for (int k = 0; k < r; k++) w[k] = (half_double){0};
                for (int q = 0; q < s->r_h; q++) UNROLL
                for (int k = 0; k < r; k++)
                    w[k] +=
                        down.of[i][q] *
                        __builtin_convertvector(
                            *(const half_anywhere *)(from + (q * r + k) * BLOCK + h), half_double);
                weight_row(t, r, &across, w, s->u + i * t, c * s->next + h);
            }
        }
    }
}

static void weights(const sni_wino_weights *s) {
    switch (s->t_w * 8 + s->r_w) {
#define CASE(t, r)            \
    case t * 8 + r:           \
        weight_rows(t, r, s); \
        break;
        CASE(1, 1)
        CASE(4, 2)
        CASE(6, 2)
        CASE(8, 2)
        CASE(10, 2)
        CASE(4, 3)
        CASE(6, 3)
        CASE(8, 3)
        CASE(10, 3)
        CASE(6, 4)
        CASE(8, 4)
        CASE(10, 4)
        CASE(6, 5)
        CASE(8, 5)
        CASE(10, 5)
        CASE(8, 7)
        CASE(10, 7)
#undef CASE
    }
}

SNI_DEFINE_TABLE(sni_wino_kernels) = {
    .rows = ROWS,
    .input = input,
    .output = output,
    .product = product,
    .taps_tiles = TAPS_TILES,
    .taps = taps,
    .taps_scale = taps_scale,
    .weights = weights,
};
