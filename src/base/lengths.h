/* lengths.h - small arithmetic on counts and lengths. */
#ifndef SNI_BASE_LENGTHS_H
#define SNI_BASE_LENGTHS_H

#include <stdint.h>

static inline int64_t sni_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t sni_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* For a >= 0 and b > 0 whose sum fits. */
static inline int64_t sni_ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* The least multiple of b that is not below a; as sni_ceil_div. */
static inline int64_t sni_round_up(int64_t a, int64_t b) {
    return sni_ceil_div(a, b) * b;
}

#endif
