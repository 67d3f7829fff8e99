/* pnm.c - portable bit, grey and pixel maps, as text (P1 to P3) and binary (P4 to P6). */
#include "codecs/codec.h"

typedef struct reader {
    const uint8_t *p, *end;
} reader;

static bool is_space(int c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Skips white space and comments. */
static void skip(reader *r) {
    while (r->p < r->end) {
        if (*r->p == '#')
            while (r->p < r->end && *r->p != '\n') r->p++;
        else if (is_space(*r->p))
            r->p++;
        else
            return;
    }
}

/* The next number, or -1. What is above 9 digits is no size or sample. */
static int64_t number(reader *r) {
    int64_t v = 0;
    int digits = 0;
    for (skip(r); r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++) {
        if (++digits > 9) return -1;
        v = v * 10 + (*r->p - '0');
    }
    return digits ? v : -1;
}

/* A sample of [0, most] as one of [0, 255], to the nearest, ties to even. */
static uint8_t scale(int64_t v, int64_t most) {
    if (v > most) v = most;
    int64_t q = v * 255 / most, rest = v * 255 % most * 2;
    return (uint8_t)(q + (rest > most || (rest == most && q % 2)));
}

/* The next sample of a text map; -1 at the end. Bits need no space between them, and 1 is black. */
static int64_t text_sample(reader *r, bool bits) {
    if (!bits) return number(r);
    skip(r);
    if (r->p == r->end || (*r->p != '0' && *r->p != '1')) return -1;
    return *r->p++ == '0';
}

static sn_status read_text(reader *r, int64_t samples, int64_t most, bool bits, bool grey,
                           uint8_t *rgb, sn_error *err) {
    for (int64_t i = 0; i < samples; i++) {
        int64_t v = text_sample(r, bits);
        if (v < 0) return sni_fail(err, SN_MALFORMED, "sample %lld is missing", (long long)i);
        uint8_t s = scale(v, most);
        if (grey)
            sni_put_rgb(rgb + i * 3, s, s, s);
        else
            rgb[i] = s;
    }
    return SN_OK;
}

static void read_bits(const uint8_t *p, int64_t width, int64_t height, uint8_t *rgb) {
    int64_t row = (width + 7) / 8;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++, rgb += 3) {
            unsigned v = p[y * row + x / 8] >> (7 - x % 8) & 1 ? 0 : 255;
            sni_put_rgb(rgb, v, v, v);
        }
}

static void read_binary(const uint8_t *p, int64_t samples, int64_t most, bool grey, uint8_t *rgb) {
    for (int64_t i = 0; i < samples; i++) {
        uint8_t s = most > 255 ? scale(p[i * 2] << 8 | p[i * 2 + 1], most) : scale(p[i], most);
        if (grey)
            sni_put_rgb(rgb + i * 3, s, s, s);
        else
            rgb[i] = s;
    }
}

sn_status sni_image_pnm(sni_image_bytes in, const sni_image_target *target, sn_error *err) {
    reader r = {in.p + 2, in.p + in.n};
    int kind = in.p[1] - '0';
    bool text = kind < 4, bits = kind == 1 || kind == 4, grey = kind != 3 && kind != 6;
    int64_t width = number(&r), height = number(&r), most = bits ? 1 : number(&r);
    if (most < 1 || most > 65535)
        return sni_fail(err, SN_MALFORMED, "the greatest sample is %lld", (long long)most);
    if (r.p < r.end) r.p++; /* the one white space before binary samples */
    if (width > SNI_IMAGE_SIDE || height > SNI_IMAGE_SIDE || width < 1 || height < 1)
        return sni_image_begin(target, width, height, NULL, err); /* fails */
    int64_t samples = width * height * (grey ? 1 : 3);
    int64_t least = text   ? samples
                    : bits ? (width + 7) / 8 * height
                           : samples * (most > 255 ? 2 : 1);
    if (r.end - r.p < least)
        return sni_fail(err, SN_MALFORMED, "%lld bytes of samples where %lld are needed",
                        (long long)(r.end - r.p), (long long)least);
    uint8_t *rgb;
    SN_TRY(sni_image_begin(target, width, height, &rgb, err));
    if (text) return read_text(&r, samples, most, bits, grey, rgb, err);
    if (bits)
        read_bits(r.p, width, height, rgb);
    else
        read_binary(r.p, samples, most, grey, rgb);
    return SN_OK;
}
