/* scan_upgrade.c - Scan of opset 8 in terms of the later one.
 *
 * It had a batch axis in front of everything and took the sequences' lengths as its first input.
 * Here it becomes a Scan over the batch whose body is a Scan over the sequence with the original
 * body; where lengths are given, sequences are cut before and outputs padded with 0 after. */
#include "ops/control/scan.h"

typedef struct batch {
    sni_upgrade outer;       /* what helpers need: the graph that runs for one sample */
    int32_t n_state, n_scan; /* of the inputs */
    int32_t lengths;         /* value in the old graph; SNI_NO_ID: none */
    int32_t length, max;     /* values in the new graph: of this sample and of all, as lists */
    int32_t *in, *out;       /* of the inner Scan */
} batch;

/* Adds a resolved node at the end of the new graph. */
static sn_status append(batch *b, const char *type, const int32_t *in, int32_t n_in,
                        const sni_attr *attrs, int32_t n_attrs, int32_t *out) {
    sni_graph *g = b->outer.graph;
    sni_value *value;
    sni_node *n;
    SN_TRY(sni_graph_add_value(g, (sni_str){0}, &value, b->outer.err));
    SN_TRY(sni_graph_add_node(
        g, SNI_NO_ID, &(sni_new_node){SNI_STR(""), sni_str_of(type), in, n_in, &value->id, 1}, &n,
        b->outer.err));
    const sni_op *op = sni_op_find(n->domain, n->type);
    if (!op) return sni_fail(b->outer.err, SN_UNSUPPORTED, "operator %s is needed", type);
    n->version = sni_op_version(op);
    for (int32_t i = 0; i < n_attrs; i++) SN_TRY(sni_node_set_attr(g, n, &attrs[i], b->outer.err));
    SN_TRY(sni_node_resolve(g, n, b->outer.err));
    *out = value->id;
    return SN_OK;
}

static sn_status add_input(batch *b, int32_t *out) {
    sni_value *value;
    SN_TRY(sni_graph_add_value(b->outer.graph, (sni_str){0}, &value, b->outer.err));
    SN_TRY(sni_graph_add_input(b->outer.graph, value->id, b->outer.err));
    *out = value->id;
    return SN_OK;
}

/* Cuts the scan inputs to the sample's length. */
static sn_status cut_inputs(batch *b) {
    int32_t number = 0, zero = 0;
    SN_TRY(add_input(b, &number));
    SN_TRY(sni_upgrade_ints(&b->outer, (const int64_t[]){0}, 1, &zero));
    SN_TRY(append(b, "Unsqueeze", (const int32_t[]){number, zero}, 2, NULL, 0, &b->length));
    sni_attr end = sni_attr_of_int("end", 1);
    SN_TRY(append(b, "Shape", &b->in[b->n_state], 1, &end, 1, &b->max));
    for (int32_t i = b->n_state; i < b->n_state + b->n_scan; i++)
        SN_TRY(append(b, "Slice", (const int32_t[]){b->in[i], zero, b->length, zero}, 4, NULL, 0,
                      &b->in[i]));
    return SN_OK;
}

/* Pads a scan output to the length of the longest sequence. */
static sn_status pad_output(batch *b, int32_t *value) {
    int32_t zero = 0, missing = 0, pads = 0;
    sni_attr axis = sni_attr_of_int("axis", 0);
    SN_TRY(sni_upgrade_ints(&b->outer, (const int64_t[]){0}, 1, &zero));
    SN_TRY(append(b, "Sub", (const int32_t[]){b->max, b->length}, 2, NULL, 0, &missing));
    SN_TRY(append(b, "Concat", (const int32_t[]){zero, missing}, 2, &axis, 1, &pads));
    return append(b, "Pad", (const int32_t[]){*value, pads, SNI_NO_ID, zero}, 4, NULL, 0, value);
}

/* The Scan over one sample's sequence, with the original body and its captures. */
static sn_status add_inner(batch *b, const sni_node *old, sni_graph *body) {
    sni_graph *g = b->outer.graph;
    sn_error *err = b->outer.err;
    sni_node *n;
    for (int32_t i = 0; i < old->n_out; i++) {
        sni_value *value;
        SN_TRY(sni_graph_add_value(g, (sni_str){0}, &value, err));
        b->out[i] = value->id;
    }
    SN_TRY(sni_graph_add_node(g, SNI_NO_ID,
                              &(sni_new_node){SNI_STR(""), SNI_STR("Scan"), b->in,
                                              b->n_state + b->n_scan, b->out, old->n_out},
                              &n, err));
    n->name = old->name;
    for (int32_t i = 0; i < old->n_captures; i++) {
        sni_value *value;
        int32_t slot;
        SN_TRY(sni_graph_add_value(g, (sni_str){0}, &value, err));
        SN_TRY(sni_graph_add_capture(g, value->id, i, err));
        SN_TRY(sni_node_add_capture(g, n, value->id, &slot, err));
    }
    sni_attr graph = {.name = SNI_STR("body"), .kind = SNI_ATTR_GRAPH};
    SN_TRY(sni_node_add_subgraph(g, n, body, &graph.u.graph, err));
    body->parent = g;
    sni_attr count = sni_attr_of_int("num_scan_inputs", b->n_scan);
    SN_TRY(sni_node_set_attr(g, n, &graph, err));
    SN_TRY(sni_node_set_attr(g, n, &count, err));
    const sni_attr *directions = sni_node_attr(old, "directions");
    if (directions) {
        sni_attr a = *directions;
        a.name = SNI_STR("scan_input_directions");
        SN_TRY(sni_node_set_attr(g, n, &a, err));
    }
    n->version = old->op->versions[1];
    return sni_node_resolve(g, n, err);
}

/* The old node scans the batch: its inputs are states, sequences and lengths, in that order. */
static sn_status rewire(sni_upgrade *u, const batch *b, int32_t body) {
    sni_node *n = u->node;
    int32_t values = b->n_state + b->n_scan;
    for (int32_t i = 0; i < values; i++)
        SN_TRY(sni_node_set_input(u->graph, n, i, n->in[i + 1], u->err));
    SN_TRY(sni_node_set_input(u->graph, n, values, b->lengths, u->err));
    if (b->lengths == SNI_NO_ID) SN_TRY(sni_node_resize_inputs(u->graph, n, values, u->err));
    sni_attr count = sni_attr_of_int("num_scan_inputs", n->n_in);
    SN_TRY(sni_node_set_attr(u->graph, n, &count, u->err));
    sni_node_remove_attr(n, "directions");
    n->subgraphs[body] = b->outer.graph;
    return SN_OK;
}

sn_status sni_scan_upgrade(sni_upgrade *u) {
    sni_node *n = u->node;
    const sni_attr *body = sni_node_attr(n, "body");
    if (u->from != 8) return SN_OK;
    int64_t n_scan = sni_upgrade_int(u, "num_scan_inputs", 0);
    if (!body || body->kind != SNI_ATTR_GRAPH || n_scan < 1 || n_scan > n->n_in - 1)
        return sni_fail(u->err, SN_INVALID_MODEL, "it has no body or too few inputs");
    int32_t values = n->n_in - 1, index = body->u.graph;
    batch b = {.outer = {.node = n, .from = u->from, .err = u->err},
               .n_scan = (int32_t)n_scan,
               .n_state = values - (int32_t)n_scan,
               .lengths = n->in[0]};
    b.in = SNI_NEW_ARRAY(&u->graph->store->arena, int32_t, values);
    b.out = SNI_NEW_ARRAY(&u->graph->store->arena, int32_t, n->n_out);
    if (!b.in || !b.out) return sni_fail_memory(u->err);
    SN_TRY(sni_graph_new(u->graph->store, u->graph->symbols, u->graph, &b.outer.graph, u->err));
    for (int32_t i = 0; i < values; i++) SN_TRY(add_input(&b, &b.in[i]));
    if (b.lengths != SNI_NO_ID) SN_TRY(cut_inputs(&b));
    SN_TRY(add_inner(&b, n, n->subgraphs[index]));
    for (int32_t i = 0; i < n->n_out; i++) {
        if (i >= b.n_state && b.lengths != SNI_NO_ID) SN_TRY(pad_output(&b, &b.out[i]));
        SN_TRY(sni_graph_add_output(b.outer.graph, b.out[i], (sni_str){0}, u->err));
    }
    return rewire(u, &b, index);
}
