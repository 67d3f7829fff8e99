/* LRN: each element divided by a power of the squares of its neighbours across channels. */
#include "ops/core/compute.h"
#include "ops/core/long_work.h"

#include <math.h>

typedef struct lrn_params {
    float alpha, beta, bias;
    int64_t size;
} lrn_params;

typedef struct lrn {
    const void *x;
    void *y;
    int64_t channels, plane, size;
    double alpha, beta, bias;
} lrn;

#define BODY "ops/nn/lrn.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

static sn_status lrn_infer(sni_infer *c) {
    const lrn_params *p = c->params;
    if (p->size < 1) return SNI_INFER_FAIL(c, "size is %lld", (long long)p->size);
    if (sni_infer_shaped(c, 0) && sni_infer_rank(c, 0) < 2)
        return SNI_INFER_FAIL(c, "an input of rank %d has no channels", sni_infer_rank(c, 0));
    return sni_infer_same(c);
}

static sn_status lrn_ref(sni_kernel *k) {
    const lrn_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    lrn l = {.channels = x->dims[1],
             .plane = sni_tensor_span(x, 2, x->rank),
             .size = p->size,
             .alpha = (double)p->alpha,
             .beta = (double)p->beta,
             .bias = (double)p->bias};
    SN_TRY(sni_in_as(k, x, dtype, &l.x));
    SN_TRY(sni_out_as(k, y, dtype, &l.y));
    double taps = (double)(l.size < l.channels ? l.size : l.channels) + 16; /* 16: the power */
    if (x->count)
        SN_TRY(sni_long_for(k, x->dims[0] * l.channels, 2048 / l.plane + 1, taps * (double)l.plane,
                            dtype == SN_FLOAT64 ? images_f64 : images_f32, &l));
    sni_out_done(k, y, dtype, l.y);
    return SN_OK;
}

const sni_op sni_op_LRN = {
    .name = "LRN",
    .versions = SNI_VERSIONS(1, 13),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"alpha", SNI_ATTR_FLOAT, offsetof(lrn_params, alpha), .number = 1e-4},
                         {"beta", SNI_ATTR_FLOAT, offsetof(lrn_params, beta), .number = 0.75},
                         {"bias", SNI_ATTR_FLOAT, offsetof(lrn_params, bias), .number = 1},
                         {"size", SNI_ATTR_INT, offsetof(lrn_params, size), .required = true}),
    .params_size = sizeof(lrn_params),
    .infer = lrn_infer,
    .ref = lrn_ref,
};
