/* loops.isa.c - loops of reference kernels compiled with a tier's flags; everything but the table
 * is static. */
#include "cpu/core/loops.h"

#include "cpu/core/simd.h"
#include "ops/matmul/matmul_panel.h"

#include "cpu/reduce/places.inc.c"

#include "cpu/reduce/largest.inc.c"

#include "cpu/reduce/line.inc.c"

#include "cpu/elementwise/sincos.inc.c"

#include "cpu/elementwise/cast.inc.c"

#include "cpu/elementwise/rounding.inc.c"

#include "cpu/elementwise/whole.inc.c"

#include "cpu/core/math.inc.c"

#include "cpu/reduce/sums.inc.c"

#include "cpu/reduce/extremes.inc.c"

#define T float
#define SUFFIX f32
#define MATH(name) name##f
#define T_FLOAT 1
#define SUMS 1
#include "ops/math/reduce.inc.c"
#undef SUMS
#define LOWEST (-INFINITY)
#define IS_NAN(v) isnan(v)
#include "ops/nn/max_pool.inc.c"
#undef LOWEST
#undef IS_NAN
#include "ops/nn/average_pool.inc.c"
#undef T
#undef SUFFIX
#undef MATH
#undef T_FLOAT

#define T double
#define SUFFIX f64
#define MATH(name) name
#define T_FLOAT 1
#include "ops/math/reduce.inc.c"
#undef T
#undef SUFFIX
#undef MATH
#undef T_FLOAT

#define T int32_t
#define SUFFIX i32
#define T_SIGNED 1
#include "ops/math/reduce.inc.c"
#undef T
#undef SUFFIX

#define T int64_t
#define SUFFIX i64
#include "ops/math/reduce.inc.c"
#undef T
#undef SUFFIX

#define EXTREMES 1
#define T int8_t
#define SUFFIX i8
#include "ops/math/reduce.inc.c"
#undef T
#undef SUFFIX
#undef T_SIGNED

#define T uint8_t
#define SUFFIX u8
#include "ops/math/reduce.inc.c"
#undef T
#undef SUFFIX
#undef EXTREMES

#if LANES == 16
enum { MR = 6, TILE_VECTORS = 4 };
#else
enum { MR = 6, TILE_VECTORS = 2 };
#endif
enum { TILE_BYTES = LANES * 4 };

#include "ops/matmul/matmul_types.inc.c"

#include "cpu/reduce/pool.inc.c"

#include "cpu/reduce/axes.inc.c"

static void center_row(const float *x, float *y, int64_t n, float center, float factor,
                       float shift) {
    vf c = splat(center), f = splat(factor), s = splat(shift);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, (load(x + i) - c) * f + s);
    if (i < n) store_some(y + i, n - i, (load_some(x + i, n - i, 0) - c) * f + s);
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

extern const sni_loops PASTE(sni_loops_, TIER);

const sni_loops PASTE(sni_loops_, TIER) = {
#define FIELD(op, reducer)                \
    .op = {[SN_FLOAT32] = &reducer##_f32, \
           [SN_FLOAT64] = &reducer##_f64, \
           [SN_INT32] = &reducer##_i32,   \
           [SN_INT64] = &reducer##_i64},
    SNI_LOOPS_REDUCTIONS(FIELD)
#undef FIELD
        .ReduceMax[SN_INT8] = &max_i8,
    .ReduceMax[SN_UINT8] = &max_u8,
    .ReduceMin[SN_INT8] = &min_i8,
    .ReduceMin[SN_UINT8] = &min_u8,
#define FIELD(op, row) .op = row,
    SNI_LOOPS_UNARY(FIELD)
#undef FIELD
        .cast = {[SN_FLOAT32] = FLOAT_CASTS(f32, [SN_FLOAT32] = cast_f32_f32),
                 [SN_FLOAT64] =
                     FLOAT_CASTS(f64, [SN_FLOAT32] = cast_f64_f32, [SN_FLOAT16] = fast_f64_f16),
                 [SN_FLOAT16] = {[SN_FLOAT64] = cast_f16_f64,
                                 [SN_INT32] = cast_f16_i32,
                                 [SN_INT64] = cast_f16_i64,
                                 [SN_UINT8] = cast_f16_u8,
                                 [SN_INT8] = cast_f16_i8,
                                 [SN_BOOL] = cast_f16_b8},
                 [SN_INT32] = CASTS(i32),
                 [SN_INT64] = CASTS(i64),
                 [SN_UINT8] = CASTS(u8),
                 [SN_INT8] = CASTS(i8),
                 [SN_BOOL] = CASTS(u8)},
    .max_pool = max_pool,
    .average_pool = average_pool,
    .global_max_pool = global_max_f32,
    .global_average_pool = global_average_pool,
    .gemm = {[SN_FLOAT64] = &gemm_core_f64,
             [SN_INT32] = &gemm_core_u32,
             [SN_UINT32] = &gemm_core_u32,
             [SN_INT64] = &gemm_core_u64,
             [SN_UINT64] = &gemm_core_u64},
    .weigh_places = weigh_places,
    .most_places = most_places,
    .line = line,
    .line_rows = LINE_ROWS,
    .is_infinite = is_infinite,
#define ENTRY(op) .op##_i32 = op##_i32, .op##_i64 = op##_i64,
    SNI_LOOPS_WHOLE(ENTRY)
#undef ENTRY
        .quotient_i32 = quotient_i32,
    .center_row = center_row,
    .row_terms = row_terms,
    .column_terms = column_terms,
    .measure = measure,
};
