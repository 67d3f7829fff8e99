/* integer.h - what the implementations of quantised operators share. */
#ifndef SNI_CPU_INT8_INTEGER_H
#define SNI_CPU_INT8_INTEGER_H

#include "cpu/int8/igemm.h"
#include "cpu/core/cpu_ep.h"
#include "ops/quant/quant.h"

/* What is done to bytes of a type before they count as unsigned, or as signed. */
static inline uint8_t sni_int_flip(sn_dtype dtype, bool to_signed) {
    return (dtype == SN_INT8) == to_signed ? 0 : 0x80;
}

/* A zero point after that flip. */
static inline int32_t sni_int_moved(int32_t zero, sn_dtype dtype, bool to_signed) {
    return (dtype == SN_INT8) == to_signed ? zero : to_signed ? zero - 128 : zero + 128;
}

/* a - b, which wraps round: what a compiled file says may be any number. */
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

/* Weights ready for products, as signed bytes: numbers for each of `n` output channels. */
typedef struct sni_int_weights {
    int64_t n, k;    /* channels, elements of each */
    int64_t units;   /* of 32 bits of each */
    bool has_zero;   /* some zero point is not 0 */
    size_t size;     /* int32 of one group's panels */
    int32_t *panels; /* packed */
    int32_t *sums;   /* of a channel's elements */
    int32_t *zeros;  /* zero points */
    size_t more;     /* elements of 4 bytes besides, which the operator fills; 0: none */
    void *extra;     /* these */
} sni_int_weights;

/* Tells whether the weights have zero points: sets w->has_zero. */
sn_status sni_int_zeros(const sni_choice *c, int w_in, int zero, sni_int_weights *w, sn_error *err);

/* Asks for the packed memory of w->n channels with `groups` groups of panels and w->more elements;
 * `zero` is the input of zero points. Fills `zeros` unless *filled. */
sn_status sni_int_weights_alloc(const sni_choice *c, int w_in, int zero, int64_t groups,
                                sni_int_weights *w, bool *filled, sn_error *err);

/* col or row terms of n channels: -a_zero * sum + k * a_zero * zero, and `bias` (NULL: none). */
void sni_int_corrections(const sni_int_weights *w, int32_t a_zero, const int32_t *bias,
                         int32_t *out);

/* (a * b[i]) / y for n channels; b has one element or n. */
void sni_int_scales(float a, const sni_tensor *b, float y, int64_t n, float *out);

/* Lets `count` such products ask for the run's time limit if they take long; the kernel then polls
 * when they have returned. */
void sni_int_watch(const sni_kernel *k, sni_igemm *g, int64_t count);

/* A float32 tensor to bytes: on all threads, and the scale that DynamicQuantizeLinear gives it. */
void sni_int_quantize(const sni_kernel *k, const sni_tensor *x, float scale, float zero, float low,
                      uint8_t *out);
sni_dynamic_scale sni_int_dynamic_scale(const sni_kernel *k, const sni_tensor *x);

#endif
