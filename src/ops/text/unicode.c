/* unicode.c - UTF-8 and simple case mapping. */
#include "ops/text/unicode.h"

int32_t sni_utf8_decode(sni_str s, size_t at, size_t *length) {
    const unsigned char *p = (const unsigned char *)s.p + at;
    size_t left = s.n - at, n = p[0] < 0x80   ? 1
                                : p[0] < 0xC2 ? 0
                                : p[0] < 0xE0 ? 2
                                : p[0] < 0xF0 ? 3
                                : p[0] < 0xF5 ? 4
                                              : 0;
    *length = 1;
    if (n == 1) return p[0];
    if (n == 0 || n > left) return -1;
    int32_t c = p[0] & (0xFF >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) return -1;
        c = c << 6 | (p[i] & 0x3F);
    }
    bool too_long = (n == 3 && c < 0x800) || (n == 4 && c < 0x10000);
    if (too_long || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return -1;
    *length = n;
    return c;
}

size_t sni_utf8_encode(int32_t c, char *out) {
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (n == 1) {
        out[0] = (char)c;
        return 1;
    }
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3F));
        c >>= 6;
    }
    out[0] = (char)((0xF00 >> n) | c);
    return n;
}

/* Upper-case letters first..last (every `step`-th) and how far their lower case is. */
static const struct case_range {
    int32_t first, last, step, distance;
} ranges[] = {
    {0x41, 0x5A, 1, 32},       {0xC0, 0xD6, 1, 32},     {0xD8, 0xDE, 1, 32},
    {0x100, 0x12E, 2, 1},      {0x132, 0x136, 2, 1},    {0x139, 0x147, 2, 1},
    {0x14A, 0x176, 2, 1},      {0x178, 0x178, 1, -121}, {0x179, 0x17D, 2, 1},
    {0x1CD, 0x1DB, 2, 1},      {0x1DE, 0x1EE, 2, 1},    {0x1F8, 0x21E, 2, 1},
    {0x222, 0x232, 2, 1},      {0x386, 0x386, 1, 38},   {0x388, 0x38A, 1, 37},
    {0x38C, 0x38C, 1, 64},     {0x38E, 0x38F, 1, 63},   {0x391, 0x3A1, 1, 32},
    {0x3A3, 0x3AB, 1, 32},     {0x3D8, 0x3EE, 2, 1},    {0x400, 0x40F, 1, 80},
    {0x410, 0x42F, 1, 32},     {0x460, 0x480, 2, 1},    {0x48A, 0x4BE, 2, 1},
    {0x4C1, 0x4CD, 2, 1},      {0x4D0, 0x52E, 2, 1},    {0x531, 0x556, 1, 48},
    {0x1E00, 0x1E94, 2, 1},    {0x1EA0, 0x1EFE, 2, 1},  {0xFF21, 0xFF3A, 1, 32},
    {0x10400, 0x10427, 1, 40},
};

int32_t sni_lower(int32_t c) {
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const struct case_range *r = &ranges[i];
        if (c >= r->first && c <= r->last && (c - r->first) % r->step == 0) return c + r->distance;
    }
    return c;
}

int32_t sni_upper(int32_t c) {
    if (c == 0x3C2) return 0x3A3; /* final sigma */
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const struct case_range *r = &ranges[i];
        int32_t u = c - r->distance;
        if (u >= r->first && u <= r->last && (u - r->first) % r->step == 0) return u;
    }
    return c;
}
