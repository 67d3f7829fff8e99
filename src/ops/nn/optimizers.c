/* Adagrad, Adam and Momentum of ai.onnx.preview.training: one step of training. Inputs are the
 * rate R, the step count T, then for n tensors all X, all gradients G, and all states; outputs all
 * new X and all new states. */
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <math.h>

#define SNI_TRAINING "ai.onnx.preview.training"

typedef struct train_params {
    float alpha, beta, decay_factor, epsilon, norm_coefficient, norm_coefficient_post;
    int32_t mode;
} train_params;

enum { NESTEROV, STANDARD };

/* One element: x, its gradient and up to two states, which it changes. */
typedef struct element {
    double x, g, state[2];
} element;
typedef void (*step_fn)(const train_params *p, double rate, double steps, element *e);

static void adagrad(const train_params *p, double rate, double steps, element *e) {
    double r = rate / (1 + steps * (double)p->decay_factor);
    double g = (double)p->norm_coefficient * e->x + e->g;
    e->state[0] += g * g;
    e->x -= r * g / (sqrt(e->state[0]) + (double)p->epsilon);
}

static void adam(const train_params *p, double rate, double steps, element *e) {
    double alpha = (double)p->alpha, beta = (double)p->beta;
    double g = (double)p->norm_coefficient * e->x + e->g;
    e->state[0] = alpha * e->state[0] + (1 - alpha) * g;
    e->state[1] = beta * e->state[1] + (1 - beta) * g * g;
    if (steps > 0) rate *= sqrt(1 - pow(beta, steps)) / (1 - pow(alpha, steps));
    e->x -= rate * e->state[0] / (sqrt(e->state[1]) + (double)p->epsilon);
    e->x *= 1 - (double)p->norm_coefficient_post;
}

static void momentum(const train_params *p, double rate, double steps, element *e) {
    double alpha = (double)p->alpha, beta = steps > 0 ? (double)p->beta : 1;
    double g = (double)p->norm_coefficient * e->x + e->g;
    e->state[0] = alpha * e->state[0] + beta * g;
    e->x -= rate * (p->mode == NESTEROV ? g + alpha * e->state[0] : e->state[0]);
}

/* Tensor number i of n, with `states` states each. */
static sn_status train_tensor(sni_kernel *k, step_fn step, int i, int n, int states) {
    const sni_tensor *rate = sni_in(k, 0), *steps = sni_in(k, 1);
    const double *in[4] = {NULL};
    double *out[3];
    int64_t count = sni_in(k, 2 + i)->count;
    if (rate->count != 1 || steps->count != 1)
        return SNI_KERNEL_FAIL(k, "R and T are not one number each");
    for (int part = 0; part < states + 2; part++) {
        const sni_tensor *t = sni_in(k, 2 + part * n + i);
        if (t->count != count) return SNI_KERNEL_FAIL(k, "parts of tensor %d differ in size", i);
        SN_TRY(sni_as_f64(k, t, &in[part]));
    }
    for (int part = 0; part < states + 1; part++) {
        void *memory = NULL;
        SN_TRY(sni_scratch_array(k, count, sizeof(double), &memory));
        out[part] = memory;
    }
    double r = sni_number_at(rate, 0), t = sni_number_at(steps, 0);
    for (int64_t j = 0; j < count; j++) {
        element e = {in[0][j], in[1][j], {in[2][j], states > 1 ? in[3][j] : 0}};
        step(k->params, r, t, &e);
        out[0][j] = e.x;
        for (int s = 0; s < states; s++) out[s + 1][j] = e.state[s];
    }
    for (int part = 0; part < states + 1; part++) {
        sni_tensor *y = sni_out(k, part * n + i);
        if (y && y->count == count) sni_store_numbers(y, SN_FLOAT64, out[part], false);
    }
    return SN_OK;
}

static sn_status train(sni_kernel *k, step_fn step, int states) {
    int n = (k->n_in - 2) / (states + 2);
    for (int i = 0; i < n; i++) SN_TRY(train_tensor(k, step, i, n, states));
    return SN_OK;
}

static sn_status adagrad_ref(sni_kernel *k) {
    return train(k, adagrad, 1);
}

static sn_status adam_ref(sni_kernel *k) {
    return train(k, adam, 2);
}

static sn_status momentum_ref(sni_kernel *k) {
    return train(k, momentum, 1);
}

/* New X and states are like the old ones. */
static sn_status train_infer(sni_infer *c, int states) {
    int n = (c->n_in - 2) / (states + 2);
    if (n < 1 || c->n_in != 2 + n * (states + 2) || c->n_out > n * (states + 1))
        return SNI_INFER_FAIL(c, "%d inputs and %d outputs do not fit %d states a tensor", c->n_in,
                              c->n_out, states);
    for (int i = 0; i < c->n_in; i++)
        if (!c->in[i]) return SNI_INFER_FAIL(c, "input %d is missing", i);
    for (int i = 0; i < c->n_out; i++) {
        const sni_type *t = c->in[i < n ? 2 + i : 2 + n + i];
        if (t->kind == SN_KIND_TENSOR && t->dtype) SN_TRY(sni_infer_set_full_type(c, i, t));
    }
    return SN_OK;
}

static sn_status infer_one_state(sni_infer *c) {
    return train_infer(c, 1);
}

static sn_status infer_two_states(sni_infer *c) {
    return train_infer(c, 2);
}

#define TRAIN_FIELDS                                                             \
    .domain = SNI_TRAINING, .versions = SNI_VERSIONS(1),                         \
    .inputs = SNI_FORMALS({"R", "T1"}, {"T", "int64"},                           \
                          {"inputs", "T3", SNI_VARIADIC | SNI_HETEROGENEOUS}),   \
    .outputs = SNI_FORMALS({"outputs", "T3", SNI_VARIADIC | SNI_HETEROGENEOUS}), \
    .types = SNI_TYPE_VARS({"T1", SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT64)},        \
                           {"T3", SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT64)}),       \
    .params_size = sizeof(train_params)
#define RATE(NAME, FIELD, ...) \
    { NAME, SNI_ATTR_FLOAT, offsetof(train_params, FIELD), __VA_ARGS__ }

const sni_op sni_op_Adagrad = {
    .name = "Adagrad",
    TRAIN_FIELDS,
    .params = SNI_PARAMS(RATE("decay_factor", decay_factor, .number = 0),
                         RATE("epsilon", epsilon, .number = 1e-6),
                         RATE("norm_coefficient", norm_coefficient, .number = 0)),
    .infer = infer_one_state,
    .ref = adagrad_ref,
};

const sni_op sni_op_Adam = {
    .name = "Adam",
    TRAIN_FIELDS,
    .params = SNI_PARAMS(RATE("alpha", alpha, .number = 0.9), RATE("beta", beta, .number = 0.999),
                         RATE("epsilon", epsilon, .number = 1e-6),
                         RATE("norm_coefficient", norm_coefficient, .number = 0),
                         RATE("norm_coefficient_post", norm_coefficient_post, .number = 0)),
    .infer = infer_two_states,
    .ref = adam_ref,
};

const sni_op sni_op_Momentum = {
    .name = "Momentum",
    TRAIN_FIELDS,
    .params =
        SNI_PARAMS(RATE("alpha", alpha, .required = true), RATE("beta", beta, .required = true),
                   RATE("norm_coefficient", norm_coefficient, .required = true),
                   {"mode", SNI_ATTR_STRING, offsetof(train_params, mode), .required = true,
                    .choices = "nesterov|standard"}),
    .infer = infer_one_state,
    .ref = momentum_ref,
};
