/* emulated_plain.c - the kernels of emulated products (cpu/gemm/emulated.h) in plain C: what those
 * of a tier are compared with, and what tests run blocks and threads with where there are no tiles.
 */
#include "cpu/gemm/emulated.h"

#include <math.h>
#include <string.h>

enum { GREATEST = 127 << 16, LINES = SNI_EMULATED_TERMS / SNI_LEFT_STEPS, LINE = 64 };

static const float TINY = 0x1p-100f, LARGE = 0x1p100f, LIFT = 0x1p100f;

static int32_t size_of(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & INT32_MAX;
}

static float float_of(int32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Where slice d of a term of row or column i lies in a step. */
static int64_t digit_at(int d, int i, int term, bool column) {
    int row = column ? term % SNI_LEFT_STEPS : i, word = column ? i : term % SNI_LEFT_STEPS;
    return d * SNI_EMULATED_TILE + row * LINE + word * LINES + term / SNI_LEFT_STEPS;
}

static void put(int32_t q, int i, int term, bool column, char *step) {
    int32_t low = ((q + 128) & 255) - 128, rest = (q - low) / 256;
    int32_t middle = ((rest + 128) & 255) - 128;
    step[digit_at(2, i, term, column)] = (char)low;
    step[digit_at(1, i, term, column)] = (char)middle;
    step[digit_at(0, i, term, column)] = (char)((rest - middle) / 256);
}

static int32_t get(const char *step, int i, int term, bool column) {
    const int8_t *d = (const int8_t *)step;
    return d[digit_at(0, i, term, column)] * 65536 + d[digit_at(1, i, term, column)] * 256 +
           d[digit_at(2, i, term, column)];
}

static void nothing_to_begin(int rows) {
    (void)rows;
}

static void nothing_to_end(void) {
}

/* ---- Rows ---- */

static float number_of(const sni_product_part *part, int64_t line, int row, int q) {
    float x = part->from[row][line * part->step[row] + q];
    return part->factors ? x * part->factors[line * SNI_LEFT_STEPS + q] : x;
}

static void measure(int rows, int parts, const sni_product_part *part, int32_t *sizes) {
    for (const sni_product_part *p = part; p < part + parts; p++)
        for (int64_t i = 0; i < p->lines * rows * SNI_LEFT_STEPS; i++) {
            int q = (int)(i % SNI_LEFT_STEPS), row = (int)(i / SNI_LEFT_STEPS % rows);
            int32_t size = size_of(number_of(p, i / SNI_LEFT_STEPS / rows, row, q));
            int32_t *most = &sizes[row * SNI_LEFT_STEPS + q];
            if (size > *most) *most = size;
        }
}

static uint32_t powers(int rows, const int32_t *sizes, float *power, float *factors) {
    uint32_t wild = 0;
    for (int i = 0; i < SNI_EMULATED_ROWS; i++) {
        int32_t most = 0;
        for (int q = 0; q < SNI_LEFT_STEPS && i < rows; q++)
            if (sizes[i * SNI_LEFT_STEPS + q] > most) most = sizes[i * SNI_LEFT_STEPS + q];
        float size = float_of(most);
        bool tame = size >= TINY && size < LARGE;
        power[i] = tame ? GREATEST / size : 0;
        factors[i] = tame ? size / 127 : 0;
        if (!tame && most != 0) wild |= 1u << i;
    }
    return wild;
}

static void left(int rows, int parts, const sni_product_part *part, const float *power, char *to) {
    int64_t lines = 0;
    for (const sni_product_part *p = part; p < part + parts; p++)
        for (int64_t line = 0; line < p->lines; line++, lines++) {
            char *step = to + lines / LINES * SNI_EMULATED_STEP;
            for (int i = 0; i < rows * SNI_LEFT_STEPS; i++) {
                int row = i / SNI_LEFT_STEPS, q = i % SNI_LEFT_STEPS;
                int32_t whole = 0;
                if (power[row] != 0)
                    whole = (int32_t)lrintf(number_of(p, line, row, q) * power[row]);
                put(whole, row, (int)(lines % LINES) * SNI_LEFT_STEPS + q, false, step);
            }
        }
    for (; lines % LINES; lines++)
        for (int i = 0; i < rows * SNI_LEFT_STEPS; i++)
            put(0, i / SNI_LEFT_STEPS, (int)(lines % LINES) * SNI_LEFT_STEPS + i % SNI_LEFT_STEPS,
                false, to + lines / LINES * SNI_EMULATED_STEP);
}

/* ---- Columns ---- */

static void sizes_of(const float *from, int32_t *sizes) {
    for (int i = 0; i < SNI_EMULATED_TERMS * SNI_EMULATED_COLUMNS; i++) {
        int32_t *most = &sizes[i % SNI_EMULATED_COLUMNS];
        if (size_of(from[i]) > *most) *most = size_of(from[i]);
    }
}

static void right(const float *from, const int32_t *sizes, char *to) {
    for (int i = 0; i < SNI_EMULATED_TERMS * SNI_EMULATED_COLUMNS; i++) {
        int column = i % SNI_EMULATED_COLUMNS;
        float size = float_of(sizes[column]), lift = size < TINY ? LIFT : 1;
        float power = size != 0 ? GREATEST / (size * lift) : 0;
        int32_t q = (int32_t)lrintf(from[i] * lift * power);
        if (q == 0 && from[i] != 0) q = from[i] < 0 ? -1 : 1;
        put(q, column, i / SNI_EMULATED_COLUMNS, true, to);
    }
}

static void factors_of(const int32_t *sizes, float *factors) {
    for (int i = 0; i < SNI_EMULATED_COLUMNS; i++) factors[i] = float_of(sizes[i]) / 127;
}

static void numbers(const char *emulated, const float *factors, float *to) {
    for (int i = 0; i < SNI_EMULATED_TERMS * SNI_EMULATED_COLUMNS; i++) {
        int column = i % SNI_EMULATED_COLUMNS;
        to[i] = (float)get(emulated, column, i / SNI_EMULATED_COLUMNS, true) * 0x1p-16f *
                factors[column];
    }
}

static void add_plainly(const float *row, const float *step, float *sums) {
    float some[SNI_EMULATED_COLUMNS] = {0};
    for (int i = 0; i < SNI_EMULATED_TERMS * SNI_EMULATED_COLUMNS; i++)
        some[i % SNI_EMULATED_COLUMNS] += row[i / SNI_EMULATED_COLUMNS] * step[i];
    for (int c = 0; c < SNI_EMULATED_COLUMNS; c++) sums[c] += some[c];
}

/* ---- Products ---- */

static void product(int64_t steps, const char *a, const char *b, const char *fetch, int64_t each,
                    sni_emulated_sums *sums) {
    (void)fetch, (void)each;
    memset(sums, 0, sizeof *sums);
    for (; steps > 0; steps--, a += SNI_EMULATED_STEP, b += SNI_EMULATED_STEP)
        for (int x = 0; x < SNI_EMULATED_SLICES; x++)
            for (int y = 0; x + y < SNI_EMULATED_SLICES; y++)
                for (int i = 0; i < SNI_EMULATED_ROWS * SNI_EMULATED_COLUMNS; i++)
                    for (int term = 0; term < SNI_EMULATED_TERMS; term++)
                        sums->of[x + y][i] +=
                            ((const int8_t *)
                                 a)[digit_at(x, i / SNI_EMULATED_COLUMNS, term, false)] *
                            ((const int8_t *)b)[digit_at(y, i % SNI_EMULATED_COLUMNS, term, true)];
}

static void end_row(int row, const float *sums, const sni_product_end *e) {
    float *y = e->y + row * e->row;
    for (int c = 0; c < SNI_EMULATED_COLUMNS; c++) {
        float x = sums[c];
        if (e->add) x += y[c];
        if (e->bias) x += e->bias[c];
        if (e->residual) x += e->residual[row * e->residual_row + c];
        if (e->bounded && x < e->low) x = e->low;
        if (e->bounded && x > e->high) x = e->high;
        y[c] = x;
    }
}

static void finish(int from, int to, const sni_emulated_sums *sums, const float *row_factors,
                   const float *column_factors, const sni_product_end *end) {
    for (int i = from; i < to; i++) {
        float results[SNI_EMULATED_COLUMNS];
        for (int c = 0; c < SNI_EMULATED_COLUMNS; c++) {
            int at = i * SNI_EMULATED_COLUMNS + c;
            float x = (float)sums->of[2][at] * 0x1p-8f + (float)sums->of[1][at];
            x = x * 0x1p-8f + (float)sums->of[0][at];
            results[c] = x * row_factors[i] * column_factors[c];
        }
        end_row(i, results, end);
    }
}

const sni_emulated_kernels sni_emulated_kernels_plain = {
    .begin = nothing_to_begin,
    .end = nothing_to_end,
    .measure = measure,
    .powers = powers,
    .left = left,
    .sizes = sizes_of,
    .right = right,
    .factors = factors_of,
    .product = product,
    .finish = finish,
    .finish_row = end_row,
    .numbers = numbers,
    .plain = add_plainly,
};
