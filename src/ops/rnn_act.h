/* rnn_act.h - activation functions of recurrent networks. */
#ifndef SNI_OPS_RNN_ACT_H
#define SNI_OPS_RNN_ACT_H

enum sni_act {
    SNI_ACT_RELU,
    SNI_ACT_TANH,
    SNI_ACT_SIGMOID,
    SNI_ACT_AFFINE,
    SNI_ACT_LEAKY_RELU,
    SNI_ACT_THRESHOLDED_RELU,
    SNI_ACT_SCALED_TANH,
    SNI_ACT_HARD_SIGMOID,
    SNI_ACT_ELU,
    SNI_ACT_SOFTSIGN,
    SNI_ACT_SOFTPLUS
};

#endif
