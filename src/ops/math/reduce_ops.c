/* ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceMax, ReduceMean, ReduceMin, ReduceProd,
 * ReduceSum, ReduceSumSquare. Results of the empty set follow the mathematical definition: 0 for
 * sums, 1 for the product, the lowest value for the maximum, and so on. Integer sums wrap. */
#include "ops/math/reduce.h"

#include <math.h>

#define BODY "ops/math/reduce.inc.c"
#include "ops/core/each_number.inc.h"
#undef BODY

static sn_status l1_ref(sni_kernel *k) {
    static const sni_reducer *const table[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(&l1)};
    return sni_reduce_run(k, table);
}

static sn_status l2_ref(sni_kernel *k) {
    static const sni_reducer *const table[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(&l2)};
    return sni_reduce_run(k, table);
}

static sn_status log_sum_ref(sni_kernel *k) {
    static const sni_reducer *const table[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(&logsum)};
    return sni_reduce_run(k, table);
}

static sn_status log_sum_exp_ref(sni_kernel *k) {
    static const sni_reducer *const table[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(&lse)};
    return sni_reduce_run(k, table);
}

static sn_status max_ref(sni_kernel *k) {
    static const sni_reducer *const table[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(&max)};
    return sni_reduce_run(k, table);
}

static sn_status mean_ref(sni_kernel *k) {
    static const sni_reducer *const table[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(&mean)};
    return sni_reduce_run(k, table);
}

static sn_status min_ref(sni_kernel *k) {
    static const sni_reducer *const table[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(&min)};
    return sni_reduce_run(k, table);
}

static sn_status prod_ref(sni_kernel *k) {
    static const sni_reducer *const table[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(&prod)};
    return sni_reduce_run(k, table);
}

static sn_status sum_ref(sni_kernel *k) {
    static const sni_reducer *const table[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(&sum)};
    return sni_reduce_run(k, table);
}

static sn_status sum_square_ref(sni_kernel *k) {
    static const sni_reducer *const table[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(&sumsq)};
    return sni_reduce_run(k, table);
}

#define WIDE_NUMBERS (SNI_T_FLOATS | SNI_T_INDEX | SNI_T(SN_UINT32) | SNI_T(SN_UINT64))
#define ORDERED (WIDE_NUMBERS | SNI_T(SN_INT8) | SNI_T(SN_UINT8) | SNI_T(SN_BOOL))

#define REDUCE_OP(NAME, REF, TYPES, SINCE, ...)                                             \
    const sni_op sni_op_##NAME = {                                                          \
        .name = #NAME,                                                                      \
        .versions = SNI_VERSIONS(__VA_ARGS__),                                              \
        .inputs = SNI_FORMALS({"data", "T"}, {"axes", "int64", SNI_OPTIONAL}),              \
        .outputs = SNI_FORMALS({"reduced", "T"}),                                           \
        .types = SNI_TYPE_VARS({"T", TYPES}),                                               \
        .params = SNI_PARAMS(                                                               \
            {"keepdims", SNI_ATTR_INT, offsetof(sni_reduce_params, keepdims), .number = 1}, \
            {"noop_with_empty_axes", SNI_ATTR_INT,                                          \
             offsetof(sni_reduce_params, noop_with_empty_axes)}),                           \
        .params_size = sizeof(sni_reduce_params),                                           \
        .moves = SNI_ATTR_MOVES({"axes", SINCE, 1, SN_INT64}),                              \
        .infer = sni_reduce_infer,                                                          \
        .ref = REF,                                                                         \
    }

REDUCE_OP(ReduceL1, l1_ref, WIDE_NUMBERS, 18, 1, 11, 13, 18);
REDUCE_OP(ReduceL2, l2_ref, WIDE_NUMBERS, 18, 1, 11, 13, 18);
REDUCE_OP(ReduceLogSum, log_sum_ref, WIDE_NUMBERS, 18, 1, 11, 13, 18);
REDUCE_OP(ReduceLogSumExp, log_sum_exp_ref, WIDE_NUMBERS, 18, 1, 11, 13, 18);
REDUCE_OP(ReduceMax, max_ref, ORDERED, 18, 1, 11, 12, 13, 18, 20);
REDUCE_OP(ReduceMean, mean_ref, WIDE_NUMBERS, 18, 1, 11, 13, 18);
REDUCE_OP(ReduceMin, min_ref, ORDERED, 18, 1, 11, 12, 13, 18, 20);
REDUCE_OP(ReduceProd, prod_ref, WIDE_NUMBERS, 18, 1, 11, 13, 18);
REDUCE_OP(ReduceSum, sum_ref, WIDE_NUMBERS, 13, 1, 11, 13);
REDUCE_OP(ReduceSumSquare, sum_square_ref, WIDE_NUMBERS, 18, 1, 11, 13, 18);
