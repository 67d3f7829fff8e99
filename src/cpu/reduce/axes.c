/* axes.c - normalisation along any axes in float32, in place: no transposition. */
#include "base/threadpool.h"
#include "cpu/core/hooks.h"
#include "cpu/reduce/reduce.h"

#include <math.h>

enum {
    COLUMNS = 256,     /* results at a time where neighbouring elements have different ones */
    WIDEST = 16,       /* the largest vector of any tier: what kernels may read beyond */
    AXES_GRAIN = 8192, /* elements worth a thread */
};

typedef struct axes_job {
    const sni_reduce_kernels *loops;
    const sni_axes *axes;
    const float *x;
    float *y;
    int64_t p; /* order of the norm; 0: mean and variance */
} axes_job;

/* Some neighbouring results, and what is accumulated for them over the reduced positions. */
typedef struct axes_walk {
    const axes_job *job;
    int64_t n; /* elements of a run that are theirs */
    sni_term term;
    double *centers, *sums;
} axes_walk;

static void add_up(void *ctx, int64_t at, int64_t rows, int64_t step) {
    const axes_walk *w = ctx;
    const sni_reduce_kernels *loops = w->job->loops;
    const float *x = w->job->x + at;
    for (int64_t r = 0; r < rows; r++, x += step)
        if (w->job->axes->run_kept)
            loops->column_terms(w->term, x, w->n, w->centers, w->sums);
        else
            *w->sums += loops->row_terms(w->term, x, w->n, *w->centers);
}

static void write_out(void *ctx, int64_t at, int64_t rows, int64_t step) {
    const axes_walk *w = ctx;
    const axes_job *j = w->job;
    for (int64_t r = 0; r < rows; r++, at += step)
        j->loops->measure(j->x + at, j->y + at, w->n, w->centers, w->sums, j->axes->run_kept);
}

/* The factor that elements are multiplied by, from the sum of their terms. */
static double factor_of(const axes_job *j, double sum) {
    if (j->p == 0) return 1 / (sqrt(sum / (double)j->axes->count) + 1e-9);
    float norm = j->p == 1 ? (float)sum : sqrtf((float)sum);
    return norm != 0 ? 1 / (double)norm : 0;
}

static void axes_piece(void *ctx, int64_t begin, int64_t end) {
    const axes_job *j = ctx;
    const sni_axes *a = j->axes;
    double centers[COLUMNS + WIDEST], sums[COLUMNS + WIDEST];
    int64_t width = a->run_kept ? a->run : 1;
    for (int64_t at = begin; at < end;) {
        int64_t column = at % width;
        int64_t n = width - column < COLUMNS ? width - column : COLUMNS;
        if (n > end - at) n = end - at;
        int64_t offset = sni_axes_offset(a, at / width) + column;
        int64_t size = a->run_kept ? n + WIDEST : 1;
        axes_walk walk = {
            .job = j, .n = a->run_kept ? n : a->run, .centers = centers, .sums = sums};
        for (int64_t i = 0; i < size; i++) centers[i] = sums[i] = 0;
        if (j->p == 0) {
            walk.term = SNI_TERM_SELF;
            sni_axes_walk(a, offset, add_up, &walk);
            for (int64_t i = 0; i < n; i++) centers[i] = sums[i] / (double)a->count;
            for (int64_t i = 0; i < n; i++) sums[i] = 0;
        }
        walk.term = j->p == 1 ? SNI_TERM_SIZE : SNI_TERM_SQUARE;
        sni_axes_walk(a, offset, add_up, &walk);
        for (int64_t i = 0; i < n; i++) sums[i] = factor_of(j, sums[i]);
        sni_axes_walk(a, offset, write_out, &walk);
        at += n;
    }
}

void sni_cpu_norm_axes(int threads, const sni_axes *axes, int64_t results, const float *x, float *y,
                       int64_t p) {
    axes_job j = {.loops = sni_reduce_kernels_get(), .axes = axes, .x = x, .y = y, .p = p};
    sni_parallel_for(threads, results, AXES_GRAIN / axes->count + 1, axes_piece, &j);
}
