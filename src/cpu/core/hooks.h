/* hooks.h - what hooks.c lends to reference kernels besides its own. */
#ifndef SNI_CPU_CORE_HOOKS_H
#define SNI_CPU_CORE_HOOKS_H

#include "cpu/core/cpu_ep.h"
#include "ops/attention/attention_core.h"
#include "ops/core/axes.h"

/* Attention in float32 without its scores ever being written out as a whole (attention.c). Not done
 * where somebody wants to see or change the scores. */
sn_status sni_cpu_attend(sni_kernel *k, const sni_attention *a, bool *done);

/* sni_kernel_hooks.norm_axes (axes.c). */
void sni_cpu_norm_axes(int threads, const sni_axes *axes, int64_t results, const float *x, float *y,
                       int64_t p);

#endif
