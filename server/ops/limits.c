/* limits.c - what clients may ask of the server. */
#include "server/ops/limits.h"

#include <stdatomic.h>

#define SECOND 1000000000u

static srv_limits_table current;
static atomic_size_t used;

void srv_limits_init(srv_limits_table *limits) {
    *limits = (srv_limits_table){
        .body = (size_t)128 << 20,
        .header = 16 << 10,
        .depth = 32,
        .memory = (size_t)1 << 30,
        .connections = 4096,
        .connections_per_address = 1024,
        .head_ns = 10ull * SECOND,
        .body_ns = 30ull * SECOND,
        .idle_ns = 75ull * SECOND,
        .body_rate = 1024,
        .max_queue = 1024,
        .time_ns = 0,
        .run_memory = 0,
        .cache = (size_t)64 << 20,
        .models = 1024,
    };
}

void srv_limits_set(const srv_limits_table *limits) {
    current = *limits;
}

const srv_limits_table *srv_limits(void) {
    return &current;
}

bool srv_budget_take(size_t bytes) {
    size_t before = atomic_fetch_add(&used, bytes);
    if (bytes <= current.memory && before <= current.memory - bytes) return true;
    atomic_fetch_sub(&used, bytes);
    return false;
}

void srv_budget_give(size_t bytes) {
    atomic_fetch_sub(&used, bytes);
}

size_t srv_budget_used(void) {
    return atomic_load(&used);
}
