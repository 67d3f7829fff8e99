/* rnn_core.h - one machine for RNN, GRU and LSTM: all directions, layouts and activations. */
#ifndef SNI_OPS_RNN_CORE_H
#define SNI_OPS_RNN_CORE_H

#include "ops/activation.h"

typedef enum sni_cell { SNI_CELL_RNN, SNI_CELL_GRU, SNI_CELL_LSTM } sni_cell;

typedef struct sni_rnn_params {
    sni_floats alpha, beta;
    sni_strings activations;
    float clip;
    bool has_clip;
    int32_t direction; /* 0 forward, 1 reverse, 2 bidirectional */
    int64_t hidden_size, layout;
    int64_t linear_before_reset; /* GRU */
    int64_t input_forget;        /* LSTM */
} sni_rnn_params;

#define SNI_RNN_PARAMS                                                                         \
    {"activation_alpha", SNI_ATTR_FLOATS, offsetof(sni_rnn_params, alpha)},                    \
        {"activation_beta", SNI_ATTR_FLOATS, offsetof(sni_rnn_params, beta)},                  \
        {"activations", SNI_ATTR_STRINGS, offsetof(sni_rnn_params, activations)},              \
        {"clip", SNI_ATTR_FLOAT, offsetof(sni_rnn_params, clip),                               \
         .present = offsetof(sni_rnn_params, has_clip) + 1},                                   \
        {"direction", SNI_ATTR_STRING, offsetof(sni_rnn_params, direction), .text = "forward", \
         .choices = "forward|reverse|bidirectional"},                                          \
        {"hidden_size", SNI_ATTR_INT, offsetof(sni_rnn_params, hidden_size)}, {                \
        "layout", SNI_ATTR_INT, offsetof(sni_rnn_params, layout)                               \
    }

/* Gates of a cell, and activation functions of one direction. */
int sni_cell_gates(sni_cell cell);
int sni_cell_activations(sni_cell cell);

sn_status sni_rnn_infer(sni_infer *c, sni_cell cell);
sn_status sni_rnn_run(sni_kernel *k, sni_cell cell);
int64_t sni_rnn_macs(const sni_infer *c);

/* Fills `out` for both directions; fails on an unknown name or a wrong number of them. */
sn_status sni_rnn_activations(const sni_rnn_params *p, sni_cell cell, sni_activation out[6],
                              sn_error *err);

#endif
