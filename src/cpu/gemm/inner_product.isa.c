/* inner_product.isa.c - tiles of Winograd's inner product and the packing of their operands
 * (cpu/gemm/inner_product.h), for one instruction-set tier; see tier.isa.c. */
#include "cpu/gemm/inner_product.h"
#include "cpu/core/simd.h"

#include "cpu/gemm/gemm_core.inc.c"

enum {
    INNER_PRODUCT_ROWS = LANES == 16 ? 13 : 4, /* sums, weights of two terms and what is added up */
    PERIOD = 2 * SNI_LEFT_STEPS                /* terms after which signs repeat */
};

/* What is done with each pair of a period: 0: both products are made, 1 and -1: one, with this sign
 * of what is too much. */
#define SIGNS(of)                                                                                  \
    of(1) of(-1) of(0) of(1) of(-1) of(0) of(1) of(0) of(-1) of(1) of(0) of(-1) of(1) of(0) of(-1) \
        of(0)
#define SIGN(sign) sign,
static const int8_t pair_signs[PERIOD / 2] = {SIGNS(SIGN)};
#undef SIGN

#define INLINE inline __attribute__((always_inline))

/* w + x and w - x for a number x in memory. With AVX-512 the instruction reads and repeats it: kept
 * in a register for several vectors it would take one of the adders' turns. */
static INLINE vf add_number(vf w, const float *x) {
#if LANES == 16 && defined(__AVX512F__)
    vf sum;
    __asm__("vaddps %2%{1to16%}, %1, %0" : "=v"(sum) : "v"(w), "m"(*x));
    return sum;
#else
    return w + splat(*x);
#endif
}
static INLINE vf take_number(vf w, const float *x) {
#if LANES == 16 && defined(__AVX512F__)
    vf rest;
    __asm__("vsubps %2%{1to16%}, %1, %0" : "=v"(rest) : "v"(w), "m"(*x));
    return rest;
#else
    return w - splat(*x);
#endif
}

/* *sum += w * x for a number in memory, *sum += a * b and *sum -= a * b. The compiler is told which
 * operand is the result's, as for add_product(). */
static INLINE void add_number_product(vf *sum, vf w, const float *x) {
#if LANES == 16 && defined(__AVX512F__)
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(*sum) : "v"(w), "m"(*x));
#else
    add_product(sum, splat(*x), w);
#endif
}
static INLINE void add_crossed(vf *sum, vf a, vf b) {
#if defined(__AVX2__)
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(*sum) : "v"(a), "v"(b));
#else
    *sum += a * b;
#endif
}
static INLINE void take_crossed(vf *sum, vf a, vf b) {
#if defined(__AVX2__)
    __asm__("vfnmadd231ps %2, %1, %0" : "+v"(*sum) : "v"(a), "v"(b));
#else
    *sum -= a * b;
#endif
}

/* Two terms, x[0] and x[1] of each row by two rows of B. */
static INLINE void add_pair(int rows, int vectors, int sign, const float *x, const float *b,
                            vf sum[MR][NV]) {
    vf first[NV], second[NV];
    UNROLL
    for (int j = 0; j < vectors; j++) {
        first[j] = load(b + j * LANES);
        second[j] = load(b + NR + j * LANES);
    }
    UNROLL
    for (int i = 0; i < rows; i++, x += SNI_LEFT_STEPS) {
        UNROLL
        for (int j = 0; j < vectors; j++) {
            if (sign == 0) {
                add_number_product(&sum[i][j], first[j], x);
                add_number_product(&sum[i][j], second[j], x + 1);
            } else if (sign > 0) {
                vf crossed = add_number(second[j], x), other = add_number(first[j], x + 1);
                add_crossed(&sum[i][j], crossed, other);
            } else {
                vf crossed = take_number(second[j], x), other = take_number(first[j], x + 1);
                take_crossed(&sum[i][j], crossed, other);
            }
        }
    }
}

/* What a tile goes along: its operands, and what it has come near, `left` rows of results yet. */
typedef struct inner_product_way {
    const float *a, *b, *fetch, *y, *residual;
    int left;
} inner_product_way;
enum { ROWS_NEAR = 4 }; /* rows of results that come near at a time */

/* Addresses are found anew from here on: else those of all rows are kept, on the stack. */
#define ANEW(p) __asm__("" : "+r"(p))

/* Has some rows of results and residual come near, some lines of what comes next, and the next
 * lines of A. */
static INLINE void fetch_inner_product(const sni_inner_product_tile *t, int rows, int vectors,
                                       inner_product_way *w) {
    for (int i = 0; i < ROWS_NEAR && w->left > 0; i++, w->left--) {
        UNROLL
        for (int j = 0; j < vectors; j++) {
            __builtin_prefetch(w->y + j * t->end.vector, 1);
            __builtin_prefetch(w->residual + j * t->end.residual_vector);
        }
        w->y += t->end.row;
        w->residual += t->end.residual_row;
    }
    for (int64_t i = 0; i < t->each; i++) __builtin_prefetch(w->fetch + i * 16, 0, 2);
    w->fetch += t->fetch_step;
    const float *next = w->a + t->a_step;
    ANEW(next);
    UNROLL
    for (int i = 0; i < rows; i++) __builtin_prefetch(next + i * SNI_LEFT_STEPS);
}

/* SNI_LEFT_STEPS terms, the first or second half of a period. */
static INLINE void add_pairs(const sni_inner_product_tile *t, int rows, int vectors, int half,
                             inner_product_way *w, vf sum[MR][NV]) {
    fetch_inner_product(t, rows, vectors, w);
    UNROLL
    for (int p = 0; p < SNI_LEFT_STEPS / 2; p++)
        add_pair(rows, vectors, pair_signs[half * SNI_LEFT_STEPS / 2 + p], w->a + 2 * p,
                 w->b + 2 * p * NR, sum);
    w->a += t->a_step;
    w->b += NR * SNI_LEFT_STEPS;
    ANEW(w->a);
    ANEW(w->b);
}

/* Adds numbers that lie row by row. */
static INLINE void add_strided(int rows, int vectors, const float *from, int64_t row,
                               int64_t vector, vf sum[MR][NV]) {
    UNROLL
    for (int i = 0; i < rows; i++, from += row) {
        ANEW(from);
        UNROLL
        for (int j = 0; j < vectors; j++) sum[i][j] += load(from + j * vector);
    }
}

/* Sums, which began with what is too much, to results. */
static INLINE void end_inner_product(const sni_inner_product_tile *t, int rows, int vectors,
                                     vf sum[MR][NV]) {
    const sni_product_end *e = &t->end;
    vf factor[NV], bias[NV];
    UNROLL
    for (int j = 0; j < vectors; j++) {
        factor[j] = t->column_factors ? load(t->column_factors + j * LANES) : splat(1);
        bias[j] = e->bias ? load(e->bias + j * LANES) : splat(-0.0f);
    }
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < vectors; j++) {
        vf row = sum[i][j] * splat(t->row_factors[i]);
        sum[i][j] = row * factor[j] + bias[j];
    }
    if (e->add) add_strided(rows, vectors, e->y, e->row, e->vector, sum);
    if (e->residual)
        add_strided(rows, vectors, e->residual, e->residual_row, e->residual_vector, sum);
    if (e->bounded) {
        vf low = splat(e->low);
        UNROLL
        for (int i = 0; i < rows; i++) UNROLL
        for (int j = 0; j < vectors; j++) sum[i][j] = max_vf(sum[i][j], low);
    }
    if (e->bounded && e->high < INFINITY) {
        vf high = splat(e->high);
        UNROLL
        for (int i = 0; i < rows; i++) UNROLL
        for (int j = 0; j < vectors; j++) sum[i][j] = min_vf(sum[i][j], high);
    }
    float *y = e->y;
    UNROLL
    for (int i = 0; i < rows; i++, y += e->row) {
        ANEW(y);
        UNROLL
        for (int j = 0; j < vectors; j++) store(y + j * e->vector, sum[i][j]);
    }
}

/* `rows` and `vectors` are constants at every call. */
static INLINE void inner_product_tile(const sni_inner_product_tile *t, int rows, int vectors) {
    vf sum[MR][NV];
    inner_product_way way = {t->a, t->b, t->fetch, t->end.y, t->end.residual, rows};
    if (!way.residual) way.residual = way.y;
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < vectors; j++)
        sum[i][j] = -load(t->column_less + j * LANES) - splat(t->row_less[i]);
    int64_t steps = t->k / SNI_LEFT_STEPS;
    for (; steps >= 2; steps -= 2) {
        add_pairs(t, rows, vectors, 0, &way, sum);
        add_pairs(t, rows, vectors, 1, &way, sum);
    }
    if (steps) add_pairs(t, rows, vectors, 0, &way, sum);
    end_inner_product(t, rows, vectors, sum);
}

#if LANES == 16
#define INNER_PRODUCT_SIZES(of) \
    of(1) of(2) of(3) of(4) of(5) of(6) of(7) of(8) of(9) of(10) of(11) of(12) of(13)
#else
#define INNER_PRODUCT_SIZES(of) of(1) of(2) of(3) of(4)
#endif
#define INNER_PRODUCT(rows)                                                  \
    static void inner_product_tile_##rows(const sni_inner_product_tile *t) { \
        inner_product_tile(t, rows, NV);                                     \
    }                                                                        \
    static void inner_product_half_##rows(const sni_inner_product_tile *t) { \
        inner_product_tile(t, rows, NV / 2);                                 \
    }
INNER_PRODUCT_SIZES(INNER_PRODUCT)
#undef INNER_PRODUCT

/* ---- Packing ---- */

/* Signs of a period, one for each term: a pair's for both of them, halved. */
#define SIGN(sign) 0.5f * (sign), 0.5f * (sign),
static const _Alignas(64) float term_signs[PERIOD] = {SIGNS(SIGN)};
#undef SIGN

/* Each number of a vector beside its pair's other one. */
static INLINE vf swap_pairs(vf x) {
#if LANES == 16
    return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
#elif LANES == 8
    return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6);
#else
    return __builtin_shufflevector(x, x, 1, 0, 3, 2);
#endif
}

enum { LINE_VECTORS = SNI_LEFT_STEPS / LANES, ROWS_AT_ONCE = LANES == 16 ? 4 : LANES / 4 };

/* Where rows [i, i + rows) of a part are, line by line. */
typedef struct row_lines {
    const float *at[ROWS_AT_ONCE];
    int64_t step[ROWS_AT_ONCE];
} row_lines;

static INLINE row_lines lines_of(const sni_product_part *part, int i, int rows) {
    row_lines l;
    UNROLL
    for (int r = 0; r < rows; r++) {
        l.at[r] = part->from[i + r];
        l.step[r] = part->step[i + r];
    }
    return l;
}

/* The sum of all lanes of a row's vectors. */
static INLINE float sum_row(const vf sum[LINE_VECTORS]) {
    vf all = sum[0];
    UNROLL
    for (int v = 1; v < LINE_VECTORS; v++) all += sum[v];
    return sum_lanes(all);
}

/* What is summed up of a row while it is copied. */
typedef struct row_sums {
    vf square[LINE_VECTORS], less[LINE_VECTORS];
} row_sums;

/* A line of each of these rows times factors of its numbers (NULL: 1) to their sums and, unless it
 * is there, to `to`. */
static INLINE void copy_lines(row_lines *from, int rows, const float *factors, const vf *signs,
                              bool there, float *to, row_sums *sums) {
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < LINE_VECTORS; v++) {
            vf x = load(from->at[r] + v * LANES);
            if (factors) x *= load(factors + v * LANES);
            if (!there) store(to + r * SNI_LEFT_STEPS + v * LANES, x);
            sums[r].square[v] += x * x;
            sums[r].less[v] += x * (swap_pairs(x) * signs[v]);
        }
        from->at[r] += from->step[r];
    }
}

/* How rows are packed: `there` says that they lie in place. */
typedef struct packing {
    const sni_product_part *part;
    int parts;
    float size;
    bool there; /* a constant at every call */
    float *to;
    int64_t to_step; /* from line to line */
} packing;

/* Copies rows [i, i + rows) line by line; sums of their squares, and what pairs of them are too
 * much. Returns the number of lines. `rows` is a constant at every call. */
static INLINE int64_t copy_rows(const packing *p, int i, int rows, float *squares, float *less) {
    row_sums sums[ROWS_AT_ONCE];
    vf signs[2][LINE_VECTORS];
    float *to = p->to + i * SNI_LEFT_STEPS;
    int64_t line = 0;
    UNROLL
    for (int r = 0; r < rows; r++) UNROLL
    for (int v = 0; v < LINE_VECTORS; v++) sums[r].square[v] = sums[r].less[v] = splat(0);
    UNROLL
    for (int h = 0; h < 2; h++) UNROLL
    for (int v = 0; v < LINE_VECTORS; v++)
        signs[h][v] = load(term_signs + h * SNI_LEFT_STEPS + v * LANES);
    for (const sni_product_part *part = p->part; part < p->part + p->parts; part++) {
        row_lines from = lines_of(part, i, rows);
        const float *factors = part->factors;
        for (const int64_t end = line + part->lines; line < end; to += p->to_step) {
            copy_lines(&from, rows, factors, signs[line++ % 2], p->there, to, sums);
            if (factors) factors += SNI_LEFT_STEPS;
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        squares[r] = sum_row(sums[r].square);
        less[r] = sum_row(sums[r].less);
    }
    return line;
}

/* The copied rows times powers of two. */
static INLINE void scale_rows(const packing *p, int i, int rows, int64_t lines,
                              const float *powers) {
    vf by[ROWS_AT_ONCE];
    float *to = p->to + i * SNI_LEFT_STEPS;
    UNROLL
    for (int r = 0; r < rows; r++) by[r] = splat(powers[r]);
    for (; lines > 0; lines--, to += p->to_step) {
        UNROLL
        for (int r = 0; r < rows; r++) UNROLL
        for (int v = 0; v < LINE_VECTORS; v++) {
            float *at = to + r * SNI_LEFT_STEPS + v * LANES;
            store(at, load(at) * by[r]);
        }
    }
}

static INLINE float float_of_bits(int32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A row whose squares sum up to `square` is brought to a size whose square is about `wanted` by a
 * power of two, *by, and back by *back. Rows that are to be multiplied plainly stay as they are:
 * false. */
static INLINE bool find_power(float square, float wanted, float *by, float *back) {
    enum { ONE = 127, FAR = 80, BITS = 23 }; /* of the exponent */
    int32_t bits, wanted_bits;
    memcpy(&bits, &square, sizeof bits);
    memcpy(&wanted_bits, &wanted, sizeof wanted_bits);
    const bool tame = (uint32_t)bits - ((ONE - FAR) << BITS) < (uint32_t)(2 * FAR) << BITS;
    int32_t steps = ((wanted_bits >> BITS & 255) - (bits >> BITS)) / 2;
    if (!tame) steps = 0;
    *by = float_of_bits((ONE + steps) << BITS);
    *back = float_of_bits((ONE - steps) << BITS);
    return tame;
}

/* The bits of the greatest number of a packed row, without its sign; more than infinity's: it has a
 * NaN. */
static int32_t row_most(const packing *p, int i, int64_t lines) {
    const float *at = p->to + i * SNI_LEFT_STEPS;
    int32_t most = 0;
    for (; lines > 0; lines--, at += p->to_step)
        for (int q = 0; q < SNI_LEFT_STEPS; q++) {
            int32_t bits;
            memcpy(&bits, at + q, sizeof bits);
            bits &= INT32_MAX;
            most = bits > most ? bits : most;
        }
    return most;
}

/* A row whose squares do not tell its size: numbers near either end of what floats hold are brought
 * closer to the middle. True: it is zeros. */
static bool find_far_power(const packing *p, int i, int64_t lines, float *by, float *back) {
    enum { ONE = 127, NEAR = 40, BITS = 23, NOT_FINITE = 255 };
    int32_t most = row_most(p, i, lines), size = (most >> BITS) - ONE;
    int32_t steps = size > NEAR ? NEAR - size : size < -NEAR ? -NEAR - size : 0;
    if (most == 0) *back = 0;
    if (most == 0 || most >> BITS == NOT_FINITE) return most == 0;
    *by = float_of_bits((ONE + steps) << BITS);
    *back = float_of_bits((ONE - steps) << BITS);
    return false;
}

/* Packs rows [i, i + rows); returns which of them are not tame, a bit each. `rows` is a constant at
 * every call. */
static INLINE uint32_t pack_rows(const packing *p, int i, int rows, float *less, float *factors) {
    float squares[ROWS_AT_ONCE], powers[ROWS_AT_ONCE];
    uint32_t wild = 0;
    int64_t lines = copy_rows(p, i, rows, squares, less + i);
    UNROLL
    for (int r = 0; r < rows; r++) {
        bool tame = find_power(squares[r], p->size, &powers[r], &factors[i + r]);
        less[i + r] *= powers[r] * powers[r];
        if (!tame && !find_far_power(p, i + r, lines, &powers[r], &factors[i + r]))
            wild |= 1u << (i + r);
    }
    scale_rows(p, i, rows, lines, powers);
    return wild;
}

static INLINE uint32_t pack_all(const packing *p, int rows, float *less, float *factors) {
    uint32_t wild = 0;
    int i = 0;
    for (; i + ROWS_AT_ONCE <= rows; i += ROWS_AT_ONCE)
        wild |= pack_rows(p, i, ROWS_AT_ONCE, less, factors);
    for (; i < rows; i++) wild |= pack_rows(p, i, 1, less, factors);
    return wild;
}

static uint32_t pack_left(int rows, int parts, const sni_product_part *part, float size, float *to,
                          int64_t to_step, float *less, float *factors) {
    return pack_all(&(packing){part, parts, size, false, to, to_step}, rows, less, factors);
}

static uint32_t scale_left(int rows, int64_t lines, float size, float *at, int64_t step,
                           float *less, float *factors) {
    sni_product_part part = {.lines = lines};
    for (int i = 0; i < rows; i++) {
        part.from[i] = at + i * SNI_LEFT_STEPS;
        part.step[i] = step;
    }
    return pack_all(&(packing){&part, 1, size, true, at, step}, rows, less, factors);
}

/* Adds the squares of a panel's columns, and what pairs of theirs are too much. */
static void measure_columns(int64_t k, const float *b, double *squares, double *less) {
    for (int64_t p = 0; p < k; p += PERIOD / 2, b += PERIOD / 2 * NR) {
        const int8_t *signs = pair_signs + p % PERIOD / 2;
        for (int j = 0; j < NR; j += LANES) {
            vf square = splat(0), too_much = splat(0);
            UNROLL
            for (int i = 0; i < PERIOD / 4; i++) {
                vf x = load(b + 2 * i * NR + j), y = load(b + (2 * i + 1) * NR + j);
                square += x * x + y * y;
                too_much += x * y * splat((float)signs[i]);
            }
            for (int l = 0; l < LANES; l++) {
                squares[j + l] += (double)square[l];
                less[j + l] += (double)too_much[l];
            }
        }
    }
}

SNI_DEFINE_TABLE(sni_inner_product_kernels) = {
    .most = INNER_PRODUCT_ROWS,
#define INNER_PRODUCT(rows) \
    .tile[rows] = inner_product_tile_##rows, .half[rows] = inner_product_half_##rows,
    INNER_PRODUCT_SIZES(INNER_PRODUCT)
#undef INNER_PRODUCT
        .left = pack_left,
    .scale = scale_left,
    .columns = measure_columns,
};
