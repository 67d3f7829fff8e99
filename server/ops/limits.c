/* limits.c - what clients may ask of a server. */
#include "server/ops/limits.h"

#include "base/cgroup.h"

#include <assert.h>
#include <unistd.h>

#define SECOND 1000000000u

/* Three quarters of what the machine, or the process's cgroup, has. */
static uint64_t most_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
    sni_cgroup_memory(&bytes);
    return bytes / 4 * 3;
}

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
        .time_ns = 60ull * SECOND,
        .run_memory = most_memory(),
        .load_ns = 300ull * SECOND,
        .cache = (size_t)64 << 20,
        .models = 1024,
    };
}

void srv_budget_init(srv_budget *budget, size_t limit) {
    budget->limit = limit;
    atomic_init(&budget->used, 0);
}

bool srv_budget_take(srv_budget *budget, size_t bytes) {
    size_t before = atomic_fetch_add(&budget->used, bytes);
    if (bytes <= budget->limit && before <= budget->limit - bytes) return true;
    atomic_fetch_sub(&budget->used, bytes);
    return false;
}

void srv_budget_give(srv_budget *budget, size_t bytes) {
    size_t before = atomic_fetch_sub(&budget->used, bytes);
    assert(bytes <= before);
    (void)before;
}

size_t srv_budget_used(const srv_budget *budget) {
    return atomic_load(&budget->used);
}
