/* qconv.h - convolutions of bytes: QLinearConv and ConvInteger. There are three ways, chosen when
 * weights are packed (qconv.c): patches of the input gathered panel by panel (qconv.c), units along
 * rows of taps for few input channels (qconv_few.c), and depthwise (qconv_taps.c). */
#ifndef SNI_CPU_INT8_QCONV_H
#define SNI_CPU_INT8_QCONV_H

#include "cpu/int8/integer.h"
#include "cpu/int8/windows.h"
#include "ops/nn/conv_core.h"

typedef struct sni_qconv {
    sni_int_weights w;
    int64_t groups, m;             /* output channels of a group */
    int64_t taps, channels, depth; /* of a group; depth: channels rounded up to whole units */
    float *taps_w;                 /* depthwise: (output channel, tap), centered; or */
    int32_t *rows_w;               /* depthwise: (output channel, kernel row, unit) */
    bool few;                      /* units along rows of taps */
    int64_t row_units;             /* units of a row of taps */
} sni_qconv;

/* One call. */
typedef struct sni_qconv_call {
    const sni_qconv *p;
    sni_conv conv;
    const sni_tensor *x;
    sni_tensor *y;
    int32_t x_zero;   /* of the unflipped bytes */
    int32_t *adds;    /* for each output channel */
    float *scales;    /* NULL: sums are wanted */
    int32_t *weights; /* minus the weights' zero points; NULL: all 0 */
    sni_int_kind kind;
    float zero, low;
} sni_qconv_call;

/* Depthwise convolution (p->taps_w or p->rows_w is set). */
sn_status sni_qconv_run_taps(sni_kernel *k, const sni_qconv_call *c);

/* Few input channels (p->few): packs the weights; runs the product g, whose operands it sets. */
void sni_qconv_pack_few(sni_qconv *p, const sni_tensor *w);
sn_status sni_qconv_run_few(sni_kernel *k, const sni_qconv_call *c, sni_igemm g);

#endif
