/* emulated.isa.c - numbers as slices, and their products on tiles (cpu/gemm/emulated.h), for the
 * tier that has tiles. */
#include "cpu/gemm/emulated.h"
#include "cpu/core/simd.h"

#define INLINE inline __attribute__((always_inline))

enum {
    LINE = 64, /* bytes of a tile's row */
    LINES = 4, /* of SNI_LEFT_STEPS numbers in a step */
    GREATEST = 127 << 16,
    SIGNS = 0x808080, /* of the slices */
    EXPONENT = 23,
    LARGE = 227 << EXPONENT, /* sizes from which on results might overflow on the way: 2^100, */
    TINY = 27 << EXPONENT    /* and below which a power might: 2^-100 */
};

/* ---- Slices ---- */

/* Bits that grow as numbers do, whatever their signs. */
static INLINE vi size_of(vf x) {
    return (vi)x & INT32_MAX;
}

/* What takes a number of this size to GREATEST, and what leads back from its slices, the highest of
 * which stands for itself. */
static INLINE vf power_of(vf size) {
    return splat(GREATEST) / size;
}
static INLINE vf factor_of(vf size) {
    return size / splat(GREATEST >> 16);
}

static INLINE vi round_to_int(vf x) {
    return (vi)_mm512_cvtps_epi32((__m512)x);
}

/* Slices of integers, the lowest in the lowest byte. */
static INLINE vi digits_of(vi q) {
    return (q + SIGNS) ^ SIGNS;
}

/* Bytes or halves of `b` in odd places, those of `a` in even ones. */
static INLINE vi odd_bytes(vi a, vi b) {
    return (vi)_mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaa, (__m512i)a, (__m512i)b);
}
static INLINE vi odd_halves(vi a, vi b) {
    return (vi)_mm512_mask_blend_epi16(0xaaaaaaaa, (__m512i)a, (__m512i)b);
}

static INLINE vi left_by(vi x, int bits) {
    return (vi)((vu)x << bits);
}
static INLINE vi right_by(vi x, int bits) {
    return (vi)((vu)x >> bits);
}

/* The slices of four terms for each lane to a row of each slice's tile. */
static INLINE void store_digits(const vi d[LINES], char *to) {
    vi even = odd_bytes(d[0], left_by(d[1], 8)), even2 = odd_bytes(d[2], left_by(d[3], 8));
    vi odd = odd_bytes(right_by(d[0], 8), d[1]), odd2 = odd_bytes(right_by(d[2], 8), d[3]);
    *(vi *)to = odd_halves(right_by(even, 16), even2);
    *(vi *)(to + SNI_EMULATED_TILE) = odd_halves(odd, left_by(odd2, 16));
    *(vi *)(to + 2 * SNI_EMULATED_TILE) = odd_halves(even, left_by(even2, 16));
}

/* ---- Rows ---- */

/* A line of all rows; `part` NULL: zeros. */
typedef struct line_place {
    const sni_product_part *part;
    int64_t line;
} line_place;

/* Goes through the lines of parts. */
typedef struct way {
    const sni_product_part *part, *end;
    int64_t line;
} way;

static INLINE line_place next_line(way *w) {
    while (w->part < w->end && w->line == w->part->lines) {
        w->part++;
        w->line = 0;
    }
    if (w->part == w->end) return (line_place){NULL, 0};
    return (line_place){w->part, w->line++};
}

static INLINE vf line_of(line_place p, int row) {
    vf x = load(p.part->from[row] + p.line * p.part->step[row]);
    return p.part->factors ? x * load(p.part->factors + p.line * SNI_LEFT_STEPS) : x;
}

static void measure_rows(int rows, int parts, const sni_product_part *part, int32_t *sizes) {
    way w = {part, part + parts, 0};
    for (line_place p; (p = next_line(&w)).part;) {
        vi *most = (vi *)sizes;
        for (int i = 0; i < rows; i++) most[i] = max_vi(most[i], size_of(line_of(p, i)));
    }
}

static uint32_t row_powers(int rows, const int32_t *sizes, float *powers, float *factors) {
    _Alignas(64) int32_t most[SNI_EMULATED_ROWS] = {0};
    for (int i = 0; i < rows; i++)
        most[i] = _mm512_reduce_max_epi32(_mm512_load_si512(sizes + i * SNI_LEFT_STEPS));
    vi all = *(const vi *)most, tame = (all >= TINY) & (all < LARGE);
    store(powers, select_vf(tame, power_of((vf)all), splat(0)));
    store(factors, select_vf(tame, factor_of((vf)all), splat(0)));
    return _mm512_movepi32_mask((__m512i)(~tame & (all != 0)));
}

/* A step of a row. */
static INLINE void split_row(const line_place p[LINES], int lines, int row, vf power, char *to) {
    vi d[LINES] = {0};
    for (int l = 0; l < lines; l++) d[l] = digits_of(round_to_int(line_of(p[l], row) * power));
    store_digits(d, to + row * LINE);
}

static void split_left(int rows, int parts, const sni_product_part *part, const float *powers,
                       char *to) {
    way w = {part, part + parts, 0};
    for (;; to += SNI_EMULATED_STEP) {
        line_place p[LINES];
        int lines = 0;
        while (lines < LINES && (p[lines] = next_line(&w)).part) lines++;
        if (lines == 0) break;
        if (lines == LINES)
            for (int i = 0; i < rows; i++) split_row(p, LINES, i, splat(powers[i]), to);
        else
            for (int i = 0; i < rows; i++) split_row(p, lines, i, splat(powers[i]), to);
    }
}

/* ---- Columns ---- */

static void measure_columns(const float *from, int32_t *sizes) {
    vi most = *(const vi *)sizes;
    for (int p = 0; p < SNI_EMULATED_TERMS; p++, from += SNI_EMULATED_COLUMNS)
        most = max_vi(most, size_of(load(from)));
    *(vi *)sizes = most;
}

/* A number that is not 0 does not become 0. */
static INLINE vi keep_sign(vi q, vf x) {
    vi lost = (q == 0) & (x != 0), one = (x < 0) | 1;
    return q | (lost & one);
}

static void split_right(const float *from, const int32_t *sizes, char *to) {
    vi size = *(const vi *)sizes;
    vf lift = select_vf(size < TINY, splat(0x1p100f), splat(1)), lifted = (vf)size * lift;
    vf power = select_vf(size != 0, power_of(lifted), splat(0));
    for (int r = 0; r < SNI_LEFT_STEPS; r++, from += SNI_EMULATED_COLUMNS, to += LINE) {
        vi d[LINES];
        for (int l = 0; l < LINES; l++) {
            vf x = load(from + l * SNI_LEFT_STEPS * SNI_EMULATED_COLUMNS);
            d[l] = digits_of(keep_sign(round_to_int(x * lift * power), x));
        }
        store_digits(d, to);
    }
}

static void column_factors(const int32_t *sizes, float *factors) {
    store(factors, factor_of(*(const vf *)sizes));
}

/* Byte l of each lane, with its sign. */
static INLINE vi byte_of(vi x, int l) {
    return left_by(x, 24 - 8 * l) >> 24;
}

static void numbers_of(const char *emulated, const float *factors, float *to) {
    const vf factor = load(factors);
    for (int r = 0; r < SNI_LEFT_STEPS; r++, emulated += LINE, to += SNI_EMULATED_COLUMNS) {
        vi high = *(const vi *)emulated, middle = *(const vi *)(emulated + SNI_EMULATED_TILE);
        vi low = *(const vi *)(emulated + 2 * SNI_EMULATED_TILE);
        UNROLL
        for (int l = 0; l < LINES; l++) {
            vi q = byte_of(high, l) * 65536 + byte_of(middle, l) * 256 + byte_of(low, l);
            store(to + l * SNI_LEFT_STEPS * SNI_EMULATED_COLUMNS,
                  __builtin_convertvector(q, vf) * splat(0x1p-16f) * factor);
        }
    }
}

static void add_plainly(const float *left, const float *right, float *sums) {
    enum { CHAINS = 4 }; /* that do not wait for each other */
    vf sum[CHAINS] = {load(sums)};
    for (int p = 0; p < SNI_EMULATED_TERMS; p += CHAINS) UNROLL
    for (int i = 0; i < CHAINS; i++)
        sum[i] += splat(left[p + i]) * load(right + (p + i) * SNI_EMULATED_COLUMNS);
    store(sums, (sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* ---- Products ----
 *
 * Tiles 0 to 2 are sums by weight, 3 to 5 the slices of rows, 6 and 7 those of columns. */

/* What configures tiles, as the instruction reads it. */
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

static void begin_tiles(int rows) {
    tile_config c = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        c.row_bytes[i] = LINE;
        c.rows[i] = (uint8_t)(i < 6 ? rows : SNI_LEFT_STEPS);
    }
    __asm__ volatile("" : : "r"(&c) : "memory"); /* the intrinsic names a part of it only */
    _tile_loadconfig(&c);
}

static void end_tiles(void) {
    _tile_release();
}

static void product(int64_t steps, const char *a, const char *b, const char *fetch, int64_t each,
                    sni_emulated_sums *sums) {
    enum { SECOND = SNI_EMULATED_TILE, THIRD = 2 * SNI_EMULATED_TILE };
    __asm__ volatile("" : : : "memory"); /* intrinsics do not say that they read, */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    for (; steps > 0; steps--, a += SNI_EMULATED_STEP, b += SNI_EMULATED_STEP) {
        for (const char *end = fetch + each * LINE; fetch < end; fetch += LINE)
            __builtin_prefetch(fetch, 0, 2);
        _tile_loadd(3, a, LINE);
        _tile_loadd(6, b, LINE);
        _tile_dpbssd(0, 3, 6);
        _tile_loadd(4, a + SECOND, LINE);
        _tile_dpbssd(1, 4, 6);
        _tile_loadd(5, a + THIRD, LINE);
        _tile_dpbssd(2, 5, 6);
        _tile_loadd(7, b + SECOND, LINE);
        _tile_dpbssd(1, 3, 7);
        _tile_dpbssd(2, 4, 7);
        _tile_loadd(6, b + THIRD, LINE);
        _tile_dpbssd(2, 3, 6);
    }
    _tile_stored(0, sums->of[0], LINE);
    _tile_stored(1, sums->of[1], LINE);
    _tile_stored(2, sums->of[2], LINE);
    __asm__ volatile("" : : : "memory"); /* nor that they write */
}

/* ---- Results ---- */

static INLINE vf float_of(const int32_t *from) {
    return (vf)_mm512_cvtepi32_ps(_mm512_load_si512(from));
}

/* What all rows' results have in common. */
typedef struct ending {
    vf bias, low, high;
    bool add, bounded;
} ending;

static INLINE ending ending_of(const sni_product_end *e) {
    return (ending){.bias = e->bias ? load(e->bias) : splat(-0.0f),
                    .low = splat(e->low),
                    .high = splat(e->high),
                    .add = e->add,
                    .bounded = e->bounded};
}

/* A row's results to where they go. */
static INLINE void end_row(vf x, const ending *e, const float *residual, float *y) {
    if (e->add) x += load(y);
    x += e->bias;
    if (residual) x += load(residual);
    if (e->bounded) x = min_vf(max_vf(x, e->low), e->high);
    store(y, x);
}

static void finish(int from, int to, const sni_emulated_sums *sums, const float *row_factors,
                   const float *factors, const sni_product_end *e) {
    const ending how = ending_of(e);
    const vf column = load(factors), step = splat(0x1p-8f);
    const int64_t residual_row = e->residual ? e->residual_row : 0, row = e->row;
    const float *residual = e->residual ? e->residual + from * residual_row : NULL;
    float *y = e->y + from * row;
    for (int i = from; i < to; i++, y += row) {
        int at = i * SNI_EMULATED_COLUMNS;
        vf x = float_of(&sums->of[2][at]) * step + float_of(&sums->of[1][at]);
        x = x * step + float_of(&sums->of[0][at]);
        end_row(x * splat(row_factors[i]) * column, &how, residual, y);
        if (residual) residual += residual_row;
    }
}

static void finish_row(int row, const float *sums, const sni_product_end *e) {
    const ending how = ending_of(e);
    end_row(load(sums), &how, e->residual ? e->residual + row * e->residual_row : NULL,
            e->y + row * e->row);
}

SNI_DEFINE_TABLE(sni_emulated_kernels) = {
    .begin = begin_tiles,
    .end = end_tiles,
    .measure = measure_rows,
    .powers = row_powers,
    .left = split_left,
    .sizes = measure_columns,
    .right = split_right,
    .factors = column_factors,
    .product = product,
    .finish = finish,
    .finish_row = finish_row,
    .numbers = numbers_of,
    .plain = add_plainly,
};
