/* team.c - threads of a loop that help each other. */
#include "base/team.h"

#include "base/clock.h"
#include "base/relax.h"

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

void sni_team_init(sni_team *team, int parts,
                   void (*run)(void *ctx, int part, const void *work, int64_t unit), void *ctx) {
    team->parts = parts;
    team->run = run;
    team->ctx = ctx;
    team->helpful = parts <= sni_threads_available();
    atomic_init(&team->busy, 0);
    for (int i = 0; i < parts; i++) {
        team->hands[i].work = NULL;
        team->hands[i].begun = false;
        atomic_init(&team->hands[i].left, 0);
        atomic_init(&team->hands[i].helpers, 0);
    }
}

/* Takes the first unit or the last one; -1: there is none left. */
static int64_t take(sni_hand *hand, bool first) {
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

void sni_team_do(sni_team *team, int part, const void *work, int64_t units) {
    sni_hand *hand = &team->hands[part];
    hand->work = work;
    if (!hand->begun) atomic_fetch_add(&team->busy, 1);
    hand->begun = true;
    atomic_store_explicit(&hand->left, stretch(0, units), memory_order_release);
    for (int64_t unit; (unit = take(hand, true)) >= 0;) team->run(team->ctx, part, work, unit);
    for (int i = 0; atomic_load(&hand->helpers) > 0; i++) {
        sni_relax();
        if (i % FEW == FEW - 1) sched_yield();
    }
}

/* Takes units of one part until it has none. True: there was one. Whoever is counted among the
 * helpers before he takes a unit can rely on the work until he is not any more: its owner waits. */
static bool help(sni_team *team, int part, sni_hand *hand) {
    bool any = false;
    if (none_left(atomic_load_explicit(&hand->left, memory_order_relaxed))) return false;
    atomic_fetch_add(&hand->helpers, 1);
    for (int64_t unit; (unit = take(hand, false)) >= 0; any = true)
        team->run(team->ctx, part, hand->work, unit);
    atomic_fetch_sub(&hand->helpers, 1);
    return any;
}

void sni_team_help(sni_team *team, int part) {
    uint64_t since = 0;
    if (team->hands[part].begun) atomic_fetch_sub(&team->busy, 1);
    for (int i = 1; team->helpful && atomic_load(&team->busy) > 0; i++) {
        bool any = false;
        for (int other = 1; other < team->parts; other++)
            any |= help(team, part, &team->hands[(part + other) % team->parts]);
        if (any) {
            since = 0;
            continue;
        }
        sni_relax();
        if (i % FEW) continue;
        sched_yield();
        uint64_t now = sni_now_ns();
        if (since && now - since > PATIENCE) return;
        if (!since) since = now;
    }
}
