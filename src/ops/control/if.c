/* If: one of two subgraphs, by a condition. */
#include "ops/core/seq_util.h"
#include "ops/core/shape_util.h"

#include <inttypes.h>

typedef struct if_params {
    int32_t then_branch, else_branch;
} if_params;

static sn_status branch_types(sni_infer *c, int32_t index, const sni_type ***out) {
    const sni_graph *g = c->node->subgraphs[index];
    if (g->n_outputs != c->n_out)
        return SNI_INFER_FAIL(c, "a branch has %d outputs where the node has %d", g->n_outputs,
                              c->n_out);
    if (g->n_inputs) return SNI_INFER_FAIL(c, "a branch has %d inputs", g->n_inputs);
    *out = SNI_NEW_ARRAY(c->arena, const sni_type *, c->n_out);
    if (!*out) return sni_fail_memory(c->err);
    return c->subgraph ? c->subgraph(c, index, NULL, 0, *out, c->n_out) : SN_OK;
}

static sn_status if_infer(sni_infer *c) {
    const if_params *p = c->params;
    const sni_type **yes = NULL, **no = NULL;
    SN_TRY(branch_types(c, p->then_branch, &yes));
    SN_TRY(branch_types(c, p->else_branch, &no));
    for (int i = 0; i < c->n_out; i++) {
        sni_type both;
        if (!yes[i] || !no[i]) continue;
        SN_TRY(sni_infer_union(c, yes[i], no[i], &both));
        SN_TRY(sni_infer_set_full_type(c, i, &both));
    }
    return SN_OK;
}

static sn_status if_ref(sni_kernel *k) {
    const if_params *p = k->params;
    const sni_tensor *condition = sni_in(k, 0);
    if (condition->count != 1)
        return SNI_KERNEL_FAIL(k, "cond has %" PRId64 " elements, not 1", condition->count);
    int32_t branch = *(const uint8_t *)condition->data ? p->then_branch : p->else_branch;
    sni_datum *out = NULL;
    SN_TRY(sni_datum_array(k, k->n_out, &out));
    sn_status status = sni_run_subgraph(k, branch, NULL, 0, out, k->n_out);
    for (int i = 0; i < k->n_out && status == SN_OK; i++) sni_out_give(k, i, &out[i]);
    sni_datum_clear_all(out, k->n_out);
    return status;
}

const sni_op sni_op_If = {
    .name = "If",
    .versions = SNI_VERSIONS(1, 11, 13, 16, 19, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"cond", "bool"}),
    .outputs = SNI_FORMALS({"outputs", "V", SNI_VARIADIC | SNI_HETEROGENEOUS}),
    .types = SNI_TYPE_VARS({"V", SNI_T_ALL}),
    .params = SNI_PARAMS(
        {"then_branch", SNI_ATTR_GRAPH, offsetof(if_params, then_branch), .required = true},
        {"else_branch", SNI_ATTR_GRAPH, offsetof(if_params, else_branch), .required = true}),
    .params_size = sizeof(if_params),
    .flags = SNI_OP_ALLOCATES | SNI_OP_SUBGRAPHS,
    .infer = if_infer,
    .ref = if_ref,
};
