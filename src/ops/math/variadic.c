/* Max, Min, Mean and Sum of any number of tensors, broadcast. A NaN in any input gives NaN. */
#include "ops/core/elementwise.h"
#include "ops/core/tensor_util.h"

#define BODY "ops/math/variadic.inc.c"
#include "ops/core/each_number.inc.h"
#undef BODY

/* Output 0 = f(... f(f(input 0, input 1), input 2) ...). */
static sn_status fold(sni_kernel *k, const sni_binary_fn table[SNI_DTYPE_COUNT]) {
    sni_tensor *y = sni_out(k, 0);
    const sni_tensor *first = sni_in(k, 0);
    sn_dtype as = sni_compute_type(y->dtype);
    if (k->n_in == 1) sni_copy_shared(k->threads, y->data, first->data, sni_tensor_bytes(y));
    for (int i = 1; i < k->n_in; i++) {
        sni_elementwise e = {.n_in = 2,
                             .in = {i == 1 ? first : y, sni_in(k, i)},
                             .in_as = {as, as},
                             .out = y,
                             .out_as = as,
                             .binary = table[as]};
        sni_elementwise_run(k->threads, &e);
    }
    return SN_OK;
}

static sn_status max_ref(sni_kernel *k) {
    static const sni_binary_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(max)};
    return fold(k, fns);
}

static sn_status min_ref(sni_kernel *k) {
    static const sni_binary_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(min)};
    return fold(k, fns);
}

static sn_status sum_ref(sni_kernel *k) {
    static const sni_binary_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(sum)};
    return fold(k, fns);
}

static sn_status mean_ref(sni_kernel *k) {
    static const sni_unary_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(share)};
    SN_TRY(sum_ref(k));
    sni_tensor *y = sni_out(k, 0);
    sn_dtype as = sni_compute_type(y->dtype);
    int64_t count = k->n_in;
    sni_elementwise e = {.n_in = 1,
                         .in = {y},
                         .in_as = {as},
                         .out = y,
                         .out_as = as,
                         .unary = fns[as],
                         .params = &count};
    sni_elementwise_run(k->threads, &e);
    return SN_OK;
}

static sn_status max_infer(sni_infer *c) {
    return sni_infer_dim_math(c, sni_dim_max);
}

static sn_status min_infer(sni_infer *c) {
    return sni_infer_dim_math(c, sni_dim_min);
}

const sni_op sni_op_Max = {
    .name = "Max",
    .versions = SNI_VERSIONS(1, 6, 8, 12, 13),
    .inputs = SNI_FORMALS({"data_0", "T", SNI_VARIADIC}),
    .outputs = SNI_FORMALS({"max", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS}),
    .inplace = 3,
    .infer = max_infer,
    .ref = max_ref,
};

const sni_op sni_op_Mean = {
    .name = "Mean",
    .versions = SNI_VERSIONS(1, 6, 8, 13),
    .inputs = SNI_FORMALS({"data_0", "T", SNI_VARIADIC}),
    .outputs = SNI_FORMALS({"mean", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .inplace = 3,
    .infer = sni_infer_broadcast,
    .ref = mean_ref,
};

const sni_op sni_op_Min = {
    .name = "Min",
    .versions = SNI_VERSIONS(1, 6, 8, 12, 13),
    .inputs = SNI_FORMALS({"data_0", "T", SNI_VARIADIC}),
    .outputs = SNI_FORMALS({"min", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS}),
    .inplace = 3,
    .infer = min_infer,
    .ref = min_ref,
};

const sni_op sni_op_Sum = {
    .name = "Sum",
    .versions = SNI_VERSIONS(1, 6, 8, 13),
    .inputs = SNI_FORMALS({"data_0", "T", SNI_VARIADIC}),
    .outputs = SNI_FORMALS({"sum", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .inplace = 3,
    .infer = sni_infer_broadcast,
    .ref = sum_ref,
};
