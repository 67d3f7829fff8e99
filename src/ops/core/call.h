/* call.h - running one node outside a plan: shapes come from the inputs, outputs get new memory. */
#ifndef SNI_OPS_CORE_CALL_H
#define SNI_OPS_CORE_CALL_H

#include "ops/core/op.h"

/* Chooses what runs a call. *run is the reference kernel and may be replaced, with k->state set for
 * it. `in` are the types of the inputs; NULL entries: left out. */
typedef sn_status (*sni_choose_fn)(sni_kernel *k, const sni_type *const *in,
                                   sn_status (**run)(sni_kernel *k));

/* What sni_call() is given beside the kernel. */
typedef struct sni_call_options {
    sni_choose_fn choose; /* NULL: the reference kernel runs */
    /* By output: a tensor that it is made in if type and shape are its own; NULL: none. */
    const sni_tensor *const *offered;
} sni_call_options;

/* Infers the outputs of k->node from the contents of its inputs, allocates every wanted output
 * (which must be NONE), and runs the kernel, or what is chosen. `options` may be NULL. `arena`
 * serves the inference and may be reset afterwards. The caller clears the outputs, also after a
 * failure.
 */
sn_status sni_call(sni_kernel *k, sni_symbols *symbols, sni_arena *arena,
                   const sni_call_options *options);

/* *type = the type and shape of a value (NULL: kind NONE). `inner` is room for the type of a
 * sequence's elements. Dimensions are borrowed from the value. */
void sni_datum_describe(const sni_datum *d, sni_type *type, sni_type *inner);

/* As sni_host.alloc: new memory, charged to the call's budget. */
sn_status sni_call_alloc(sni_kernel *k, int out, sn_dtype dtype, int rank, const int64_t *dims);

/* Checks and runs the kernel of a call whose outputs are ready. */
sn_status sni_call_kernel(sni_kernel *k);

/* True if a call has nothing to compute, although its kernel would be long at it: all results are
 * there and have no elements, and sizes beside a 0 are large. Other calls without elements run, as
 * kernels check their operands. */
bool sni_call_is_void(const sni_kernel *k);

typedef struct sni_eval_limits {
    sni_budget *budget;   /* NULL: none */
    uint64_t deadline_ns; /* of sni_now_ns(); 0: none. SN_TIMEOUT after it */
} sni_eval_limits;

/* One node on its own, for folding constants: no subgraphs. `out` has n->n_out NONE entries; the
 * caller clears them. `limits` may be NULL. Text of strings goes to `text`. */
sn_status sni_eval(const sni_node *n, const sni_datum *const *in, sni_datum *out,
                   const sni_eval_limits *limits, sni_arena *text, sn_error *err);

#endif
