/* qlinear.c - tensors of bytes with a scale and a zero point. */
#include "ops/quant/qlinear.h"

#include "base/threadpool.h"
#include "ops/quant/quant.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

enum { GRAIN = 16384 }; /* elements worth a thread */

sn_status sni_qscale_get(sni_kernel *k, int scale, sn_dtype dtype, sni_qscale *out) {
    const sni_tensor *s = sni_in(k, scale), *z = sni_in(k, scale + 1);
    if (!s || s->dtype != SN_FLOAT32 || s->count != 1)
        return SNI_KERNEL_FAIL(k, "input %d is not one float32 scale", scale);
    if (z && (z->count != 1 || !(SNI_T(z->dtype) & SNI_T_BYTES)))
        return SNI_KERNEL_FAIL(k, "input %d is not one 8-bit zero point", scale + 1);
    *out = (sni_qscale){*(const float *)s->data, sni_zero_of(z), dtype, false};
    return SN_OK;
}

void sni_dequant_table(const sni_qscale *q, float table[256]) {
    for (int i = 0; i < 256; i++)
        table[i] = (float)((q->dtype == SN_INT8 ? (int8_t)i : i) - q->zero) * q->scale;
}

uint8_t sni_quant_byte(const sni_qscale *q, float v) {
    int32_t before = q->zero_first ? q->zero : 0;
    return (uint8_t)sni_requantize((double)(v / q->scale + (float)before), q->zero - before,
                                   q->dtype);
}

/* Bytes and numbers of a tensor (outer, channels, inner): channel c of position i is element
 * (i, c) of the bytes where channels come last. */
typedef struct quant_job {
    const sni_qscale *q;
    float table[256];
    uint8_t *bytes;
    float *numbers;
    int64_t channels, inner;
    bool transposed;
} quant_job;

static quant_job job_of(const sni_tensor *t, const sni_qscale *q, sni_channel_order layout,
                        const float *numbers) {
    quant_job j = {.q = q, .bytes = t->data, .numbers = (float *)(uintptr_t)numbers};
    j.transposed = layout == SNI_CHANNELS_LAST && t->rank > 2;
    if (!j.transposed || t->count == 0) return j;
    j.channels = t->dims[t->rank - 1];
    j.inner = sni_tensor_span(t, 1, t->rank - 1);
    return j;
}

static int64_t byte_index(const quant_job *j, int64_t i) {
    if (!j->transposed) return i;
    int64_t plane = i / j->inner;
    return (plane / j->channels * j->inner + i % j->inner) * j->channels + plane % j->channels;
}

static void dequantize_piece(void *ctx, int64_t begin, int64_t end) {
    const quant_job *j = ctx;
    for (int64_t i = begin; i < end; i++) j->numbers[i] = j->table[j->bytes[byte_index(j, i)]];
}

static void quantize_piece(void *ctx, int64_t begin, int64_t end) {
    const quant_job *j = ctx;
    for (int64_t i = begin; i < end; i++)
        j->bytes[byte_index(j, i)] = sni_quant_byte(j->q, j->numbers[i]);
}

sn_status sni_dequantized(sni_kernel *k, const sni_tensor *t, const sni_qscale *q,
                          sni_channel_order layout, float **out) {
    void *numbers = NULL;
    SN_TRY(sni_scratch_array(k, t->count, sizeof(float), &numbers));
    quant_job j = job_of(t, q, layout, numbers);
    sni_dequant_table(q, j.table);
    sni_parallel_for(k->threads, t->count, GRAIN, dequantize_piece, &j);
    *out = numbers;
    return SN_OK;
}

void sni_quantize_into(sni_kernel *k, const float *v, const sni_qscale *q, sni_channel_order layout,
                       sni_tensor *t) {
    quant_job j = job_of(t, q, layout, v);
    sni_parallel_for(k->threads, t->count, GRAIN, quantize_piece, &j);
}

void sni_channels_first(const sni_tensor *t, sni_channel_order layout, sni_tensor *out) {
    *out = *t;
    if (layout == SNI_CHANNELS_FIRST || t->rank < 3) return;
    out->dims[1] = t->dims[t->rank - 1];
    for (int i = 2; i < t->rank; i++) out->dims[i] = t->dims[i - 1];
}

sn_status sni_infer_layout(sni_infer *c, sni_channel_order layout,
                           sn_status (*infer)(sni_infer *)) {
    if (layout == SNI_CHANNELS_FIRST || !sni_infer_shaped(c, 0)) return infer(c);
    int rank = sni_infer_rank(c, 0);
    if (rank < 3) return SNI_INFER_FAIL(c, "an input of rank %d has no spatial axis", rank);
    sni_dim dims[SN_MAX_RANK];
    const sni_type **in = SNI_NEW_ARRAY(c->arena, const sni_type *, c->n_in);
    if (!in) return sni_fail_memory(c->err);
    sni_type first = *c->in[0];
    for (int i = 0; i < rank; i++)
        dims[i] = sni_infer_dim(c, 0, i == 0 ? 0 : i == 1 ? rank - 1 : i - 1);
    first.dims = dims;
    for (int i = 0; i < c->n_in; i++) in[i] = i == 0 ? &first : c->in[i];
    sni_infer transposed = *c;
    transposed.in = in;
    SN_TRY(infer(&transposed));
    if (!c->out[0].has_shape) return SN_OK;
    for (int i = 0; i < rank; i++) dims[i] = c->out[0].dims[i == 0 ? 0 : i == rank - 1 ? 1 : i + 1];
    return sni_infer_set_shape(c, 0, rank, dims);
}
