/* rnn.h - one step of recurrent cells: the kernels of one tier. A step multiplies the state by its
 * weights and applies the gates in one pass.
 *
 * Hidden units are in blocks of `lanes`, one vector. The weights of a block are `hidden` rows, one
 * per element of the state, of `gates` vectors: a step reads them from beginning to end. Gates are
 * in ONNX's order: i o f c for LSTM, z r h for GRU. The input's part of the gates, which is
 * computed for all steps before, has the same order: `gates` vectors per block. */
#ifndef SNI_CPU_RNN_RNN_H
#define SNI_CPU_RNN_RNN_H

#include "cpu/core/kernels.h"

typedef struct sni_rnn_step {
    int64_t rows, hidden;
    const float *weights; /* of block 0 */
    const float *state;   /* what is multiplied: `hidden` elements per row */
    const float *gates_x; /* the input's part */
    int64_t gates_row;    /* elements between rows of gates_x */
    const float *old;     /* GRU: the state before the step */
    const float *late;    /* GRU: the bias that is added before the reset gate; one per unit */
    float *cell;          /* LSTM: updated */
    float *update;        /* GRU in two halves: the update gate, written and then read */
    float *to;            /* the state after the step, not the memory of `state` */
    int64_t row;          /* elements between rows of all states: blocks * lanes */
    bool relu;            /* RNN: instead of tanh */
} sni_rnn_step;

/* Computes blocks [first, last) of a step. Different blocks may run on different threads. */
typedef void (*sni_rnn_fn)(const sni_rnn_step *s, int64_t first, int64_t last);

struct sni_rnn_kernels {
    int lanes;
    sni_rnn_fn rnn, lstm;
    sni_rnn_fn gru; /* with the reset gate after the product (linear_before_reset) */
    /* With the reset gate before the product, in two passes over all blocks: gru_reset makes
     * `update` and to = r * old; gru_mix takes that as `state`. */
    sni_rnn_fn gru_reset, gru_mix;
};

#endif
