/* quant.h - scales and zero points: of a whole tensor, of rows, of columns, or broadcast. */
#ifndef SNI_OPS_QUANT_QUANT_H
#define SNI_OPS_QUANT_QUANT_H

#include "ops/core/op.h"

/* v rounded to nearest even plus an integer `shift`, in [low, high]; NaN gives low. For ranges of
 * up to 16 bits. Adding and subtracting 1.5 * 2^23 rounds small numbers; larger ones are outside
 * every range, whatever the shift. */
static inline float sni_round_shift(float v, float shift, float low, float high) {
    const float limit = 200000, magic = 12582912;
    float q = v > -limit ? v : -limit;
    q = q < limit ? q : limit;
    q = (q + magic) - magic + shift;
    q = q > low ? q : low;
    return q < high ? q : high;
}

/* Scale and zero point (an integer from 0 to 255) that map the range of n floats, widened to hold
 * 0, to bytes. A range of nothing but 0 has scale 1. */
typedef struct sni_dynamic_scale {
    float scale, zero;
} sni_dynamic_scale;
sni_dynamic_scale sni_dynamic_scale_of(const float *v, int64_t n);

/* The bytes of a float32 tensor with such a scale. */
void sni_dynamic_quantize(sni_kernel *k, const sni_tensor *x, const sni_dynamic_scale *s,
                          uint8_t *out);

/* n floats rounded to what bytes with their own such scale stand for. */
void sni_dynamic_round(const float *v, float *out, int64_t n);

/* What axis a vector of scales or zero points runs along. */
typedef enum sni_quant_axis { SNI_QUANT_ROWS, SNI_QUANT_COLUMNS } sni_quant_axis;

/* Strides of `q` (scale or zero point) over a tensor of shape `dims`: none if it has one element;
 * along the last axis but one (ROWS) or the last (COLUMNS) if it is a vector; broadcast otherwise.
 * SN_BAD_DATA if it does not fit. */
sn_status sni_quant_strides(sni_kernel *k, const char *what, const sni_tensor *q, int rank,
                            const int64_t *dims, sni_quant_axis axis, int64_t *strides);

/* The elements of an 8-bit tensor minus its zero point (NULL: 0), in scratch. */
sn_status sni_centered(sni_kernel *k, const sni_tensor *t, const sni_tensor *zero,
                       sni_quant_axis axis, const int32_t **out);

/* An accumulator as an 8-bit element: round to even, add the zero point, saturate. */
int32_t sni_requantize(double v, int32_t zero, sn_dtype dtype);

/* The same of a float, for loops: NaN becomes the lowest element. */
static inline uint8_t sni_requantize_fast(float v, int32_t zero, sn_dtype dtype) {
    float low = dtype == SN_INT8 ? -128 : 0;
    return (uint8_t)(int32_t)sni_round_shift(v, (float)zero, low, low + 255);
}

/* The one element of a zero point tensor; 0 if it is NULL. */
int32_t sni_zero_of(const sni_tensor *zero);

#endif
