/* lowbit_plain.inc.c - the tiles for tiers without wide vectors of integers. */

enum { ROWS = 4 };

/* The number at bits `at` on of the 32 bits of a column. */
static inline uint32_t bits_at(const uint8_t *column, int bits, int at) {
    return (uint32_t)(column[at / 8] >> at % 8) & ((1u << bits) - 1);
}

static float scale_of(const sni_lowbit *w, const uint8_t *scales, int c) {
    float scale;
    uint16_t half;
    if (w->half_scales) {
        memcpy(&half, scales + c * 2, sizeof half);
        return sni_f16_to_f32(half);
    }
    memcpy(&scale, scales + c * 4, sizeof scale);
    return scale;
}

static float zero_of(const sni_lowbit *w, const uint8_t *zeros, int c) {
    float zero;
    if (w->zero == SNI_LOWBIT_MIDDLE) return (float)(1 << (w->bits - 1));
    if (w->zero == SNI_LOWBIT_BYTES) return zeros[c];
    memcpy(&zero, zeros + c * 4, sizeof zero);
    return zero;
}

/* Element p of a block's column c, as it is stored. */
static uint32_t stored(const sni_lowbit *w, const uint8_t *data, int64_t p, int c) {
    int64_t of_chunk = 32 / w->bits;
    int at = (int)(p % of_chunk);
    return bits_at(data + p / of_chunk * CHUNK + c * 4, w->bits, at % 4 * 8 + at / 4 * w->bits);
}

static void tile_bytes(const sni_lowbit *w, const uint8_t *panel, const sni_lowbit_left *a,
                       float *y) {
    const float times = w->zero == SNI_LOWBIT_BYTES ? 1 : (float)(1 << (w->bits - 1));
    memset(y, 0, (size_t)a->rows * COLUMNS * sizeof *y);
    for (int64_t b = 0; b < w->blocks; b++) {
        const sni_lowbit_place at = sni_lowbit_block(w, panel, b);
        for (int c = 0; c < COLUMNS; c++) {
            int32_t dot[ROWS] = {0};
            for (int64_t p = 0; p < w->block; p++) {
                int32_t q = (int32_t)stored(w, at.data, p, c);
                const int32_t *unit = a->a + (b * w->block + p) / 4 * a->rows;
                for (int r = 0; r < a->rows; r++)
                    dot[r] += q * (int8_t)((uint32_t)unit[r] >> p % 4 * 8);
            }
            float scale = scale_of(w, at.scales, c), zero = zero_of(w, at.zeros, c);
            for (int r = 0; r < a->rows; r++) {
                float sum = (float)dot[r] + zero * (float)a->start[b * a->rows + r] / times;
                y[r * COLUMNS + c] += sum * scale * a->scale[b * a->rows + r];
            }
        }
    }
}

static void tile_floats(const sni_lowbit *w, const uint8_t *panel, const sni_lowbit_left *a,
                        float *y) {
    memset(y, 0, (size_t)a->rows * COLUMNS * sizeof *y);
    for (int64_t b = 0; b < w->blocks; b++) {
        const sni_lowbit_place at = sni_lowbit_block(w, panel, b);
        for (int c = 0; c < COLUMNS; c++) {
            float dot[ROWS] = {0}, zero = zero_of(w, at.zeros, c);
            for (int64_t p = 0; p < w->block; p++) {
                uint32_t q = stored(w, at.data, p, c);
                float v = w->codes ? w->codes[q & 15] : (float)q - zero;
                const float *x = a->floats + (b * w->block + p) * a->rows;
                for (int r = 0; r < a->rows; r++) dot[r] += x[r] * v;
            }
            for (int r = 0; r < a->rows; r++)
                y[r * COLUMNS + c] += dot[r] * scale_of(w, at.scales, c);
        }
    }
}
