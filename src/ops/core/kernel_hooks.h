/* kernel_hooks.h - the time-consuming parts of reference kernels as functions that a faster
 * implementation replaces.
 *
 * An implementation sets sni_kernel.hooks and calls the reference kernel. That reads attributes,
 * shapes and caches as always, and calls a hook for the arithmetic. So one kernel serves many
 * types, and only its inner part exists twice. Each hook computes what the plain C code in its
 * place computes, up to rounding. A hook that is NULL is not replaced. */
#ifndef SNI_OPS_CORE_KERNEL_HOOKS_H
#define SNI_OPS_CORE_KERNEL_HOOKS_H

#include "ops/attention/attention_core.h"
#include "ops/core/axes.h"
#include "ops/nn/layer_norm.h"
#include "ops/matmul/matmul_core.h"
#include "ops/nn/moe.h"

/* Softmax along an axis of n elements that are `step` apart: element i of lane (o, s) is at
 * (o * n + i) * step + s, for o < outer and s < step. n > 0. */
typedef struct sni_lanes {
    sn_dtype dtype; /* float32 or float64 */
    const void *x;
    void *y; /* may be x */
    int64_t outer, n, step;
    bool logarithm;
} sni_lanes;

struct sni_kernel_hooks {
    /* Replaces sni_gemm_batch() (ops/matmul/matmul_core.h), with the same arguments. */
    sn_status (*gemm)(sni_kernel *k, const sni_gemm *g, int64_t count, sni_gemm_locate_fn locate,
                      const void *ctx);
    /* The loops of sni_gemm_batch() for a type that `gemm` does not compute; returns NULL for plain
     * C. */
    const sni_gemm_core *(*core)(sn_dtype dtype);
    /* Softmax of all lanes. */
    void (*softmax)(int threads, const sni_lanes *lanes);
    /* Layer normalisation of `rows` rows (ops/nn/layer_norm.h). */
    void (*normalize)(int threads, int64_t rows, const sni_row_norm *norm);
    /* to[j * to_step + i] = from[i * from_step + j] for i < rows and j < columns; elements are
     * `width` bytes of any kind. Returns false, with nothing done, for other widths than 1, 2, 4
     * and 8. */
    bool (*transpose)(size_t width, const void *from, int64_t from_step, int64_t rows,
                      int64_t columns, void *to, int64_t to_step);
    const struct sni_resize_hooks *resize; /* ops/nn/resize.h */
    const struct sni_rotary_hooks *rotary; /* ops/attention/rotary.h */
    /* Replaces sni_attend() (ops/attention/attention_core.h). *done is false, and nothing has been
     * written, for variants that it does not cover. */
    sn_status (*attend)(sni_kernel *k, const sni_attention *a, bool *done);
    /* A product of QMoE. */
    sn_status (*expert)(sni_kernel *k, const sni_expert_product *p);
    /* p of 1 or 2: divides elements by their norm of order p along the reduced axes; the result is
     * 0 where the norm is. p of 0: subtracts the mean and divides by the standard deviation. x has
     * elements. */
    void (*norm_axes)(int threads, const sni_axes *axes, int64_t results, const float *x, float *y,
                      int64_t p);
};

/* The hooks for elements of a type; NULL: plain C. Those of this struct compute float32. */
static inline const sni_kernel_hooks *sni_kernel_hooks_for(const sni_kernel *k, sn_dtype dtype) {
    return dtype == SN_FLOAT32 ? k->hooks : NULL;
}

#endif
