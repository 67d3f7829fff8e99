/* loops.h - loops that have no module of their own: the kernels of one tier. */
#ifndef SNI_CPU_CORE_LOOPS_H
#define SNI_CPU_CORE_LOOPS_H

#include "cpu/core/dispatch.h"
#include "ops/matmul/matmul_core.h"

/* y[r y_row + i] = bias[r] + the sum over j of w[j rows + r] x[at[j] + i], for i < n and r < rows.
 */
typedef struct sni_line {
    const float *w, *bias, *x; /* bias may be NULL */
    const int64_t *at;
    int64_t count, n, y_row;
    int rows; /* a power of two, line_rows at most */
    float *y;
} sni_line;

struct sni_loops {
    /* Matrix products of float64 and of integers of 32 and 64 bits; NULL: none. Integers wrap. */
    const sni_gemm_core *gemm[SNI_DTYPE_COUNT];
    /* y[i] = sum over j < count of w[j] x[at[j] + i] for i < n, added to y where `add`. */
    void (*weigh_places)(const float *w, const int64_t *at, int64_t count, const float *x,
                         int64_t n, float *y, bool add);
    /* The same with the maximum of samples in the place of the sum. A sample is the maximum of four
     * consecutive places' w[j] x[at[j] + i]; `count` is a multiple of 4. */
    void (*most_places)(const float *w, const int64_t *at, int64_t count, const float *x, int64_t n,
                        float *y, bool add);
    void (*line)(const sni_line *l);
    int line_rows; /* the largest sni_line.rows */
    /* y = (x - center) * factor + shift for n elements; x may be y. */
    void (*center_row)(const float *x, float *y, int64_t n, float center, float factor,
                       float shift);
};

#endif
