/* Conv: convolution over any number of spatial axes, with groups, dilations and padding. */
#include "ops/compute.h"
#include "ops/conv_core.h"

static sn_status conv_infer(sni_infer *c) {
    return sni_infer_conv(c, 0, 1, 2);
}

static int64_t conv_macs(const sni_infer *c) {
    return sni_conv_macs(c, 0, 1);
}

static sn_status conv_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0), *w = sni_in(k, 1), *b = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    const void *bias;
    sni_conv conv = {.x_dtype = dtype, .add = b != NULL};
    SN_TRY(sni_conv_init(k, &conv, x, w, y));
    SN_TRY(sni_in_as(k, x, dtype, &conv.x));
    SN_TRY(sni_in_as(k, w, dtype, &conv.w));
    SN_TRY(sni_in_as(k, b, dtype, &bias));
    SN_TRY(sni_out_as(k, y, dtype, &conv.y));
    if (bias && y->count > 0)
        sni_fill_channels(conv.y, bias, conv.batch, conv.out_channels,
                          sni_tensor_span(y, 2, y->rank), sni_dtype_width(dtype));
    sni_conv_run(&conv, k->threads);
    sni_out_done(k, y, dtype, conv.y);
    return SN_OK;
}

const sni_op sni_op_Conv = {
    .name = "Conv",
    .versions = SNI_VERSIONS(1, 11, 22),
    .inputs = SNI_FORMALS({"X", "T"}, {"W", "T"}, {"B", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_CONV_PARAMS,
    .params_size = sizeof(sni_conv_params),
    .infer = conv_infer,
    .ref = conv_ref,
    .macs = conv_macs,
};
