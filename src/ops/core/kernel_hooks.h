/* hooks.h - the parts of reference kernels that take the time, as a faster implementation may lend
 * them: it sets sni_kernel.cores and calls the reference kernel, which reads attributes, shapes and
 * caches as ever and leaves float32 arithmetic to these. */
#ifndef SNI_OPS_CORE_KERNEL_HOOKS_H
#define SNI_OPS_CORE_KERNEL_HOOKS_H

#include "ops/attention/attention_core.h"
#include "ops/core/axes.h"
#include "ops/nn/layer_norm.h"
#include "ops/matmul/matmul_core.h"

/* Softmax along an axis of n elements that lie `step` apart: element i of lane (o, s) is at
 * (o * n + i) * step + s, for o < outer and s < step. */
typedef struct sni_lanes {
    sn_dtype dtype; /* float32 or float64 */
    const void *x;
    void *y; /* may be x */
    int64_t outer, n, step;
    bool logarithm;
} sni_lanes;

struct sni_kernel_hooks {
    /* sni_gemm_batch */
    sn_status (*gemm)(sni_kernel *k, const sni_gemm *g, int64_t count, sni_gemm_locate_fn locate,
                      const void *ctx);
    /* The parts that sni_gemm_batch() is made of for a type that `gemm` does not do; NULL: plain C,
     * or not lent. */
    const sni_gemm_core *(*core)(sn_dtype dtype);
    void (*softmax)(int threads, const sni_lanes *lanes);
    void (*normalize)(int threads, int64_t rows, const sni_row_norm *norm);
    /* to[j * to_step + i] = from[i * from_step + j] for i < rows and j < columns; elements are of
     * any kind and `width` bytes. False: not of that width. NULL: not lent. */
    bool (*transpose)(size_t width, const void *from, int64_t from_step, int64_t rows,
                      int64_t columns, void *to, int64_t to_step);
    const struct sni_resize_hooks *resize; /* NULL: not lent */
    const struct sni_rotary_hooks *rotary; /* NULL: not lent */
    /* sni_attend; not done where it cannot. */
    sn_status (*attend)(sni_kernel *k, const sni_attention *a, bool *done);
    /* Elements along reduced axes divided by their norm of order p (0 where that is), or with a p
     * of 0 brought to mean 0 and variance 1. There are elements. */
    void (*norm_axes)(int threads, const sni_axes *axes, int64_t results, const float *x, float *y,
                      int64_t p);
};

/* The cores for elements of a type; NULL: plain C. */
static inline const sni_kernel_hooks *sni_kernel_hooks_for(const sni_kernel *k, sn_dtype dtype) {
    return dtype == SN_FLOAT32 ? k->hooks : NULL;
}

#endif
