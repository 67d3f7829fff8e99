/* qlinear.h - what the operators on 8-bit tensors with one scale and zero point each share. */
#ifndef SNI_OPS_QUANT_QLINEAR_H
#define SNI_OPS_QUANT_QLINEAR_H

#include "ops/core/elementwise.h"
#include "ops/core/op.h"

#define SNI_T_BYTES (SNI_T(SN_INT8) | SNI_T(SN_UINT8))

/* Formals of an operator that takes X with its scale and zero point, and those of Y. */
#define SNI_QLINEAR_UNARY_INPUTS                                             \
    {"X", "T"}, {"x_scale", "float32"}, {"x_zero_point", "T", SNI_OPTIONAL}, \
        {"y_scale", "float32"}, {                                            \
        "y_zero_point", "T", SNI_OPTIONAL                                    \
    }

/* How bytes stand for numbers: (byte - zero) * scale. */
typedef struct sni_qscale {
    float scale;
    int32_t zero;
    sn_dtype dtype;  /* of the bytes: INT8 or UINT8 */
    bool zero_first; /* the zero point is added before rounding: it tells where ties go */
} sni_qscale;

/* The scale at input `scale` and the zero point at the one after it, which may be left out, for
 * bytes of type `dtype`. SN_BAD_DATA unless each has one element. */
sn_status sni_qscale_get(sni_kernel *k, int scale, sn_dtype dtype, sni_qscale *out);

/* QLinearAdd and QLinearMul: A, its scale and zero point, those of B, and those of the result. */
typedef struct sni_qpair {
    sni_qscale a, b, y;
} sni_qpair;
sn_status sni_qpair_get(sni_kernel *k, sni_qpair *out);
/* fn over the bytes of A, B and the result, whose shapes are broadcast. */
void sni_qpair_run(sni_kernel *k, sni_binary_fn fn, const void *params);

/* What each byte stands for, and the byte for a number: rounded to even, saturated. */
void sni_dequant_table(const sni_qscale *q, float table[256]);
uint8_t sni_quant_byte(const sni_qscale *q, float v);

/* QLinearSoftmax: lanes, and what a byte adds to its lane's sum by its distance from the lane's
 * greatest, in units of 2^-30. With scales that are not usual, which make numbers huge or none at
 * all, `table` says what bytes stand for. */
typedef struct sni_qsoftmax {
    const uint8_t *x;
    uint8_t *y;
    int64_t n, step; /* elements of a lane, and how far apart they are */
    bool is_usual;
    uint32_t weight[256];
    float table[256];
    sni_qscale to;
    uint8_t flip; /* to make bytes of x unsigned */
} sni_qsoftmax;
sn_status sni_qsoftmax_get(sni_kernel *k, sni_qsoftmax *out);

/* The byte in `to` for each byte in `from`. */
void sni_requantize_table(const sni_qscale *from, const sni_qscale *to, uint8_t table[256]);

/* A tensor whose channels may come last. */
typedef enum sni_channel_order { SNI_CHANNELS_FIRST, SNI_CHANNELS_LAST } sni_channel_order;

/* The elements of t as numbers in scratch, channels first whatever the tensor's layout. */
sn_status sni_dequantized(sni_kernel *k, const sni_tensor *t, const sni_qscale *q,
                          sni_channel_order layout, float **out);

/* Numbers (channels first) to the bytes of t in its layout. */
void sni_quantize_into(sni_kernel *k, const float *v, const sni_qscale *q, sni_channel_order layout,
                       sni_tensor *t);

/* The shape of a tensor with channels last, seen with channels first. */
void sni_channels_first(const sni_tensor *t, sni_channel_order layout, sni_tensor *out);

/* Runs an inference that expects channels first on an input 0 with channels last, and turns
 * output 0 back. */
sn_status sni_infer_layout(sni_infer *c, sni_channel_order layout, sn_status (*infer)(sni_infer *));

#endif
