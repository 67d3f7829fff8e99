/* RNN, GRU and LSTM. */
#include "ops/nn/rnn_core.h"

static sn_status rnn_infer(sni_infer *c) {
    return sni_rnn_infer(c, SNI_CELL_RNN, false);
}

static sn_status rnn_ref(sni_kernel *k) {
    return sni_rnn_run(k, SNI_CELL_RNN, NULL);
}

static sn_status gru_infer(sni_infer *c) {
    return sni_rnn_infer(c, SNI_CELL_GRU, false);
}

static sn_status gru_ref(sni_kernel *k) {
    return sni_rnn_run(k, SNI_CELL_GRU, NULL);
}

static sn_status lstm_infer(sni_infer *c) {
    return sni_rnn_infer(c, SNI_CELL_LSTM, false);
}

static sn_status lstm_ref(sni_kernel *k) {
    return sni_rnn_run(k, SNI_CELL_LSTM, NULL);
}

/* Before opset 7 an attribute said whether Y was wanted; now that is said by naming it. */
static sn_status rnn_upgrade(sni_upgrade *u) {
    if (u->from < 7) sni_node_remove_attr(u->node, "output_sequence");
    return SN_OK;
}

#define RNN_INPUTS                                                \
    {"X", "T"}, {"W", "T"}, {"R", "T"}, {"B", "T", SNI_OPTIONAL}, \
        {"sequence_lens", "int32", SNI_OPTIONAL}, {               \
        "initial_h", "T", SNI_OPTIONAL                            \
    }
#define RNN_OUTPUTS              \
    {"Y", "T", SNI_OPTIONAL}, {  \
        "Y_h", "T", SNI_OPTIONAL \
    }

const sni_op sni_op_RNN = {
    .name = "RNN",
    .versions = SNI_VERSIONS(1, 7, 14, 22),
    .inputs = SNI_FORMALS(RNN_INPUTS),
    .outputs = SNI_FORMALS(RNN_OUTPUTS),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(SNI_RNN_PARAMS),
    .params_size = sizeof(sni_rnn_params),
    .upgrade = rnn_upgrade,
    .infer = rnn_infer,
    .ref = rnn_ref,
    .macs = sni_rnn_macs,
};

const sni_op sni_op_GRU = {
    .name = "GRU",
    .versions = SNI_VERSIONS(1, 3, 7, 14, 22),
    .inputs = SNI_FORMALS(RNN_INPUTS),
    .outputs = SNI_FORMALS(RNN_OUTPUTS),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(SNI_RNN_PARAMS, {"linear_before_reset", SNI_ATTR_INT,
                                          offsetof(sni_rnn_params, linear_before_reset)}),
    .params_size = sizeof(sni_rnn_params),
    .upgrade = rnn_upgrade,
    .infer = gru_infer,
    .ref = gru_ref,
    .macs = sni_rnn_macs,
};

const sni_op sni_op_LSTM = {
    .name = "LSTM",
    .versions = SNI_VERSIONS(1, 7, 14, 22),
    .inputs = SNI_FORMALS(RNN_INPUTS, {"initial_c", "T", SNI_OPTIONAL}, {"P", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS(RNN_OUTPUTS, {"Y_c", "T", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(SNI_RNN_PARAMS,
                         {"input_forget", SNI_ATTR_INT, offsetof(sni_rnn_params, input_forget)}),
    .params_size = sizeof(sni_rnn_params),
    .upgrade = rnn_upgrade,
    .infer = lstm_infer,
    .ref = lstm_ref,
    .macs = sni_rnn_macs,
};
