/* fit.h - weights in blocks of few bits while they are made. */
#ifndef SNI_QUANTIZE_FIT_H
#define SNI_QUANTIZE_FIT_H

#include "quantize/quantize.h"

/* n rows of k numbers in `bits` each, with a scale and a zero point for `size` neighbours:
 * w = (q - zero) scale. The memory is that of the constants; all 0 at first. */
typedef struct sni_qblocks {
    int bits;
    int64_t size, groups;       /* of a row */
    int64_t data_row, zero_row; /* bytes of a row */
    uint8_t *data, *zeros;
    float *scales;
} sni_qblocks;

/* Constants for the weights of a layer, not filled yet. Tables that are gathered from have 4 bits.
 */
sn_status sni_q_blocks_new(sni_quantizer *q, const sni_qlayer *l, sn_quantize_to precision,
                           sni_qblocks *b, sni_qweights *out, sn_error *err);
/* Each group and each number is set once. put() rounds, saturates and returns the number. Threads
 * may set different rows at once. */
void sni_q_blocks_set(const sni_qblocks *b, int64_t row, int64_t group, float scale, int zero);
float sni_q_blocks_put(const sni_qblocks *b, int64_t row, int64_t i, float v);
/* Relative root mean square error. */
double sni_q_blocks_error(const sni_qblocks *b, const sni_qlayer *l, const float *rows);

#endif
