/* shifted_gelu.c - an operator of one's own for Sinter: y = gelu(x + shift).
 *
 *     cc -shared -fPIC -O2 -I../../include -o shifted_gelu.so shifted_gelu.c -lm
 *     sinter run model.onnx --op-library ./shifted_gelu.so ...
 *
 * export.py beside it writes a PyTorch model that uses it. */
#include "sinter_op.h"

#include <math.h>
#include <stdlib.h>

static const sn_op_api *sn;

/* What a node needs for its runs, made once. */
typedef struct kernel {
    float shift;
} kernel;

static sn_status create(void *ctx, const sn_op_node *node, void **state, sn_error *err) {
    (void)ctx;
    kernel k = {0};
    if (!sn->node_float(node, "shift", &k.shift))
        return sn->fail(err, SN_INVALID_MODEL, "attribute 'shift' (a float) is missing");
    kernel *kept = malloc(sizeof *kept);
    if (!kept) return sn->fail(err, SN_NO_MEMORY, "no memory for the kernel");
    *kept = k;
    *state = kept;
    return SN_OK;
}

static void destroy(void *ctx, void *state) {
    (void)ctx;
    free(state);
}

/* The output has the input's type and shape, symbols included. */
static sn_status infer(void *ctx, sn_op_infer *call, sn_error *err) {
    (void)ctx;
    sn_value_info x;
    if (!sn->infer_input(call, 0, &x) || !x.has_shape) return SN_OK;
    return sn->infer_output(call, 0, x.dtype, x.rank, x.dims, x.symbols, err);
}

typedef struct range {
    const float *x;
    float *y;
    float shift;
} range;

static void compute(void *ctx, int64_t begin, int64_t end) {
    const range *r = ctx;
    for (int64_t i = begin; i < end; i++) {
        float v = r->x[i] + r->shift;
        r->y[i] = 0.5f * v * (1 + erff(v * 0.70710678f));
    }
}

static sn_status run(void *ctx, void *state, sn_op_call *call, sn_error *err) {
    (void)ctx;
    const kernel *k = state;
    sn_op_tensor x, y;
    sn->input(call, 0, &x);
    sn_status status = sn->output(call, 0, x.dtype, x.rank, x.dims, &y, err);
    if (status != SN_OK) return status;
    range r = {x.data, y.data, k->shift};
    sn->parallel(call, (int64_t)x.count, 4096, compute, &r);
    return SN_OK;
}

sn_status sn_register_operators(sn_operators *set, const sn_op_api *api, sn_error *err) {
    static const sn_op_port x = {"x", SN_OP_TYPE(SN_FLOAT32), 0};
    static const sn_op_port y = {"y", SN_OP_TYPE(SN_FLOAT32), 0};
    sn = api;
    sn_op op = {.size = sizeof op,
                .domain = "example.ops",
                .name = "ShiftedGelu",
                .inputs = &x,
                .input_count = 1,
                .outputs = &y,
                .output_count = 1,
                .inplace = 1, /* y[i] depends on x[i] alone: it may be written over it */
                .infer = infer,
                .create = create,
                .run = run,
                .destroy = destroy};
    return api->add(set, &op, err);
}
