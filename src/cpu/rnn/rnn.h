/* rnn.h - one step of recurrent cells: the state times its weights, and the gates, in one pass.
 *
 * Hidden units come in blocks of `lanes`. The weights of a block are `hidden` rows, one for each
 * element of the state, of `gates` vectors: a step reads them from beginning to end. Gates are in
 * ONNX's order: i o f c for LSTM, z r h for GRU. The input's part of the gates has the same order:
 * `gates` vectors for each block. */
#ifndef SNI_CPU_RNN_RNN_H
#define SNI_CPU_RNN_RNN_H

#include "cpu/core/kernels.h"

typedef struct sni_rnn_step {
    int64_t rows, hidden;
    const float *weights; /* of block 0 */
    const float *state;   /* what is multiplied: `hidden` elements of each row */
    const float *gates_x; /* the input's part */
    int64_t gates_row;    /* elements between rows of gates_x */
    const float *old;     /* GRU: the state before the step */
    const float *late;    /* GRU: what is added before the reset gate; one element for each unit */
    float *cell;          /* LSTM: updated */
    float *update;        /* GRU in two halves: the update gate, written and then read */
    float *to;            /* the state after the step, not the memory of `state` */
    int64_t row;          /* elements between rows of all states: blocks * lanes */
    bool relu;            /* RNN: instead of tanh */
} sni_rnn_step;

/* Blocks [first, last) of a step. */
typedef void (*sni_rnn_fn)(const sni_rnn_step *s, int64_t first, int64_t last);

struct sni_rnn_kernels {
    int lanes;
    sni_rnn_fn rnn, lstm;
    sni_rnn_fn gru; /* the reset gate comes after the product */
    sni_rnn_fn
        gru_reset;      /* it comes before: the first half, which makes `update` and to = r * old */
    sni_rnn_fn gru_mix; /* and the second, with that as `state` */
};

#endif
