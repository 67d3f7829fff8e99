/* cpu_ep.h - the built-in provider's implementations. */
#ifndef SNI_CPU_CORE_CPU_EP_H
#define SNI_CPU_CORE_CPU_EP_H

#include "cpu/core/kernels.h"
#include "ep/ep.h"
#include "ops/math/activation.h"

extern const sni_impl sni_cpu_gemm, sni_cpu_matmul;
extern const sni_impl sni_cpu_fused_gemm, sni_cpu_fused_matmul, sni_cpu_fused_matmul_activation;
extern const sni_impl sni_cpu_transpose_matmul, sni_cpu_linear;
extern const sni_impl sni_cpu_expand_depthwise;
extern const sni_impl sni_cpu_squeeze;
extern const sni_impl sni_cpu_rnn, sni_cpu_gru, sni_cpu_lstm;
extern const sni_impl sni_cpu_tree_ensemble, sni_cpu_tree_classifier, sni_cpu_tree_regressor;
extern const sni_impl sni_cpu_linear_classifier, sni_cpu_linear_regressor;
extern const sni_impl sni_cpu_nms, sni_cpu_topk, sni_cpu_nonzero, sni_cpu_gather_rows;
extern const sni_impl sni_cpu_roi_align;
extern const sni_impl sni_cpu_blocked_max_pool, sni_cpu_blocked_average_pool;
extern const sni_impl sni_cpu_blocked_mean, sni_cpu_blocked_max;
extern const sni_impl sni_cpu_blocked_mul, sni_cpu_blocked_add;
extern const sni_impl sni_cpu_group;
extern const sni_impl sni_cpu_gather_channels, sni_cpu_to_blocked, sni_cpu_from_blocked;
extern const sni_impl sni_cpu_qlinear_conv, sni_cpu_conv_integer, sni_cpu_qlinear_matmul;
extern const sni_impl sni_cpu_qlinear_conv_nhwc;
extern const sni_impl sni_cpu_matmul_integer, sni_cpu_qgemm, sni_cpu_matmul_integer_to_float;
extern const sni_impl sni_cpu_dynamic_quantize_matmul;
extern const sni_impl sni_cpu_qlinear_matmul_stack, sni_cpu_matmul_integer_stack;
extern const sni_impl sni_cpu_matmul_nbits, sni_cpu_matmul_bnb4, sni_cpu_qmoe;

/* Lists that end with an entry without an operator. */
extern const sni_impl sni_cpu_quantised[], sni_cpu_byte_tables[], sni_cpu_hooked[], sni_cpu_maps[],
    sni_cpu_loops[];
extern const sni_impl sni_cpu_moves[], sni_cpu_compare[];

/* A weight for as long as prepare runs; SN_OK with *out NULL if the input is left out. */
sn_status sni_cpu_weight(const sni_choice *c, int i, const sni_tensor **out, sn_error *err);
/* The same of a constant of floats that may lie at any address. */
sn_status sni_cpu_unaligned(const sni_choice *c, int i, const sni_unaligned_float **out,
                            sn_error *err);

/* `n` packed blobs that are written together, each of so many elements of 4 bytes; see
 * sni_pack_alloc_all(). At least one element of each is given. */
enum { SNI_MOST_BLOBS = 4 };
sn_status sni_cpu_words(const sni_choice *c, int n, const size_t *counts, void **out, bool *filled,
                        sn_error *err);
/* One blob of floats. */
sn_status sni_cpu_floats(const sni_choice *c, size_t count, float **out, bool *filled,
                         sn_error *err);

/* Ends a prepare: *state is a copy of what it made, for free(). */
sn_status sni_cpu_keep(const void *made, size_t size, void **state, sn_error *err);

/* Items of so many elements each that are worth a thread's while, for what moves elements. */
static inline int64_t sni_cpu_grain(int64_t elements) {
    enum { WORTH = 16384 };
    return elements > 0 && elements < WORTH ? WORTH / elements : 1;
}

/* The vector kernels' form of an activation; false if they have none (act.c). */
bool sni_cpu_act(const sni_activation *f, sni_act *act, float *p0, float *p1);

/* The kernels of elementwise operators by a node of ai.onnx (elementwise.c): of one tensor, with
 * coefficients; of two; of powers. False: there is none. */
bool sni_cpu_unary(const sni_node *n, sni_act *act, float *p0, float *p1);
bool sni_cpu_binary(const sni_node *n, sni_binary *fn);
bool sni_cpu_power(float exponent, sni_act *act);

#endif
