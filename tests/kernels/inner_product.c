/* inner_product.c - kernels of Winograd's inner product. Which pairs are taken how is theirs alone:
 * what left() and columns() say is too much is right if tiles give the product then. */
#include "check.h"

#include "cpu/gemm/gemm.h"
#include "cpu/gemm/inner_product.h"

#include <math.h>
#include <string.h>

/* Random numbers, or with `whole` small whole ones: sums of those are exact, whatever their order.
 */
static float *numbers(check *c, int64_t n, bool whole) {
    float *p = random_floats(c, n);
    for (int64_t i = 0; i < n && whole; i++) p[i] = (float)between(c, -4, 4);
    return p;
}

/* ---- Columns ---- */

/* What columns() adds to numbers that are there. */
static void inner_product_columns(check *c) {
    int nr = c->k->nr;
    int64_t k = SNI_LEFT_STEPS * size_of(c, 0, 9, 16), extra = between(c, -9, 9);
    float *b = numbers(c, k * nr, true), *y = unset_floats(c, nr), *less = unset_floats(c, nr);
    double *squares = zero_doubles(c, nr), *too_much = zero_doubles(c, nr);
    double *want = zero_doubles(c, nr), *none = zero_doubles(c, nr);
    for (int j = 0; j < nr; j++) squares[j] = want[j] = too_much[j] = (double)extra;
    for (int64_t i = 0; i < k * nr; i++) want[i % nr] += (double)(b[i] * b[i]);
    CALL(c, 0, 4 * k * nr) c->k->inner_product->columns(k, b, squares, too_much);
    if (c->bench) return;
    for (int j = 0; j < nr; j++) {
        y[j] = (float)squares[j];
        less[j] = (float)(too_much[j] - (double)extra);
    }
    expect(c, "the squares", y, want, nr, 0);
    /* A row of zeros by these columns. */
    int most = c->k->inner_product->most;
    float zeros[SNI_MAX_MR] = {0}, *a = unset_floats(c, left_size(c, k));
    float *sums = unset_floats(c, most * nr);
    memset(a, 0, (size_t)left_size(c, k) * sizeof *a);
    float ones[SNI_MAX_MR];
    for (int i = 0; i < most; i++) ones[i] = 1;
    sni_inner_product_tile t = {.k = k,
                                .a = a,
                                .a_step = c->k->mr * SNI_LEFT_STEPS,
                                .b = b,
                                .row_less = zeros,
                                .row_factors = ones,
                                .column_less = less,
                                .fetch = b,
                                .end = {.y = sums, .row = nr, .vector = nr / 2}};
    c->k->inner_product->tile[most](&t);
    for (int i = 0; i < most; i++) expect(c, "zeros by columns", sums + i * nr, none, nr, 0);
}

/* ---- Rows ---- */

/* Rows of the left operand: where element p of row i is. */
typedef struct rows_of {
    int rows, parts;
    sni_product_part part[4];
    int64_t k;
    float *memory;
} rows_of;

static const float *row_at(const rows_of *r, int64_t i, int64_t p) {
    int64_t line = p / SNI_LEFT_STEPS;
    const sni_product_part *part = r->part;
    while (line >= part->lines) line -= part++->lines;
    return part->from[i] + line * part->step[i] + p % SNI_LEFT_STEPS;
}

/* Rows in some parts, whose lines lie at all distances, also on top of each other: a row without
 * any pixel there reads the same line of zeros again. */
static rows_of random_rows(check *c, int rows, bool whole) {
    rows_of r = {.rows = rows, .parts = (int)size_of(c, 1, 4, 1)};
    int64_t most = size_of(c, 1, 5, 16), step = SNI_LEFT_STEPS + (c->bench ? 0 : below(c, 9));
    bool gaps = !c->bench && below(c, 2);
    float *zeros = unset_floats(c, SNI_LEFT_STEPS);
    memset(zeros, 0, SNI_LEFT_STEPS * sizeof *zeros);
    for (int q = 0; q < r.parts; q++) {
        sni_product_part *part = &r.part[q];
        part->lines = c->bench ? most : between(c, 1, most);
        r.k += part->lines * SNI_LEFT_STEPS;
        float *from = numbers(c, rows * part->lines * step, whole);
        if (q == 0) r.memory = from;
        bool transposed = !c->bench && below(c, 2); /* lines of all rows side by side */
        for (int i = 0; i < rows; i++) {
            bool nowhere = gaps && below(c, 3) == 0;
            part->from[i] = nowhere ? zeros : from + i * (transposed ? 1 : part->lines) * step;
            part->step[i] = nowhere ? 0 : transposed ? rows * step : step;
        }
    }
    return r;
}

static double square_of(const rows_of *r, int64_t i) {
    double sum = 0;
    for (int64_t p = 0; p < r->k; p++) sum += (double)*row_at(r, i, p) * (double)*row_at(r, i, p);
    return sum;
}

/* The power of two that led to a packed row, which has to be about as large as wanted. */
static void check_factor(check *c, const rows_of *r, int i, float size, float factor) {
    double square = square_of(r, i), ratio;
    int steps;
    if (square == 0) {
        if (factor != 0) fail(c, "the factor of a row of zeros");
        return;
    }
    ratio = square / ((double)factor * (double)factor * (double)size);
    if (frexpf(factor, &steps) != 0.5f || !(ratio > 0.24 && ratio < 4.01))
        fail(c, "the size of a row");
}

static void inner_product_left(check *c) {
    const sni_inner_product_kernels *inner_product = c->k->inner_product;
    int mr = c->k->mr, rows = (int)size_of(c, 1, inner_product->most, inner_product->most);
    rows_of r = random_rows(c, rows, false);
    float size = ldexpf(1, (int)between(c, -20, 20)) * (1 + 0.1f * (float)below(c, 10));
    int64_t n = left_size(c, r.k);
    float *to = unset_floats(c, n), *less = unset_floats(c, mr), *factors = unset_floats(c, mr);
    float *back = copy_floats(c, to, n);
    uint32_t wild = 0;
    double *want = zero_doubles(c, n);
    CALL(c, 0, 8 * r.k * rows)
    wild = inner_product->left(rows, r.parts, r.part, size, to, mr * SNI_LEFT_STEPS, less, factors);
    if (c->bench) return;
    if (wild) fail(c, "rows of common numbers are not tame");
    expect_unset(c, "what is too much in rows that are none", less + rows, mr - rows);
    expect_unset(c, "factors of rows that are none", factors + rows, mr - rows);
    for (int i = 0; i < rows; i++) check_factor(c, &r, i, size, factors[i]);
    for (int64_t p = 0; p < r.k; p++)
        for (int i = 0; i < mr; i++) {
            int64_t at = left_at(c, i, p);
            back[at] = i < rows ? to[at] * factors[i] : to[at];
            want[at] = i < rows ? (double)*row_at(&r, i, p) : 0;
            if (i >= rows) expect_unset(c, "rows that are none", to + at, 1);
            if (i >= rows) back[at] = 0;
        }
    expect(c, "the rows", back, want, n, 0);
}

/* Rows that are to be multiplied plainly: one number that is not finite or whose square is not, or
 * a row of very small ones. They stay as they are. */
static void inner_product_left_odd(check *c) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -1e25f, 1e13f, 0, 0, 0};
    static const float tiny[] = {1e-14f, 1e-20f, 1e-30f};
    const sni_inner_product_kernels *inner_product = c->k->inner_product;
    int rows = (int)size_of(c, 1, inner_product->most, inner_product->most),
        i = (int)below(c, rows);
    int64_t lines = size_of(c, 1, 9, 16), k = lines * SNI_LEFT_STEPS;
    int64_t which = below(c, sizeof odd / sizeof *odd);
    float *from = random_floats(c, rows * k), *row = from + i * k;
    float less[SNI_MAX_MR], factors[SNI_MAX_MR], *to = unset_floats(c, left_size(c, k));
    if (which < 6) row[below(c, k)] = odd[which];
    for (int64_t p = 0; p < k && which >= 6; p++) row[p] = (p % 2 ? -1.0f : 0.7f) * tiny[which - 6];
    sni_product_part part = {.lines = lines};
    for (int r = 0; r < rows; r++) {
        part.from[r] = from + r * k;
        part.step[r] = SNI_LEFT_STEPS;
    }
    uint32_t wild = 0;
    CALL(c, 0, 8 * k * rows)
    wild = inner_product->left(rows, 1, &part, 1, to, c->k->mr * SNI_LEFT_STEPS, less, factors);
    if (wild != 1u << i) fail(c, "a row of odd numbers is tame, or another is not");
    for (int64_t p = 0; p < k; p++) {
        float got = to[left_at(c, i, p)] * factors[i];
        if (got != row[p] && !isnan(row[p])) {
            fail(c, "a row of odd numbers has changed");
            break;
        }
    }
}

/* Rows that lie side by side already are brought to the same numbers as those that are packed. */
static void inner_product_scale(check *c) {
    const sni_inner_product_kernels *inner_product = c->k->inner_product;
    int rows = (int)size_of(c, 1, inner_product->most, inner_product->most);
    int64_t lines = size_of(c, 1, 9, 16), step = (rows + below(c, 3)) * SNI_LEFT_STEPS;
    float size = ldexpf(1, (int)between(c, -20, 20));
    float *from = random_floats(c, lines * step);
    float less[2][SNI_MAX_MR], factors[2][SNI_MAX_MR];
    double *want = zero_doubles(c, lines * step);
    if (!c->bench && below(c, 4) == 0) from[below(c, rows * SNI_LEFT_STEPS)] = 1e30f;
    float *at = copy_floats(c, from, lines * step), *to = copy_floats(c, from, lines * step);
    sni_product_part part = {.lines = lines};
    for (int r = 0; r < rows; r++) {
        part.from[r] = from + r * SNI_LEFT_STEPS;
        part.step[r] = step;
    }
    uint32_t wild = 0;
    CALL(c, 0, 8 * lines * SNI_LEFT_STEPS * rows)
    wild = inner_product->scale(rows, lines, size, at, step, less[0], factors[0]);
    if (c->bench) return;
    if (wild != inner_product->left(rows, 1, &part, size, to, step, less[1], factors[1]))
        fail(c, "other rows are not tame");
    for (int64_t i = 0; i < lines * step; i++) want[i] = (double)to[i];
    expect(c, "the rows", at, want, lines * step, 0);
    for (int r = 0; r < rows; r++)
        if (factors[0][r] != factors[1][r] || less[0][r] != less[1][r])
            fail(c, "what is told of a row");
}

/* ---- Tiles ---- */

/* A tile with its arrays. */
typedef struct tile_case {
    sni_inner_product_tile t;
    rows_of rows;
    float less[SNI_MAX_MR], factors[SNI_MAX_MR];
    int columns;   /* of the result */
    int64_t count; /* elements of y, with what is between them */
} tile_case;

/* The operands: rows brought to the size of B's columns, as a product does. */
static void make_operands(check *c, tile_case *q, int rows, bool whole) {
    int nr = c->k->nr;
    q->rows = random_rows(c, rows, whole);
    int64_t k = q->rows.k;
    float *a = unset_floats(c, left_size(c, k)), *b = numbers(c, k * nr, whole);
    float *column_less = unset_floats(c, q->columns);
    double squares[SNI_MAX_NR] = {0}, less[SNI_MAX_NR] = {0}, size = 0;
    c->k->inner_product->columns(k, b, squares, less);
    for (int j = 0; j < nr; j++) size += squares[j] / nr;
    for (int j = 0; j < q->columns; j++) column_less[j] = (float)less[j];
    if (c->k->inner_product->left(rows, q->rows.parts, q->rows.part, (float)size, a,
                                  c->k->mr * SNI_LEFT_STEPS, q->less, q->factors))
        fail(c, "rows of common numbers are not tame");
    q->t.k = k;
    q->t.a_step = c->k->mr * SNI_LEFT_STEPS;
    q->t.a = a;
    q->t.b = b;
    q->t.row_less = q->less;
    q->t.row_factors = q->factors;
    q->t.column_less = column_less;
    if (!c->bench && below(c, 2)) {
        float *factors = unset_floats(c, q->columns);
        for (int j = 0; j < q->columns; j++)
            factors[j] = below(c, 9) ? ldexpf(1, (int)between(c, -3, 0)) : 0;
        q->t.column_factors = factors;
    }
    q->t.fetch = b + below(c, k * nr);
    q->t.fetch_step = below(c, 99);
    q->t.each = below(c, 5);
}

/* Distances of rows and vectors: rows apart, or all of a vector before the next ones. */
static int64_t distances(check *c, int rows, int lanes, int vectors, int64_t *row,
                         int64_t *vector) {
    bool vectors_apart = below(c, 2);
    int64_t inner = lanes + (c->bench ? 0 : below(c, 5));
    int64_t outer = inner * (vectors_apart ? rows : vectors) + (c->bench ? 0 : below(c, 9));
    *row = vectors_apart ? inner : outer;
    *vector = vectors_apart ? outer : inner;
    return (rows - 1) * *row + (vectors - 1) * *vector + lanes;
}

/* What is done with the sums. */
static void make_end(check *c, tile_case *q, int rows, bool whole) {
    int lanes = c->k->nr / 2, vectors = q->columns / lanes;
    sni_product_end *e = &q->t.end;
    q->count = distances(c, rows, lanes, vectors, &e->row, &e->vector);
    e->y = numbers(c, q->count, whole);
    e->add = !c->bench && below(c, 2);
    if (c->bench || below(c, 2)) e->bias = numbers(c, q->columns, whole);
    if (!c->bench && below(c, 2))
        e->residual = numbers(
            c, distances(c, rows, lanes, vectors, &e->residual_row, &e->residual_vector), whole);
    e->bounded = c->bench || below(c, 2);
    e->low = below(c, 2) ? -INFINITY : -3;
    e->high = below(c, 2) ? INFINITY : 9;
}

static double plain_result(const tile_case *q, int nr, int i, int j) {
    const sni_product_end *e = &q->t.end;
    int64_t lanes = nr / 2, vector = j / lanes, lane = j % lanes;
    double sum = 0;
    for (int64_t p = 0; p < q->t.k; p++)
        sum += (double)*row_at(&q->rows, i, p) * (double)q->t.b[p * nr + j];
    if (q->t.column_factors) sum *= (double)q->t.column_factors[j];
    if (e->bias) sum += (double)e->bias[j];
    if (e->add) sum += (double)e->y[i * e->row + vector * e->vector + lane];
    if (e->residual)
        sum += (double)e->residual[i * e->residual_row + vector * e->residual_vector + lane];
    return e->bounded ? fmin(fmax(sum, (double)e->low), (double)e->high) : sum;
}

/* A tile of all columns of B's panel, or of the first half of them. */
static void any_tile(check *c, const sni_inner_product_tile_fn *tiles, int columns) {
    const sni_inner_product_kernels *inner_product = c->k->inner_product;
    int nr = c->k->nr, rows = (int)size_of(c, 1, inner_product->most, inner_product->most);
    bool whole = !c->bench && below(c, 2);
    tile_case q = {.columns = columns};
    make_operands(c, &q, rows, whole);
    make_end(c, &q, rows, whole);
    const sni_product_end *e = &q.t.end;
    double *want = zero_doubles(c, q.count);
    double *written = zero_doubles(c, q.count);
    for (int64_t i = 0; i < q.count; i++) want[i] = (double)e->y[i];
    for (int i = 0; i < rows && !c->bench; i++)
        for (int j = 0; j < columns; j++) {
            int64_t at = i * e->row + j / (nr / 2) * e->vector + j % (nr / 2);
            want[at] = plain_result(&q, nr, i, j);
            written[at] = 1;
        }
    CALL(c, 2 * rows * columns * q.t.k, 0) tiles[rows](&q.t);
    expect(c, "the results", e->y, want, q.count, whole ? 0 : 1e-6 * sqrt((double)q.t.k));
    for (int64_t i = 0; i < q.count && !c->bench; i++)
        if (written[i] == 0 && (double)e->y[i] != want[i]) fail(c, "wrote between results");
}

static void inner_product_tile(check *c) {
    any_tile(c, c->k->inner_product->tile, c->k->nr);
}

static void inner_product_half(check *c) {
    any_tile(c, c->k->inner_product->half, c->k->nr / 2);
}

const kernel_test inner_product_tests[] = {
    {"inner_product_tile", inner_product_tile},
    {"inner_product_half", inner_product_half},
    {"inner_product_left", inner_product_left},
    {"inner_product_left, odd rows", inner_product_left_odd},
    {"inner_product_columns", inner_product_columns},
    {"inner_product_scale", inner_product_scale},
    {0},
};
