/* lowbit_pack.c - weights of few bits in panels, and what a packed element stands for. */
#include "cpu/lowbit/lowbit.h"

#include "base/checked.h"
#include "base/lengths.h"
#include "base/threadpool.h"

#include <math.h>
#include <string.h>

enum { COLUMNS = SNI_LOWBIT_COLUMNS, CHUNK = SNI_LOWBIT_CHUNK };

/* ---- Layout ---- */

bool sni_lowbit_layout(sni_lowbit *w) {
    const size_t zero_size = w->zero == SNI_LOWBIT_MIDDLE ? 0 : w->zero == SNI_LOWBIT_BYTES ? 1 : 4;
    const size_t numbers = SNI_LOWBIT_SIDE * COLUMNS, scale_size = w->half_scales ? 2 : 4;
    size_t all, groups = (size_t)sni_ceil_div(w->blocks, SNI_LOWBIT_SIDE);
    w->block_bytes = (size_t)(w->block * w->bits * COLUMNS / 8);
    w->scales_at = SNI_LOWBIT_SIDE * w->block_bytes;
    w->zeros_at = w->scales_at + numbers * scale_size;
    w->group_bytes = w->zeros_at + numbers * zero_size;
    return sni_mul_size(groups, w->group_bytes, &w->panel_bytes) &&
           sni_mul_size(w->panel_bytes, (size_t)sni_lowbit_panels(w), &all) && all < SIZE_MAX / 2;
}

static float number_at(sn_dtype dtype, const void *data, int64_t i) {
    const unsigned char *at = (const unsigned char *)data + i * (dtype == SN_FLOAT32 ? 4 : 2);
    float f;
    uint16_t half;
    if (dtype == SN_FLOAT32) {
        memcpy(&f, at, sizeof f);
        return f;
    }
    memcpy(&half, at, sizeof half);
    return dtype == SN_FLOAT16 ? sni_f16_to_f32(half) : sni_bf16_to_f32(half);
}

/* Number of the scale of group `at`, all columns' groups counted. */
static int64_t scale_index(const sni_lowbit_source *s, int64_t at) {
    return s->scale_run > 1 ? at / s->scale_run : at;
}

bool sni_lowbit_halves(const sni_lowbit *w, const sni_lowbit_source *s) {
    const int64_t count = scale_index(s, w->n * s->groups - 1) + 1;
    if (s->scale_type == SN_FLOAT16) return true;
    for (int64_t i = 0; i < count; i++) {
        float scale = number_at(s->scale_type, s->scales, i);
        if (sni_f16_to_f32(sni_f32_to_f16(scale)) != scale) return false;
    }
    return true;
}

/* ---- Elements ---- */

static uint32_t packed_at(const uint8_t *q, int bits, bool high_first, int64_t p) {
    int64_t of_byte = 8 / bits, place = high_first ? of_byte - 1 - p % of_byte : p % of_byte;
    return (uint32_t)(q[p / of_byte] >> place * bits) & ((1u << bits) - 1);
}

/* 32 bits of neighbours, the first in the lowest bits, as they stand in a column of a chunk. */
static uint32_t arranged(int bits, uint32_t x) {
    uint32_t t;
    if (bits == 2) { /* a transposition of 4 x 4 */
        t = (x ^ (x >> 6)) & 0x00cc00cc;
        x ^= t ^ (t << 6);
        t = (x ^ (x >> 12)) & 0x0000f0f0;
        return x ^ t ^ (t << 12);
    }
    if (bits == 4) { /* the numbers of the lower half, those of the upper half between them */
        uint32_t low = x & 0xffff, high = x >> 16;
        low = (low | low << 8) & 0x00ff00ff;
        low = (low | low << 4) & 0x0f0f0f0f;
        high = (high | high << 8) & 0x00ff00ff;
        high = (high | high << 4) & 0x0f0f0f0f;
        return low | high << 4;
    }
    return x;
}

/* Elements [p, p + 32 / bits) of a column; p counts in the order of blocks. */
static uint32_t word_at(const sni_lowbit *w, const sni_lowbit_source *s, const uint8_t *row,
                        int64_t p) {
    const int count = 32 / w->bits;
    uint32_t word = 0;
    if (!s->order && !s->high_first && (p + count) * w->bits / 8 <= s->row_bytes) {
        const uint8_t *at = row + p * w->bits / 8;
        return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
               (uint32_t)at[3] << 24;
    }
    for (int i = 0; i < count; i++) {
        int64_t from = s->order ? s->order[p + i] : p + i;
        if (from >= 0 && from < w->k)
            word |= packed_at(row, w->bits, s->high_first, from) << i * w->bits;
    }
    return word;
}

static void pack_elements(const sni_lowbit *w, const sni_lowbit_source *s, int64_t j,
                          const uint8_t *panel) {
    const int64_t step = 32 / w->bits;
    const uint8_t *row = s->q + j * s->row_bytes;
    for (int64_t b = 0; b < w->blocks; b++) {
        uint8_t *to = (uint8_t *)(uintptr_t)sni_lowbit_block(w, panel, b).data + j % COLUMNS * 4;
        for (int64_t p = b * w->block; p < (b + 1) * w->block; p += step, to += CHUNK) {
            uint32_t word = arranged(w->bits, word_at(w, s, row, p));
            for (int i = 0; i < 4; i++) to[i] = (uint8_t)(word >> 8 * i);
        }
    }
}

/* ---- Scales and zero points ---- */

static void put_number(float v, bool half, uint8_t *to) {
    uint16_t h = half ? sni_f32_to_f16(v) : 0;
    memcpy(to, half ? (const void *)&h : (const void *)&v, half ? sizeof h : sizeof v);
}

/* Whether factors this large could make infinities that sums of whole elements do not have. */
static bool is_huge(float v, float limit) {
    return !(fabsf(v) <= limit);
}

static void pack_scales(const sni_lowbit *w, const sni_lowbit_source *s, int64_t j,
                        const uint8_t *panel) {
    static const float scale_limit = 1e30f, zero_limit = 1 << 24;
    const int64_t c = j % COLUMNS, size = w->half_scales ? 2 : 4;
    bool plain = false;
    for (int64_t b = 0; b < w->blocks; b++) {
        int64_t group = s->group_of ? s->group_of[b] : b * w->block / s->group;
        int64_t from = j * s->groups + group;
        sni_lowbit_place at = sni_lowbit_block(w, panel, b);
        uint8_t *scales = (uint8_t *)(uintptr_t)at.scales, *zeros = (uint8_t *)(uintptr_t)at.zeros;
        float scale = number_at(s->scale_type, s->scales, scale_index(s, from));
        plain |= is_huge(scale, scale_limit);
        put_number(scale, w->half_scales, scales + c * size);
        if (w->zero == SNI_LOWBIT_BYTES)
            zeros[c] = (uint8_t)packed_at(s->zeros + j * s->zero_bytes, w->bits, false, group);
        if (w->zero != SNI_LOWBIT_FLOATS) continue;
        float zero = number_at(s->zero_type, s->zero_numbers, from);
        plain |= is_huge(zero, zero_limit);
        put_number(zero, false, zeros + c * 4);
    }
    w->plain[j] = plain;
}

typedef struct packing {
    const sni_lowbit *w;
    const sni_lowbit_source *s;
} packing;

static void pack_columns(void *ctx, int64_t begin, int64_t end) {
    const packing *p = ctx;
    for (int64_t j = begin; j < end; j++) {
        uint8_t *panel = p->w->panels + (size_t)(j / COLUMNS) * p->w->panel_bytes;
        pack_elements(p->w, p->s, j, panel);
        pack_scales(p->w, p->s, j, panel);
    }
}

void sni_lowbit_pack(const sni_lowbit *w, const sni_lowbit_source *s, int threads) {
    enum { GRAIN = 1 << 16 };
    packing p = {w, s};
    sni_parallel_for(threads, w->n, sni_max(1, GRAIN / w->k), pack_columns, &p);
}

/* ---- What is packed ---- */

float sni_lowbit_element(const sni_lowbit *w, int64_t j, int64_t p) {
    const uint8_t *panel = w->panels + (size_t)(j / COLUMNS) * w->panel_bytes;
    int64_t c = j % COLUMNS, of_chunk = 32 / w->bits, in = p % of_chunk;
    sni_lowbit_place at = sni_lowbit_block(w, panel, p / w->block);
    uint8_t byte = at.data[p % w->block / of_chunk * CHUNK + c * 4 + in % 4];
    uint32_t q = (uint32_t)(byte >> in / 4 * w->bits) & ((1u << w->bits) - 1);
    float scale = number_at(w->half_scales ? SN_FLOAT16 : SN_FLOAT32, at.scales, c);
    float zero = (float)(1 << (w->bits - 1));
    if (w->zero == SNI_LOWBIT_BYTES) zero = at.zeros[c];
    if (w->zero == SNI_LOWBIT_FLOATS) zero = number_at(SN_FLOAT32, at.zeros, c);
    return (w->codes ? w->codes[q & 15] : (float)q - zero) * scale;
}
