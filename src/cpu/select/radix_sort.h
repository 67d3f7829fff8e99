/* radix_sort.h - sorting floats by 64-bit keys: the value in the upper half, its position in the
 * lower. */
#ifndef SNI_CPU_SELECT_RADIX_SORT_H
#define SNI_CPU_SELECT_RADIX_SORT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* An unsigned number that falls as the value rises: sorting by it puts the largest first. -0 equals
 * 0; NaN counts as the largest. The complement sorts the smallest first. */
static inline uint32_t sni_falling_key(float value) {
    uint32_t bits;
    float v = value + 0.0f; /* -0 is 0 */
    memcpy(&bits, &v, sizeof bits);
    bits = bits & 0x80000000u ? bits : ~(bits | 0x80000000u);
    return v != v ? 0 : bits;
}

/* Sorts n keys by their upper halves; equal ones keep their order. Both arrays have n elements and
 * are overwritten; returns the one with the result. */
uint64_t *sni_radix_sort(uint64_t *keys, uint64_t *other, int64_t n);

#endif
