/* loops.h - loops of reference kernels, and a few of their own kind, compiled once per
 * instruction-set tier: the drivers of src/ops carry them to whole tensors. */
#ifndef SNI_CPU_CORE_LOOPS_H
#define SNI_CPU_CORE_LOOPS_H

#include "ops/core/elementwise.h"
#include "ops/matmul/matmul_core.h"
#include "ops/nn/pool.h"
#include "ops/math/reduce.h"

/* The reductions: each(operator, its reducer). */
#define SNI_LOOPS_REDUCTIONS(each)                                                                \
    each(ReduceSum, sum) each(ReduceMean, mean) each(ReduceMax, max) each(ReduceMin, min)         \
        each(ReduceProd, prod) each(ReduceL1, l1) each(ReduceL2, l2) each(ReduceSumSquare, sumsq) \
            each(ReduceLogSum, logsum) each(ReduceLogSumExp, lse)

/* Functions of one number: each(operator, its loop). */
#define SNI_LOOPS_UNARY(each)                                                             \
    each(Floor, floor_row) each(Ceil, ceil_row) each(Round, round_row) each(Sin, sin_row) \
        each(Cos, cos_row) each(Atan, atan_row)

/* Functions of one integer, of 32 or 64 bits: each(operator). The least integer is its own size. */
#define SNI_LOOPS_WHOLE(each) each(Abs) each(Neg) each(Sign)

typedef struct sni_which_infinity {
    bool negative, positive;
} sni_which_infinity;

/* y[r y_row + i] = bias[r] + the sum over j of w[j rows + r] x[at[j] + i], for i < n. */
typedef struct sni_line {
    const float *w, *bias, *x; /* bias may be NULL */
    const int64_t *at;
    int64_t count, n, y_row;
    int rows; /* a power of two, line_rows at most */
    float *y;
} sni_line;

/* What is added up of an element: itself, its size, the square of its distance from a center. */
typedef enum sni_term { SNI_TERM_SELF, SNI_TERM_SIZE, SNI_TERM_SQUARE } sni_term;

/* Tables are indexed by sn_dtype and have float32, float64, int32 and int64. */
typedef struct sni_loops {
#define SNI_FIELD(op, reducer) const sni_reducer *op[SNI_DTYPE_COUNT];
    SNI_LOOPS_REDUCTIONS(SNI_FIELD)
#undef SNI_FIELD
    sni_pool_rows_fn max_pool, average_pool;          /* of float32 */
    sni_pool_fn global_max_pool, global_average_pool; /* of float32 */
#define SNI_FIELD(op, row) sni_unary_fn op;
    SNI_LOOPS_UNARY(SNI_FIELD) /* of float32 */
#undef SNI_FIELD
    sni_unary_fn is_infinite; /* of float32; params: sni_which_infinity */
#define SNI_FIELD(op) sni_unary_fn op##_i32, op##_i64;
    SNI_LOOPS_WHOLE(SNI_FIELD)
#undef SNI_FIELD
    sni_binary_fn quotient_i32;                          /* towards 0; by 0 it is 0 */
    sni_unary_fn cast[SNI_DTYPE_COUNT][SNI_DTYPE_COUNT]; /* from, to; NULL: none */
    const sni_gemm_core *gemm[SNI_DTYPE_COUNT]; /* of float64 and integers of 32 and 64 bits */
    /* y[i] = sum over j of w[j] x[at[j] + i] for n elements, added to y where `add`. */
    void (*weigh_places)(const float *w, const int64_t *at, int64_t count, const float *x,
                         int64_t n, float *y, bool add);
    /* The same with the largest of samples, each the largest of four of these places' w[j] x[..]:
     * `count` is a multiple of 4. */
    void (*most_places)(const float *w, const int64_t *at, int64_t count, const float *x, int64_t n,
                        float *y, bool add);
    void (*line)(const sni_line *l);
    int line_rows;
    /* y = (x - center) * factor + shift; x may be y. */
    void (*center_row)(const float *x, float *y, int64_t n, float center, float factor,
                       float shift);
    /* The sum of the elements' terms, in double. */
    double (*row_terms)(sni_term term, const float *x, int64_t n, double center);
    /* sums[i] += the term of x[i], whose center is centers[i]; both arrays are readable, and sums
     * writable, for 16 elements more. */
    void (*column_terms)(sni_term term, const float *x, int64_t n, const double *centers,
                         double *sums);
    /* y[i] = (x[i] - center) * factor, in double; of each its own (arrays as above) or one of all.
     */
    void (*measure)(const float *x, float *y, int64_t n, const double *centers,
                    const double *factors, bool each);
} sni_loops;

/* Those of the tier in force. */
const sni_loops *sni_loops_get(void);

#endif
