/* unit.h - what every unit test includes: cmocka with the headers it needs. */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A small random generator with a fixed seed: tests are the same every time. */
static inline uint32_t unit_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33 ^ *state >> 11);
}

/* Adds to a text of `size` bytes, into which it must fit. */
static inline __attribute__((format(printf, 3, 4))) void unit_append(char *to, size_t size,
                                                                     const char *format, ...) {
    size_t n = strlen(to);
    va_list args;
    va_start(args, format);
    int k = vsnprintf(to + n, size - n, format, args);
    va_end(args);
    assert_true(k >= 0 && (size_t)k < size - n);
}

#endif
