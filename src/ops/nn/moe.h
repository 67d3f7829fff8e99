/* moe.h - attributes of mixtures of experts, and the product that a faster kernel replaces. */
#ifndef SNI_OPS_NN_MOE_H
#define SNI_OPS_NN_MOE_H

#include "ops/core/op.h"

typedef struct sni_moe_params {
    int64_t k, normalize, sparse_mixer, fusion;
    int32_t activation; /* index into the choices */
    float alpha, beta, limit;
    bool has_limit;
    /* QMoE */
    int64_t bits, block_size, accuracy_level, prepacked;
    sni_str quant_type;
} sni_moe_params;

enum { SNI_MOE_LAYERS = 3 }; /* FC1, FC2 and FC3 */

/* y (rows, n) = x (rows, k) times the transpose of an expert's weights in a layer, plus `bias`. */
typedef struct sni_expert_product {
    int layer;
    int64_t expert, rows;
    const float *x, *bias; /* bias (n), or NULL */
    float *y;
} sni_expert_product;

#endif
