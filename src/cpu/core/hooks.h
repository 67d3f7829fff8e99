/* hooks.h - kernel hooks (ops/core/kernel_hooks.h) that are too large for hooks.c. */
#ifndef SNI_CPU_CORE_HOOKS_H
#define SNI_CPU_CORE_HOOKS_H

#include "cpu/core/cpu_ep.h"
#include "ops/attention/attention_core.h"
#include "ops/core/axes.h"

/* sni_kernel_hooks.attend (attention.c): attention in float32 without a matrix of scores. *done is
 * false, with nothing written, where the scores themselves are wanted or modified. */
sn_status sni_cpu_attend(sni_kernel *k, const sni_attention *a, bool *done);

/* sni_kernel_hooks.norm_axes (axes.c). */
void sni_cpu_norm_axes(int threads, const sni_axes *axes, int64_t results, const float *x, float *y,
                       int64_t p);

#endif
