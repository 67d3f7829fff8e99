/* QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu, QLinearWhere and QLinearConcat: what
 * can be read from tables with one entry for each byte. */
#include "ops/core/elementwise.h"
#include "ops/quant/qlinear.h"
#include "ops/quant/quant.h"
#include "ops/core/scalar_math.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

/* ---- Two operands ---- */

/* Both operands' numbers, and how the result is scaled and shifted before it is rounded: as in ONNX
 * Runtime the zero point is added first, which tells where ties go. */
typedef struct pair {
    float a[256], b[256];
    float scale, zero, low;
} pair;

static void add_bytes(const void *a, const void *b, void *y, int64_t n, int64_t sa, int64_t sb,
                      const void *params) {
    const pair *p = params;
    const uint8_t *u = a, *v = b;
    uint8_t *dst = y;
    for (int64_t i = 0; i < n; i++)
        dst[i] = (uint8_t)(int32_t)sni_round_shift(p->a[u[i * sa]] + p->b[v[i * sb]] + p->zero, 0,
                                                   p->low, p->low + 255);
}

static void mul_bytes(const void *a, const void *b, void *y, int64_t n, int64_t sa, int64_t sb,
                      const void *params) {
    const pair *p = params;
    const uint8_t *u = a, *v = b;
    uint8_t *dst = y;
    for (int64_t i = 0; i < n; i++)
        dst[i] = (uint8_t)(int32_t)sni_round_shift(
            p->a[u[i * sa]] * p->b[v[i * sb]] * p->scale + p->zero, 0, p->low, p->low + 255);
}

sn_status sni_qpair_get(sni_kernel *k, sni_qpair *out) {
    SN_TRY(sni_qscale_get(k, 1, sni_in(k, 0)->dtype, &out->a));
    SN_TRY(sni_qscale_get(k, 4, sni_in(k, 3)->dtype, &out->b));
    return sni_qscale_get(k, 6, sni_out(k, 0)->dtype, &out->y);
}

void sni_qpair_run(sni_kernel *k, sni_binary_fn fn, const void *params) {
    const sni_tensor *a = sni_in(k, 0), *b = sni_in(k, 3);
    sni_tensor *y = sni_out(k, 0);
    sni_elementwise e = {.n_in = 2,
                         .in = {a, b},
                         .in_as = {a->dtype, b->dtype},
                         .out = y,
                         .out_as = y->dtype,
                         .binary = fn,
                         .params = params};
    sni_elementwise_run(k->threads, &e);
}

static sn_status run_pair(sni_kernel *k, sni_binary_fn fn, bool product) {
    sni_qpair q;
    SN_TRY(sni_qpair_get(k, &q));
    pair p = {.scale = q.a.scale * q.b.scale / q.y.scale,
              .zero = (float)q.y.zero,
              .low = q.y.dtype == SN_INT8 ? -128 : 0};
    q.a.scale = product ? 1 : q.a.scale / q.y.scale;
    q.b.scale = product ? 1 : q.b.scale / q.y.scale;
    sni_dequant_table(&q.a, p.a);
    sni_dequant_table(&q.b, p.b);
    sni_qpair_run(k, fn, &p);
    return SN_OK;
}

static sn_status pair_infer(sni_infer *c) {
    return sni_infer_broadcast_of(c, 0, (const int[]){0, 3}, 2);
}

static sn_status add_ref(sni_kernel *k) {
    return run_pair(k, add_bytes, false);
}

static sn_status mul_ref(sni_kernel *k) {
    return run_pair(k, mul_bytes, true);
}

#define PAIR_INPUTS                                                                      \
    SNI_FORMALS({"A", "T"}, {"A_scale", "float32"}, {"A_zero_point", "T", SNI_OPTIONAL}, \
                {"B", "T"}, {"B_scale", "float32"}, {"B_zero_point", "T", SNI_OPTIONAL}, \
                {"C_scale", "float32"}, {"C_zero_point", "T", SNI_OPTIONAL})

const sni_op sni_op_ms_QLinearAdd = {
    .name = "QLinearAdd",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = PAIR_INPUTS,
    .outputs = SNI_FORMALS({"C", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_BYTES}),
    .infer = pair_infer,
    .ref = add_ref,
};

const sni_op sni_op_ms_QLinearMul = {
    .name = "QLinearMul",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = PAIR_INPUTS,
    .outputs = SNI_FORMALS({"C", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_BYTES}),
    .infer = pair_infer,
    .ref = mul_ref,
};

/* ---- One operand ---- */

typedef struct leaky_params {
    float alpha;
} leaky_params;

static void look_up(const void *x, void *y, int64_t n, const void *params) {
    const uint8_t *table = params, *src = x;
    uint8_t *dst = y;
    for (int64_t i = 0; i < n; i++) dst[i] = table[src[i]];
}

/* y = table[x] */
static void run_table(sni_kernel *k, const sni_tensor *x, sni_tensor *y, const uint8_t *table) {
    sni_elementwise e = {.n_in = 1,
                         .in = {x},
                         .in_as = {x->dtype},
                         .out = y,
                         .out_as = y->dtype,
                         .unary = look_up,
                         .params = table};
    sni_elementwise_run(k->threads, &e);
}

void sni_requantize_table(const sni_qscale *from, const sni_qscale *to, uint8_t table[256]) {
    float numbers[256];
    sni_dequant_table(from, numbers);
    for (int i = 0; i < 256; i++) table[i] = sni_quant_byte(to, numbers[i]);
}

static sn_status run_unary(sni_kernel *k, float (*f)(float v, const void *params)) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sni_qscale qx, qy;
    float numbers[256];
    uint8_t table[256];
    SN_TRY(sni_qscale_get(k, 1, x->dtype, &qx));
    SN_TRY(sni_qscale_get(k, 3, y->dtype, &qy));
    sni_dequant_table(&qx, numbers);
    for (int i = 0; i < 256; i++) table[i] = sni_quant_byte(&qy, f(numbers[i], k->params));
    run_table(k, x, y, table);
    return SN_OK;
}

static float sigmoid_of(float v, const void *params) {
    (void)params;
    return sni_sigmoid_f32(v);
}

static float leaky_of(float v, const void *params) {
    return v < 0 ? ((const leaky_params *)params)->alpha * v : v;
}

static sn_status sigmoid_ref(sni_kernel *k) {
    return run_unary(k, sigmoid_of);
}

static sn_status leaky_ref(sni_kernel *k) {
    return run_unary(k, leaky_of);
}

const sni_op sni_op_ms_QLinearSigmoid = {
    .name = "QLinearSigmoid",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS(SNI_QLINEAR_UNARY_INPUTS),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_BYTES}),
    .inplace = 1,
    .infer = sni_infer_same,
    .ref = sigmoid_ref,
};

const sni_op sni_op_ms_QLinearLeakyRelu = {
    .name = "QLinearLeakyRelu",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS(SNI_QLINEAR_UNARY_INPUTS),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_BYTES}),
    .params = SNI_PARAMS({"alpha", SNI_ATTR_FLOAT, offsetof(leaky_params, alpha), .number = 0.01}),
    .params_size = sizeof(leaky_params),
    .inplace = 1,
    .infer = sni_infer_same,
    .ref = leaky_ref,
};

/* ---- Where ---- */

typedef struct choice {
    uint8_t x[256], y[256];
} choice;

static void choose(const void *const x[3], const int64_t stride[3], void *y, int64_t n,
                   const void *params) {
    const choice *c = params;
    const uint8_t *condition = x[0], *yes = x[1], *no = x[2];
    uint8_t *dst = y;
    for (int64_t i = 0; i < n; i++)
        dst[i] = condition[i * stride[0]] ? c->x[yes[i * stride[1]]] : c->y[no[i * stride[2]]];
}

static sn_status where_ref(sni_kernel *k) {
    const sni_tensor *condition = sni_in(k, 0), *x = sni_in(k, 1), *y = sni_in(k, 4);
    sni_tensor *z = sni_out(k, 0);
    sni_qscale qx, qy, qz;
    choice c;
    SN_TRY(sni_qscale_get(k, 2, x->dtype, &qx));
    SN_TRY(sni_qscale_get(k, 5, y->dtype, &qy));
    SN_TRY(sni_qscale_get(k, 7, z->dtype, &qz));
    sni_requantize_table(&qx, &qz, c.x);
    sni_requantize_table(&qy, &qz, c.y);
    sni_elementwise e = {.n_in = 3,
                         .in = {condition, x, y},
                         .in_as = {condition->dtype, x->dtype, y->dtype},
                         .out = z,
                         .out_as = z->dtype,
                         .ternary = choose,
                         .params = &c};
    sni_elementwise_run(k->threads, &e);
    return SN_OK;
}

static sn_status where_infer(sni_infer *c) {
    return sni_infer_broadcast_of(c, 0, (const int[]){0, 1, 4}, 3);
}

const sni_op sni_op_ms_QLinearWhere = {
    .name = "QLinearWhere",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"condition", "bool"}, {"X", "T"}, {"x_scale", "float32"},
                          {"x_zero_point", "T"}, {"Y", "T"}, {"y_scale", "float32"},
                          {"y_zero_point", "T"}, {"z_scale", "float32"}, {"z_zero_point", "T"}),
    .outputs = SNI_FORMALS({"Z", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_BYTES}),
    .infer = where_infer,
    .ref = where_ref,
};

/* ---- Concat ---- */

enum { FIRST = 2, STEP = 3 }; /* tensors stand at inputs 2, 5, 8, ... */

typedef struct concat_params {
    int64_t axis;
} concat_params;

static sn_status concat_infer(sni_infer *c) {
    const concat_params *p = c->params;
    if (c->n_in < FIRST + STEP || (c->n_in - FIRST) % STEP)
        return SNI_INFER_FAIL(c, "%d inputs after the output's scale and zero point are no triples",
                              c->n_in - FIRST);
    for (int i = FIRST; i < c->n_in; i++) {
        bool scale = (i - FIRST) % STEP == 1;
        if (!sni_infer_given(c, i)) return SNI_INFER_FAIL(c, "input %d is missing", i);
        if (c->in[i]->dtype && (c->in[i]->dtype == SN_FLOAT32) != scale)
            return SNI_INFER_FAIL(c, "input %d is %s, not %s", i, sn_dtype_name(c->in[i]->dtype),
                                  scale ? "a scale" : "8-bit");
    }
    return sni_infer_concat(c, p->axis, FIRST, STEP);
}

static sn_status concat_ref(sni_kernel *k) {
    const concat_params *p = k->params;
    sni_tensor *y = sni_out(k, 0);
    int axis = (int)(p->axis < 0 ? p->axis + y->rank : p->axis);
    int64_t at = 0;
    sni_qscale qx, qy;
    SN_TRY(sni_qscale_get(k, 0, y->dtype, &qy));
    for (int i = FIRST; i < k->n_in; i += STEP) {
        const sni_tensor *x = sni_in(k, i);
        sni_tensor transposed = *x;
        uint8_t table[256];
        SN_TRY(sni_qscale_get(k, i + 1, x->dtype, &qx));
        if (qx.scale != qy.scale || qx.zero != qy.zero || qx.dtype != qy.dtype) {
            SN_TRY(sni_scratch_array(k, x->count, 1, &transposed.data));
            sni_requantize_table(&qx, &qy, table);
            run_table(k, x, &transposed, table);
        }
        sni_put_part(k, y, axis, at, transposed.data, x->dims[axis]);
        at += x->dims[axis];
    }
    return SN_OK;
}

const sni_op sni_op_ms_QLinearConcat = {
    .name = "QLinearConcat",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"Y_scale", "float32"}, {"Y_zero_point", "T8"},
                          {"inputs", "TV", SNI_VARIADIC | SNI_HETEROGENEOUS}),
    .outputs = SNI_FORMALS({"Y", "T8"}),
    .min_inputs = STEP,
    .types = SNI_TYPE_VARS({"T8", SNI_T_BYTES}, {"TV", SNI_T_BYTES | SNI_T(SN_FLOAT32)}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(concat_params, axis), .required = true}),
    .params_size = sizeof(concat_params),
    .infer = concat_infer,
    .ref = concat_ref,
};
