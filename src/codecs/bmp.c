/* bmp.c - Windows and OS/2 bitmaps: palettes, 16 to 32 bits with or without masks, run lengths. */
#include "codecs/codec.h"

#include <string.h>

enum { PLAIN = 0, RLE8 = 1, RLE4 = 2, MASKS = 3, ALPHA_MASKS = 6 }; /* ways to store pixels */

typedef struct bitmap {
    sni_image_bytes in;
    int64_t width, height, row; /* row: bytes of one in the file */
    size_t pixels;              /* where they start */
    unsigned bits, storage;
    bool top_down;
    uint32_t mask[3];
    uint8_t palette[256][3];
    uint8_t *rgb;
} bitmap;

static unsigned u16(const uint8_t *p) {
    return (unsigned)p[0] | (unsigned)p[1] << 8;
}

static uint32_t u32(const uint8_t *p) {
    return (uint32_t)u16(p) | (uint32_t)u16(p + 2) << 16;
}

/* ---- Headers ---- */

/* Palette of `colors` entries of `width` bytes at `at`, as far as the file goes. */
static void read_palette(bitmap *b, size_t at, uint32_t colors, size_t width) {
    if (colors > 256) colors = 256;
    for (size_t i = 0; i < colors && at + (i + 1) * width <= b->in.n; i++) {
        const uint8_t *p = b->in.p + at + i * width;
        sni_put_rgb(b->palette[i], p[2], p[1], p[0]);
    }
}

/* Masks lie in the header or, in the oldest version, behind it. */
static sn_status read_masks(bitmap *b, size_t *palette, sn_error *err) {
    static const uint32_t of16[3] = {0x7c00, 0x3e0, 0x1f}, of32[3] = {0xff0000, 0xff00, 0xff};
    memcpy(b->mask, b->bits == 16 ? of16 : of32, sizeof b->mask);
    if (b->storage != MASKS && b->storage != ALPHA_MASKS) return SN_OK;
    if (b->in.n < 54 + 12) return sni_fail(err, SN_MALFORMED, "the masks are missing");
    for (size_t i = 0; i < 3; i++) b->mask[i] = u32(b->in.p + 54 + i * 4);
    if (*palette == 54) *palette += b->storage == MASKS ? 12 : 16;
    b->storage = PLAIN;
    return SN_OK;
}

static sn_status read_header(bitmap *b, sn_error *err) {
    const uint8_t *p = b->in.p;
    uint32_t size = b->in.n >= 18 ? u32(p + 14) : 0;
    if ((size != 12 && (size < 40 || size > 1024)) || b->in.n < 14 + (size_t)size)
        return sni_fail(err, SN_MALFORMED, "a header of %lu bytes", (unsigned long)size);
    size_t palette = 14 + (size_t)size;
    bool old = size == 12;
    b->pixels = u32(p + 10);
    b->width = old ? (int64_t)u16(p + 18) : (int64_t)(int32_t)u32(p + 18);
    b->height = old ? (int64_t)u16(p + 20) : (int64_t)(int32_t)u32(p + 22);
    b->bits = old ? u16(p + 24) : u16(p + 28);
    b->storage = old ? PLAIN : u32(p + 30);
    b->top_down = b->height < 0;
    if (b->top_down) b->height = -b->height;
    bool good = b->storage == RLE8    ? b->bits == 8
                : b->storage == RLE4  ? b->bits == 4
                : b->storage == PLAIN ? b->bits == 1 || b->bits == 4 || b->bits == 8 ||
                                            b->bits == 16 || b->bits == 24 || b->bits == 32
                                      : (b->storage == MASKS || b->storage == ALPHA_MASKS) &&
                                            (b->bits == 16 || b->bits == 32);
    if (!good)
        return sni_fail(err, SN_UNSUPPORTED, "%u bits a pixel stored in way %u", b->bits,
                        b->storage);
    SN_TRY(read_masks(b, &palette, err));
    uint32_t colors = old ? 0 : u32(p + 46);
    if (b->bits <= 8) read_palette(b, palette, colors ? colors : 1u << b->bits, old ? 3 : 4);
    return SN_OK;
}

/* ---- Pixels ---- */

static uint8_t *line_at(const bitmap *b, int64_t y) {
    return b->rgb + (b->top_down ? y : b->height - 1 - y) * b->width * 3;
}

static unsigned masked(uint32_t pixel, uint32_t mask) {
    if (!mask) return 0;
    int shift = __builtin_ctz(mask);
    return (unsigned)((uint64_t)((pixel & mask) >> shift) * 255 / (mask >> shift));
}

static void read_line(const bitmap *b, const uint8_t *p, uint8_t *to) {
    for (int64_t x = 0; x < b->width; x++, to += 3) {
        if (b->bits <= 8) {
            int64_t bit = x * b->bits;
            unsigned v = (unsigned)p[bit / 8] >> (8 - b->bits - bit % 8) & ((1u << b->bits) - 1);
            memcpy(to, b->palette[v], 3);
        } else if (b->bits == 24) {
            sni_put_rgb(to, p[x * 3 + 2], p[x * 3 + 1], p[x * 3]);
        } else {
            uint32_t v = b->bits == 16 ? u16(p + x * 2) : u32(p + x * 4);
            sni_put_rgb(to, masked(v, b->mask[0]), masked(v, b->mask[1]), masked(v, b->mask[2]));
        }
    }
}

/* A place in a picture of run lengths; what goes beyond the picture is dropped. */
typedef struct cursor {
    int64_t x, y;
} cursor;

static void put_index(const bitmap *b, cursor *c, unsigned v) {
    if (c->x < b->width && c->y < b->height) memcpy(line_at(b, c->y) + c->x * 3, b->palette[v], 3);
    c->x++;
}

/* n pixels, of the 1 or 2 in the byte at p, or of as many bytes as they take. */
static void put_run(const bitmap *b, cursor *c, const uint8_t *p, unsigned n, bool same) {
    for (unsigned i = 0; i < n; i++) {
        unsigned byte = p[same ? 0 : b->storage == RLE4 ? i / 2 : i];
        put_index(b, c, b->storage == RLE8 ? byte : i % 2 ? byte & 15 : byte >> 4);
    }
}

static sn_status read_runs(const bitmap *b, sn_error *err) {
    const uint8_t *p = b->in.p + b->pixels, *end = b->in.p + b->in.n;
    cursor c = {0, 0};
    for (int64_t i = 0; i < b->width * b->height; i++) memcpy(b->rgb + i * 3, b->palette[0], 3);
    while (end - p >= 2) {
        unsigned n = p[0], v = p[1];
        p += 2;
        if (n) {
            put_run(b, &c, p - 1, n, true);
        } else if (v == 0) {
            c = (cursor){0, c.y + 1};
        } else if (v == 1) {
            return SN_OK;
        } else if (v == 2) {
            if (end - p < 2) break;
            c.x += p[0];
            c.y += p[1];
            p += 2;
        } else {
            unsigned bytes = b->storage == RLE8 ? v : (v + 1) / 2;
            bytes += bytes % 2;
            if (end - p < bytes) break;
            put_run(b, &c, p, v, false);
            p += bytes;
        }
    }
    return c.y >= b->height ? SN_OK : sni_fail(err, SN_MALFORMED, "the runs end early");
}

sn_status sni_image_bmp(sni_image_bytes in, const sni_image_target *target, sn_error *err) {
    bitmap b = {.in = in};
    SN_TRY(read_header(&b, err));
    if (b.pixels > in.n) return sni_fail(err, SN_MALFORMED, "the pixels lie outside the file");
    b.row = (b.width * b.bits + 31) / 32 * 4;
    if (b.storage == PLAIN && b.width > 0 && b.height > 0 &&
        (int64_t)(in.n - b.pixels) / b.row < b.height)
        return sni_fail(err, SN_MALFORMED, "%zu bytes for %lld rows of %lld", in.n - b.pixels,
                        (long long)b.height, (long long)b.row);
    SN_TRY(sni_image_begin(target, b.width, b.height, &b.rgb, err));
    if (b.storage != PLAIN) return read_runs(&b, err);
    for (int64_t y = 0; y < b.height; y++)
        read_line(&b, in.p + b.pixels + y * b.row, line_at(&b, y));
    return SN_OK;
}
