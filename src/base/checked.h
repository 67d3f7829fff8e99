/* checked.h - arithmetic on sizes that a model or a request can reach. True means it fits. */
#ifndef SNI_BASE_CHECKED_H
#define SNI_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool sni_mul_size(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool sni_add_size(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

static inline bool sni_mul_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool sni_add_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

static inline bool sni_sub_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_sub_overflow(a, b, out);
}

/* The number of elements of a shape. False if a dimension is negative or a product of all
 * non-zero dimensions does not fit: a zero beside huge dimensions does not hide them. */
static inline bool sni_shape_count(int rank, const int64_t *dims, int64_t *count) {
    int64_t product = 1;
    bool zero = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0) return false;
        if (dims[i] == 0)
            zero = true;
        else if (!sni_mul_i64(product, dims[i], &product))
            return false;
    }
    *count = zero ? 0 : product;
    return true;
}

#endif
