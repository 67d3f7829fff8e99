/* radix_sort.c - LSD radix sort of 64-bit keys by their upper halves, in three passes of 11 bits.
 */
#include "cpu/select/radix_sort.h"

enum { DIGIT = 11, DIGITS = 1 << DIGIT, PASSES = 3 };

static int digit_of(uint64_t key, int pass) {
    return (int)(key >> (32 + pass * DIGIT) & (DIGITS - 1));
}

/* Turns counts into positions. True if all keys have the same digit: the pass can be skipped. */
static bool place(uint32_t *counts, int64_t n) {
    uint32_t at = 0;
    for (int d = 0; d < DIGITS; d++) {
        uint32_t count = counts[d];
        if ((int64_t)count == n) return true;
        counts[d] = at;
        at += count;
    }
    return false;
}

uint64_t *sni_radix_sort(uint64_t *keys, uint64_t *other, int64_t n) {
    uint32_t counts[PASSES][DIGITS] = {{0}};
    for (int64_t i = 0; i < n; i++)
        for (int p = 0; p < PASSES; p++) counts[p][digit_of(keys[i], p)]++;
    for (int p = 0; p < PASSES; p++) {
        if (place(counts[p], n)) continue;
        for (int64_t i = 0; i < n; i++) other[counts[p][digit_of(keys[i], p)]++] = keys[i];
        uint64_t *swap = keys;
        keys = other;
        other = swap;
    }
    return keys;
}
