/* gemm.c - kernels of matrix products, packing, and what follows a product. */
#include "../plain_act.h"
#include "check.h"

#include "cpu/gemm/gemm.h"
#include "cpu/gemm/inner_product.h"
#include "cpu/gemm/matmul_algorithms.h"
#include "cpu/gemm/strassen.h"

#include <math.h>
#include <string.h>

/* Activations that plain_act knows. */
static const sni_act acts[] = {
    SNI_ACT_NONE,    SNI_ACT_RELU,         SNI_ACT_CLIP, SNI_ACT_LEAKY_RELU, SNI_ACT_HARD_SWISH,
    SNI_ACT_SIGMOID, SNI_ACT_HARD_SIGMOID, SNI_ACT_SILU, SNI_ACT_TANH,       SNI_ACT_GELU};

int64_t left_at(const check *c, int64_t i, int64_t p) {
    return p / SNI_LEFT_STEPS * SNI_LEFT_STEPS * c->k->mr + i * SNI_LEFT_STEPS + p % SNI_LEFT_STEPS;
}

int64_t left_size(const check *c, int64_t k) {
    return (k + SNI_LEFT_STEPS - 1) / SNI_LEFT_STEPS * SNI_LEFT_STEPS * c->k->mr;
}

/* A tile of all columns of B's panel, or of the first half of them: rows of sums are as far apart.
 */
static void any_tile(check *c, const sni_gemm_tile_fn *tiles, int nr) {
    int mr = c->k->mr, wide = c->k->nr;
    int64_t rows = size_of(c, 1, mr, mr), k = size_of(c, 0, 300, 256), row = wide + below(c, 20);
    bool add = !c->bench && below(c, 2), apart = !c->bench && !add && below(c, 2);
    bool more = !c->bench && below(c, 2);
    if (apart) row = wide;
    float *a = random_floats(c, left_size(c, k)), *b = random_floats(c, k * wide);
    float *first = random_floats(c, 16), *y = random_floats(c, rows * row);
    float *sums = random_floats(c, rows * wide);
    double *want = zero_doubles(c, rows * row);
    for (int64_t i = 0; i < rows * row; i++) want[i] = (double)y[i];
    for (int64_t i = 0; i < rows && !c->bench; i++)
        for (int64_t j = 0; j < nr; j++) {
            double sum = add ? (double)y[i * row + j] : 0;
            if (more) sum += (double)sums[i * wide + j];
            for (int64_t p = 0; p < k; p++)
                sum += (double)a[left_at(c, i, p)] * (double)b[p * wide + j];
            want[i * row + j] = sum;
        }
    CALL(c, 2 * rows * nr * k, 0)
    tiles[rows](k, a, b, more ? sums : NULL, apart ? first : y, apart ? 0 : row, add,
                apart ? y : NULL, first, below(c, 2 * (int)k + 1));
    expect(c, "C", y, want, rows * row, 1e-5 * (double)(k + 10));
}

static void gemm_tile(check *c) {
    any_tile(c, c->k->gemm_tile, c->k->nr);
}

static void gemm_half(check *c) {
    any_tile(c, c->k->gemm_half, c->k->nr / 2);
}

/* The same of rows that lie as they are; the last one ends with the memory. */
static void any_strided(check *c, const sni_gemm_strided_fn *tiles, int nr) {
    int mr = c->k->mr, wide = c->k->nr;
    int64_t rows = size_of(c, 1, mr, mr), k = size_of(c, 0, 300, 256), row = wide + below(c, 20);
    int64_t a_row = k + (c->bench ? 0 : below(c, 40));
    bool add = !c->bench && below(c, 2), apart = !c->bench && !add && below(c, 2);
    if (apart) row = wide;
    float *a = random_floats(c, (rows - 1) * a_row + k), *b = random_floats(c, k * wide);
    float *first = random_floats(c, 16), *y = random_floats(c, rows * row);
    double *want = zero_doubles(c, rows * row);
    for (int64_t i = 0; i < rows * row; i++) want[i] = (double)y[i];
    for (int64_t i = 0; i < rows && !c->bench; i++)
        for (int64_t j = 0; j < nr; j++) {
            double sum = add ? (double)y[i * row + j] : 0;
            for (int64_t p = 0; p < k; p++)
                sum += (double)a[i * a_row + p] * (double)b[p * wide + j];
            want[i * row + j] = sum;
        }
    CALL(c, 2 * rows * nr * k, 0)
    tiles[rows](k, a, a_row, b, apart ? first : y, apart ? 0 : row, add, apart ? y : NULL, first,
                below(c, 2 * (int)k + 1));
    expect(c, "C", y, want, rows * row, 1e-5 * (double)(k + 10));
}

static void gemm_strided(check *c) {
    any_strided(c, c->k->gemm_strided, c->k->nr);
}

static void gemm_strided_half(check *c) {
    any_strided(c, c->k->gemm_strided_half, c->k->nr / 2);
}

/* A tile whose B is one panel less another, and whose sums go on from others, which may stand where
 * they go. */
static void gemm_less(check *c) {
    int mr = c->k->mr, nr = c->k->nr;
    int64_t rows = size_of(c, 1, mr, mr), k = size_of(c, 0, 300, 256), n = rows * nr;
    float *a = random_floats(c, left_size(c, k)), *b = random_floats(c, k * nr);
    float *less = random_floats(c, k * nr), *near = random_floats(c, 16);
    float *so_far = random_floats(c, n), *y = unset_floats(c, n), *to = below(c, 2) ? so_far : y;
    bool any = to == so_far || below(c, 2);
    double *want = zero_doubles(c, n);
    for (int64_t i = 0; i < rows && !c->bench; i++)
        for (int64_t j = 0; j < nr; j++) {
            double sum = any ? (double)so_far[i * nr + j] : 0;
            for (int64_t p = 0; p < k; p++)
                sum += (double)a[left_at(c, i, p)] *
                       ((double)b[p * nr + j] - (double)less[p * nr + j]);
            want[i * nr + j] = sum;
        }
    CALL(c, 2 * n * k, 0)
    c->k->gemm_less[rows](k, a, b, less, any ? so_far : NULL, near, 0, to, near, below(c, 9));
    expect(c, "the sums", to, want, n, 1e-5 * (double)(k + 10));
}

/* What a product of operands as they lie has to give: c, which is (rows, cols) with steps c_row and
 * c_col, plus A B. */
static void add_plain(double *c, int64_t c_row, int64_t c_col, int64_t rows, int64_t cols,
                      int64_t k, const float *a, int64_t a_row, int64_t a_col, const float *b,
                      int64_t b_row, int64_t b_col, bool add) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double *at = c + i * c_row + j * c_col, sum = add ? *at : 0;
            for (int64_t p = 0; p < k; p++)
                sum += (double)a[i * a_row + p * a_col] * (double)b[p * b_row + j * b_col];
            *at = sum;
        }
}

static double *doubles_of(check *c, const float *x, int64_t n) {
    double *d = zero_doubles(c, n);
    for (int64_t i = 0; i < n; i++) d[i] = (double)x[i];
    return d;
}

static void gemm_dots(check *c) {
    int64_t rows = size_of(c, 0, 30, 96), cols = size_of(c, 1, SNI_DOT_COLUMNS, 7);
    int64_t k = size_of(c, 0, 130, 512), a_row = k + below(c, 5), b_col = k + below(c, 5);
    bool transposed = below(c, 2), add = below(c, 2);
    int64_t c_row = transposed ? 1 : cols + below(c, 4),
            c_col = transposed ? rows + below(c, 4) : 1;
    int64_t n = transposed ? cols * c_col : rows * c_row;
    float *a = random_floats(c, rows * a_row), *b = random_floats(c, cols * b_col);
    float *y = random_floats(c, n);
    double *want = doubles_of(c, y, n);
    if (!c->bench) add_plain(want, c_row, c_col, rows, cols, k, a, a_row, 1, b, 1, b_col, add);
    sni_unpacked_product x = {rows, cols, k, a, b, y, a_row, 1, 1, b_col, c_row, c_col, add};
    CALL(c, 2 * rows * cols * k, 0)
    c->k->gemm_dots(&x);
    expect(c, "C", y, want, n, 1e-5 * (double)(k + 10));
}

static void gemm_across(check *c) {
    int64_t rows = size_of(c, 0, 30, 96), n = size_of(c, 1, 150, 64), k = size_of(c, 0, 60, 64);
    bool transposed = below(c, 2), add = below(c, 2);
    int64_t a_row = transposed ? 1 : k + below(c, 5), a_col = transposed ? rows + below(c, 5) : 1;
    int64_t b_row = n + below(c, 5), c_row = n + below(c, 5), size = rows * c_row;
    float *a = random_floats(c, transposed ? k * a_col : rows * a_row);
    float *b = random_floats(c, k * b_row), *y = random_floats(c, size);
    double *want = doubles_of(c, y, size);
    if (!c->bench) add_plain(want, c_row, 1, rows, n, k, a, a_row, a_col, b, b_row, 1, add);
    sni_unpacked_product x = {rows, n, k, a, b, y, a_row, a_col, b_row, 1, c_row, 1, add};
    CALL(c, 2 * rows * n * k, 0)
    c->k->gemm_across(&x);
    expect(c, "C", y, want, size, 1e-5 * (double)(k + 10));
}

static void gemm_along(check *c) {
    int64_t n = size_of(c, 1, 150, 1024), k = size_of(c, 1, 60, 64), a_col = 1 + below(c, 3);
    int64_t b_row = n + below(c, 5);
    bool add = below(c, 2);
    float *a = random_floats(c, k * a_col), *b = random_floats(c, k * b_row);
    float *y = random_floats(c, n);
    double *want = doubles_of(c, y, n);
    if (!c->bench) add_plain(want, n, 1, 1, n, k, a, 0, a_col, b, b_row, 1, add);
    sni_unpacked_product x = {1, n, k, a, b, y, 0, a_col, b_row, 1, n, 1, add};
    CALL(c, 2 * n * k, 0)
    c->k->gemm_along(&x);
    expect(c, "C", y, want, n, 1e-5 * (double)(k + 10));
}

/* The bits of the greatest number without its sign. */
static int32_t size_bits(int32_t most, float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & INT32_MAX) > most ? bits & INT32_MAX : most;
}

static void strassen_left(check *c) {
    int mr = c->k->mr;
    int64_t rows = size_of(c, 1, mr, mr), half = 16 * size_of(c, 1, 9, 24), quarter = mr * half;
    int64_t lower = rows - (!c->bench && below(c, 2)), step = 2 * half + below(c, 20);
    bool odd = !c->bench && below(c, 3) == 0;
    float *from = random_floats(c, (rows + lower) * step), *to = unset_floats(c, 7 * quarter);
    int32_t sizes[2 * SNI_MAX_MR], want_sizes[2 * SNI_MAX_MR] = {0};
    double *want = zero_doubles(c, 7 * quarter);
    if (odd) from[below(c, (rows + lower) * step)] = below(c, 2) ? NAN : -INFINITY;
    CALL(c, 0, 4 * 11 * quarter)
    c->k->strassen->left_sums(from, step, rows, lower, half, to, sizes);
    for (int64_t i = 0; i < mr; i++)
        for (int64_t p = 0; p < half; p++) {
            int64_t at = left_at(c, i, p), second = i < lower ? rows + i : i;
            float q[4] = {0};
            for (int y = 0; y < 4 && i < rows; y++) {
                q[y] = from[(y / 2 ? second : i) * step + y % 2 * half + p];
                int32_t *most = &want_sizes[y / 2 * mr + i];
                *most = size_bits(*most, q[y]);
            }
            float all[] = {q[0],        q[3],        q[0] + q[3], q[2] + q[3],
                           q[0] + q[1], q[0] - q[2], q[1] - q[3]};
            for (int y = 0; y < 7; y++)
                want[y * quarter + at] = (double)(i < rows ? all[y] : to[y * quarter + at]);
        }
    if (!odd) expect(c, "the sums", to, want, 7 * quarter, 1e-6);
    for (int64_t i = 0; i < rows; i++)
        if (sizes[i] != want_sizes[i] || sizes[mr + i] != want_sizes[mr + i]) fail(c, "the sizes");
}

static void column_sizes(check *c) {
    int nr = c->k->nr;
    int64_t k = size_of(c, 0, 90, 256);
    float *b = random_floats(c, k * nr);
    int32_t sizes[SNI_MAX_NR], want[SNI_MAX_NR];
    if (!c->bench && k && below(c, 3) == 0) b[below(c, k * nr)] = NAN;
    for (int j = 0; j < nr; j++) sizes[j] = want[j] = (int32_t)below(c, 1 << 30);
    for (int64_t i = 0; i < k * nr; i++) want[i % nr] = size_bits(want[i % nr], b[i]);
    CALL(c, 0, 4 * k * nr) c->k->strassen->column_sizes(k, b, sizes);
    for (int j = 0; j < nr; j++)
        if (sizes[j] != want[j]) fail(c, "the sizes");
}

static void gemm_row(check *c) {
    int nr = c->k->nr;
    int64_t k = size_of(c, 0, 400, 512);
    bool add = !c->bench && below(c, 2);
    float *a = random_floats(c, k), *b = random_floats(c, k * nr), *y = random_floats(c, nr);
    double *want = zero_doubles(c, nr);
    for (int64_t j = 0; j < nr; j++) {
        want[j] = add ? (double)y[j] : 0;
        for (int64_t p = 0; p < k; p++) want[j] += (double)a[p] * (double)b[p * nr + j];
    }
    CALL(c, 2 * nr * k, 0) c->k->gemm_row(k, a, b, y, add);
    expect(c, "C", y, want, nr, 1e-5 * (double)(k + 10));
}

static void pack_left(check *c) {
    int mr = c->k->mr;
    int64_t count = size_of(c, 0, mr, mr), k = size_of(c, 0, 90, 256), step = k + below(c, 9);
    int64_t size = left_size(c, k);
    float *from = random_floats(c, step * count), *to = unset_floats(c, size);
    double *want = zero_doubles(c, size);
    for (int64_t p = 0; p < k; p++)
        for (int64_t i = 0; i < count; i++) want[left_at(c, i, p)] = (double)from[i * step + p];
    CALL(c, 0, 8 * k * mr) c->k->pack_left(from, step, count, k, to);
    expect(c, "the panel", to, want, size, 0);
}

/* to[p * width + i] from rows or columns of a matrix. */
static void pack(check *c, bool transposed) {
    int width = c->bench || below(c, 2) ? c->k->nr : c->k->mr;
    int64_t count = size_of(c, 0, width, width), k = size_of(c, 0, 90, 256);
    int64_t step = (transposed ? k : count) + below(c, 9);
    float *from = random_floats(c, step * (transposed ? count : k));
    float *to = unset_floats(c, k * width);
    double *want = zero_doubles(c, k * width);
    for (int64_t p = 0; p < k; p++)
        for (int64_t i = 0; i < count; i++)
            want[p * width + i] = (double)from[transposed ? i * step + p : p * step + i];
    CALL(c, 0, 8 * k * width) {
        if (transposed)
            c->k->pack_transposed(from, step, count, width, k, to);
        else
            c->k->pack_straight(from, step, count, width, k, to);
    }
    expect(c, "the panel", to, want, k * width, 0);
}

static void pack_transposed(check *c) {
    pack(c, true);
}

static void pack_straight(check *c) {
    pack(c, false);
}

static void transpose_matrix(check *c) {
    int64_t rows = size_of(c, 0, 70, 64), columns = size_of(c, 0, 70, 64);
    int64_t from_step = columns + below(c, 5), to_step = rows + below(c, 5);
    float *from = random_floats(c, rows * from_step), *to = unset_floats(c, columns * to_step);
    float *kept = copy_floats(c, to, columns * to_step);
    double *want = zero_doubles(c, rows);
    CALL(c, 0, 8 * rows * columns)
    c->k->transpose_matrix(from, from_step, rows, columns, to, to_step);
    for (int64_t j = 0; j < columns; j++) {
        for (int64_t i = 0; i < rows; i++) want[i] = (double)from[i * from_step + j];
        expect(c, "a column", to + j * to_step, want, rows, 0);
        size_t gap = (size_t)(to_step - rows) * sizeof *to;
        if (gap && memcmp(to + j * to_step + rows, kept + j * to_step + rows, gap))
            fail(c, "wrote between columns");
    }
}

static void finish_with(check *c, sni_act act) {
    sni_epilogue e = {.act = act, .p0 = 0.2f, .p1 = 0.7f};
    int64_t n = size_of(c, 0, 130, 1024);
    float bias = (float)below(c, 100) * 0.01f;
    float *y = random_floats(c, n);
    float *columns = !c->bench && below(c, 2) ? random_floats(c, n) : NULL;
    float *more = !c->bench && below(c, 2) ? random_floats(c, n) : NULL;
    double *want = zero_doubles(c, n);
    for (int64_t i = 0; i < n; i++) {
        float x = y[i] + bias;
        if (columns) x += columns[i];
        if (more) x += more[i];
        want[i] = plain_act(e.act, e.p0, e.p1, (double)x);
    }
    CALL(c, 0, 8 * n) c->k->finish_row(&e, y, bias, columns, more, n);
    expect(c, "y", y, want, n, 2e-6);
}

static void finish_row(check *c) {
    finish_with(c, acts[below(c, sizeof acts / sizeof *acts)]);
}

static void finish_relu(check *c) {
    finish_with(c, SNI_ACT_RELU);
}

static void finish_silu(check *c) {
    finish_with(c, SNI_ACT_SILU);
}

static void finish_gelu(check *c) {
    finish_with(c, SNI_ACT_GELU);
}

/* Tiles, whole or not, with sums of their own or in place. */
static void finish_tile(check *c) {
    int nr = c->k->nr;
    sni_epilogue e = {.act = acts[below(c, sizeof acts / sizeof *acts)], .p0 = 0.2f, .p1 = 0.7f};
    if (c->bench) e.act = SNI_ACT_NONE;
    int64_t rows = size_of(c, 1, c->k->mr, c->k->mr), n = size_of(c, 1, nr, nr);
    if (below(c, 2)) n = nr;
    int64_t row = n + below(c, 20), i = below(c, 3), j = below(c, 3);
    bool apart = c->bench || below(c, 2), add = below(c, 2);
    float *sums = random_floats(c, rows * nr), *y = random_floats(c, rows * row);
    float *columns = random_floats(c, n + j), *bias = random_floats(c, rows + i);
    float *more = random_floats(c, (rows + i) * row + j);
    if (c->bench || below(c, 2)) e.column_bias = columns;
    if (!c->bench && below(c, 2)) e.row_bias = bias;
    if (below(c, 2)) e.residual = more;
    e.residual_row = row;
    double *want = zero_doubles(c, rows * row);
    for (int64_t at = 0; at < rows * row; at++) {
        int64_t r = at / row, q = at % row;
        float x = y[at];
        if (apart) x = sums[r * nr + (q < n ? q : 0)] + (add ? x : 0);
        if (e.row_bias) x += bias[i + r];
        if (e.column_bias) x += columns[j + (q < n ? q : 0)];
        if (e.residual) x += more[(i + r) * row + j + (q < n ? q : 0)];
        want[at] = q < n ? plain_act(e.act, e.p0, e.p1, (double)x) : (double)y[at];
    }
    CALL(c, 0, 12 * rows * n)
    c->k->finish_tile(&e, apart ? sums : NULL, add, y, row, i, rows, j, n);
    expect(c, "y", y, want, rows * row, 2e-6);
}

static void axpy(check *c) {
    int64_t n = size_of(c, 0, 200, 1024);
    float w = 0.3f, *x = random_floats(c, n), *y = random_floats(c, n);
    double *want = zero_doubles(c, n);
    for (int64_t i = 0; i < n; i++) want[i] = (double)y[i] + (double)w * (double)x[i];
    CALL(c, 0, 12 * n) c->k->axpy(w, x, y, n);
    expect(c, "y", y, want, n, 1e-6);
}

/* Ways of making a product: all of its products, fewer by Strassen's method or as inner products.
 */
enum { ALL, STRASSEN, INNER };

/* What inner products are told of packed B. Columns that are scaled are for nothing else. */
static sni_inner_product_b measured(check *c, float *packed, int64_t m, int64_t k, int64_t n) {
    bool scaled = m > sni_inner_product_most() && below(c, 2);
    float *numbers = unset_floats(c, (int64_t)sni_inner_product_numbers(k, n, scaled));
    uint8_t *tame = (uint8_t *)unset_floats(c, (int64_t)sni_inner_product_flags(n));
    sni_inner_product_measure(packed, k, n, scaled, numbers, tame);
    return (sni_inner_product_b){
        .k = k, .n = n, .panels = packed, .numbers = numbers, .tame = tame, .scaled = scaled};
}

/* The driver above the tiles, as a whole. */
static void whole(check *c, int way) {
    int64_t m = size_of(c, 0, 60, 512), n = size_of(c, 0, 120, 512), k = size_of(c, 0, 300, 512);
    if (!c->bench && below(c, 4) == 0) m = 1;
    if (way != ALL) {
        m = way == STRASSEN ? size_of(c, 35, 120, 512) : size_of(c, 5, 120, 512);
        n = size_of(c, way == STRASSEN ? 60 : 48, 200, 512);
        k = way == STRASSEN ? 32 * size_of(c, 3, 30, 16) : 16 * size_of(c, 3, 110, 32);
    }
    float *a = random_floats(c, m * k), *b = random_floats(c, k * n), *y = unset_floats(c, m * n);
    float *bias = random_floats(c, n);
    bool plain = !c->bench && below(c, 2);
    sni_gemm_f32 g = {.m = m, .n = n, .k = k, .a = a, .a_row = k, .a_col = 1, .c = y, .c_row = n};
    g.backwards = below(c, 2);
    if (!plain) g.epilogue = (sni_epilogue){.act = SNI_ACT_RELU, .column_bias = bias};
    float *packed = unset_floats(c, (int64_t)sni_gemm_packed_b_size(k, n));
    sni_gemm_pack_b(b, n, 1, k, n, packed);
    g.packed_b = packed;
    size_t sums = way == STRASSEN ? sni_gemm_even_size(k, n) : 0;
    uint8_t even[64] = {0};
    if (sums) sni_gemm_find_even(packed, k, n, even);
    if (sums) g.even = even;
    if (sums) g.use = sni_gemm_algorithm_named("strassen");
    sni_inner_product_b inner_product;
    if (way == INNER) {
        inner_product = measured(c, packed, m, k, n);
        g.inner_product = &inner_product;
        g.use = sni_gemm_algorithm_named("inner-product");
    }
    float *scratch = unset_floats(c, (int64_t)sni_gemm_scratch_size(&g, 1));
    double *want = zero_doubles(c, m * n);
    for (int64_t i = 0; i < m && !c->bench; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = plain ? 0 : (double)bias[j];
            for (int64_t p = 0; p < k; p++) sum += (double)a[i * k + p] * (double)b[p * n + j];
            want[i * n + j] = plain ? sum : fmax(sum, 0);
        }
    CALL(c, 2 * m * n * k, 0) sni_gemm_f32_run(&g, 1, scratch);
    expect(c, "C", y, want, m * n, 1e-5 * (double)(k + 10));
}

static void gemm_whole(check *c) {
    whole(c, ALL);
}

static void gemm_strassen(check *c) {
    whole(c, STRASSEN);
}

static void gemm_inner_product(check *c) {
    whole(c, INNER);
}

const kernel_test gemm_tests[] = {
    {"gemm_tile", gemm_tile},
    {"gemm_half", gemm_half},
    {"gemm_strided", gemm_strided},
    {"gemm_strided_half", gemm_strided_half},
    {"gemm_dots", gemm_dots},
    {"gemm_across", gemm_across},
    {"gemm_along", gemm_along},
    {"gemm_row", gemm_row},
    {"pack_left", pack_left},
    {"pack_turned", pack_transposed},
    {"pack_straight", pack_straight},
    {"turn_matrix", transpose_matrix},
    {"finish_row", finish_row},
    {"finish_row relu", finish_relu},
    {"finish_row silu", finish_silu},
    {"finish_row gelu", finish_gelu},
    {"finish_tile", finish_tile},
    {"axpy", axpy},
    {"gemm_less", gemm_less},
    {"strassen_left", strassen_left},
    {"column_sizes", column_sizes},
    {"gemm 512", gemm_whole},
    {"gemm 512 by strassen", gemm_strassen},
    {"gemm 512 by inner-product", gemm_inner_product},
    {0},
};
