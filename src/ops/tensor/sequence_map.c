/* SequenceMap: a subgraph run for each item of a sequence. */
#include "ops/core/seq_util.h"
#include "ops/core/shape_util.h"
#include "ops/core/wide.h"

typedef struct map_params {
    int32_t body;
} map_params;

static sn_status map_infer(sni_infer *c) {
    const map_params *p = c->params;
    const sni_graph *g = c->node->subgraphs[p->body];
    if (g->n_inputs != c->n_in || g->n_outputs != c->n_out)
        return SNI_INFER_FAIL(c, "the body has %d inputs and %d outputs, the node %d and %d",
                              g->n_inputs, g->n_outputs, c->n_in, c->n_out);
    if (!c->subgraph) return SN_OK;
    static const sni_type unknown = {0};
    const sni_type **in = SNI_NEW_ARRAY(c->arena, const sni_type *, c->n_in);
    const sni_type **out = SNI_NEW_ARRAY(c->arena, const sni_type *, c->n_out);
    if (!in || !out) return sni_fail_memory(c->err);
    for (int i = 0; i < c->n_in; i++) {
        if (!c->in[i]) return SNI_INFER_FAIL(c, "input %d is left out", i);
        in[i] = c->in[i];
        if (c->in[i]->kind == SN_KIND_SEQUENCE)
            in[i] = c->in[i]->inner ? c->in[i]->inner : &unknown;
    }
    SN_TRY(c->subgraph(c, p->body, in, c->n_in, out, c->n_out));
    for (int i = 0; i < c->n_out; i++)
        SN_TRY(sni_infer_set_full_type(
            c, i, &(sni_type){.kind = SN_KIND_SEQUENCE, .inner = out[i] ? out[i] : &unknown}));
    return SN_OK;
}

/* Inputs of iteration i: items of sequences, other values as they are. */
static sn_status map_inputs(sni_kernel *k, size_t i, const sni_datum **in) {
    for (int j = 0; j < k->n_in; j++) {
        in[j] = k->in[j];
        if (k->in[j]->kind != SN_KIND_SEQUENCE) continue;
        if (i >= k->in[j]->seq->count)
            return SNI_KERNEL_FAIL(k, "sequence %d has %zu items, the first has more", j,
                                   k->in[j]->seq->count);
        in[j] = &k->in[j]->seq->items[i];
    }
    return SN_OK;
}

static sn_status map_run(sni_kernel *k, sni_datum *results, sni_datum *made, const sni_datum **in) {
    const map_params *p = k->params;
    size_t n = k->in[0]->seq->count;
    for (int j = 0; j < k->n_out; j++) {
        sn_dtype dtype = sni_subgraph_output(k, p->body, j)->dtype;
        SN_TRY(sni_sequence_new(n, dtype, &results[j].seq, k->err));
        results[j].kind = SN_KIND_SEQUENCE;
    }
    for (size_t i = 0; i < n; i++) {
        SN_TRY(sni_poll(k));
        SN_TRY(map_inputs(k, i, in));
        SN_TRY(sni_run_subgraph(k, p->body, in, k->n_in, made, k->n_out));
        for (int j = 0; j < k->n_out; j++) {
            results[j].seq->items[i] = made[j];
            if (made[j].kind == SN_KIND_TENSOR) results[j].seq->dtype = made[j].tensor.dtype;
            made[j] = (sni_datum){0};
        }
    }
    return SN_OK;
}

static sn_status map_ref(sni_kernel *k) {
    sni_datum *results = NULL, *made = NULL;
    SN_TRY(sni_datum_array(k, k->n_out, &results));
    SN_TRY(sni_datum_array(k, k->n_out, &made));
    void *in = NULL;
    SN_TRY(sni_scratch_array(k, k->n_in, sizeof(const sni_datum *), &in));
    sn_status status = map_run(k, results, made, in);
    for (int j = 0; j < k->n_out && status == SN_OK; j++) sni_out_give(k, j, &results[j]);
    sni_datum_clear_all(results, k->n_out);
    sni_datum_clear_all(made, k->n_out);
    return status;
}

const sni_op sni_op_SequenceMap = {
    .name = "SequenceMap",
    .versions = SNI_VERSIONS(17),
    .inputs = SNI_FORMALS({"input_sequence", "S"},
                          {"additional_inputs", "V", SNI_VARIADIC | SNI_HETEROGENEOUS}),
    .outputs = SNI_FORMALS({"out_sequence", "O", SNI_VARIADIC | SNI_HETEROGENEOUS}),
    .min_inputs = SNI_MIN_NONE,
    .types = SNI_TYPE_VARS({"S", SNI_T_SEQ}, {"V", SNI_T_ALL}, {"O", SNI_T_SEQ}),
    .params = SNI_PARAMS({"body", SNI_ATTR_GRAPH, offsetof(map_params, body), .required = true}),
    .params_size = sizeof(map_params),
    .flags = SNI_OP_ALLOCATES | SNI_OP_SUBGRAPHS,
    .infer = map_infer,
    .ref = map_ref,
};
