/* call.h - running one node outside a plan: shapes from contents, memory of its own. */
#ifndef SNI_OPS_CALL_H
#define SNI_OPS_CALL_H

#include "ops/op.h"

/* Infers the outputs of k->node from the contents of its inputs, gives every wanted output (NONE so
 * far) memory, and runs the kernel. `arena` serves the inference and may be reset afterwards. On
 * failure outputs may hold values; the caller clears them either way. */
sn_status sni_call(sni_kernel *k, sni_symbols *symbols, sni_arena *arena);

/* Checks and runs the kernel of a call whose outputs are ready. */
sn_status sni_call_kernel(sni_kernel *k);

/* One node on its own, for folding constants: no subgraphs, no cancellation. `out` has n->n_out
 * NONE entries; the caller clears them. Text of strings goes to `text`. */
sn_status sni_eval(const sni_node *n, const sni_datum *const *in, sni_datum *out,
                   sni_budget *budget, sni_arena *text, sn_error *err);

#endif
