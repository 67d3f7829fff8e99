#include "ops/elementwise.h"

#include "base/floats.h"
#include "base/threadpool.h"
#include "ops/tensor_util.h"

enum {
    BLOCK = 512,   /* elements converted at a time */
    GRAIN = 16384, /* elements worth a thread */
};

typedef struct unary_job {
    sni_unary_fn fn;
    const void *params;
    const sni_tensor *x;
    sni_tensor *y;
    bool narrow; /* convert blocks around fn */
} unary_job;

static void unary_piece(void *ctx, int64_t begin, int64_t end) {
    const unary_job *j = ctx;
    size_t width = sni_dtype_width(j->x->dtype);
    const unsigned char *x = (const unsigned char *)j->x->data + (size_t)begin * width;
    unsigned char *y = (unsigned char *)j->y->data + (size_t)begin * width;
    if (!j->narrow) {
        j->fn(x, y, end - begin, j->params);
        return;
    }
    float block[BLOCK];
    for (int64_t i = begin; i < end; i += BLOCK) {
        size_t n = (size_t)(end - i < BLOCK ? end - i : BLOCK);
        sni_widen(j->x->dtype, x, block, n);
        j->fn(block, block, (int64_t)n, j->params);
        sni_narrow(j->y->dtype, block, y, n, true);
        x += n * width;
        y += n * width;
    }
}

sn_status sni_map_unary(sni_kernel *k, const sni_unary_fn table[SNI_DTYPE_COUNT]) {
    const sni_tensor *x = sni_in(k, 0);
    unary_job job = {.fn = table[x->dtype], .params = k->params, .x = x, .y = sni_out(k, 0)};
    if (!job.fn && sni_dtype_get(x->dtype)->cls == SNI_CLASS_S) {
        job.fn = table[SN_FLOAT32];
        job.narrow = true;
    }
    if (!job.fn)
        return sni_fail(k->err, SN_UNSUPPORTED, "no kernel for %s", sn_dtype_name(x->dtype));
    sni_parallel_for(k->threads, x->count, GRAIN, unary_piece, &job);
    return SN_OK;
}
