/* nhwc.isa.c - convolutions of bytes with channels last, for one tier.
 *
 * A tile is MR pixels by NV * LANES output channels, whose sums stay in registers over all taps and
 * channels. A unit of four bytes (VNNI) or two words takes one broadcast for each pixel and NV
 * loads of weights for MR * NV products: the multipliers are the limit. */
#include "cpu/int8/nhwc.h"

#include "cpu/int8/simd_bytes.h"
#include "cpu/int8/windows.h"

#if LANES == 16
enum { MR = 12, NV = 2 };
#define EACH_ROWS(f) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12)
#elif LANES == 8
enum { MR = 6, NV = 2 };
#define EACH_ROWS(f) f(1) f(2) f(3) f(4) f(5) f(6)
#else
enum { MR = 4, NV = 2 };
#define EACH_ROWS(f) f(1) f(2) f(3) f(4)
#endif
enum { NR = NV * LANES, UNIT = 4 /* bytes */ };

/* ---- Sums to bytes ---- */

#if LANES == 16
/* A panel's columns of one pixel as words. Saturating pack instructions clamp to the range, so that
 * only what does not fit 32 bits is limited first. NaN becomes the lowest number. */
static inline __m512i to_words(vf a, vf b) {
    const __m512 most = _mm512_set1_ps(65536);
    return _mm512_packs_epi32(_mm512_cvtps_epi32(_mm512_min_ps(most, (__m512)a)),
                              _mm512_cvtps_epi32(_mm512_min_ps(most, (__m512)b)));
}

/* A convolution's byte minus its zero point, as a number, and the residual's bytes r. */
static inline vf add_residual(vf v, __m128i r, const sni_nhwc_finish *how, const limits *l) {
    v = (vf)_mm512_min_ps(_mm512_max_ps((__m512)v, (__m512)l->least), (__m512)l->most);
    v = (vf)_mm512_roundscale_ps((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    vi other = (vi)(how->is_signed ? _mm512_cvtepi8_epi32(r) : _mm512_cvtepu8_epi32(r));
    return v * how->y_scale + (to_floats(other) - how->r_zero) * how->r_scale + how->z_zero;
}

/* What is the same for all pixels of a tile. */
typedef struct finishing {
    sni_nhwc_finish how;
    limits limits;
    vf scale[NV];
    __m512i zero, flip; /* added to words, and of bytes: both kinds of bytes are packed as signed */
    __mmask32 some;     /* columns */
} finishing;

/* The words of one pixel; r: its residual. */
static inline __attribute__((always_inline)) __m512i
pixel_words(const finishing *f, int vectors, const vi sum[NV], const uint8_t *r, bool residual) {
    vf v[NV];
    UNROLL
    for (int j = 0; j < vectors; j++) v[j] = to_floats(sum[j]) * f->scale[j];
    if (residual) {
        __m256i other = _mm256_maskz_loadu_epi8(f->some, r);
        v[0] = add_residual(v[0], _mm256_castsi256_si128(other), &f->how, &f->limits);
        if (vectors > 1)
            v[1] = add_residual(v[1], _mm256_extracti128_si256(other, 1), &f->how, &f->limits);
    }
    return _mm512_adds_epi16(to_words(v[0], v[vectors - 1]), f->zero);
}

static inline void store_columns(const finishing *f, uint8_t *y, __m256i bytes) {
    if (__builtin_expect(f->some == ~0u, 1))
        _mm256_storeu_si256((__m256i_u *)y, bytes);
    else
        _mm256_mask_storeu_epi8(y, f->some, bytes);
}

/* Two pixels share the narrowing to bytes: packing leaves four bytes of a vector in each lane of
 * 16, and `order` puts a pixel's together. */
static inline __attribute__((always_inline)) void
finish_rows(int rows, int vectors, vi sum[MR][NV], const sni_nhwc_block *b, bool residual) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const int64_t step = b->step;
    const uint8_t *r = b->r;
    uint8_t *y = b->y;
    const int shift = b->how->is_signed ? 0 : 128;
    finishing f = {.how = *b->how,
                   .limits = limits_of(b->how->zero, b->how->low),
                   .zero = _mm512_set1_epi16((short)((residual ? 0 : (int)b->how->zero) - shift)),
                   .flip = _mm512_set1_epi8((char)shift),
                   .some = ~0u >> (NR - b->n)};
    UNROLL
    for (int j = 0; j < vectors; j++)
        f.scale[j] = load_floats(b->scale + j * LANES, 0, b->n - j * LANES);
    UNROLL
    for (int i = 0; i < rows; i += 2, y += 2 * step) {
        const int next = i + 1 < rows ? i + 1 : i;
        __m512i v = pixel_words(&f, vectors, sum[i], r, residual), w = v;
        if (next > i) w = pixel_words(&f, vectors, sum[next], residual ? r + step : r, residual);
        v = _mm512_xor_si512(_mm512_packs_epi16(v, w), f.flip);
        v = _mm512_permutexvar_epi32(order, v);
        store_columns(&f, y, _mm512_castsi512_si256(v));
        if (next > i) store_columns(&f, y + step, _mm512_extracti64x4_epi64(v, 1));
        if (residual) r += 2 * step;
    }
}
#else
static inline vf load_residual(const uint8_t *r, int64_t n, bool is_signed) {
    uint8_t some[LANES] = {0};
    if (n < LANES) {
        memcpy(some, r, (size_t)n);
        r = some;
    }
    return to_floats(load_bytes(r, is_signed));
}

/* One vector of columns over all rows. */
static inline __attribute__((always_inline)) void finish_column(const sni_nhwc_block *b,
                                                                int64_t rows, const int32_t *acc,
                                                                int64_t at, bool residual) {
    const sni_nhwc_finish how = *b->how;
    const limits l = limits_of(how.zero, how.low), sum_l = limits_of(0, how.low);
    const int64_t n = b->n - at, step = b->step;
    const vf scale = load_floats(b->scale, at, n);
    const uint8_t *r = residual ? b->r + at : NULL;
    uint8_t *y = b->y + at;
    acc += at;
    for (int64_t i = 0; i < rows; i++, acc += NR, y += step) {
        vi v = rounded(to_floats(load_vi(acc)) * scale, &l);
        if (residual) {
            vf other = load_residual(r, n, how.is_signed) - how.r_zero;
            vf sum = (to_floats(v) - how.zero) * how.y_scale + other * how.r_scale;
            v = rounded(sum + how.z_zero, &sum_l);
            r += step;
        }
        if (n >= LANES)
            store_bytes(y, v);
        else
            store_some_bytes(y, n, v);
    }
}

static __attribute__((noinline)) void finish_sums(const sni_nhwc_block *b, int64_t rows,
                                                  const int32_t *acc) {
    for (int64_t at = 0; at < b->n; at += LANES) {
        if (b->r)
            finish_column(b, rows, acc, at, true);
        else
            finish_column(b, rows, acc, at, false);
    }
}

static inline __attribute__((always_inline)) void
finish_rows(int rows, int vectors, vi sum[MR][NV], const sni_nhwc_block *b, bool residual) {
    int32_t acc[MR * NR] __attribute__((aligned(64)));
    (void)residual;
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < vectors; j++) store_vi(acc + i * NR + j * LANES, sum[i][j]);
    finish_sums(b, rows, acc);
}
#endif

/* ---- Tiles ---- */

static inline vi unit_at(const uint8_t *p) {
    int32_t unit;
    memcpy(&unit, p, sizeof unit);
    return splat_vi(unit);
}

/* `rows`, `vectors` and `flips` are constants at every call. */
static inline __attribute__((always_inline)) void
tile_of(int rows, int vectors, bool flips, const sni_nhwc_tile *t, const sni_nhwc_block *b) {
    const vi flip = splat_vi((int32_t)0x80808080);
    const int64_t end = t->units * UNIT;
    const uint8_t *const *x = t->x;
    const int32_t *w = t->w;
    vi sum[MR][NV];
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < vectors; j++)
        sum[i][j] = load_ints(b->add + j * LANES, 0, b->n - j * LANES);
    for (int64_t tap = 0; tap < t->taps; tap++, x += MR) {
        const uint8_t *p[MR];
        UNROLL
        for (int i = 0; i < rows; i++) p[i] = x[i] + t->shift;
        for (int64_t u = 0; u < end; u += UNIT, w += NR) {
            vi right[NV];
            UNROLL
            for (int j = 0; j < vectors; j++) right[j] = load_vi(w + j * LANES);
            UNROLL
            for (int i = 0; i < rows; i++) {
                vi left = unit_at(p[i] + u);
                if (flips) left ^= flip;
                UNROLL
                for (int j = 0; j < vectors; j++) sum[i][j] = dot(sum[i][j], left, right[j]);
            }
        }
    }
    if (b->r)
        finish_rows(rows, vectors, sum, b, true);
    else
        finish_rows(rows, vectors, sum, b, false);
}

#define TILE(rows)                                                               \
    static void tile_##rows(const sni_nhwc_tile *t, const sni_nhwc_block *b) {   \
        tile_of(rows, NV, false, t, b);                                          \
    }                                                                            \
    static void narrow_##rows(const sni_nhwc_tile *t, const sni_nhwc_block *b) { \
        tile_of(rows, NV / 2, false, t, b);                                      \
    }
EACH_ROWS(TILE)
#undef TILE
#if defined(__AVX512VNNI__) /* elsewhere the staged copy is flipped */
#define TILE(rows)                                                                       \
    static void flipped_##rows(const sni_nhwc_tile *t, const sni_nhwc_block *b) {        \
        tile_of(rows, NV, true, t, b);                                                   \
    }                                                                                    \
    static void flipped_narrow_##rows(const sni_nhwc_tile *t, const sni_nhwc_block *b) { \
        tile_of(rows, NV / 2, true, t, b);                                               \
    }
EACH_ROWS(TILE)
#undef TILE
#define FLIPPED(n) [n] = flipped_##n,
#define FLIPPED_NARROW(n) [n] = flipped_narrow_##n,
#else
#define FLIPPED(n) [n] = tile_##n,
#define FLIPPED_NARROW(n) [n] = narrow_##n,
#endif

/* ---- Staging ---- */

static void stage(const uint8_t *x, int64_t n, uint8_t flip, void *to) {
#if defined(__AVX512VNNI__)
    uint8_t *y = to;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] ^ flip;
#else
    uint16_t *y = to;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] ^ flip;
#endif
}

/* ---- Depthwise ---- */

static int32_t signed_tap(const uint8_t *w, uint8_t flip, int64_t at) {
    return (int8_t)(w[at] ^ flip);
}

#if defined(__AVX512VNNI__)
/* A block is 64 channels. The units of a column of taps are made of rows of bytes by unpacking them
 * twice, which leaves channel 16 a + 4 q + b of the block in vector q at lane 4 a + b; packing the
 * four vectors of results undoes that. */
enum { BLOCK = 64, PIXELS = 4, VECTORS = 4 };

static int depthwise_channel(int i) {
    int q = i / LANES, lane = i % LANES;
    return lane / 4 * 16 + q * 4 + lane % 4;
}

static int64_t groups_of(int64_t kernel) {
    return (kernel + 3) / 4;
}

static int64_t depthwise_size(const int64_t kernel[2]) {
    return kernel[1] * groups_of(kernel[0]) * BLOCK;
}

/* Elements are ordered by column of taps, group of four rows, vector, lane. */
static int32_t depthwise_element(const uint8_t *w, uint8_t flip, int64_t channels, int64_t first,
                                 const int64_t kernel[2], int64_t i) {
    int64_t channel = first + depthwise_channel((int)(i % BLOCK));
    int64_t row = i / BLOCK % groups_of(kernel[0]) * 4, col = i / BLOCK / groups_of(kernel[0]);
    uint32_t unit = 0;
    for (int64_t t = 0; t < 4 && row + t < kernel[0] && channel < channels; t++) {
        int64_t at = (channel * kernel[0] + row + t) * kernel[1] + col;
        unit |= (uint32_t)(signed_tap(w, flip, at) & 0xff) << (8 * t);
    }
    return (int32_t)unit;
}

typedef struct columns {
    const sni_nhwc_depthwise *d;
    int64_t first;  /* channel */
    __mmask64 some; /* channels of the block that exist */
    __m512i flip;
} columns;

/* The units of input column `col` for the kernel rows from `row` on. */
static inline void load_column(const columns *c, int64_t col, int64_t row, vi unit[VECTORS]) {
    const sni_nhwc_depthwise *d = c->d;
    const bool inside = col >= 0 && col < d->in;
    __m512i x[4];
    UNROLL
    for (int i = 0; i < 4; i++) {
        const uint8_t *from = row + i < d->kernel[0] && inside ? d->x[row + i] : NULL;
        from = from ? from + col * d->channels : d->pad;
        x[i] = _mm512_xor_si512(_mm512_maskz_loadu_epi8(c->some, from + c->first), c->flip);
    }
    __m512i a = _mm512_unpacklo_epi8(x[0], x[1]), b = _mm512_unpackhi_epi8(x[0], x[1]);
    __m512i e = _mm512_unpacklo_epi8(x[2], x[3]), f = _mm512_unpackhi_epi8(x[2], x[3]);
    unit[0] = (vi)_mm512_unpacklo_epi16(a, e);
    unit[1] = (vi)_mm512_unpackhi_epi16(a, e);
    unit[2] = (vi)_mm512_unpacklo_epi16(b, f);
    unit[3] = (vi)_mm512_unpackhi_epi16(b, f);
}

/* Requantises a pixel's sums. */
static inline void finish_pixel(const columns *c, const vi sum[VECTORS], int64_t pixel,
                                const vf scale[VECTORS]) {
    const sni_nhwc_finish *how = c->d->how;
    const limits l = limits_of(how->zero, how->low);
    __m512i v[VECTORS];
    UNROLL
    for (int q = 0; q < VECTORS; q++) v[q] = (__m512i)rounded(to_floats(sum[q]) * scale[q], &l);
    v[0] = _mm512_packs_epi32(v[0], v[1]);
    v[2] = _mm512_packs_epi32(v[2], v[3]);
    v[0] = how->is_signed ? _mm512_packs_epi16(v[0], v[2]) : _mm512_packus_epi16(v[0], v[2]);
    _mm512_mask_storeu_epi8(c->d->y + pixel * c->d->channels + c->first, c->some, v[0]);
}

/* `pixels` neighbouring outputs of a block of channels, which share columns of units. Kernel,
 * stride and pixels are constants at most calls. */
static inline __attribute__((always_inline)) void pixels_of(const columns *c, const int32_t *w,
                                                            int64_t at, int pixels,
                                                            const int64_t kernel[2], int64_t stride,
                                                            int64_t dilation) {
    const sni_nhwc_depthwise *d = c->d;
    const int64_t groups = (kernel[0] + 3) / 4;
    vi sum[PIXELS][VECTORS], unit[VECTORS];
    UNROLL
    for (int p = 0; p < pixels; p++) UNROLL
    for (int q = 0; q < VECTORS; q++) sum[p][q] = load_vi(d->add + c->first + q * LANES);
    UNROLL
    for (int64_t col = 0; col < (pixels - 1) * stride + kernel[1]; col++) UNROLL
    for (int64_t g = 0; g < groups; g++) {
        load_column(c, at * stride - d->begin + col * dilation, g * 4, unit);
        UNROLL
        for (int p = 0; p < pixels; p++) {
            int64_t tap = col - p * stride;
            if (tap < 0 || tap >= kernel[1]) continue;
            UNROLL
            for (int q = 0; q < VECTORS; q++)
                sum[p][q] =
                    dot(sum[p][q], unit[q], load_vi(w + (tap * groups + g) * BLOCK + q * LANES));
        }
    }
    vf scale[VECTORS];
    UNROLL
    for (int q = 0; q < VECTORS; q++) scale[q] = load(d->scale + c->first + q * LANES);
    UNROLL
    for (int p = 0; p < pixels; p++) finish_pixel(c, sum[p], at + p, scale);
}

/* All pixels of a row; the last ones may be computed twice. */
static inline __attribute__((always_inline)) void
row_as(const columns *c, const int32_t *w, int64_t tall, int64_t wide, int64_t stride) {
    const int64_t kernel[2] = {tall, wide}, n = c->d->out;
    int64_t at = 0;
    for (; at + PIXELS <= n; at += PIXELS) pixels_of(c, w, at, PIXELS, kernel, stride, 1);
    if (at < n && n >= PIXELS)
        pixels_of(c, w, n - PIXELS, PIXELS, kernel, stride, 1);
    else
        for (; at < n; at++) pixels_of(c, w, at, 1, kernel, stride, 1);
}

static void row_any(const columns *c, const int32_t *w) {
    for (int64_t at = 0; at < c->d->out; at++)
        pixels_of(c, w, at, 1, c->d->kernel, c->d->stride, c->d->dilation);
}

static void depthwise(const sni_nhwc_depthwise *d) {
    const int64_t size = depthwise_size(d->kernel);
    const int64_t tall = d->kernel[0], wide = d->kernel[1];
    const int32_t *w = d->w;
    for (int64_t first = 0; first < d->channels; first += BLOCK, w += size) {
        int64_t n = d->channels - first;
        const columns c = {d, first, n >= BLOCK ? ~0ull : ~0ull >> (BLOCK - n),
                           _mm512_set1_epi8((char)d->flip)};
        if (d->dilation == 1 && tall == 3 && wide == 3 && d->stride == 1)
            row_as(&c, w, 3, 3, 1);
        else if (d->dilation == 1 && tall == 3 && wide == 3 && d->stride == 2)
            row_as(&c, w, 3, 3, 2);
        else if (d->dilation == 1 && tall == 5 && wide == 5 && d->stride == 1)
            row_as(&c, w, 5, 5, 1);
        else if (d->dilation == 1 && tall == 5 && wide == 5 && d->stride == 2)
            row_as(&c, w, 5, 5, 2);
        else
            row_any(&c, w);
    }
}
#else
/* A block is a vector of channels, and weights are floats: fewer than SNI_INT_TAPS products of
 * bytes are summed exactly. */
enum { BLOCK = LANES };

static int depthwise_channel(int i) {
    return i;
}

static int64_t depthwise_size(const int64_t kernel[2]) {
    return kernel[0] * kernel[1] * BLOCK;
}

static int32_t depthwise_element(const uint8_t *w, uint8_t flip, int64_t channels, int64_t first,
                                 const int64_t kernel[2], int64_t i) {
    int64_t channel = first + i % BLOCK;
    float v = 0;
    int32_t bits;
    if (channel < channels)
        v = (float)signed_tap(w, flip, channel * kernel[0] * kernel[1] + i / BLOCK);
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* n channels, made unsigned; LANES bytes of x exist where n is not below that. */
static inline vf load_channels(const uint8_t *x, int64_t n, uint8_t flip) {
    uint8_t some[LANES] = {0};
    if (n < LANES) {
        memcpy(some, x, (size_t)n);
        x = some;
    }
    return to_floats(load_bytes(x, false) ^ splat_vi(flip));
}

enum { TOGETHER = 4 }; /* blocks */

/* One pixel of `blocks` neighbouring blocks of channels, a constant; all but the last are whole. */
static inline __attribute__((always_inline)) void
pixel_of(const sni_nhwc_depthwise *d, const int32_t *w, int64_t first, int64_t at, int blocks) {
    const int64_t size = depthwise_size(d->kernel), n = d->channels - first;
    const limits l = limits_of(d->how->zero, d->how->low);
    uint8_t *y = d->y + at * d->channels + first;
    vf sum[TOGETHER];
    UNROLL
    for (int b = 0; b < blocks; b++) sum[b] = splat(0);
    for (int64_t r = 0; r < d->kernel[0]; r++)
        for (int64_t t = 0; t < d->kernel[1]; t++, w += LANES) {
            int64_t col = at * d->stride - d->begin + t * d->dilation;
            bool inside = d->x[r] && col >= 0 && col < d->in;
            const uint8_t *x = (inside ? d->x[r] + col * d->channels : d->pad) + first;
            UNROLL
            for (int b = 0; b < blocks; b++)
                sum[b] += load_channels(x + b * LANES, n - b * LANES, d->flip) *
                          load((const float *)(const void *)(w + b * size));
        }
    UNROLL
    for (int b = 0; b < blocks; b++) {
        const vu add = (vu)load_vi(d->add + first + b * LANES);
        vi whole = (vi)((vu) __builtin_convertvector(sum[b], vi) + add);
        vi v = rounded(to_floats(whole) * load(d->scale + first + b * LANES), &l);
        if (n - b * LANES >= LANES)
            store_bytes(y + b * LANES, v);
        else
            store_some_bytes(y + b * LANES, n - b * LANES, v);
    }
}

static void depthwise(const sni_nhwc_depthwise *d) {
    const int64_t size = depthwise_size(d->kernel);
    const int32_t *w = d->w;
    int64_t first = 0;
    for (; first + TOGETHER * LANES <= d->channels; first += TOGETHER * LANES, w += TOGETHER * size)
        for (int64_t at = 0; at < d->out; at++) pixel_of(d, w, first, at, TOGETHER);
    for (; first < d->channels; first += LANES, w += size)
        for (int64_t at = 0; at < d->out; at++) pixel_of(d, w, first, at, 1);
}
#endif

#define ROWS(n) [n] = tile_##n,
#define NARROW(n) [n] = narrow_##n,

SNI_DEFINE_TABLE(sni_nhwc_kernels) = {
    .mr = MR,
    .nr = NR,
    .group = GROUP,
    .tile = {{{EACH_ROWS(ROWS)}, {EACH_ROWS(NARROW)}},
             {{EACH_ROWS(FLIPPED)}, {EACH_ROWS(FLIPPED_NARROW)}}},
    .stage = stage,
    .depthwise_block = BLOCK,
    .depthwise_size = depthwise_size,
    .depthwise_element = depthwise_element,
    .depthwise_channel = depthwise_channel,
    .depthwise = depthwise,
};
