/* work_stealing.c - threads of a loop that help each other. */
#include "base/work_stealing.h"

#include "base/clock.h"
#include "base/cpu_pause.h"

#include <sched.h>
#include <stddef.h>

enum {
    PATIENCE = 20000, /* nanoseconds that a helper waits for others to have units to take */
    FEW = 64          /* looks before one asks for the time, or leaves the CPU to others */
};

static uint64_t stretch(int64_t first, int64_t end) {
    return (uint64_t)first << 32 | (uint64_t)end;
}

static bool none_left(uint64_t left) {
    return left >> 32 == (left & UINT32_MAX);
}

void sni_stealing_init(sni_stealing *stealing, int parts,
                       void (*run)(void *ctx, int part, const void *work, int64_t unit),
                       void *ctx) {
    stealing->parts = parts;
    stealing->run = run;
    stealing->ctx = ctx;
    stealing->helpful = parts <= sni_threads_available();
    atomic_init(&stealing->busy, 0);
    for (int i = 0; i < parts; i++) {
        stealing->hands[i].work = NULL;
        stealing->hands[i].begun = false;
        atomic_init(&stealing->hands[i].left, 0);
        atomic_init(&stealing->hands[i].helpers, 0);
    }
}

/* Takes the first unit or the last one; -1: there is none left. */
static int64_t take(sni_stealing_part *hand, bool first) {
    uint64_t left = atomic_load_explicit(&hand->left, memory_order_acquire), rest;
    int64_t from, to;
    do {
        if (none_left(left)) return -1;
        from = (int64_t)(left >> 32);
        to = (int64_t)(left & UINT32_MAX);
        rest = first ? stretch(from + 1, to) : stretch(from, to - 1);
    } while (!atomic_compare_exchange_weak_explicit(&hand->left, &left, rest, memory_order_acq_rel,
                                                    memory_order_acquire));
    return first ? from : to - 1;
}

void sni_stealing_do(sni_stealing *stealing, int part, const void *work, int64_t units) {
    sni_stealing_part *hand = &stealing->hands[part];
    hand->work = work;
    if (!hand->begun) atomic_fetch_add(&stealing->busy, 1);
    hand->begun = true;
    atomic_store_explicit(&hand->left, stretch(0, units), memory_order_release);
    for (int64_t unit; (unit = take(hand, true)) >= 0;)
        stealing->run(stealing->ctx, part, work, unit);
    for (int i = 0; atomic_load(&hand->helpers) > 0; i++) {
        sni_cpu_pause();
        if (i % FEW == FEW - 1) sched_yield();
    }
}

/* Takes units of one part until it has none. True: there was one. Whoever is counted among the
 * helpers before he takes a unit can rely on the work until he is not any more: its owner waits. */
static bool help(sni_stealing *stealing, int part, sni_stealing_part *hand) {
    bool any = false;
    if (none_left(atomic_load_explicit(&hand->left, memory_order_relaxed))) return false;
    atomic_fetch_add(&hand->helpers, 1);
    for (int64_t unit; (unit = take(hand, false)) >= 0; any = true)
        stealing->run(stealing->ctx, part, hand->work, unit);
    atomic_fetch_sub(&hand->helpers, 1);
    return any;
}

void sni_stealing_help(sni_stealing *stealing, int part) {
    uint64_t since = 0;
    if (stealing->hands[part].begun) atomic_fetch_sub(&stealing->busy, 1);
    for (int i = 1; stealing->helpful && atomic_load(&stealing->busy) > 0; i++) {
        bool any = false;
        for (int other = 1; other < stealing->parts; other++)
            any |= help(stealing, part, &stealing->hands[(part + other) % stealing->parts]);
        if (any) {
            since = 0;
            continue;
        }
        sni_cpu_pause();
        if (i % FEW) continue;
        sched_yield();
        uint64_t now = sni_now_ns();
        if (since && now - since > PATIENCE) return;
        if (!since) since = now;
    }
}
