/* quant.c - scales and zero points. */
#include "ops/quant/quant.h"

#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <math.h>

sn_status sni_quant_strides(sni_kernel *k, const char *what, const sni_tensor *q, int rank,
                            const int64_t *dims, sni_quant_axis axis, int64_t *strides) {
    for (int i = 0; i < rank; i++) strides[i] = 0;
    if (q->count == 1) return SN_OK;
    if (q->rank == 1) {
        int at = axis == SNI_QUANT_ROWS ? rank - 2 : rank - 1;
        if (at < 0 || q->dims[0] != dims[at])
            return SNI_KERNEL_FAIL(k, "%s has %lld elements, which fit no axis", what,
                                   (long long)q->count);
        strides[at] = 1;
        return SN_OK;
    }
    bool fits = q->rank <= rank;
    for (int i = 0; fits && i < q->rank; i++)
        fits = q->dims[i] == 1 || q->dims[i] == dims[rank - q->rank + i];
    if (!fits) return SNI_KERNEL_FAIL(k, "%s of rank %d cannot be broadcast", what, q->rank);
    sni_broadcast_strides(q, rank, dims, strides);
    return SN_OK;
}

int32_t sni_zero_of(const sni_tensor *zero) {
    return zero && zero->count > 0 ? (int32_t)sni_number_at(zero, 0) : 0;
}

static int32_t byte_at(const sni_tensor *t, int64_t i) {
    return t->dtype == SN_INT8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

sn_status sni_centered(sni_kernel *k, const sni_tensor *t, const sni_tensor *zero,
                       sni_quant_axis axis, const int32_t **out) {
    int64_t strides[SN_MAX_RANK], own[SN_MAX_RANK];
    void *memory = NULL;
    SN_TRY(sni_scratch_array(k, t->count, sizeof(int32_t), &memory));
    int32_t *dst = memory;
    *out = dst;
    if (t->count == 0) return SN_OK;
    if (!zero || zero->count == 1) {
        int32_t z = sni_zero_of(zero);
        for (int64_t i = 0; i < t->count; i++) dst[i] = byte_at(t, i) - z;
        return SN_OK;
    }
    SN_TRY(sni_quant_strides(k, "the zero point", zero, t->rank, t->dims, axis, strides));
    sni_strides(t->rank, t->dims, own);
    sni_walk w;
    sni_walk_init(&w, t->rank, t->dims, 2, (const int64_t *[]){own, strides});
    do {
        dst[w.offset[0]] = byte_at(t, w.offset[0]) - byte_at(zero, w.offset[1]);
    } while (sni_walk_next(&w));
    return SN_OK;
}

int32_t sni_requantize(double v, int32_t zero, sn_dtype dtype) {
    double low = dtype == SN_INT8 ? -128 : 0, high = dtype == SN_INT8 ? 127 : 255;
    v = rint(v) + zero;
    return v != v ? zero : v < low ? (int32_t)low : v > high ? (int32_t)high : (int32_t)v;
}
