/* conv_algorithms.c - the table of convolution algorithms: every way to run Conv, FusedConv,
 * ConvTranspose and BlockedConv in float32, a row each. sni_ep_find() chooses among the rows of a
 * node's operator. */
#include "cpu/conv/conv_algorithms.h"

#include "cpu/conv/blocked.h"
#include "cpu/conv/conv_costs.h"
#include "cpu/conv/conv_plane.h"
#include "cpu/conv/slices.h"

#include <stdlib.h>

/* Constant inputs of every algorithm that packs them: weights alone, or bias and slopes as well. */
enum { WEIGHTS = 1 << 1, WEIGHTS_AND_CHANNELS = 1 << 1 | 1 << 2 | 1 << 4 };

/* Rows with an estimate of cycles compete; those without are asked in the order in which they
 * stand, and take what is within their limits. Of rows that are estimated to take the same, as
 * depthwise and direct sums are, the first one runs the node. */

/* A row for Conv and one for FusedConv, whose parameters are the same. */
#define CONV(...)                                                 \
    {.op = "Conv", __VA_ARGS__}, {                                \
        .op = "FusedConv", .domain = "com.microsoft", __VA_ARGS__ \
    }

#define BLOCKED(...) \
    { .op = "BlockedConv", .domain = SNI_SINTER_DOMAIN, .packs = WEIGHTS_AND_CHANNELS, __VA_ARGS__ }

/* clang-format off */
const sni_impl sni_cpu_convolutions[] = {
    CONV(.name = "conv_line_f32",
         .accepts = sni_conv_line_supports,
         .suits = sni_conv_line_suits,
         .by_shape = true,
         .run = sni_conv_line_run),
    CONV(.name = "conv_depthwise_f32",
         .accepts = sni_conv_plain_depthwise_supports,
         .run = sni_conv_plain_depthwise_run),
    CONV(.name = "conv_slices_f32",
         .accepts = sni_conv_slices_supports,
         .suits = sni_conv_slices_suits,
         .by_shape = true,
         .prepare = sni_conv_slices_prepare,
         .release = sni_slices_release,
         .packs = WEIGHTS_AND_CHANNELS,
         .run = sni_conv_slices_run),
    CONV(.name = "conv_gemm_f32",
         .accepts = sni_plain_conv_supports,
         .by_shape = true,
         .prepare = sni_conv_im2col_prepare,
         .release = free,
         .packs = WEIGHTS,
         .run = sni_conv_im2col_run),
    {.op = "ConvTranspose",
     .name = "conv_transpose_f32",
     .accepts = sni_conv_transpose_supports,
     .suits = sni_conv_transpose_suits,
     .by_shape = true,
     .prepare = sni_conv_transpose_prepare,
     .release = sni_slices_release,
     .packs = WEIGHTS_AND_CHANNELS,
     .run = sni_conv_transpose_run},
    BLOCKED(.name = "conv_winograd_f32",
            .numerics = SNI_NUMERICS_WINOGRAD,
            .accepts = sni_conv_winograd_supports,
            .cycles = sni_conv_winograd_cycles,
            .variant = sni_conv_winograd_variant,
            .variants = sni_conv_winograd_variants,
            .uses = sni_conv_winograd_uses,
            .by_shape = true,
            .prepare = sni_conv_winograd_prepare,
            .release = free,
            .run = sni_conv_winograd_run),
    BLOCKED(.name = "conv_depthwise_blocked_f32",
            .accepts = sni_conv_depthwise_supports,
            .cycles = sni_conv_direct_cycles,
            .prepare = sni_conv_depthwise_prepare,
            .release = free,
            .run = sni_conv_depthwise_run),
    BLOCKED(.name = "conv_phases_f32",
            .numerics = SNI_NUMERICS_WINOGRAD,
            .accepts = sni_conv_phases_supports,
            .cycles = sni_conv_phases_cycles,
            .variant = sni_conv_phases_variant,
            .by_shape = true,
            .prepare = sni_conv_phases_prepare,
            .release = free,
            .run = sni_conv_phases_run),
    BLOCKED(.name = "conv_emulated_f32",
            .numerics = SNI_NUMERICS_EMULATED,
            .accepts = sni_conv_emulated_supports,
            .suits = sni_conv_emulated_suits,
            .cycles = sni_conv_emulated_cycles,
            .by_shape = true,
            .prepare = sni_conv_emulated_prepare,
            .release = free,
            .run = sni_conv_emulated_run),
    BLOCKED(.name = "conv_inner_product_f32",
            .numerics = SNI_NUMERICS_INNER_PRODUCT,
            .accepts = sni_conv_inner_product_supports,
            .suits = sni_conv_inner_product_suits,
            .cycles = sni_conv_inner_product_cycles,
            .by_shape = true,
            .prepare = sni_conv_inner_product_prepare,
            .release = free,
            .run = sni_conv_inner_product_run),
    BLOCKED(.name = "conv_direct_f32",
            .accepts = sni_conv_direct_supports,
            .cycles = sni_conv_direct_cycles,
            .by_shape = true,
            .prepare = sni_conv_direct_prepare,
            .release = sni_conv_direct_release,
            .run = sni_conv_direct_run),
    BLOCKED(.name = "conv_indirect_f32",
            .accepts = sni_conv_indirect_supports,
            .cycles = sni_conv_direct_cycles,
            .prepare = sni_conv_indirect_prepare,
            .release = sni_conv_indirect_release,
            .run = sni_conv_indirect_run),
    {0},
};
/* clang-format on */
