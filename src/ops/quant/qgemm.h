/* qgemm.h - attributes of QGemm. */
#ifndef SNI_OPS_QUANT_QGEMM_H
#define SNI_OPS_QUANT_QGEMM_H

#include "ops/core/op.h"

typedef struct sni_qgemm_params {
    float alpha;
    int64_t trans_a, trans_b;
} sni_qgemm_params;

#endif
