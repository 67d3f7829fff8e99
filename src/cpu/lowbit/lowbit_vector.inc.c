/* lowbit_vector.inc.c - the tiles for AVX2 and AVX-512: lanes are columns of the product. */

#if LANES == 16
enum { ROWS = 12 };
#define EACH_HEIGHT(f, bits) f(bits, 1) f(bits, 2) f(bits, 4) f(bits, 8) f(bits, 12)
typedef __m512i words;
#define V(name) _mm512_##name
#else
enum { ROWS = 4 };
#define EACH_HEIGHT(f, bits) f(bits, 1) f(bits, 2) f(bits, 4)
typedef __m256i words;
#define V(name) _mm256_##name
#endif
enum { PARTS = COLUMNS / LANES }; /* vectors of a panel */

INLINE words load_words(const void *p) {
    words v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Weights that come from memory are asked for early, line after line: the hardware does not look
 * beyond a page. */
enum { AHEAD = 8192 };
INLINE const uint8_t *fetch(const uint8_t *from, const uint8_t *to) {
    for (; from < to; from += CHUNK) _mm_prefetch((const char *)from + AHEAD, _MM_HINT_T0);
    return from;
}

/* ---- Scales and zero points of a block, from column `at` on ---- */

INLINE vf load_scales(const sni_lowbit *w, const uint8_t *scales, int at) {
    if (!w->half_scales) return load((const sni_unaligned_float *)(const void *)scales + at);
#if LANES == 16
    return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)(scales + at * 2)));
#else
    return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)(scales + at * 2)));
#endif
}

INLINE words load_zeros(const uint8_t *zeros, int at) {
#if LANES == 16
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i_u *)(zeros + at)));
#else
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u *)(zeros + at)));
#endif
}

/* ---- Products with bytes ---- */

/* Numbers j of all bytes: bits [j * bits, (j + 1) * bits). */
INLINE words numbers(words v, int bits, int j) {
    if (bits == 8) return v;
    words mask = V(set1_epi8)((char)((1 << bits) - 1));
    return (words)(((vu)v >> j * bits) & (vu)mask);
}

#if defined(__AVX512VNNI__)
/* acc[r] += products of a block. */
INLINE void block_bytes(int bits, int rows, int64_t chunks, const uint8_t *data, const int32_t *a,
                        words *acc) {
    for (int64_t c = 0; c < chunks; c++, data += CHUNK) {
        words v = load_words(data);
        UNROLL
        for (int j = 0; j < 8 / bits; j++, a += rows) {
            words q = numbers(v, bits, j);
            UNROLL
            for (int r = 0; r < rows; r++) acc[r] = V(dpbusd_epi32)(acc[r], q, V(set1_epi32)(a[r]));
        }
    }
}
#else
/* Sums of two products in 16 bits: up to 15 * 127 * 2 each with numbers of 4 bits, so that eight of
 * them fit. Numbers of 8 bits are taken as two of 4. */
INLINE void block_bytes(int bits, int rows, int64_t chunks, const uint8_t *data, const int32_t *a,
                        words *acc) {
    const words one = V(set1_epi16)(1), sixteen = V(set1_epi16)(16);
    const int64_t at_once = bits == 4 ? 4 : 8;
    for (int64_t c = 0; c < chunks; c += at_once) {
        words low[MOST], high[MOST];
        const int64_t end = c + at_once < chunks ? c + at_once : chunks;
        UNROLL
        for (int r = 0; r < rows; r++) low[r] = high[r] = V(set1_epi16)(0);
        for (int64_t i = c; i < end; i++, data += CHUNK) {
            words v = load_words(data);
            UNROLL
            for (int j = 0; j < 8 / bits; j++, a += rows) {
                words q = numbers(v, bits == 8 ? 4 : bits, j), q1 = numbers(v, 4, 1);
                UNROLL
                for (int r = 0; r < rows; r++) {
                    words x = V(set1_epi32)(a[r]);
                    low[r] = V(add_epi16)(low[r], V(maddubs_epi16)(q, x));
                    if (bits == 8) high[r] = V(add_epi16)(high[r], V(maddubs_epi16)(q1, x));
                }
            }
        }
        UNROLL
        for (int r = 0; r < rows; r++) {
            acc[r] = V(add_epi32)(acc[r], V(madd_epi16)(low[r], one));
            if (bits == 8) acc[r] = V(add_epi32)(acc[r], V(madd_epi16)(high[r], sixteen));
        }
    }
}
#endif

/* What zero points take off the sums of a block's columns from `at` on. */
INLINE void begin_block(const sni_lowbit *w, int rows, const uint8_t *zeros, int at,
                        const int32_t *start, words *acc) {
    if (w->zero == SNI_LOWBIT_BYTES) {
        words z = load_zeros(zeros, at);
        UNROLL
        for (int r = 0; r < rows; r++) acc[r] = V(mullo_epi32)(z, V(set1_epi32)(start[r]));
        return;
    }
    UNROLL
    for (int r = 0; r < rows; r++) acc[r] = V(set1_epi32)(start[r]);
}

INLINE vf to_floats(words v) {
    return (vf)V(cvtepi32_ps)(v);
}

/* The sums of row r's slices as one. */
INLINE vf join_slices(int slices, int rows, int r, const words *acc) {
    vf f = to_floats(acc[r]);
    UNROLL
    for (int s = 1; s < slices; s++) f = f * 256 + to_floats(acc[s * rows + r]);
    return f;
}

INLINE float join_starts(int slices, int rows, int r, const int32_t *start) {
    float f = (float)start[r];
    for (int s = 1; s < slices; s++) f = f * 256 + (float)start[s * rows + r];
    return f;
}

INLINE void bytes(int bits, int rows, int slices, const sni_lowbit *w, const uint8_t *panel,
                  const sni_lowbit_left *left, float *to) {
    const int all = rows * slices;
    const int64_t chunks = w->block * bits / 32, blocks = w->blocks, units = w->block / 4 * all;
    const int32_t *a = left->a, *start = left->start;
    const float *scale = left->scale;
    const int64_t per_block = (int64_t)(w->group_bytes / SNI_LOWBIT_SIDE);
    const uint8_t *ahead = panel;
    const vf middle = splat((float)(1 << (bits - 1)));
    const bool numbers_for_zeros = w->zero == SNI_LOWBIT_FLOATS;
    vf y[PARTS][MOST];
    UNROLL
    for (int h = 0; h < PARTS; h++) UNROLL
    for (int r = 0; r < rows; r++) y[h][r] = splat(0);
    for (int64_t b = 0; b < blocks; b++) {
        const sni_lowbit_place of = sni_lowbit_block(w, panel, b);
        ahead = fetch(ahead, panel + (b + 1) * per_block);
        UNROLL
        for (int h = 0; h < PARTS; h++) {
            const int at = h * LANES;
            words acc[MOST];
            begin_block(w, all, of.zeros, at, start, acc);
            block_bytes(bits, all, chunks, of.data + at * 4, a, acc);
            vf s = load_scales(w, of.scales, at), z = splat(0);
            if (numbers_for_zeros)
                z = load((const sni_unaligned_float *)(const void *)of.zeros + at) / middle - 1;
            UNROLL
            for (int r = 0; r < rows; r++) {
                vf f = join_slices(slices, rows, r, acc);
                if (numbers_for_zeros) f += z * splat(join_starts(slices, rows, r, start));
                y[h][r] += f * s * splat(scale[r]);
            }
        }
        a += units;
        start += all;
        scale += rows;
    }
    UNROLL
    for (int h = 0; h < PARTS; h++) UNROLL
    for (int r = 0; r < rows; r++) store(to + r * COLUMNS + h * LANES, y[h][r]);
}

/* ---- Products with floats ---- */

/* The numbers that weights stand for before they are scaled, by index. */
typedef struct table {
    bool given;     /* false: numbers are q less the middle */
    float unit;     /* what they are multiplied by, a power of two */
    vf less[PARTS]; /* of a block's columns: zero points less the middle, times `unit` */
#if LANES == 16
    __m512 of;
#else
    __m256 low, high;
#endif
} table;

INLINE table table_of(const sni_lowbit *w, int bits) {
    float of[16];
    for (int i = 0; i < 16; i++)
        of[i] = w->codes ? w->codes[i] : (float)(i & ((1 << bits) - 1)) - (float)(1 << (bits - 1));
    table t = {.given = w->codes != NULL};
    t.unit = t.given ? 1 : ldexpf(1, 32 - bits);
#if LANES == 16
    t.of = _mm512_loadu_ps(of);
#else
    t.low = _mm256_loadu_ps(of);
    t.high = _mm256_loadu_ps(of + 8);
#endif
    return t;
}

/* The numbers at bits [at, at + bits) of all lanes of v, times t->unit. `flipped` is v with the top
 * bit of each number flipped, so that they are signed and less by the middle. */
INLINE vf weights(int bits, int at, words v, words flipped, const table *t) {
#if LANES == 16
    if (t->given) /* the index is the lower 4 bits of a lane */
        return (vf)_mm512_permutexvar_ps((words)((vu)v >> at), t->of);
#else
    if (t->given) {
        __m256i index = (words)((vu)v >> at);
        __m256 low = _mm256_permutevar8x32_ps(t->low, index);
        __m256 high = _mm256_permutevar8x32_ps(t->high, index);
        __m256i sign = (words)((vu)v << (28 - at));
        return (vf)_mm256_blendv_ps(low, high, _mm256_castsi256_ps(sign));
    }
#endif
    (void)v;
    const vi top = (vi)((vu)flipped << (32 - bits - at)) & ~(vi){0} << (32 - bits);
    return to_floats((words)top);
}

/* Sums that a row's products alternate between: two where a tile has too few to hide the latency of
 * additions, one where two would not fit the registers. */
INLINE int ways_of(int rows) {
    return rows * PARTS >= 8 ? 1 : 2;
}

/* part[h][i][r] += products of a chunk, which take turns over i < ways_of(rows). With `shifted`,
 * numbers are less by t->less. One part of the columns after the other: with both at once their
 * weights would not fit the registers beside the sums. */
INLINE void chunk_floats(int bits, int rows, bool shifted, const uint8_t *data, const float *a,
                         const table *t, vf part[PARTS][2][MOST]) {
    const words flip = V(set1_epi8)((char)(bits == 8 ? 0x80 : bits == 4 ? 0x88 : 0xaa));
    UNROLL
    for (int h = 0; h < PARTS; h++) {
        const words v = load_words(data + h * LANES * 4), flipped = (words)((vi)v ^ (vi)flip);
        const float *x = a;
        __asm__("" : "+r"(x)); /* each part loads them anew: kept, they would not fit, either */
        UNROLL
        for (int j = 0; j < 8 / bits; j++) UNROLL
        for (int i = 0; i < 4; i++) {
            vf q = weights(bits, 8 * i + j * bits, v, flipped, t);
            if (shifted) q -= t->less[h];
            UNROLL
            for (int r = 0; r < rows; r++)
                add_product(&part[h][i % ways_of(rows)][r], splat(x[(4 * j + i) * rows + r]), q);
        }
    }
}

/* Zero points of columns from `at` on, less the middle. */
INLINE vf shift_of(const sni_lowbit *w, int bits, const uint8_t *zeros, int at) {
    const vf middle = splat((float)(1 << (bits - 1)));
    if (w->zero == SNI_LOWBIT_BYTES) return to_floats(load_zeros(zeros, at)) - middle;
    return load((const sni_unaligned_float *)(const void *)zeros + at) - middle;
}

INLINE void floats(int bits, int rows, bool shifted, const sni_lowbit *w, const uint8_t *panel,
                   const sni_lowbit_left *left, float *to) {
    const int64_t chunks = w->block * bits / 32, blocks = w->blocks;
    const float *a = left->floats;
    const int64_t per_block = (int64_t)(w->group_bytes / SNI_LOWBIT_SIDE);
    const uint8_t *ahead = panel;
    table t = table_of(w, bits);
    vf y[PARTS][MOST];
    UNROLL
    for (int h = 0; h < PARTS; h++) UNROLL
    for (int r = 0; r < rows; r++) y[h][r] = splat(0);
    for (int64_t b = 0; b < blocks; b++) {
        const sni_lowbit_place of = sni_lowbit_block(w, panel, b);
        ahead = fetch(ahead, panel + (b + 1) * per_block);
        const uint8_t *data = of.data;
        vf part[PARTS][2][MOST];
        UNROLL
        for (int h = 0; h < PARTS; h++) {
            if (shifted) t.less[h] = shift_of(w, bits, of.zeros, h * LANES) * t.unit;
            UNROLL
            for (int r = 0; r < rows; r++) part[h][0][r] = part[h][1][r] = splat(0);
        }
        for (int64_t c = 0; c < chunks; c++, data += CHUNK, a += 32 / bits * rows)
            chunk_floats(bits, rows, shifted, data, a, &t, part);
        UNROLL
        for (int h = 0; h < PARTS; h++) {
            vf s = load_scales(w, of.scales, h * LANES);
            UNROLL
            for (int r = 0; r < rows; r++) {
                vf sum = part[h][0][r];
                if (ways_of(rows) > 1) sum += part[h][1][r];
                y[h][r] += sum * s;
            }
        }
    }
    UNROLL
    for (int h = 0; h < PARTS; h++) UNROLL
    for (int r = 0; r < rows; r++) store(to + r * COLUMNS + h * LANES, y[h][r] / t.unit);
}

/* ---- One function for each number of bits and rows ---- */

#define PARAMETERS const sni_lowbit *w, const uint8_t *panel, const sni_lowbit_left *a, float *y
#define TILE(bits, rows)                               \
    static void bytes_##bits##_##rows(PARAMETERS) {    \
        bytes(bits, rows, 1, w, panel, a, y);          \
    }                                                  \
    static void floats_##bits##_##rows(PARAMETERS) {   \
        if (w->zero == SNI_LOWBIT_MIDDLE)              \
            floats(bits, rows, false, w, panel, a, y); \
        else                                           \
            floats(bits, rows, true, w, panel, a, y);  \
    }
#define SPLIT(bits, rows)                                     \
    static void split_##bits##_##rows(PARAMETERS) {           \
        bytes(bits, rows, SNI_LOWBIT_SLICES, w, panel, a, y); \
    }
EACH_HEIGHT(TILE, 2)
EACH_HEIGHT(TILE, 4)
EACH_HEIGHT(TILE, 8)
SPLIT(2, 1)
SPLIT(2, 2)
SPLIT(4, 1)
SPLIT(4, 2)
SPLIT(8, 1)
SPLIT(8, 2)

#define BYTES(bits, rows) [bits][rows] = bytes_##bits##_##rows,
#define FLOATS(bits, rows) [bits][rows] = floats_##bits##_##rows,
static const sni_lowbit_tile_fn byte_tiles[9][MOST + 1] = {
    EACH_HEIGHT(BYTES, 2) EACH_HEIGHT(BYTES, 4) EACH_HEIGHT(BYTES, 8)};
static const sni_lowbit_tile_fn float_tiles[9][MOST + 1] = {
    EACH_HEIGHT(FLOATS, 2) EACH_HEIGHT(FLOATS, 4) EACH_HEIGHT(FLOATS, 8)};
static const sni_lowbit_tile_fn split_tiles[9][SNI_LOWBIT_SPLIT + 1] = {
    [2] = {NULL, split_2_1, split_2_2},
    [4] = {NULL, split_4_1, split_4_2},
    [8] = {NULL, split_8_1, split_8_2}};

static void tile_bytes(PARAMETERS) {
    byte_tiles[w->bits][a->rows](w, panel, a, y);
}

static void tile_floats(PARAMETERS) {
    float_tiles[w->bits][a->rows](w, panel, a, y);
}

static void tile_split(PARAMETERS) {
    split_tiles[w->bits][a->rows](w, panel, a, y);
}
#undef PARAMETERS
