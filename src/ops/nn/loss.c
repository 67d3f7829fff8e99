/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. Both are computed in double. */
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <math.h>

typedef struct loss_params {
    int32_t reduction;
    int64_t ignore_index;
    bool has_ignore;
} loss_params;

enum { NONE, SUM, MEAN };

/* x is (N, C, D): D is the product of all axes behind the classes; the target is (N, D). */
typedef struct loss_shape {
    int64_t n, c, d;
} loss_shape;

static sn_status loss_shape_of(sni_kernel *k, loss_shape *s) {
    const sni_tensor *x = sni_in(k, 0), *target = sni_in(k, 1), *weight = sni_in(k, 2);
    bool ok = x->rank >= 2 && target->rank == x->rank - 1 && target->dims[0] == x->dims[0];
    for (int i = 2; ok && i < x->rank; i++) ok = target->dims[i - 1] == x->dims[i];
    if (!ok) return SNI_KERNEL_FAIL(k, "the target does not fit scores of rank %d", x->rank);
    if (weight && weight->count != x->dims[1])
        return SNI_KERNEL_FAIL(k, "%lld weights for %lld classes", (long long)weight->count,
                               (long long)x->dims[1]);
    *s = (loss_shape){x->dims[0], x->dims[1], sni_tensor_span(x, 2, x->rank)};
    return SN_OK;
}

/* Output 0 from log-probabilities. */
static sn_status likelihood(sni_kernel *k, const loss_shape *s, const double *log_prob) {
    const loss_params *p = k->params;
    const sni_tensor *target = sni_in(k, 1), *weight = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    void *memory = NULL;
    SN_TRY(sni_scratch_array(k, target->count, sizeof(double), &memory));
    double *loss = memory, sum = 0, weights = 0;
    for (int64_t i = 0; i < target->count; i++) {
        int64_t class = sni_index_at(target, i);
        loss[i] = 0;
        if (p->has_ignore && class == p->ignore_index) continue;
        if (class < 0 || class >= s->c)
            return SNI_KERNEL_FAIL(k, "target %lld is no class of %lld", (long long)class,
                                   (long long)s->c);
        double w = weight ? sni_number_at(weight, class) : 1;
        loss[i] = -log_prob[(i / s->d * s->c + class) * s->d + i % s->d] * w;
        sum += loss[i];
        weights += w;
    }
    if (!y) return SN_OK;
    if (p->reduction == MEAN) sum /= weights;
    if (y->count != (p->reduction == NONE ? target->count : 1))
        return SNI_KERNEL_FAIL(k, "the output has %lld elements", (long long)y->count);
    sni_store_numbers(y, SN_FLOAT64, p->reduction == NONE ? loss : &sum, false);
    return SN_OK;
}

static sn_status nll_ref(sni_kernel *k) {
    loss_shape s;
    const double *x = NULL;
    SN_TRY(loss_shape_of(k, &s));
    SN_TRY(sni_as_f64(k, sni_in(k, 0), &x));
    return likelihood(k, &s, x);
}

static sn_status sce_ref(sni_kernel *k) {
    loss_shape s;
    const double *x = NULL;
    void *memory = NULL;
    SN_TRY(loss_shape_of(k, &s));
    SN_TRY(sni_as_f64(k, sni_in(k, 0), &x));
    SN_TRY(sni_scratch_array(k, sni_in(k, 0)->count, sizeof(double), &memory));
    double *log_prob = memory;
    for (int64_t i = 0; i < s.n * s.d && s.c; i++) {
        int64_t at = i / s.d * s.c * s.d + i % s.d;
        double max = x[at], sum = 0;
        for (int64_t c = 1; c < s.c; c++) max = fmax(max, x[at + c * s.d]);
        for (int64_t c = 0; c < s.c; c++) sum += exp(x[at + c * s.d] - max);
        sum = log(sum) + max;
        for (int64_t c = 0; c < s.c; c++) log_prob[at + c * s.d] = x[at + c * s.d] - sum;
    }
    sni_tensor *second = sni_out(k, 1);
    if (second) sni_store_numbers(second, SN_FLOAT64, log_prob, false);
    return likelihood(k, &s, log_prob);
}

static sn_status loss_infer(sni_infer *c) {
    const loss_params *p = c->params;
    if (c->n_out > 1 && sni_infer_shaped(c, 0))
        SN_TRY(sni_infer_set_shape(c, 1, c->in[0]->rank, c->in[0]->dims));
    if (sni_infer_shaped(c, 0) && sni_infer_rank(c, 0) < 2)
        return SNI_INFER_FAIL(c, "scores of rank %d have no classes", sni_infer_rank(c, 0));
    if (p->reduction != NONE) return sni_infer_set_shape(c, 0, 0, NULL);
    if (!sni_infer_shaped(c, 1)) return SN_OK;
    return sni_infer_set_shape(c, 0, c->in[1]->rank, c->in[1]->dims);
}

#define LOSS_PARAMS                                                                             \
    SNI_PARAMS({"reduction", SNI_ATTR_STRING, offsetof(loss_params, reduction), .text = "mean", \
                .choices = "none|sum|mean"},                                                    \
               {"ignore_index", SNI_ATTR_INT, offsetof(loss_params, ignore_index),              \
                .present = offsetof(loss_params, has_ignore) + 1})

const sni_op sni_op_NegativeLogLikelihoodLoss = {
    .name = "NegativeLogLikelihoodLoss",
    .versions = SNI_VERSIONS(12, 13, 22),
    .inputs = SNI_FORMALS({"input", "T"}, {"target", "Tind"}, {"weight", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"loss", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}, {"Tind", SNI_T_INDEX}),
    .params = LOSS_PARAMS,
    .params_size = sizeof(loss_params),
    .infer = loss_infer,
    .ref = nll_ref,
};

const sni_op sni_op_SoftmaxCrossEntropyLoss = {
    .name = "SoftmaxCrossEntropyLoss",
    .versions = SNI_VERSIONS(12, 13),
    .inputs = SNI_FORMALS({"scores", "T"}, {"labels", "Tind"}, {"weights", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}, {"log_prob", "T", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}, {"Tind", SNI_T_INDEX}),
    .params = LOSS_PARAMS,
    .params_size = sizeof(loss_params),
    .infer = loss_infer,
    .ref = sce_ref,
};
