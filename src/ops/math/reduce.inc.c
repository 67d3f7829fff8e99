/* reduce.inc.c - template: the reductions of one element type T. Floats are summed in double.
 * Integers are summed modulo 2^64, which gives the wrapped sum of their own width, or in double
 * where a root or logarithm follows. SUMS: floats use the kernels of cpu/reduce/reduce.isa.c
 * (sum_row(), most_row() and others). EXTREMES: only maximum and minimum, of integers. Instances:
 * cpu/reduce/reduce.isa.c, six types in each tier. */

#ifdef T_FLOAT
#define SUM double
#define LEAST (-(T)INFINITY)
#define MOST ((T)INFINITY)
#define ROUNDED(d) ((T)(d))
#define AVERAGE(a, n) ((T)((a) / (double)(n)))
#define MAGNITUDE(x) fabs((double)(x))
#define OR_NAN(x) | ((x) != (x))
#else
#define SUM uint64_t
#ifdef T_SIGNED
#define MOST ((T)(((UINT64_C(1) << (8 * sizeof(T) - 1)) - 1)))
#define LEAST ((T)(-MOST - 1))
#define AVERAGE(a, n) ((n) ? (T)((int64_t)(a) / (n)) : (T)0)
#define MAGNITUDE(x) ((x) < 0 ? 0 - (uint64_t)(x) : (uint64_t)(x))
#else
#define MOST ((T) ~(T)0)
#define LEAST ((T)0)
#define AVERAGE(a, n) ((n) ? (T)((a) / (uint64_t)(n)) : (T)0)
#define MAGNITUDE(x) ((uint64_t)(x))
#endif
#define OR_NAN(x)
#define ROUNDED(d) FN(rounded)(d)

#ifndef EXTREMES
static T FN(rounded)(double d) {
    if (!(d > (double)LEAST)) return d <= (double)LEAST ? LEAST : (T)0;
    return d >= (double)MOST ? MOST : (T)d;
}
#endif
#endif

#ifndef EXTREMES
#define OP sum
#ifdef SUMS
#define ROW sum_row
#define COLS sum_cols
#endif
#define ACC SUM
#define EMPTY 0
#define STEP(a, x) ((a) + (SUM)(x))
#define RESULT(a, n) ((T)(a))
#include "ops/math/reduce_op.inc.c"

#define OP mean
#ifdef SUMS
#define ROW sum_row
#define COLS sum_cols
#endif
#define ACC SUM
#define EMPTY 0
#define STEP(a, x) ((a) + (SUM)(x))
#define RESULT(a, n) AVERAGE(a, n)
#include "ops/math/reduce_op.inc.c"

#define OP l1
#define ACC SUM
#define EMPTY 0
#define STEP(a, x) ((a) + MAGNITUDE(x))
#define RESULT(a, n) ((T)(a))
#include "ops/math/reduce_op.inc.c"

#define OP sumsq
#define ACC SUM
#define EMPTY 0
#define STEP(a, x) ((a) + (SUM)(x) * (SUM)(x))
#define RESULT(a, n) ((T)(a))
#include "ops/math/reduce_op.inc.c"

#define OP prod
#define ACC SUM
#define EMPTY 1
#define STEP(a, x) ((a) * (SUM)(x))
#define RESULT(a, n) ((T)(a))
#include "ops/math/reduce_op.inc.c"

#define OP l2
#define ACC double
#define EMPTY 0
#define STEP(a, x) ((a) + (double)(x) * (double)(x))
#define RESULT(a, n) ROUNDED(sqrt(a))
#include "ops/math/reduce_op.inc.c"

#define OP logsum
#define ACC double
#define EMPTY 0
#define STEP(a, x) ((a) + (double)(x))
#define RESULT(a, n) ROUNDED(log(a))
#include "ops/math/reduce_op.inc.c"
#endif

#define OP max
#ifdef SUMS
#define PICK most_row
#endif
#define ACC T
#define EMPTY LEAST
#define STEP(a, x) ((((x) > (a)) OR_NAN(x)) ? (x) : (a))
#define RESULT(a, n) (a)
#define SELECTS
#include "ops/math/reduce_op.inc.c"

#define OP min
#ifdef SUMS
#define PICK least_row
#endif
#define ACC T
#define EMPTY MOST
#define STEP(a, x) ((((x) < (a)) OR_NAN(x)) ? (x) : (a))
#define RESULT(a, n) (a)
#define SELECTS
#include "ops/math/reduce_op.inc.c"

#ifndef EXTREMES
/* log(sum(exp(x))) as max + log(sum(exp(x - max))), with the maximum so far. */
typedef struct FN(lse_acc) {
    double max, sum; /* sum of exp(x - max); 0 while max is -infinity */
} FN(lse_acc);

static void FN(lse_raise)(FN(lse_acc) * a, double max) {
    if (!(max <= a->max)) {
        a->sum = a->sum > 0 ? a->sum * exp(a->max - max) : a->sum;
        a->max = max;
    }
}

/* An infinite x counts 1 at an infinite maximum; NaN makes the sum NaN. */
static double FN(lse_term)(double x, double max) {
    return x == max ? (x == -(double)INFINITY ? 0 : 1) : exp(x - max);
}

static void FN(lse_init)(void *acc, int64_t n) {
    FN(lse_acc) *a = acc;
    for (int64_t i = 0; i < n; i++) a[i] = (FN(lse_acc)){-(double)INFINITY, 0};
}

static void FN(lse_row)(void *acc, const void *x, int64_t n) {
    FN(lse_acc) *a = acc;
    const T *src = x;
    double max = -(double)INFINITY;
#ifdef SUMS
    double part;
    if (exp_sum_row(src, n, &max, &part)) {
        FN(lse_raise)(a, max);
        a->sum += part * exp(max - a->max);
        return;
    }
    max = -(double)INFINITY;
#endif
    for (int64_t i = 0; i < n; i++)
        max = (((double)src[i] > max) OR_NAN(src[i])) ? (double)src[i] : max;
    FN(lse_raise)(a, max);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += FN(lse_term)((double)src[i], a->max);
    a->sum += sum;
}

static void FN(lse_col)(void *acc, const void *x, int64_t n) {
    FN(lse_acc) *a = acc;
    const T *src = x;
    for (int64_t i = 0; i < n; i++) {
        FN(lse_raise)(&a[i], (double)src[i]);
        a[i].sum += FN(lse_term)((double)src[i], a[i].max);
    }
}

#ifdef SUMS
/* Some rows of at most LANES columns; each column goes its own way. */
static void FN(lse_some)(FN(lse_acc) * a, const T *x, int64_t n, int64_t rows, int64_t step) {
    float max[LANES] = {0}, scale[LANES], sum[LANES], sizes[LANES];
    for (int64_t i = 0; i < n; i++) max[i] = (float)a[i].max;
    exp_sum_cols(x, n, rows, step, max, scale, sum, sizes);
    for (int64_t i = 0; i < n; i++) {
        if (sizes[i] < INFINITY && a[i].max < (double)INFINITY) {
            a[i].max = (double)max[i];
            a[i].sum = a[i].sum * (double)scale[i] + (double)sum[i];
            continue;
        }
        for (int64_t r = 0; r < rows; r++) FN(lse_col)(&a[i], x + r * step + i, 1);
    }
}

static void FN(lse_cols)(void *acc, const void *x, int64_t n, int64_t rows, int64_t step) {
    for (int64_t r = 0; r < rows; r += DEEP)
        for (int64_t i = 0; i < n; i += LANES) FN(lse_some)
    ((FN(lse_acc) *)acc + i, (const T *)x + r * step + i, n - i < LANES ? n - i : LANES,
     rows - r < DEEP ? rows - r : DEEP, step);
}
#define LSE_COLS FN(lse_cols)
#else
#define LSE_COLS NULL
#endif

static void FN(lse_finish)(const void *acc, void *y, int64_t n, int64_t count) {
    const FN(lse_acc) *a = acc;
    T *dst = y;
    (void)count;
    for (int64_t i = 0; i < n; i++) dst[i] = ROUNDED(a[i].max + log(a[i].sum));
}

static const sni_reducer FN(lse) = {sizeof(FN(lse_acc)), FN(lse_init),   FN(lse_row),
                                    FN(lse_col),         FN(lse_finish), LSE_COLS};
#undef LSE_COLS
#endif

#undef SUM
#undef LEAST
#undef MOST
#undef ROUNDED
#undef AVERAGE
#undef MAGNITUDE
#undef OR_NAN
