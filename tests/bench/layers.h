/* layers.h - what the measurements of layers share. */
#ifndef TESTS_BENCH_LAYERS_H
#define TESTS_BENCH_LAYERS_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/* Milliseconds of a clock that only goes forward. */
static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Random numbers between -1 and 1, aligned; ends the program when memory runs out. */
static inline float *floats(int64_t count) {
    float *p = aligned_alloc(64, ((size_t)count * sizeof *p + 127) / 64 * 64);
    if (!p) exit(1);
    for (int64_t i = 0; i < count; i++) p[i] = (float)(rand() % 2001) / 1000.0f - 1.0f;
    return p;
}

#endif
