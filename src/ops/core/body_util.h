/* body_util.h - what Loop and Scan share: inference of a body that is run again and again on values
 * it made itself. */
#ifndef SNI_OPS_CORE_BODY_UTIL_H
#define SNI_OPS_CORE_BODY_UTIL_H

#include "ops/core/op.h"

/* A body under inference. Its inputs are `lead` values whose types are fixed, `n_state` values that
 * are carried from one iteration to the next, and further fixed ones; its outputs are `lead_out`
 * values, the carried ones, and others. */
typedef struct sni_body {
    int32_t graph; /* subgraph number */
    int n_in, n_out;
    int lead, lead_out, n_state;
    const sni_type **in;  /* n_in types; those of carried values are the initial ones */
    const sni_type **out; /* n_out types, filled by sni_body_infer */
} sni_body;

/* Allocates room for a body's types, and a check that it has `n_in` inputs and at least `lead_out`
 * + `n_state` outputs, `n_out` in all. */
sn_status sni_body_init(sni_infer *c, sni_body *body);

/* Infers the body. Afterwards body->in holds, for carried values, types that are true in every
 * iteration and after the last. */
sn_status sni_body_infer(sni_infer *c, sni_body *body);

#endif
