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

/* Where W and R come from: `turned`, they are (directions, columns, gates * hidden). */
sn_status sni_rnn_infer(sni_infer *c, sni_cell cell, bool turned);

/* Weights that are not input 1 and 2 as they are. With them, the rows that they are multiplied by
 * are rounded to bytes first. */
typedef struct sni_rnn_weights {
    const float *w, *r; /* (directions, gates * hidden, columns) */
    int64_t hidden;
} sni_rnn_weights;

/* `weights` NULL: those of the inputs. */
sn_status sni_rnn_run(sni_kernel *k, sni_cell cell, const sni_rnn_weights *weights);
int64_t sni_rnn_macs(const sni_infer *c);

/* Fills `out` for both directions; fails on an unknown name or a wrong number of them. */
sn_status sni_rnn_activations(const sni_rnn_params *p, sni_cell cell, sni_activation out[6],
                              sn_error *err);

#endif
