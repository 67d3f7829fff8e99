/* check.h - the frame of the kernel program: random arrays between guards, comparison with plain C,
 * and the time of a call.
 *
 * A kernel's function makes arrays of a random shape (of a typical one when it is measured), works
 * out what is right in plain C, and calls the kernel inside CALL. It is run many times over. */
#ifndef KERNELS_CHECK_H
#define KERNELS_CHECK_H

#include "cpu/core/kernels.h"

#include <stddef.h>

enum { MOST_ARRAYS = 32 };

typedef struct array {
    unsigned char *memory; /* with guards before and after */
    size_t bytes;
} array;

typedef struct check {
    const sni_cpu_kernels *k;
    const char *name;
    uint64_t seed;
    bool bench;
    array arrays[MOST_ARRAYS];
    int n_arrays;
    /* Of a measured call. */
    double flops, bytes, best_ns;
    double started;
    int transpose, repeat;
    /* Failures so far. */
    int failures;
} check;

/* A random number below n; in [low, high]; `typical` when the kernel is measured. */
int64_t below(check *c, int64_t n);
int64_t between(check *c, int64_t low, int64_t high);
int64_t size_of(check *c, int64_t low, int64_t high, int64_t typical);

/* n floats between guards, aligned to 64 bytes: random from -1 to 1; not set (every byte 0xA5). */
float *random_floats(check *c, int64_t n);
float *unset_floats(check *c, int64_t n);
float *copy_floats(check *c, const float *from, int64_t n);
double *zero_doubles(check *c, int64_t n);

/* Compares with what is right: |got - want| <= tolerance * max(1, |want|). */
void expect(check *c, const char *what, const float *got, const double *want, int64_t n,
            double tolerance);
/* Demands that the memory was not written. */
void expect_unset(check *c, const char *what, const float *p, int64_t n);
void fail(check *c, const char *what);

/* Calls a kernel: once when it is checked, many times when it is measured. The work of one call is
 * floating-point operations and bytes that it reads and writes. */
#define CALL(c, operations, moved) \
    for (call_begin(c, (double)(operations), (double)(moved)); call_more(c);)
void call_begin(check *c, double flops, double bytes);
bool call_more(check *c);

/* Where element p of row i stands in a packed left operand, and elements of one of k columns. */
int64_t left_at(const check *c, int64_t i, int64_t p);
int64_t left_size(const check *c, int64_t k);

typedef struct kernel_test {
    const char *name;
    void (*run)(check *c);
} kernel_test;

/* Lists of the files in this folder; each ends with a NULL name. */
extern const kernel_test gemm_tests[], inner_product_tests[], conv_tests[], rnn_tests[],
    tree_tests[], map_tests[];

#endif
