/* keys.h - sorting floats by keys: the value above, its position below, in 64 bits. */
#ifndef SNI_CPU_SELECT_RADIX_SORT_H
#define SNI_CPU_SELECT_RADIX_SORT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A number that rises as the value falls; equal values have equal ones, and NaN is taken for the
 * largest. The complement rises with the value. */
static inline uint32_t sni_falling_key(float value) {
    uint32_t bits;
    float v = value + 0.0f; /* -0 is 0 */
    memcpy(&bits, &v, sizeof bits);
    bits = bits & 0x80000000u ? bits : ~(bits | 0x80000000u);
    return v != v ? 0 : bits;
}

/* Sorts n keys by their upper halves, keeping the order of equal ones. Both arrays have n elements;
 * returns the one with the result. */
uint64_t *sni_radix_sort(uint64_t *keys, uint64_t *other, int64_t n);

#endif
