/* conv_costs.h - cycles of one thread that convolutions are expected to take (conv_costs.c). */
#ifndef SNI_CPU_CONV_CONV_COSTS_H
#define SNI_CPU_CONV_CONV_COSTS_H

#include "cpu/conv/conv.h"
#include "cpu/costs/costs.h"
#include "ep/ep.h"

/* ---- Parts ---- */

/* Of so many instructions on vectors. */
double sni_vector_cycles(double count, const sni_costs *costs);

/* To bring in bytes of weights, which have left the second-level cache since the last run: a
 * model's other layers had theirs there in between. What a run reads `again` comes from less far
 * away. */
double sni_stream_cycles(double weights, double again, const sni_costs *costs);

/* Of work and streams side by side. */
double sni_overlapped_cycles(double work, double stream, const sni_costs *costs);

/* Sizes that are not known (below 1) taken to be those of one middling picture. */
sni_conv_geometry sni_conv_known_geometry(const sni_conv_geometry *g);

/* ---- Whole convolutions ---- */

/* Direct sums. */
double sni_conv_direct_cost(const sni_conv_geometry *g, const sni_costs *costs);

/* A variant of Winograd's method has to take less than this part of the direct sums' cycles: it
 * rounds more. */
extern const double sni_wino_part;

/* Rows of the table for BlockedConv: `cycles` of sni_impl, where that is not in the algorithm's
 * file. */
double sni_conv_direct_cycles(const sni_choice *c, const sni_costs *costs);
double sni_conv_emulated_cycles(const sni_choice *c, const sni_costs *costs);
double sni_conv_inner_product_cycles(const sni_choice *c, const sni_costs *costs);

#endif
