/* random.c - see random.h. */
#include "ops/core/random.h"

#include <math.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>

enum { SIZE = 624, MIDDLE = 397 };

void sni_random_seed(sni_random *r, uint32_t seed) {
    for (uint32_t i = 0; i < SIZE; i++) {
        r->state[i] = seed;
        seed = 1812433253u * (seed ^ seed >> 30) + i + 1;
    }
    r->next = SIZE;
    r->has_spare = false;
}

uint32_t sni_random_fresh_seed(void) {
    static atomic_uint calls;
    uint32_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed) return seed;
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)now.tv_nsec * 2654435761u + (uint32_t)now.tv_sec +
           atomic_fetch_add(&calls, 1) * 40503u;
}

static void refill(sni_random *r) {
    for (int i = 0; i < SIZE; i++) {
        uint32_t y = (r->state[i] & 0x80000000u) | (r->state[(i + 1) % SIZE] & 0x7fffffffu);
        r->state[i] = r->state[(i + MIDDLE) % SIZE] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    r->next = 0;
}

static uint32_t draw(sni_random *r) {
    if (r->next == SIZE) refill(r);
    uint32_t y = r->state[r->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

double sni_random_uniform(sni_random *r) {
    uint32_t high = draw(r) >> 5, low = draw(r) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

/* Marsaglia's polar method: two numbers at a time, the second one kept. */
double sni_random_normal(sni_random *r) {
    if (r->has_spare) {
        r->has_spare = false;
        return r->spare;
    }
    double x, y, square;
    do {
        x = 2 * sni_random_uniform(r) - 1;
        y = 2 * sni_random_uniform(r) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    double factor = sqrt(-2 * log(square) / square);
    r->spare = factor * x;
    r->has_spare = true;
    return factor * y;
}
