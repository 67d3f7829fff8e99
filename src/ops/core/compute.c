/* compute.c - conversion of whole tensors to and from the type that a kernel computes in. */
#include "ops/core/compute.h"

#include "base/checked.h"
#include "base/threadpool.h"
#include "ops/core/convert.h"
#include "ops/core/tensor_util.h"

enum { GRAIN = 16384 }; /* elements worth a thread */

typedef struct convert_job {
    sn_dtype from, to;
    const void *src;
    void *dst;
} convert_job;

static void convert_piece(void *ctx, int64_t begin, int64_t end) {
    const convert_job *j = ctx;
    sni_convert(j->from, sni_element(j->src, begin, sni_dtype_width(j->from)), j->to,
                sni_element(j->dst, begin, sni_dtype_width(j->to)), (size_t)(end - begin), NULL);
}

sn_status sni_in_as(sni_kernel *k, const sni_tensor *t, sn_dtype dtype, const void **out) {
    if (!t || t->dtype == dtype) {
        *out = t ? t->data : NULL;
        return SN_OK;
    }
    void *dst = NULL;
    SN_TRY(sni_scratch_array(k, t->count, sni_dtype_width(dtype), &dst));
    convert_job job = {.from = t->dtype, .to = dtype, .src = t->data, .dst = dst};
    sni_parallel_for(k->threads, t->count, GRAIN, convert_piece, &job);
    *out = dst;
    return SN_OK;
}

sn_status sni_out_as(sni_kernel *k, sni_tensor *t, sn_dtype dtype, void **out) {
    if (t && t->dtype != dtype) return sni_scratch_array(k, t->count, sni_dtype_width(dtype), out);
    *out = t ? t->data : NULL;
    return SN_OK;
}

void sni_out_done(sni_kernel *k, sni_tensor *t, sn_dtype dtype, const void *elements) {
    if (!t || t->dtype == dtype) return;
    convert_job job = {.from = dtype, .to = t->dtype, .src = elements, .dst = t->data};
    sni_parallel_for(k->threads, t->count, GRAIN, convert_piece, &job);
}

sn_status sni_scratch_matrix(sni_kernel *k, int64_t rows, int64_t columns, size_t size,
                             void **out) {
    int64_t count;
    if (rows < 0 || columns < 0 || !sni_mul_i64(rows, columns, &count))
        return sni_fail(k->err, SN_LIMIT, "working memory of %lld x %lld elements", (long long)rows,
                        (long long)columns);
    return sni_scratch_array(k, count, size, out);
}
