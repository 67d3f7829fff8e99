/* elementwise.c - operators that apply a function to every element of a float32 or float64 tensor,
 * or to two float32 tensors, with the kernels of map.h and doubles.h. */
#include "ops/core/elementwise.h"

#include "base/threadpool.h"
#include "cpu/core/cpu_ep.h"
#include "cpu/elementwise/doubles.h"
#include "cpu/elementwise/map.h"
#include "ops/core/convert.h"
#include "ops/core/tensor_util.h"

#include <math.h>

enum { GRAIN = 8192 }; /* elements worth a thread */

/* ---- One tensor ---- */

/* The kernel of an operator. p0 and p1 are the attributes `name0` and `name1`, or these defaults.
 */
typedef struct unary_op {
    const char *op;
    sni_act act;
    const char *name0, *name1;
    float p0, p1;
} unary_op;

static const unary_op unary_ops[] = {
    {"Relu", SNI_ACT_RELU},
    {"Sigmoid", SNI_ACT_SIGMOID},
    {"Tanh", SNI_ACT_TANH},
    {"Erf", SNI_ACT_ERF},
    {"Exp", SNI_ACT_EXP},
    {"Log", SNI_ACT_LOG},
    {"Sqrt", SNI_ACT_SQRT},
    {"Reciprocal", SNI_ACT_RECIPROCAL},
    {"Abs", SNI_ACT_ABS},
    {"Neg", SNI_ACT_NEG},
    {"HardSwish", SNI_ACT_HARD_SWISH},
    {"HardSigmoid", SNI_ACT_HARD_SIGMOID, "alpha", "beta", 0.2f, 0.5f},
    {"LeakyRelu", SNI_ACT_LEAKY_RELU, "alpha", NULL, 0.01f},
    {"Elu", SNI_ACT_ELU, "alpha", NULL, 1},
    {"Celu", SNI_ACT_CELU, "alpha", NULL, 1},
    {"Selu", SNI_ACT_SELU, "alpha", "gamma", 1.67326319217681884765625f,
     1.05070102214813232421875f},
    {"Softplus", SNI_ACT_SOFTPLUS, NULL, NULL, 1, 1},
    {"Softsign", SNI_ACT_SOFTSIGN},
    {"Mish", SNI_ACT_MISH},
    {"Gelu", SNI_ACT_GELU},
    {"Swish", SNI_ACT_SWISH, "alpha", NULL, 1},
};

typedef struct map_job {
    void (*fn)(float p0, float p1, const float *x, float *y, int64_t n);
    float p0, p1;
    const float *x;
    float *y;
} map_job;

static void map_piece(void *ctx, int64_t begin, int64_t end) {
    const map_job *j = ctx;
    j->fn(j->p0, j->p1, j->x + begin, j->y + begin, end - begin);
}

static void run_map(sni_kernel *k, sni_act act, float p0, float p1) {
    const sni_tensor *x = sni_in(k, 0);
    map_job j = {sni_cpu_kernels_get()->maps->map[act], p0, p1, x->data, sni_out(k, 0)->data};
    if (x->count) sni_parallel_for(k->threads, x->count, GRAIN, map_piece, &j);
}

static bool is_f32(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32);
}

static bool is_f64(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT64);
}

static void run_map_f64(sni_kernel *k, sni_unary_fn fn, double p0, double p1) {
    const double params[2] = {p0, p1};
    sni_elementwise m = {.n_in = 1,
                         .in = {sni_in(k, 0)},
                         .in_as = {SN_FLOAT64},
                         .out = sni_out(k, 0),
                         .out_as = SN_FLOAT64,
                         .unary = fn,
                         .params = params};
    sni_elementwise_run(k->threads, &m);
}

static float attr_or(const sni_node *n, const char *name, float otherwise) {
    const sni_attr *a = name ? sni_node_attr(n, name) : NULL;
    return a && a->kind == SNI_ATTR_FLOAT ? a->u.f : otherwise;
}

bool sni_cpu_unary(const sni_node *n, sni_act *act, float *p0, float *p1) {
    const unary_op *u = unary_ops, *end = u + sizeof unary_ops / sizeof *unary_ops;
    while (u < end && !sni_str_is(n->type, u->op)) u++;
    if (u == end) return false;
    *act = u->act;
    if (u->act == SNI_ACT_GELU) {
        const sni_attr *a = sni_node_attr(n, "approximate");
        if (a && sni_str_is(a->u.s, "tanh")) *act = SNI_ACT_GELU_TANH;
    }
    *p0 = attr_or(n, u->name0, u->p0);
    *p1 = attr_or(n, u->name1, u->p1);
    return true;
}

static sn_status unary_run(sni_kernel *k) {
    sni_act act = SNI_ACT_NONE;
    float p0 = 0, p1 = 0;
    sni_cpu_unary(k->node, &act, &p0, &p1);
    run_map(k, act, p0, p1);
    return SN_OK;
}

static bool unary_accepts_f64(const sni_choice *c) {
    sni_act act;
    float p0, p1;
    if (!is_f64(c) || !sni_cpu_unary(c->node, &act, &p0, &p1)) return false;
    if (act == SNI_ACT_CELU && !(p0 > 0))
        return false; /* the kernel computes e^x - 1 for x <= 0 only */
    return sni_doubles_get()->map[act];
}

static sn_status unary_run_f64(sni_kernel *k) {
    sni_act act = SNI_ACT_NONE;
    float p0 = 0, p1 = 0;
    sni_cpu_unary(k->node, &act, &p0, &p1);
    run_map_f64(k, sni_doubles_get()->map[act], (double)p0, (double)p1);
    return SN_OK;
}

/* ---- Clip ---- */

static sn_status clip_run(sni_kernel *k) {
    const sni_tensor *low = sni_in(k, 1), *high = sni_in(k, 2);
    if ((low && low->count != 1) || (high && high->count != 1)) return k->node->op->ref(k);
    run_map(k, SNI_ACT_CLIP, low ? *(const float *)low->data : -INFINITY,
            high ? *(const float *)high->data : INFINITY);
    return SN_OK;
}

static sn_status clip_run_f64(sni_kernel *k) {
    const sni_tensor *low = sni_in(k, 1), *high = sni_in(k, 2);
    if ((low && low->count != 1) || (high && high->count != 1)) return k->node->op->ref(k);
    run_map_f64(k, sni_doubles_get()->map[SNI_ACT_CLIP],
                low ? *(const double *)low->data : -INFINITY,
                high ? *(const double *)high->data : INFINITY);
    return SN_OK;
}

/* ---- Pow by one number ---- */

bool sni_cpu_power(float exponent, sni_act *act) {
    static const struct {
        float exponent;
        sni_act act;
    } known[] = {
        {1, SNI_ACT_NONE}, {2, SNI_ACT_SQUARE}, {3, SNI_ACT_CUBE}, {-1, SNI_ACT_RECIPROCAL}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].exponent == exponent) {
            *act = known[i].act;
            return true;
        }
    return false;
}

static bool pow_accepts(const sni_choice *c) {
    return is_f32(c) || is_f64(c);
}

static sn_status pow_run(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0), *by = sni_in(k, 1);
    double exponent = 0;
    sni_act act = SNI_ACT_NONE;
    if (by->count != 1 || x->count != sni_out(k, 0)->count) return k->node->op->ref(k);
    sni_convert(by->dtype, by->data, SN_FLOAT64, &exponent, 1, NULL);
    if (!(fabs(exponent) < 4) || (double)(float)exponent != exponent ||
        !sni_cpu_power((float)exponent, &act))
        return k->node->op->ref(k);
    if (x->dtype == SN_FLOAT64)
        run_map_f64(k, sni_doubles_get()->map[act], 0, 0);
    else
        run_map(k, act, 0, 0);
    return SN_OK;
}

/* ---- Two tensors ---- */

static const struct {
    const char *op;
    sni_binary fn;
} binary_ops[] = {{"Add", SNI_BINARY_ADD},    {"Sub", SNI_BINARY_SUB}, {"Mul", SNI_BINARY_MUL},
                  {"Div", SNI_BINARY_DIV},    {"Max", SNI_BINARY_MAX}, {"Min", SNI_BINARY_MIN},
                  {"PRelu", SNI_BINARY_PRELU}};

bool sni_cpu_binary(const sni_node *n, sni_binary *fn) {
    for (size_t i = 0; i < sizeof binary_ops / sizeof *binary_ops; i++) {
        if (!sni_str_is(n->type, binary_ops[i].op)) continue;
        *fn = binary_ops[i].fn;
        return true;
    }
    return false;
}

static bool binary_accepts(const sni_choice *c) {
    return c->n_in == 2 && is_f32(c) && sni_choice_is(c, 1, SN_FLOAT32);
}

static sn_status binary_run(sni_kernel *k) {
    sni_binary fn = SNI_BINARY_ADD;
    sni_cpu_binary(k->node, &fn);
    sni_elementwise m = {.n_in = 2,
                         .in = {sni_in(k, 0), sni_in(k, 1)},
                         .in_as = {SN_FLOAT32, SN_FLOAT32},
                         .out = sni_out(k, 0),
                         .out_as = SN_FLOAT32,
                         .binary = sni_cpu_kernels_get()->maps->binary[fn]};
    sni_elementwise_run(k->threads, &m);
    return SN_OK;
}

#define UNARY(type)                                                                       \
    {.name = "map_f32", .op = type, .accepts = is_f32, .run = unary_run}, {               \
        .name = "map_f64", .op = type, .accepts = unary_accepts_f64, .run = unary_run_f64 \
    }
#define BINARY(type) \
    { .name = "map_f32", .op = type, .accepts = binary_accepts, .run = binary_run }

const sni_impl sni_cpu_maps[] = {
    UNARY("Relu"),
    UNARY("Sigmoid"),
    UNARY("Tanh"),
    UNARY("Erf"),
    UNARY("Exp"),
    UNARY("Log"),
    UNARY("Sqrt"),
    UNARY("Reciprocal"),
    UNARY("Abs"),
    UNARY("Neg"),
    UNARY("HardSwish"),
    UNARY("HardSigmoid"),
    UNARY("LeakyRelu"),
    UNARY("Elu"),
    UNARY("Celu"),
    UNARY("Selu"),
    UNARY("Softplus"),
    UNARY("Softsign"),
    UNARY("Mish"),
    UNARY("Gelu"),
    UNARY("Swish"),
    BINARY("Add"),
    BINARY("Sub"),
    BINARY("Mul"),
    BINARY("Div"),
    BINARY("Max"),
    BINARY("Min"),
    BINARY("PRelu"),
    {.name = "map_f32", .op = "Clip", .accepts = is_f32, .run = clip_run},
    {.name = "map_f64", .op = "Clip", .accepts = is_f64, .run = clip_run_f64},
    {.name = "power", .op = "Pow", .accepts = pow_accepts, .run = pow_run},
    {0},
};
