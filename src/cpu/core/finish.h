/* finish.h - epilogues: biases, a residual and an activation on rows of results, for tier sources
 * that store results (GEMM tiles and convolutions). There is one function per activation, so that a
 * row's loop has no switch. */
#ifndef SNI_CPU_CORE_FINISH_H
#define SNI_CPU_CORE_FINISH_H

#include "cpu/core/act_vf.h"

enum { BLOCK = LANES == 16 ? 16 : 8 }; /* channels of a blocked pixel */

/* Rows of results and the epilogue that is applied to them: from (or y + from) + biases + residual,
 * then the activation, stored to y. */
typedef struct ending {
    float p0, p1;
    const float *from; /* may be y */
    int64_t from_row;
    bool add; /* y + from instead of from */
    float *y;
    int64_t y_row, rows, n;
    const float *row_bias, *columns, *more; /* NULL: none */
    int64_t more_row;
    const float *slopes, *row_slopes, *column_slopes; /* sni_epilogue's */
} ending;

/* Row r, one vector at a time. `act` is a constant at every call. */
static inline __attribute__((always_inline)) void finish(sni_act act, const ending *e, int64_t r) {
    const bool leaky = act == SNI_ACT_LEAKY_RELU;
    const float bias = e->row_bias ? e->row_bias[r] : 0;
    const float *columns = e->columns, *more = e->more ? e->more + r * e->more_row : NULL;
    const float *from = e->from + r * e->from_row;
    float *y = e->y + r * e->y_row;
    vf p0 = splat(leaky && e->row_slopes ? e->row_slopes[r] : e->p0), p1 = splat(e->p1);
    vf b = splat(bias);
    const bool biased = bias != 0;
    int64_t i = 0, n = e->n;
    for (; i + LANES <= n; i += LANES) {
        vf x = load(from + i);
        if (e->add) x += load(y + i);
        if (biased) x += b;
        if (columns) x += load(columns + i);
        if (more) x += load(more + i);
        if (leaky && e->slopes) p0 = load(e->slopes + i % BLOCK);
        if (leaky && e->column_slopes) p0 = load(e->column_slopes + i);
        store(y + i, act_vf(act, p0, p1, x));
    }
    if (i == n) return;
    vf x = load_some(from + i, n - i, 0);
    if (e->add) x += load_some(y + i, n - i, 0);
    if (biased) x += b;
    if (columns) x += load_some(columns + i, n - i, 0);
    if (more) x += load_some(more + i, n - i, 0);
    if (leaky && e->column_slopes) p0 = load_some(e->column_slopes + i, n - i, 0);
    store_some(y + i, n - i, act_vf(act, p0, p1, x));
}

/* Rows of exactly two vectors with a column bias and a residual only, which is what GEMM tiles
 * have: the same results with fewer branches. */
static inline __attribute__((always_inline)) void finish_vectors(sni_act act, const ending *e) {
    enum { VECTORS = 2 };
    vf p0 = splat(e->p0), p1 = splat(e->p1), bias[VECTORS];
    const float *from = e->from, *more = e->more;
    const bool add = e->add;
    float *y = e->y;
    UNROLL
    for (int j = 0; j < VECTORS; j++) /* -0: adding it changes nothing */
        bias[j] = e->columns ? load(e->columns + j * LANES) : splat(-0.0f);
    for (int64_t r = e->rows; r > 0; r--, y += e->y_row, from += e->from_row) {
        UNROLL
        for (int j = 0; j < VECTORS; j++) {
            vf x = load(from + j * LANES);
            if (add) x += load(y + j * LANES);
            x += bias[j];
            if (more) x += load(more + j * LANES);
            store(y + j * LANES, act_vf(act, p0, p1, x));
        }
        if (more) more += e->more_row;
    }
}

/* All rows. */
static inline __attribute__((always_inline)) void finish_rows(sni_act act, const ending *e) {
    if (e->n == 2 * LANES && !e->row_bias && !e->slopes && !e->row_slopes && !e->column_slopes)
        finish_vectors(act, e);
    else
        for (int64_t r = 0; r < e->rows; r++) finish(act, e, r);
}

typedef void (*finish_fn)(const ending *e);

#define SNI_ACT(name)                            \
    static void finish_##name(const ending *e) { \
        finish_rows(SNI_ACT_##name, e);          \
    }
#include "cpu/core/act.def"
#undef SNI_ACT

static const finish_fn finishers[SNI_ACT_COUNT] = {
#define SNI_ACT(name) [SNI_ACT_##name] = finish_##name,
#include "cpu/core/act.def"
#undef SNI_ACT
};

/* The activation alone. No `ending` is written to memory: reading it back would wait behind the
 * results that are still in the store buffer. */
typedef void (*apply_fn)(const sni_epilogue *e, float *y, int64_t n);

#define SNI_ACT(name)                                                                            \
    static void apply_##name(const sni_epilogue *e, float *y, int64_t n) {                       \
        finish(                                                                                  \
            SNI_ACT_##name,                                                                      \
            &(ending){.p0 = e->p0, .p1 = e->p1, .from = y, .y = y, .n = n, .slopes = e->slopes}, \
            0);                                                                                  \
    }
#include "cpu/core/act.def"
#undef SNI_ACT

static const apply_fn appliers[SNI_ACT_COUNT] = {
#define SNI_ACT(name) [SNI_ACT_##name] = apply_##name,
#include "cpu/core/act.def"
#undef SNI_ACT
};

/* sni_cpu_kernels.finish_row. */
static void finish_row(const sni_epilogue *e, float *y, float bias, const float *columns,
                       const float *more, int64_t n) {
    if (bias == 0 && !columns && !more) {
        appliers[e->act](e, y, n);
        return;
    }
    finishers[e->act](&(ending){.p0 = e->p0,
                                .p1 = e->p1,
                                .from = y,
                                .y = y,
                                .rows = 1,
                                .n = n,
                                .row_bias = &bias,
                                .columns = columns,
                                .more = more,
                                .slopes = e->slopes});
}

#endif
