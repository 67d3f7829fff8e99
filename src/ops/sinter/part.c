/* Part of ai.sinter: nodes that a provider runs. The body says what it computes, for inference and
 * for the case that the provider cannot. */
#include "ops/sinter/part.h"

#include "ops/sinter/body.h"

static sn_status part_infer(sni_infer *c) {
    sni_type *types = NULL;
    const sni_graph *g = c->node->n_subgraphs ? c->node->subgraphs[0] : NULL;
    if (!g || g->n_inputs != c->n_in || g->n_outputs != c->n_out)
        return SNI_INFER_FAIL(c, "its body has other inputs or outputs");
    SN_TRY(sni_infer_body(c, g, "part", &types));
    for (int i = 0; i < c->n_out; i++) SN_TRY(sni_infer_set_full_type(c, i, &types[g->outputs[i]]));
    return SN_OK;
}

static sn_status part_run(sni_kernel *k) {
    const sni_part_params *p = k->params;
    return p->run(k);
}

const sni_op sni_op_sinter_part = {
    .name = "Part",
    .domain = "ai.sinter",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"inputs", "T", SNI_VARIADIC | SNI_HETEROGENEOUS}),
    .outputs = SNI_FORMALS({"outputs", "U", SNI_VARIADIC | SNI_HETEROGENEOUS}),
    .min_inputs = SNI_MIN_NONE,
    .types = SNI_TYPE_VARS({"T", SNI_T_ALL}, {"U", SNI_T_ALL}),
    .flags = SNI_OP_PART | SNI_OP_RANDOM,
    .infer = part_infer,
    .ref = part_run,
};
