/* check.c - every vector kernel of every tier against plain C, and how fast it is.
 *
 *     kernels [--bench] [--rounds N] [--seed N] [NAME...]
 *
 * Each tier that this machine has runs in a process of its own, so that drivers above the kernels
 * use it, too. Names choose kernels that contain one of them. */
#include "check.h"

#include "cpu/core/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GUARD = 256, MOST_FAILURES = 10, GUARD_BYTE = 0xA5 };

static const kernel_test *const lists[] = {gemm_tests, inner_product_tests, conv_tests,
                                           rnn_tests,  tree_tests,          map_tests};

/* ---- Random numbers and arrays ---- */

static uint32_t next(check *c) {
    c->seed = c->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(c->seed >> 33);
}

int64_t below(check *c, int64_t n) {
    return (int64_t)(next(c) % (uint64_t)n);
}

int64_t between(check *c, int64_t low, int64_t high) {
    return low + below(c, high - low + 1);
}

int64_t size_of(check *c, int64_t low, int64_t high, int64_t typical) {
    int64_t drawn = between(c, low, high);
    return c->bench ? typical : drawn;
}

static void *new_array(check *c, size_t bytes) {
    size_t whole = (bytes + 2 * GUARD + 63) / 64 * 64;
    if (c->n_arrays == MOST_ARRAYS) {
        fprintf(stderr, "%s: too many arrays\n", c->name);
        exit(2);
    }
    array *a = &c->arrays[c->n_arrays++];
    *a = (array){aligned_alloc(64, whole), bytes};
    if (!a->memory) exit(2);
    memset(a->memory, GUARD_BYTE, whole);
    return a->memory + GUARD;
}

float *unset_floats(check *c, int64_t n) {
    return new_array(c, (size_t)n * sizeof(float));
}

float *random_floats(check *c, int64_t n) {
    float *p = unset_floats(c, n);
    for (int64_t i = 0; i < n; i++) p[i] = (float)between(c, -1000, 1000) * 1e-3f;
    return p;
}

float *copy_floats(check *c, const float *from, int64_t n) {
    float *p = unset_floats(c, n);
    if (n) memcpy(p, from, (size_t)n * sizeof *p);
    return p;
}

double *zero_doubles(check *c, int64_t n) {
    double *p = new_array(c, (size_t)n * sizeof *p);
    if (n) memset(p, 0, (size_t)n * sizeof *p);
    return p;
}

/* ---- Judging ---- */

void fail(check *c, const char *what) {
    if (c->failures++ < MOST_FAILURES) printf("FAIL %s: %s\n", c->name, what);
}

void expect(check *c, const char *what, const float *got, const double *want, int64_t n,
            double tolerance) {
    if (c->bench) return; /* called many times over: not what one call makes */
    for (int64_t i = 0; i < n; i++) {
        double a = (double)got[i], b = want[i];
        if (fabs(a - b) <= tolerance * fmax(1, fabs(b))) continue;
        char text[160];
        snprintf(text, sizeof text, "element %lld of %lld of %s is %.9g, not %.9g", (long long)i,
                 (long long)n, what, a, b);
        fail(c, text);
        return;
    }
}

void expect_unset(check *c, const char *what, const float *p, int64_t n) {
    const unsigned char *bytes = (const unsigned char *)p;
    for (int64_t i = 0; i < n * (int64_t)sizeof *p; i++)
        if (bytes[i] != GUARD_BYTE) {
            fail(c, what);
            return;
        }
}

static void drop_arrays(check *c) {
    for (int i = 0; i < c->n_arrays; i++) {
        const array *a = &c->arrays[i];
        for (int g = 0; g < GUARD; g++)
            if (a->memory[g] != GUARD_BYTE ||
                a->memory[GUARD + a->bytes + (size_t)g] != GUARD_BYTE) {
                fail(c, "wrote outside an array");
                break;
            }
        free(a->memory);
    }
    c->n_arrays = 0;
}

/* ---- Time ---- */

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void call_begin(check *c, double flops, double bytes) {
    c->flops = flops;
    c->bytes = bytes;
    c->transpose = -1;
    c->repeat = 1;
    c->best_ns = 1e30;
    c->started = 0;
}

/* Rounds of calls that take about 50 us each, for 20 ms; the quickest counts. */
bool call_more(check *c) {
    if (!c->bench) return ++c->transpose == 0;
    if (c->transpose < 0) {
        c->transpose = 0;
        c->started = now_ns();
        return true;
    }
    static int left, rounds;
    if (c->transpose == 0) {
        double once = fmax(now_ns() - c->started, 20);
        c->repeat = (int)fmin(fmax(50e3 / once, 1), 1e4);
        rounds = (int)fmin(fmax(20e6 / (once * c->repeat), 5), 400);
        left = 0;
    }
    if (left == 0) {
        double now = now_ns();
        if (c->transpose > 0 && (now - c->started) / c->repeat < c->best_ns)
            c->best_ns = (now - c->started) / c->repeat;
        if (c->transpose++ == rounds) return false;
        left = c->repeat;
        c->started = now_ns();
    }
    left--;
    return true;
}

/* ---- Tiers ---- */

typedef struct options {
    bool bench;
    int rounds;
    uint64_t seed;
    char **names;
    int n_names;
} options;

static bool chosen(const options *o, const char *name) {
    for (int i = 0; i < o->n_names; i++)
        if (strstr(name, o->names[i])) return true;
    return o->n_names == 0;
}

static void measure(check *c, const kernel_test *t, const sni_machine_peak *peak) {
    c->bench = true;
    t->run(c);
    drop_arrays(c);
    if (c->flops > 0)
        printf("  %-28s %9.1f GFLOP/s %5.0f %% of peak %10.3f us\n", t->name, c->flops / c->best_ns,
               100e9 * c->flops / c->best_ns / peak->flops, c->best_ns * 1e-3);
    else
        printf("  %-28s %9.1f GB/s    %15s %10.3f us\n", t->name, c->bytes / c->best_ns, "",
               c->best_ns * 1e-3);
}

/* All kernels of the tier in force; returns failures. */
static int run_tier(const options *o) {
    check c = {.k = sni_cpu_kernels_get(), .seed = o->seed};
    sni_machine_peak peak = {1, 1};
    int run = 0;
    printf("%s:", sni_isa_name(sni_cpu_isa()));
    if (o->bench && sni_machine_measure(1, &peak, NULL) == SN_OK)
        printf(" peak %.1f GFLOP/s, memory %.1f GB/s\n", peak.flops * 1e-9, peak.bytes * 1e-9);
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        for (const kernel_test *t = lists[l]; t->name; t++) {
            if (!chosen(o, t->name)) continue;
            c.name = t->name;
            c.bench = false;
            for (int r = 0; r < o->rounds && c.failures < MOST_FAILURES; r++) {
                t->run(&c);
                drop_arrays(&c);
            }
            run++;
            if (o->bench) measure(&c, t, &peak);
        }
    printf(" %d kernels, %d failures\n", run, c.failures);
    return c.failures;
}

static int run_process(const options *o, const char *tier) {
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
        setenv("SINTER_ISA", tier, 1);
        int failures = run_tier(o);
        fflush(stdout);
        _exit(failures ? 1 : 0);
    }
    int status;
    if (waitpid(child, &status, 0) < 0) return 1;
    if (WIFSIGNALED(status)) printf("FAIL %s: signal %d\n", tier, WTERMSIG(status));
    return status != 0;
}

int main(int argc, char **argv) {
    options o = {.rounds = 60, .seed = 1, .names = argv};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bench") == 0)
            o.bench = true;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            o.rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            o.seed = strtoull(argv[++i], NULL, 10);
        else
            o.names[o.n_names++] = argv[i];
    }
    int failed = 0;
    for (int isa = 0; isa < SNI_ISA_COUNT; isa++) {
        const sni_cpu_kernels *k = sni_cpu_kernels_of((sni_isa)isa);
        bool again = isa > 0 && k == sni_cpu_kernels_of((sni_isa)(isa - 1));
        if (k && !again) failed |= run_process(&o, sni_isa_name((sni_isa)isa));
    }
    return failed;
}
