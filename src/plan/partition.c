/* partition.c - who runs a node: an implementation that accepts it, or its reference kernel. */
#include "plan/plan.h"

enum { MOST_INPUTS = 32 }; /* nodes with more run on their reference kernels */

sn_status sni_plan_choose(const sni_graph *g, const sni_type *types, sni_prepared *prepared,
                          sni_step *step, sn_error *err) {
    const sni_node *n = step->node;
    const sni_type *in[MOST_INPUTS] = {0};
    sni_const *constants[MOST_INPUTS] = {0};
    if (!prepared || n->n_in > MOST_INPUTS) return SN_OK;
    for (int32_t i = 0; i < n->n_in; i++) {
        const sni_value *v = sni_graph_value(g, n->in[i]);
        if (!v) continue;
        in[i] = &types[v->id];
        constants[i] = v->is_input ? NULL : v->constant;
    }
    sni_prepared *p = &prepared[n->id];
    sni_choice c = {.node = n,
                    .params = n->params,
                    .n_in = n->n_in,
                    .in = in,
                    .constants = constants,
                    .pack = &p->pack};
    const sni_impl *impl = sni_ep_find(&c);
    if (!impl) return SN_OK;
    if (!p->impl) {
        sn_status status = impl->prepare ? impl->prepare(&c, &p->state, err) : SN_OK;
        if (status != SN_OK) {
            sni_pack_clear(&p->pack);
            return status;
        }
        p->impl = impl;
    }
    if (p->impl != impl) return SN_OK; /* what was prepared is another's */
    step->impl = impl;
    step->state = p->state;
    return SN_OK;
}

void sni_prepared_free(sni_prepared *prepared, int32_t count) {
    for (int32_t i = 0; prepared && i < count; i++) {
        if (prepared[i].impl && prepared[i].impl->release)
            prepared[i].impl->release(prepared[i].state);
        sni_pack_clear(&prepared[i].pack);
    }
}
