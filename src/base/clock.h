/* clock.h - the time that only goes forward. */
#ifndef SNI_BASE_CLOCK_H
#define SNI_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t sni_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The moment `limit_ns` from now, as sni_now_ns() counts; 0 (no such moment) for a limit of 0. */
static inline uint64_t sni_deadline_in(uint64_t limit_ns) {
    uint64_t now = limit_ns ? sni_now_ns() : 0;
    return limit_ns > UINT64_MAX - now ? UINT64_MAX : now + limit_ns;
}

#endif
