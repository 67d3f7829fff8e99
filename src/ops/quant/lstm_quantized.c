/* DynamicQuantizeLSTM: LSTM with 8-bit weights, whose other operand becomes 8-bit in every step. */
#include "ops/core/compute.h"
#include "ops/quant/qlinear.h"
#include "ops/nn/rnn_core.h"
#include "ops/core/tensor_util.h"

enum { W = 1, R = 2, W_SCALE = 8, R_SCALE = 10 };

static sn_status lstm_infer(sni_infer *c) {
    return sni_rnn_infer(c, SNI_CELL_LSTM, true);
}

/* The weights at input i, (directions, columns, wide), as numbers (directions, wide, columns).
 * Scales and zero points are one for each direction, or one for each of its gates' rows. */
static sn_status read_weights(sni_kernel *k, int i, int scale_at, const float **out) {
    const sni_tensor *q = sni_in(k, i), *scale = sni_in(k, scale_at);
    const sni_tensor *zero = sni_in(k, scale_at + 1);
    int64_t dirs = q->dims[0], columns = q->dims[1], wide = q->dims[2];
    void *memory = NULL;
    if (scale->count != dirs && scale->count != dirs * wide)
        return SNI_KERNEL_FAIL(k, "input %d has %lld scales for %lld directions of %lld rows",
                               scale_at, (long long)scale->count, (long long)dirs, (long long)wide);
    if (zero->count != scale->count)
        return SNI_KERNEL_FAIL(k, "%lld zero points for %lld scales", (long long)zero->count,
                               (long long)scale->count);
    SN_TRY(sni_scratch_array(k, q->count, sizeof(float), &memory));
    float *v = memory;
    int64_t each = dirs && scale->count == dirs * wide ? wide : 1;
    for (int64_t row = 0; columns && row < dirs * wide; row++) {
        int64_t d = row / wide, g = row % wide, at = each == 1 ? d : row;
        float s = ((const float *)scale->data)[at], z = (float)sni_number_at(zero, at);
        for (int64_t j = 0; j < columns; j++)
            v[row * columns + j] = ((float)sni_number_at(q, (d * columns + j) * wide + g) - z) * s;
    }
    *out = v;
    return SN_OK;
}

static sn_status lstm_ref(sni_kernel *k) {
    sni_rnn_weights weights = {.hidden = sni_in(k, R)->dims[1]};
    SN_TRY(read_weights(k, W, W_SCALE, &weights.w));
    SN_TRY(read_weights(k, R, R_SCALE, &weights.r));
    return sni_rnn_run(k, SNI_CELL_LSTM, &weights);
}

const sni_op sni_op_ms_DynamicQuantizeLSTM = {
    .name = "DynamicQuantizeLSTM",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs =
        SNI_FORMALS({"X", "float32"}, {"W", "T2"}, {"R", "T2"}, {"B", "float32", SNI_OPTIONAL},
                    {"sequence_lens", "int32", SNI_OPTIONAL},
                    {"initial_h", "float32", SNI_OPTIONAL}, {"initial_c", "float32", SNI_OPTIONAL},
                    {"P", "float32", SNI_OPTIONAL}, {"W_scale", "float32"}, {"W_zero_point", "T2"},
                    {"R_scale", "float32"}, {"R_zero_point", "T2"}),
    .outputs = SNI_FORMALS({"Y", "float32", SNI_OPTIONAL}, {"Y_h", "float32", SNI_OPTIONAL},
                           {"Y_c", "float32", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T2", SNI_T_BYTES}),
    .params = SNI_PARAMS(SNI_RNN_PARAMS,
                         {"input_forget", SNI_ATTR_INT, offsetof(sni_rnn_params, input_forget)}),
    .params_size = sizeof(sni_rnn_params),
    .infer = lstm_infer,
    .ref = lstm_ref,
    .macs = sni_rnn_macs,
};
