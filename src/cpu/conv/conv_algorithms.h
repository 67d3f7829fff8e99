/* conv_algorithms.h - what the rows of the table of convolution algorithms (conv_algorithms.c) are
 * made of. For each algorithm:
 *   supports  types, attributes and constants are such that it can run the node in every shape;
 *   suits     the shapes are such that it is worth asking what it costs;
 *   prepare   packs constants;
 *   run       computes the node. */
#ifndef SNI_CPU_CONV_CONV_ALGORITHMS_H
#define SNI_CPU_CONV_CONV_ALGORITHMS_H

#include "cpu/core/cpu_ep.h"

/* Every way to run Conv, FusedConv, ConvTranspose and BlockedConv. Ends with an entry without an
 * operator. */
extern const sni_impl sni_cpu_convolutions[];

/* ---- Conv and FusedConv: plain tensors ---- */

/* Sums of rows of the input: few channels, or groups of few (conv_line.c). */
bool sni_conv_line_supports(const sni_choice *c);
bool sni_conv_line_suits(const sni_choice *c);
sn_status sni_conv_line_run(sni_kernel *k);

/* One input channel for each output channel (conv_plain_depthwise.c). */
bool sni_conv_plain_depthwise_supports(const sni_choice *c);
sn_status sni_conv_plain_depthwise_run(sni_kernel *k);

/* Weights times patches of the input (conv_im2col.c). */
sn_status sni_conv_im2col_prepare(const sni_choice *c, void **state, sn_error *err);
sn_status sni_conv_im2col_run(sni_kernel *k);

/* Lines and volumes by the direct kernels of blocked pictures (conv_slices.c). */
bool sni_conv_slices_supports(const sni_choice *c);
bool sni_conv_slices_suits(const sni_choice *c);
sn_status sni_conv_slices_prepare(const sni_choice *c, void **state, sn_error *err);
sn_status sni_conv_slices_run(sni_kernel *k);

/* ---- ConvTranspose over one axis, by the same kernels (conv_transpose.c) ---- */

bool sni_conv_transpose_supports(const sni_choice *c);
bool sni_conv_transpose_suits(const sni_choice *c);
sn_status sni_conv_transpose_prepare(const sni_choice *c, void **state, sn_error *err);
sn_status sni_conv_transpose_run(sni_kernel *k);

/* ---- BlockedConv: blocked tensors ---- */

/* Winograd's method (winograd/conv_wino.c), and the same over the phases of a strided convolution
 * of a plain picture (winograd/conv_phases.c). */
bool sni_conv_winograd_supports(const sni_choice *c);
bool sni_conv_winograd_suits(const sni_choice *c);
uint32_t sni_conv_winograd_variant(const sni_choice *c);
int sni_conv_winograd_variants(const sni_choice *c, uint32_t *out);
uint32_t sni_conv_winograd_uses(const sni_choice *c, const void *state);
sn_status sni_conv_winograd_prepare(const sni_choice *c, void **state, sn_error *err);
sn_status sni_conv_winograd_run(sni_kernel *k);
bool sni_conv_phases_supports(const sni_choice *c);
bool sni_conv_phases_suits(const sni_choice *c);
uint32_t sni_conv_phases_variant(const sni_choice *c);
sn_status sni_conv_phases_prepare(const sni_choice *c, void **state, sn_error *err);
sn_status sni_conv_phases_run(sni_kernel *k);

/* Each channel by itself, or among the few of its group (depthwise/conv_depthwise.c). */
bool sni_conv_depthwise_supports(const sni_choice *c);
sn_status sni_conv_depthwise_prepare(const sni_choice *c, void **state, sn_error *err);
sn_status sni_conv_depthwise_run(sni_kernel *k);

/* Matrix products whose rows are pixels: emulated on int8 tiles, and Winograd's inner product
 * (conv_product.c). */
bool sni_conv_emulated_supports(const sni_choice *c);
bool sni_conv_emulated_suits(const sni_choice *c);
sn_status sni_conv_emulated_prepare(const sni_choice *c, void **state, sn_error *err);
sn_status sni_conv_emulated_run(sni_kernel *k);
bool sni_conv_inner_product_supports(const sni_choice *c);
bool sni_conv_inner_product_suits(const sni_choice *c);
sn_status sni_conv_inner_product_prepare(const sni_choice *c, void **state, sn_error *err);
sn_status sni_conv_inner_product_run(sni_kernel *k);

/* Direct sums (direct/conv_direct.c). */
bool sni_conv_direct_supports(const sni_choice *c);
sn_status sni_conv_direct_prepare(const sni_choice *c, void **state, sn_error *err);
sn_status sni_conv_direct_run(sni_kernel *k);

/* One tap over channels that are found by their addresses (conv_indirect.c). */
bool sni_conv_indirect_supports(const sni_choice *c);
sn_status sni_conv_indirect_prepare(const sni_choice *c, void **state, sn_error *err);
void sni_conv_indirect_release(void *state);
sn_status sni_conv_indirect_run(sni_kernel *k);

#endif
