/* float_text.c - floating-point numbers as the shortest decimal text that reads back the same.
 *
 * float: the method of R. Giulietti ("The Schubfach way to render doubles"), with 64-bit powers of
 * ten. The interval of reals that round to the number is scaled by a power of ten; the shortest
 * decimal inside it, and the closest of those, is the answer. */
#include "server/api/float_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ceil(10^k * 2^e) with e such that the top bit is set; k from -31 to 45. */
#define POWER_MIN (-31)
static const uint64_t powers[] = {
    0x81ceb32c4b43fcf5, 0xa2425ff75e14fc32, 0xcad2f7f5359a3b3f, 0xfd87b5f28300ca0e,
    0x9e74d1b791e07e49, 0xc612062576589ddb, 0xf79687aed3eec552, 0x9abe14cd44753b53,
    0xc16d9a0095928a28, 0xf1c90080baf72cb2, 0x971da05074da7bef, 0xbce5086492111aeb,
    0xec1e4a7db69561a6, 0x9392ee8e921d5d08, 0xb877aa3236a4b44a, 0xe69594bec44de15c,
    0x901d7cf73ab0acda, 0xb424dc35095cd810, 0xe12e13424bb40e14, 0x8cbccc096f5088cc,
    0xafebff0bcb24aaff, 0xdbe6fecebdedd5bf, 0x89705f4136b4a598, 0xabcc77118461cefd,
    0xd6bf94d5e57a42bd, 0x8637bd05af6c69b6, 0xa7c5ac471b478424, 0xd1b71758e219652c,
    0x83126e978d4fdf3c, 0xa3d70a3d70a3d70b, 0xcccccccccccccccd, 0x8000000000000000,
    0xa000000000000000, 0xc800000000000000, 0xfa00000000000000, 0x9c40000000000000,
    0xc350000000000000, 0xf424000000000000, 0x9896800000000000, 0xbebc200000000000,
    0xee6b280000000000, 0x9502f90000000000, 0xba43b74000000000, 0xe8d4a51000000000,
    0x9184e72a00000000, 0xb5e620f480000000, 0xe35fa931a0000000, 0x8e1bc9bf04000000,
    0xb1a2bc2ec5000000, 0xde0b6b3a76400000, 0x8ac7230489e80000, 0xad78ebc5ac620000,
    0xd8d726b7177a8000, 0x878678326eac9000, 0xa968163f0a57b400, 0xd3c21bcecceda100,
    0x84595161401484a0, 0xa56fa5b99019a5c8, 0xcecb8f27f4200f3a, 0x813f3978f8940985,
    0xa18f07d736b90be6, 0xc9f2c9cd04674edf, 0xfc6f7c4045812297, 0x9dc5ada82b70b59e,
    0xc5371912364ce306, 0xf684df56c3e01bc7, 0x9a130b963a6c115d, 0xc097ce7bc90715b4,
    0xf0bdc21abb48db21, 0x96769950b50d88f5, 0xbc143fa4e250eb32, 0xeb194f8e1ae525fe,
    0x92efd1b8d0cf37bf, 0xb7abc627050305ae, 0xe596b7b0c643c71a, 0x8f7e32ce7bea5c70,
    0xb35dbf821ae4f38c,
};

typedef struct decimal {
    uint32_t digits;
    int exponent; /* value = digits * 10^exponent */
} decimal;

/* The top 32 bits of g * c / 2^64, with the lowest bit set when anything was lost. */
static uint32_t round_to_odd(uint64_t g, uint32_t c) {
    uint64_t low = (g & 0xFFFFFFFF) * c;
    uint64_t high = (g >> 32) * c + (low >> 32);
    return (uint32_t)(high >> 32) | ((uint32_t)high > 1);
}

/* c * 2^q, c not 0; `even_gap`: the neighbour below is as far away as the one above. */
static decimal shortest(uint32_t c, int q, bool even_gap) {
    uint32_t odd = c & 1;
    /* floor(log10(2^q)), or of 3/4 of it; arithmetic shifts of negative numbers round down */
    int k = (q * 1262611 - (even_gap ? 0 : 524031)) >> 22;
    int h = q + ((-k * 1741647) >> 19) + 1; /* 1 to 4 */
    uint64_t g = powers[-k - POWER_MIN];
    uint32_t center = c << 2;
    uint32_t low = round_to_odd(g, (center - (even_gap ? 2 : 1)) << h) + odd;
    uint32_t middle = round_to_odd(g, center << h);
    uint32_t high = round_to_odd(g, (center + 2) << h) - odd;
    uint32_t s = middle / 4;
    if (s >= 10) {
        uint32_t tens = s / 10;
        bool below = low <= 40 * tens, above = 40 * tens + 40 <= high;
        if (below != above) return (decimal){tens + above, k + 1};
    }
    bool below = low <= 4 * s, above = 4 * s + 4 <= high;
    if (below != above) return (decimal){s + above, k};
    uint32_t half = 4 * s + 2;
    bool up = middle > half || (middle == half && (s & 1));
    return (decimal){s + up, k};
}

/* Plain notation where it takes few zeros, otherwise d.ddde[-]xx. */
static size_t place(uint32_t digits, int exponent, char *out) {
    char text[12];
    int count = 0;
    while (digits % 10 == 0 && digits) {
        digits /= 10;
        exponent++;
    }
    for (uint32_t rest = digits; rest || count == 0; rest /= 10)
        text[count++] = (char)('0' + rest % 10);
    char *p = out;
    int point = count + exponent; /* digits before the decimal point */
    if (point > 0 && point <= 16) {
        for (int i = 0; i < point; i++) *p++ = i < count ? text[count - 1 - i] : '0';
        *p++ = '.';
        for (int i = point; i < count; i++) *p++ = text[count - 1 - i];
        if (p[-1] == '.') *p++ = '0';
    } else if (point <= 0 && point > -5) {
        *p++ = '0';
        *p++ = '.';
        for (int i = point; i < 0; i++) *p++ = '0';
        for (int i = count; i > 0; i--) *p++ = text[i - 1];
    } else {
        *p++ = text[count - 1];
        if (count > 1) *p++ = '.';
        for (int i = count - 1; i > 0; i--) *p++ = text[i - 1];
        p += sprintf(p, "e%d", point - 1);
    }
    return (size_t)(p - out);
}

size_t srv_float_text(float value, char *out) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    char *p = out;
    if (bits >> 31) *p++ = '-';
    uint32_t mantissa = bits & 0x7FFFFF;
    int exponent = (int)(bits >> 23 & 0xFF);
    if (mantissa == 0 && exponent == 0) {
        memcpy(p, "0.0", 3);
        return (size_t)(p + 3 - out);
    }
    uint32_t c = exponent ? mantissa | 0x800000 : mantissa;
    int q = exponent ? exponent - 150 : -149;
    decimal d;
    if (q <= 0 && q > -24 && (c & ((1u << -q) - 1)) == 0) {
        d = (decimal){c >> -q, 0};
    } else {
        d = shortest(c, q, mantissa != 0 || exponent <= 1);
    }
    return (size_t)(p - out) + place(d.digits, d.exponent, p);
}

size_t srv_double_text(double value, char *out) {
    int length = 0;
    for (int digits = 15; digits <= 17; digits++) {
        length = snprintf(out, SRV_FLOAT_TEXT, "%.*g", digits, value);
        if (strtod(out, NULL) == value) break;
    }
    if (!strpbrk(out, ".e")) {
        memcpy(out + length, ".0", 2);
        length += 2;
    }
    return (size_t)length;
}
