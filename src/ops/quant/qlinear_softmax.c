/* QLinearSoftmax: Softmax between DequantizeLinear and QuantizeLinear, by tables. What a byte adds
 * to a lane's sum depends on how far it is below the lane's greatest byte alone: 256 numbers, made
 * once. They are integers, so that a sum is exact in any order. Each lane has a table of results.
 */
#include "base/threadpool.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"
#include "ops/quant/qlinear.h"
#include "ops/quant/quant.h"

#include <math.h>

enum { BYTES = 256, GRAIN = 4096 };

typedef struct softmax_params {
    int64_t axis;
    int64_t opset; /* below 13 all axes from `axis` on are one */
} softmax_params;

typedef sni_qsoftmax lane_job;

/* The greatest byte of a lane, flipped. */
static int greatest(const lane_job *j, const uint8_t *x) {
    uint8_t most = 0;
    for (int64_t i = 0; i < j->n && j->step == 1; i++) {
        uint8_t v = x[i] ^ j->flip;
        most = v > most ? v : most;
    }
    for (int64_t i = 0; i < j->n && j->step != 1; i++) {
        uint8_t v = x[i * j->step] ^ j->flip;
        most = v > most ? v : most;
    }
    return most;
}

/* What an element of this weight becomes. */
static uint8_t result_of(const lane_job *j, uint32_t weight, float scale, float low) {
    return (uint8_t)(int32_t)sni_round_shift((float)(int32_t)weight * scale, (float)j->to.zero, low,
                                             low + 255);
}

static void run_lane(const lane_job *j, const uint8_t *x, uint8_t *y) {
    enum { SHORT = 128 }; /* elements that are not worth a table of results */
    uint8_t result[BYTES];
    const int most = greatest(j, x);
    const uint32_t *weight = j->weight + most;
    const float low = j->to.dtype == SN_INT8 ? -128 : 0;
    uint64_t sum = 0;
    for (int64_t i = 0; i < j->n; i++) sum += weight[-(x[i * j->step] ^ j->flip)];
    const float scale = (float)(1.0 / (double)sum / (double)j->to.scale);
    for (int64_t i = 0; i < j->n && j->n < SHORT; i++)
        y[i * j->step] = result_of(j, weight[-(x[i * j->step] ^ j->flip)], scale, low);
    if (j->n < SHORT) return;
    for (int d = 0; d <= most; d++) result[d] = result_of(j, j->weight[d], scale, low);
    for (int64_t i = 0; i < j->n; i++) y[i * j->step] = result[most - (x[i * j->step] ^ j->flip)];
}

/* A lane of numbers that scales make huge, tiny or no numbers at all. */
static void run_odd_lane(const lane_job *j, const uint8_t *x, uint8_t *y) {
    float most = j->table[x[0]];
    double sum = 0;
    for (int64_t i = 0; i < j->n; i++)
        if (j->table[x[i * j->step]] > most) most = j->table[x[i * j->step]];
    for (int64_t i = 0; i < j->n; i++) sum += exp((double)j->table[x[i * j->step]] - (double)most);
    for (int64_t i = 0; i < j->n; i++) {
        double v = exp((double)j->table[x[i * j->step]] - (double)most) / sum;
        y[i * j->step] = sni_quant_byte(&j->to, (float)v);
    }
}

static bool is_usual(float scale) {
    return scale > 1e-18f && scale < 1e18f;
}

static void run_lanes(void *ctx, int64_t begin, int64_t end) {
    const lane_job *j = ctx;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i / j->step * j->step * j->n + i % j->step;
        (j->is_usual ? run_lane : run_odd_lane)(j, j->x + at, j->y + at);
    }
}

sn_status sni_qsoftmax_get(sni_kernel *k, sni_qsoftmax *out) {
    enum { BITS = 30 };
    const softmax_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sni_qscale from;
    sni_qsoftmax j = {.x = x->data, .y = y->data, .n = 1, .step = 1};
    SN_TRY(sni_qscale_get(k, 1, x->dtype, &from));
    SN_TRY(sni_qscale_get(k, 3, y->dtype, &j.to));
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    int64_t inner = x->rank ? sni_tensor_span(x, axis + 1, x->rank) : 1;
    if (x->rank) j.n = x->dims[axis] * (p->opset < 13 ? inner : 1);
    if (p->opset >= 13) j.step = inner;
    j.flip = x->dtype == SN_INT8 ? 0x80 : 0;
    sni_dequant_table(&from, j.table);
    j.is_usual = is_usual(from.scale) && is_usual(j.to.scale);
    for (int i = 0; i < BYTES && j.is_usual; i++)
        j.weight[i] = (uint32_t)rint(exp(-(double)from.scale * i) * (double)(1 << BITS));
    *out = j;
    return SN_OK;
}

static sn_status softmax_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    sni_qsoftmax j;
    SN_TRY(sni_qsoftmax_get(k, &j));
    if (x->count == 0) return SN_OK;
    sni_parallel_for(k->threads, x->count / j.n, GRAIN / j.n + 1, run_lanes, &j);
    return sni_poll(k);
}

static sn_status softmax_infer(sni_infer *c) {
    const softmax_params *p = c->params;
    int axis, rank = sni_infer_shaped(c, 0) ? sni_infer_rank(c, 0) : 0;
    if (rank > 0) SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    return sni_infer_same(c);
}

const sni_op sni_op_ms_QLinearSoftmax = {
    .name = "QLinearSoftmax",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS(SNI_QLINEAR_UNARY_INPUTS),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_BYTES}),
    .params =
        SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(softmax_params, axis), .number = -1},
                   {"opset", SNI_ATTR_INT, offsetof(softmax_params, opset), .required = true}),
    .params_size = sizeof(softmax_params),
    .infer = softmax_infer,
    .ref = softmax_ref,
};
