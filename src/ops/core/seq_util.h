/* seq_util.h - values other than tensors, and tensors in rows: what the operators on sequences and
 * optionals and the control flow share. */
#ifndef SNI_OPS_CORE_SEQ_UTIL_H
#define SNI_OPS_CORE_SEQ_UTIL_H

#include "ops/core/op.h"

/* Moves a value to output i, or clears it if nothing reads that output; `d` is NONE afterwards. */
void sni_out_give(sni_kernel *k, int i, sni_datum *d);

/* Output i becomes another reference to the same value. */
sn_status sni_out_share(sni_kernel *k, int i, const sni_datum *value);

/* *out = n values that are NONE, in scratch; the caller clears what they come to hold. */
sn_status sni_datum_array(sni_kernel *k, int n, sni_datum **out);
void sni_datum_clear_all(sni_datum *array, int n);

/* n tensors (at least one) of one element type, one after the other along an axis that they have,
 * or, with `stack`, that is new. `out` must be NONE. */
sn_status sni_join_tensors(sni_kernel *k, const sni_datum *items, size_t n, int64_t axis,
                           bool stack, sni_datum *out);

/* The type of output `index` of the node's subgraph number `graph`, as inference knows it. */
const sni_type *sni_subgraph_output(const sni_kernel *k, int32_t graph, int index);

/* The shape of a body's output `type` when no iteration made one: symbols are looked up among the
 * types of the body's inputs, for which it would be given `in`; what is not found is 0. Returns the
 * rank. */
int sni_empty_dims(const sni_kernel *k, int32_t graph, const sni_datum *const *in,
                   const sni_type *type, int64_t dims[SN_MAX_RANK]);

#endif
