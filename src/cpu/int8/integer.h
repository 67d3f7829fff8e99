/* integer.h - what the implementations of quantised operators share.
 *
 * Products multiply unsigned by signed bytes. A byte of the other kind has its top bit flipped,
 * which adds or subtracts 128; its zero point moves along. */
#ifndef SNI_CPU_INT8_INTEGER_H
#define SNI_CPU_INT8_INTEGER_H

#include "cpu/int8/igemm.h"
#include "cpu/core/cpu_ep.h"
#include "ops/quant/quant.h"

/* The bits to flip in bytes of a type to make them signed, or unsigned. */
static inline uint8_t sni_int_flip(sn_dtype dtype, bool to_signed) {
    return (dtype == SN_INT8) == to_signed ? 0 : 0x80;
}

/* A zero point after that. */
static inline int32_t sni_int_moved(int32_t zero, sn_dtype dtype, bool to_signed) {
    return (dtype == SN_INT8) == to_signed ? zero : to_signed ? zero - 128 : zero + 128;
}

/* a - b with wrap-around: numbers from a compiled file may be anything. */
static inline int32_t sni_int_less(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a - (uint32_t)b);
}

static inline bool sni_int_is_bytes(const sni_choice *c, int i) {
    return sni_choice_is(c, i, SN_UINT8) || sni_choice_is(c, i, SN_INT8);
}

/* True if input i is left out, or known to have one element. */
static inline bool sni_int_is_single(const sni_choice *c, int i) {
    if (!sni_choice_given(c, i)) return true;
    if (c->constants[i]) return c->constants[i]->tensor.count == 1;
    const sni_type *t = c->in[i];
    return t->has_shape && (t->rank == 0 || (t->rank == 1 && t->dims[0] == 1));
}

/* True if input i is left out, or part of the model with one element or `count` in a row. */
static inline bool sni_int_is_constant(const sni_choice *c, int i, int64_t count) {
    if (!sni_choice_given(c, i)) return true;
    if (!c->constants[i]) return false;
    const sni_tensor *t = &c->constants[i]->tensor;
    return t->count == 1 || (t->rank == 1 && t->count == count);
}

/* Packed weights as signed bytes, with numbers for each of `n` output channels. */
typedef struct sni_int_weights {
    int64_t n, k;    /* channels, elements of each */
    int64_t units;   /* of 32 bits of each */
    bool has_zero;   /* some zero point is not 0 */
    size_t size;     /* int32 of one group's panels */
    int32_t *panels; /* packed */
    int32_t *sums;   /* of a channel's elements */
    int32_t *zeros;  /* zero points */
    size_t more;     /* further elements of 4 bytes, which the operator fills; 0: none */
    void *extra;     /* those elements */
} sni_int_weights;

/* Sets w->has_zero: whether a zero point of the weights, input `zero`, is not 0. */
sn_status sni_int_zeros(const sni_choice *c, int w_in, int zero, sni_int_weights *w, sn_error *err);

/* Allocates the packed memory of w->n channels with `groups` groups of panels and w->more elements;
 * `zero` is the input of zero points. *filled: it comes from a compiled model, with all contents;
 * otherwise only w->zeros has been filled. */
sn_status sni_int_weights_alloc(const sni_choice *c, int w_in, int zero, int64_t groups,
                                sni_int_weights *w, bool *filled, sn_error *err);

/* out[i] = bias[i] - a_zero * sums[i] + k * a_zero * zeros[i] for n channels: the contribution of
 * the other operand's zero point. `bias` may be NULL. */
void sni_int_corrections(const sni_int_weights *w, int32_t a_zero, const int32_t *bias,
                         int32_t *out);

/* (a * b[i]) / y for n channels; b has one element or n. */
void sni_int_scales(float a, const sni_tensor *b, float y, int64_t n, float *out);

/* Lets `count` such products poll the run if they take long. The kernel must call sni_poll() after
 * them. */
void sni_int_watch(const sni_kernel *k, sni_igemm *g, int64_t count);

/* Quantises a float32 tensor to bytes with all threads; the scale that DynamicQuantizeLinear
 * defines for a tensor. */
void sni_int_quantize(const sni_kernel *k, const sni_tensor *x, float scale, float zero, float low,
                      uint8_t *out);
sni_dynamic_scale sni_int_dynamic_scale(const sni_kernel *k, const sni_tensor *x);

#endif
