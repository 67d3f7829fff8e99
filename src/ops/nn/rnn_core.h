/* rnn_core.h - one machine for RNN, GRU and LSTM: all directions, layouts and activations. */
#ifndef SNI_OPS_NN_RNN_CORE_H
#define SNI_OPS_NN_RNN_CORE_H

#include "ops/math/activation.h"

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

/* Where the elements of a call stand. */
typedef struct sni_rnn_place {
    int64_t seq, batch, input, hidden, dirs;
    bool batch_first, reverse; /* reverse: the only direction is */
    const int32_t *lengths;    /* NULL: all sequences are as long as `seq` */
} sni_rnn_place;

static inline sni_rnn_place sni_rnn_place_of(const sni_rnn_params *p, const sni_tensor *x,
                                             int64_t hidden) {
    bool first = p->layout == 1;
    return (sni_rnn_place){.seq = x->dims[first],
                           .batch = x->dims[!first],
                           .input = x->dims[2],
                           .hidden = hidden,
                           .dirs = p->direction == 2 ? 2 : 1,
                           .batch_first = first,
                           .reverse = p->direction == 1};
}

/* Sets `lengths` from input 4, if it is there, and checks them. */
sn_status sni_rnn_read_lengths(sni_kernel *k, sni_rnn_place *at);

static inline int64_t sni_rnn_length(const sni_rnn_place *p, int64_t b) {
    return p->lengths ? p->lengths[b] : p->seq;
}

/* Time that step t of direction d stands at in sequence b. */
static inline int64_t sni_rnn_time(const sni_rnn_place *p, int64_t d, int64_t b, int64_t t) {
    return p->reverse || d == 1 ? sni_rnn_length(p, b) - 1 - t : t;
}

/* Row of X for step t. */
static inline int64_t sni_rnn_input_row(const sni_rnn_place *p, int64_t d, int64_t b, int64_t t) {
    int64_t s = sni_rnn_time(p, d, b, t);
    return p->batch_first ? b * p->seq + s : s * p->batch + b;
}

/* First element of Y for step t. */
static inline int64_t sni_rnn_output(const sni_rnn_place *p, int64_t d, int64_t b, int64_t t) {
    int64_t s = sni_rnn_time(p, d, b, t);
    int64_t row =
        p->batch_first ? (b * p->seq + s) * p->dirs + d : (s * p->dirs + d) * p->batch + b;
    return row * p->hidden;
}

/* First element of sequence b's state in the initial and final states. */
static inline int64_t sni_rnn_state(const sni_rnn_place *p, int64_t d, int64_t b) {
    return (p->batch_first ? b * p->dirs + d : d * p->batch + b) * p->hidden;
}

/* Gates of a cell, and activation functions of one direction. */
int sni_cell_gates(sni_cell cell);
int sni_cell_activations(sni_cell cell);

/* Where W and R come from: `transposed`, they are (directions, columns, gates * hidden). */
sn_status sni_rnn_infer(sni_infer *c, sni_cell cell, bool transposed);

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
