/* loops.c - implementations whose kernel is a loop of this tier and whose driver is that of the
 * reference kernel: reductions, functions of one number, casts, pools; and normalisation of
 * channels. */
#include "cpu/core/loops.h"

#include "base/threadpool.h"
#include "cpu/core/cpu_ep.h"
#include "cpu/elementwise/cast.h"
#include "cpu/elementwise/doubles.h"
#include "cpu/elementwise/unary.h"
#include "cpu/reduce/pool.h"
#include "cpu/reduce/reduce.h"
#include "cpu/reduce/rows.h"

#include <math.h>

static bool is_float(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32) || sni_choice_is(c, 0, SN_FLOAT16) ||
           sni_choice_is(c, 0, SN_BFLOAT16);
}

/* ---- Reductions ---- */

static bool reduce_accepts(const sni_choice *c) {
    return is_float(c) || sni_choice_is(c, 0, SN_FLOAT64) || sni_choice_is(c, 0, SN_INT32) ||
           sni_choice_is(c, 0, SN_INT64);
}

static bool extreme_accepts(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_INT8) || sni_choice_is(c, 0, SN_UINT8) ||
           sni_choice_is(c, 0, SN_BOOL);
}

#define RUN(type, reducer)                                        \
    static sn_status run_##type(sni_kernel *k) {                  \
        return sni_reduce_run(k, sni_reduce_kernels_get()->type); \
    }
SNI_REDUCTIONS(RUN)
#undef RUN

/* ---- Functions of one number ---- */

#define RUN(type, row)                                                                   \
    static sn_status run_##type(sni_kernel *k) {                                         \
        const sni_unary_fn table[SNI_DTYPE_COUNT] = {[SN_FLOAT32] =                      \
                                                         sni_unary_kernels_get()->type}; \
        return sni_map_unary(k, table);                                                  \
    }
SNI_UNARY_FLOATS(RUN)
#undef RUN

#define RUN(type, row)                                                                       \
    static sn_status run_##type##_f64(sni_kernel *k) {                                       \
        const sni_unary_fn table[SNI_DTYPE_COUNT] = {[SN_FLOAT64] = sni_doubles_get()->row}; \
        return sni_map_unary(k, table);                                                      \
    }
SNI_DOUBLES_UNARY(RUN)
#undef RUN

static bool is_f64(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT64);
}

/* ---- Predicates and integers ---- */

static bool is_f32(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32);
}

static bool is_i32(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_INT32);
}

static bool attr_is_set(const sni_node *n, const char *name) {
    const sni_attr *a = sni_node_attr(n, name);
    return !a || a->u.i != 0;
}

static sn_status is_inf_run(sni_kernel *k) {
    sni_which_infinity which = {.negative = attr_is_set(k->node, "detect_negative"),
                                .positive = attr_is_set(k->node, "detect_positive")};
    sni_elementwise m = {.n_in = 1,
                         .in = {sni_in(k, 0)},
                         .in_as = {SN_FLOAT32},
                         .out = sni_out(k, 0),
                         .out_as = SN_BOOL,
                         .unary = sni_unary_kernels_get()->is_infinite,
                         .params = &which};
    sni_elementwise_run(k->threads, &m);
    return SN_OK;
}

static bool is_i32_or_i64(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_INT32) || sni_choice_is(c, 0, SN_INT64);
}

#define RUN(type)                                                    \
    static sn_status run_whole_##type(sni_kernel *k) {               \
        const sni_unary_kernels *l = sni_unary_kernels_get();        \
        const sni_unary_fn table[SNI_DTYPE_COUNT] = {                \
            [SN_INT32] = l->type##_i32, [SN_INT64] = l->type##_i64}; \
        return sni_map_unary(k, table);                              \
    }
SNI_UNARY_INTS(RUN)
#undef RUN

static sn_status quotient_i32_run(sni_kernel *k) {
    const sni_binary_fn table[SNI_DTYPE_COUNT] = {[SN_INT32] =
                                                      sni_unary_kernels_get()->quotient_i32};
    return sni_map_binary(k, table);
}

/* ---- Cast ---- */

static sn_status cast_run(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sni_unary_fn fn = sni_cast_kernels_get()->fns[x->dtype][y->dtype];
    if (!fn || x->data == y->data) return k->node->op->ref(k);
    sni_elementwise m = {
        .n_in = 1, .in = {x}, .in_as = {x->dtype}, .out = y, .out_as = y->dtype, .unary = fn};
    sni_elementwise_run(k->threads, &m);
    return SN_OK;
}

static bool cast_accepts(const sni_choice *c) {
    const sni_cast_kernels *casts = sni_cast_kernels_get();
    const sni_attr *to = sni_node_attr(c->node, "to");
    return c->in[0] && c->in[0]->kind == SN_KIND_TENSOR && to && to->u.i > 0 &&
           to->u.i < SNI_DTYPE_COUNT && casts->fns[c->in[0]->dtype][to->u.i];
}

/* ---- Pools ---- */

static bool max_pool_accepts(const sni_choice *c) {
    return is_float(c) && c->node->n_out == 1;
}

static sn_status run_global(sni_kernel *k, sni_pool_fn fn) {
    const sni_pool_fn table[SNI_DTYPE_COUNT] = {[SN_FLOAT32] = fn};
    return sni_pool_run(k, table, true);
}

static sn_status max_pool_run(sni_kernel *k) {
    return sni_pool_run_rows(k, sni_pool_kernels_get()->max, false);
}

static sn_status average_pool_run(sni_kernel *k) {
    return sni_pool_run_rows(k, sni_pool_kernels_get()->average, true);
}

static sn_status global_max_run(sni_kernel *k) {
    return run_global(k, sni_pool_kernels_get()->global_max);
}

static sn_status global_average_run(sni_kernel *k) {
    return run_global(k, sni_pool_kernels_get()->global_average);
}

/* ---- Normalisation of channels or groups of them ---- */

typedef struct channel_job {
    const sni_loops *loops;
    const sni_cpu_kernels *kernels;
    const float *x, *scale, *shift;
    const float *mean, *variance; /* per channel; NULL: those of each group are computed */
    float *y;
    int64_t groups, per_group, plane; /* groups of an image, channels of a group */
    float epsilon;
} channel_job;

/* Normalises groups [begin, end), counted over all images. */
static void norm_piece(void *ctx, int64_t begin, int64_t end) {
    const channel_job *j = ctx;
    int64_t n = j->per_group * j->plane;
    for (int64_t g = begin; g < end; g++) {
        int64_t first = g % j->groups * j->per_group;
        float mean = 0, inverse = 0;
        if (!j->mean) j->kernels->rows->moments(j->x + g * n, n, true, j->epsilon, &mean, &inverse);
        for (int64_t c = first; c < first + j->per_group; c++) {
            int64_t at = g * n + (c - first) * j->plane;
            if (j->mean) {
                mean = j->mean[c];
                inverse = (float)(1 / sqrt((double)j->variance[c] + (double)j->epsilon));
            }
            j->loops->center_row(j->x + at, j->y + at, j->plane, mean, inverse * j->scale[c],
                                 j->shift[c]);
        }
    }
}

static float epsilon_of(const sni_kernel *k) {
    const sni_attr *a = sni_node_attr(k->node, "epsilon");
    return a ? a->u.f : 1e-5f;
}

static sn_status run_norm(sni_kernel *k, int64_t groups, const float *mean, const float *variance) {
    const sni_tensor *x = sni_in(k, 0);
    if (x->count == 0) return SN_OK;
    channel_job j = {.loops = sni_loops_get(),
                     .kernels = sni_cpu_kernels_get(),
                     .x = x->data,
                     .scale = sni_in(k, 1)->data,
                     .shift = sni_in(k, 2)->data,
                     .mean = mean,
                     .variance = variance,
                     .y = sni_out(k, 0)->data,
                     .groups = groups,
                     .per_group = x->dims[1] / groups,
                     .plane = sni_tensor_span(x, 2, x->rank),
                     .epsilon = epsilon_of(k)};
    sni_parallel_for(k->threads, x->dims[0] * groups, sni_cpu_grain(j.per_group * j.plane),
                     norm_piece, &j);
    return SN_OK;
}

static bool norm_accepts(const sni_choice *c) {
    for (int i = 0; i < c->n_in; i++)
        if (!sni_choice_is(c, i, SN_FLOAT32)) return false;
    return true;
}

static sn_status instance_norm_run(sni_kernel *k) {
    return run_norm(k, sni_in(k, 0)->dims[1], NULL, NULL);
}

static sn_status group_norm_run(sni_kernel *k) {
    return run_norm(k, sni_node_attr(k->node, "num_groups")->u.i, NULL, NULL);
}

static bool batch_norm_accepts(const sni_choice *c) {
    const sni_attr *training = sni_node_attr(c->node, "training_mode");
    return norm_accepts(c) && c->node->n_out == 1 && !(training && training->u.i);
}

static sn_status batch_norm_run(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    if (x->rank < 2 || sni_tensor_span(x, 2, x->rank) < 8) return k->node->op->ref(k);
    return run_norm(k, x->dims[1], sni_in(k, 3)->data, sni_in(k, 4)->data);
}

/* ---- Implementations ---- */

#define ENTRY(type, reducer) \
    {.name = "reduce", .op = #type, .accepts = reduce_accepts, .run = run_##type},

#define UNARY(type, row) {.name = "map_f32", .op = #type, .accepts = is_float, .run = run_##type},

#define UNARY_F64(type, row) \
    {.name = "map_f64", .op = #type, .accepts = is_f64, .run = run_##type##_f64},

#define WHOLE(type) \
    {.name = "map_int", .op = #type, .accepts = is_i32_or_i64, .run = run_whole_##type},

const sni_impl sni_cpu_loops[] = {
    SNI_REDUCTIONS(ENTRY) SNI_UNARY_FLOATS(UNARY) SNI_DOUBLES_UNARY(UNARY_F64){
        .name = "cast", .op = "Cast", .accepts = cast_accepts, .run = cast_run},
    {.name = "reduce_i8", .op = "ReduceMax", .accepts = extreme_accepts, .run = run_ReduceMax},
    {.name = "reduce_i8", .op = "ReduceMin", .accepts = extreme_accepts, .run = run_ReduceMin},
    {.name = "infinite_f32", .op = "IsInf", .accepts = is_f32, .run = is_inf_run},
    SNI_UNARY_INTS(WHOLE){
        .name = "map_i32", .op = "Div", .accepts = is_i32, .run = quotient_i32_run},
    {.name = "pool_f32", .op = "MaxPool", .accepts = max_pool_accepts, .run = max_pool_run},
    {.name = "pool_f32", .op = "AveragePool", .accepts = is_float, .run = average_pool_run},
    {.name = "pool_f32", .op = "GlobalMaxPool", .accepts = is_float, .run = global_max_run},
    {.name = "pool_f32", .op = "GlobalAveragePool", .accepts = is_float, .run = global_average_run},
    {.name = "channels_f32",
     .op = "InstanceNormalization",
     .accepts = norm_accepts,
     .run = instance_norm_run},
    {.name = "channels_f32",
     .op = "GroupNormalization",
     .accepts = norm_accepts,
     .run = group_norm_run},
    {.name = "channels_f32",
     .op = "BatchNormalization",
     .accepts = batch_norm_accepts,
     .run = batch_norm_run},
    {0},
};
