/* second_order.h - changes of weights whose effect on the outputs, by the inputs' second moments,
 * the weights not changed yet make up for. */
#ifndef SNI_QUANTIZE_SECOND_ORDER_H
#define SNI_QUANTIZE_SECOND_ORDER_H

#include "quantize/quantize.h"

/* The factor U of the inverse of the second moments H of k inputs, H^-1 = U^T U, upper triangular,
 * and its diagonal. Changing weight i of a row by d costs (d / U[i][i])^2, and the weights j after
 * it make up for it by d / U[i][i] * U[i][j]. */
typedef struct sni_qfactor {
    int64_t k;
    const float *u; /* k rows of k */
} sni_qfactor;

/* Called once a layer, with the factor of its input. */
typedef sn_status (*sni_qfactor_fn)(void *ctx, sni_qlayer *l, const sni_qfactor *f, sn_error *err);

/* Goes through all samples, as often as the memory limit makes necessary, and calls fn for every
 * product that `wants` names. */
typedef struct sni_qmoments {
    bool (*wants)(const void *ctx, const sni_qlayer *l);
    sni_qfactor_fn fn;
    void *ctx;
} sni_qmoments;
sn_status sni_q_moments(sni_quantizer *q, const sni_qmoments *m);

/* The weights of all products of this precision, fitted so (GPTQ). */
sn_status sni_q_second_order(sni_quantizer *q, sn_quantize_to precision);

/* For a row of weights: puts `v` in place of row[i] and lets the rest make up for it. */
void sni_q_compensate(const sni_qfactor *f, float *row, int64_t i, float v);

#endif
