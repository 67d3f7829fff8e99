/* facts.h - what can be said of one step of a run when it is over: bytes, cost, shapes. */
#ifndef SNI_EXEC_FACTS_H
#define SNI_EXEC_FACTS_H

#include "ops/core/op.h"

typedef struct sni_step_facts {
    uint64_t input_bytes, output_bytes;
    uint64_t macs;
    char shapes[512]; /* "2x3 3x4 -> 2x4", cut short where there are many */
} sni_step_facts;

/* `in` and `out` are the node's, NULL where left out. Inputs in `unread`, a bit each, do not count
 * as bytes. */
void sni_step_describe(const sni_node *n, const sni_datum *const *in, const sni_datum *const *out,
                       uint32_t unread, sni_step_facts *facts);

#endif
