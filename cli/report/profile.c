/* profile.c - gathers the steps of some runs. */
#include "cli/report/profile.h"

#include <stdlib.h>
#include <string.h>

void cli_profile_free(cli_profile *p) {
    for (size_t i = 0; i < p->step_count; i++) {
        free(p->steps[i].node);
        free(p->steps[i].op);
        free(p->steps[i].impl);
        free(p->steps[i].shapes);
    }
    free(p->steps);
    free(p->calls);
    free(p->best);
    free(p->inner_ns);
    *p = (cli_profile){0};
}

/* A step of the main graph is there once in a run: names need not differ. */
static bool same_step(const cli_step *s, const sn_step_event *e) {
    return s->depth == e->depth && !(s->depth == 0 && s->called) && strcmp(s->node, e->node) == 0 &&
           strcmp(s->op, e->op) == 0;
}

/* Makes an array large enough for one more of `size` bytes. */
static void *grown(void *items, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return items;
    *capacity = *capacity ? *capacity * 2 : 256;
    void *more = cli_alloc(*capacity, size);
    if (count) memcpy(more, items, count * size);
    free(items);
    return more;
}

/* Steps come in the same order in every run: the one expected is tried first. */
static size_t find_step(cli_profile *p, const sn_step_event *e) {
    for (size_t i = 0; i < p->step_count; i++) {
        size_t at = (p->cursor + i) % p->step_count;
        if (same_step(&p->steps[at], e)) return at;
    }
    p->steps = grown(p->steps, p->step_count, &p->step_capacity, sizeof *p->steps);
    p->steps[p->step_count] = (cli_step){.node = cli_strdup(e->node),
                                         .op = cli_strdup(e->op),
                                         .impl = cli_strdup(e->impl),
                                         .shapes = cli_strdup(e->shapes),
                                         .depth = e->depth,
                                         .us = -1};
    return p->step_count++;
}

/* The time of a step without that of the steps inside it. */
static uint64_t own_time(cli_profile *p, const sn_step_event *e) {
    if (e->depth + 2 > p->inner_depth) {
        int depth = e->depth + 2;
        uint64_t *more = cli_alloc((size_t)depth, sizeof *more);
        if (p->inner_depth) memcpy(more, p->inner_ns, (size_t)p->inner_depth * sizeof *more);
        free(p->inner_ns);
        p->inner_ns = more;
        p->inner_depth = depth;
    }
    uint64_t all = e->end_ns - e->start_ns, inner = p->inner_ns[e->depth + 1];
    p->inner_ns[e->depth + 1] = 0;
    p->inner_ns[e->depth] += all;
    return all > inner ? all - inner : 0;
}

void cli_profile_step(void *ctx, const sn_step_event *e) {
    cli_profile *p = ctx;
    size_t at = find_step(p, e);
    p->cursor = at + 1;
    cli_step *s = &p->steps[at];
    s->called = true;
    s->current_us += (double)own_time(p, e) * 1e-3;
    if (p->runs == 0) { /* the first run counts; the others are the same */
        s->calls++;
        s->macs += e->macs;
        s->input_bytes += e->input_bytes;
        s->output_bytes += e->output_bytes;
    }
    p->calls = grown(p->calls, p->call_count, &p->call_capacity, sizeof *p->calls);
    p->calls[p->call_count++] = (cli_call){at, e->start_ns, e->end_ns, e->depth};
}

void cli_profile_begin(cli_profile *p) {
    p->cursor = 0;
    p->call_count = 0;
    for (size_t i = 0; i < p->step_count; i++) {
        p->steps[i].current_us = 0;
        p->steps[i].called = false;
    }
    for (int i = 0; i < p->inner_depth; i++) p->inner_ns[i] = 0;
}

void cli_profile_end(cli_profile *p, double us) {
    for (size_t i = 0; i < p->step_count; i++) {
        cli_step *s = &p->steps[i];
        if (s->us < 0 || s->current_us < s->us) s->us = s->current_us;
    }
    if (p->runs++ > 0 && us >= p->best_us) return;
    p->best_us = us;
    free(p->best);
    p->best = cli_alloc(p->call_count + 1, sizeof *p->best);
    if (p->call_count) memcpy(p->best, p->calls, p->call_count * sizeof *p->best);
    p->best_count = p->call_count;
}

double cli_profile_total(const cli_profile *p) {
    double total = 0;
    for (size_t i = 0; i < p->step_count; i++) total += p->steps[i].us;
    return total;
}

static int by_time(const void *a, const void *b) {
    double x = ((const cli_group *)a)->us, y = ((const cli_group *)b)->us;
    return x > y ? -1 : x < y;
}

size_t cli_profile_groups(const cli_profile *p, cli_group **out) {
    cli_group *groups = cli_alloc(p->step_count + 1, sizeof *groups);
    size_t count = 0;
    for (size_t i = 0; i < p->step_count; i++) {
        const cli_step *s = &p->steps[i];
        size_t g = 0;
        while (g < count && (strcmp(groups[g].op, s->op) || strcmp(groups[g].impl, s->impl))) g++;
        if (g == count) groups[count++] = (cli_group){.op = s->op, .impl = s->impl};
        groups[g].steps++;
        groups[g].calls += s->calls;
        groups[g].macs += s->macs;
        groups[g].bytes += s->input_bytes + s->output_bytes;
        groups[g].us += s->us;
    }
    qsort(groups, count, sizeof *groups, by_time);
    *out = groups;
    return count;
}

typedef struct ranked {
    double us;
    size_t index;
} ranked;

static int by_rank(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->us != y->us) return x->us > y->us ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

size_t *cli_profile_order(const cli_profile *p) {
    ranked *list = cli_alloc(p->step_count + 1, sizeof *list);
    size_t *order = cli_alloc(p->step_count + 1, sizeof *order);
    for (size_t i = 0; i < p->step_count; i++) list[i] = (ranked){p->steps[i].us, i};
    qsort(list, p->step_count, sizeof *list, by_rank);
    for (size_t i = 0; i < p->step_count; i++) order[i] = list[i].index;
    free(list);
    return order;
}

double cli_roof_us(const sn_machine *m, uint64_t macs, uint64_t bytes) {
    double arithmetic = 2e6 * (double)macs / m->flops_per_second;
    double moving = 1e6 * (double)bytes / m->bytes_per_second;
    return arithmetic > moving ? arithmetic : moving;
}
