/* integer.c - weights, zero-point corrections and scales of int8 products. */
#include "cpu/int8/integer.h"

#include "base/checked.h"
#include "ops/quant/quant.h"

static int32_t zero_at(const sni_tensor *t, int64_t i) {
    int64_t at = t->count == 1 ? 0 : i;
    return t->dtype == SN_INT8 ? ((const int8_t *)t->data)[at] : ((const uint8_t *)t->data)[at];
}

/* The zero point of channel i, moved with the weights to the signed range. */
static int32_t moved_zero(const sni_tensor *zeros, int64_t i, sn_dtype dtype) {
    return sni_int_moved(zeros ? zero_at(zeros, i) : 0, dtype, true);
}

sn_status sni_int_zeros(const sni_choice *c, int w_in, int zero, sni_int_weights *w,
                        sn_error *err) {
    sn_dtype dtype = c->constants[w_in]->tensor.dtype;
    const sni_tensor *z;
    SN_TRY(sni_cpu_weight(c, zero, &z, err));
    for (int64_t i = 0; i < w->n; i++) w->has_zero |= moved_zero(z, i, dtype) != 0;
    return SN_OK;
}

sn_status sni_int_weights_alloc(const sni_choice *c, int w_in, int zero, int64_t groups,
                                sni_int_weights *w, bool *filled, sn_error *err) {
    sn_dtype dtype = c->constants[w_in]->tensor.dtype;
    const sni_tensor *z;
    size_t counts[] = {0, (size_t)w->n, (size_t)w->n, w->more};
    void *pieces[4];
    if (!sni_mul_size(w->size, (size_t)groups, &counts[0]))
        return sni_fail(err, SN_LIMIT, "the packed weights are too large");
    SN_TRY(sni_cpu_weight(c, zero, &z, err));
    SN_TRY(sni_cpu_words(c, w->more ? 4 : 3, counts, pieces, filled, err));
    w->panels = pieces[0];
    w->sums = pieces[1];
    w->zeros = pieces[2];
    w->extra = w->more ? pieces[3] : NULL;
    for (int64_t i = 0; i < w->n && !*filled; i++) w->zeros[i] = moved_zero(z, i, dtype);
    return sni_int_zeros(c, w_in, zero, w, err);
}

void sni_int_corrections(const sni_int_weights *w, int32_t a_zero, const int32_t *bias,
                         int32_t *out) {
    uint32_t a = (uint32_t)a_zero, whole = a * (uint32_t)w->k;
    for (int64_t i = 0; i < w->n; i++)
        out[i] = (int32_t)((bias ? (uint32_t)bias[i] : 0) - a * (uint32_t)w->sums[i] +
                           whole * (uint32_t)w->zeros[i]);
}

void sni_int_scales(float a, const sni_tensor *b, float y, int64_t n, float *out) {
    const float *scales = b->data;
    for (int64_t i = 0; i < n; i++) out[i] = a * scales[b->count == 1 ? 0 : i] / y;
}

/* ---- Time limits ---- */

static bool stopping(const void *kernel) {
    return sni_stopping(kernel);
}

void sni_int_watch(const sni_kernel *k, sni_igemm *g, int64_t count) {
    static const double long_units = 1e9; /* products of units: some ten milliseconds */
    if ((double)g->m * (double)g->n * (double)g->units * (double)count < long_units) return;
    g->stop = stopping;
    g->stop_ctx = k;
}
