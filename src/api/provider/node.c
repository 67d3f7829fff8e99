/* node.c - the graph that a provider is asked about, and its answer. */
#include "api/provider/provider.h"

#include "graph/part.h"
#include "model/model.h"

#include <stdlib.h>

/* ---- What is on offer ---- */

/* Tensors that can stand between a part and the rest: numbers of a byte or more. */
static bool is_plain(const sni_value *v) {
    const sni_type *t = &v->type;
    return t->kind == SN_KIND_TENSOR && t->dtype != SN_UNDEFINED && t->dtype != SN_STRING &&
           !sni_dtype_subbyte(t->dtype);
}

static bool is_constant(const sni_value *v) {
    return v->constant && !v->is_input;
}

/* Small values that the planner works out before a run: lists of sizes and what they are made of.
 * With them on the CPU, the shapes behind a part are known when a run begins. */
static bool is_small(const sni_value *v) {
    enum { SMALL = 64 };
    const sni_type *t = &v->type;
    if (v->shape_value) return true;
    if (t->kind != SN_KIND_TENSOR || !t->has_shape || t->rank > 1) return false;
    return t->rank == 0 || (sni_dim_known(t->dims[0]) && t->dims[0] <= SMALL);
}

/* Marks values that follow from shapes and constants alone, and are small. */
static bool is_shape_arithmetic(const sni_graph *g, const sni_node *n, bool *sizes) {
    bool asks = !n->domain.n && (sni_str_is(n->type, "Shape") || sni_str_is(n->type, "Size"));
    bool yes = n->n_out > 0 && n->op && !(n->op->flags & SNI_OP_RANDOM);
    bool any = asks;
    for (int32_t i = 0; i < n->n_in && yes && !asks; i++) {
        const sni_value *v = sni_graph_value(g, n->in[i]);
        if (!v) continue;
        any |= sizes[v->id];
        yes = sizes[v->id] || is_constant(v);
    }
    for (int32_t i = 0; i < n->n_out && yes; i++) {
        const sni_value *v = sni_graph_value(g, n->out[i]);
        yes = !v || is_small(v);
    }
    for (int32_t i = 0; i < n->n_out && yes && any; i++)
        if (n->out[i] != SNI_NO_ID) sizes[n->out[i]] = true;
    return yes && any;
}

static const char *veto(const sni_graph *g, const sni_node *n, bool *sizes) {
    if (n->op && n->op->flags & SNI_OP_PART) return "another provider runs it";
    if (sni_str_is(n->domain, "ai.sinter")) return "it is an operator of the engine's own";
    if (n->n_subgraphs) return "its subgraphs are partitioned on their own";
    if (n->op && n->op->flags & SNI_OP_CUSTOM) return "it is a custom operator";
    if (is_shape_arithmetic(g, n, sizes)) return "shape arithmetic, which the planner works out";
    for (int32_t i = 0; i < n->n_in + n->n_out; i++) {
        int32_t id = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        const sni_value *v = sni_graph_value(g, id);
        if (v && !is_plain(v)) return "a value is no tensor of whole bytes, or of unknown type";
    }
    int32_t used = 0;
    for (int32_t i = 0; i < n->n_out; i++) {
        const sni_value *v = sni_graph_value(g, n->out[i]);
        used += v ? v->use_count : 0;
    }
    return used ? NULL : "nothing reads its results";
}

/* Providers tell values apart by their names. */
static sn_status name_values(sni_graph *g, sn_error *err) {
    for (int32_t i = 0; i < g->value_count; i++) {
        sni_value *v = g->values[i];
        if (!v || v->name.n) continue;
        v->name = sni_arena_printf(&g->store->arena, "sinter.value.%d", (int)i);
        if (!v->name.p) return sni_fail_memory(err);
    }
    return SN_OK;
}

sn_status sni_offer(sni_graph *g, int depth, sni_arena *arena, sn_ep_graph *out, sn_error *err) {
    SN_TRY(name_values(g, err));
    *out = (sn_ep_graph){.g = g, .depth = depth, .arena = arena};
    for (sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) out->count++;
    out->nodes = SNI_NEW_ARRAY(arena, sni_node *, out->count);
    out->views = SNI_NEW_ARRAY(arena, sn_op_node, out->count);
    out->vetoes = SNI_NEW_ARRAY(arena, const char *, out->count);
    bool *sizes = SNI_NEW_ARRAY(arena, bool, g->value_count);
    if (!out->nodes || !out->views || !out->vetoes || !sizes) return sni_fail_memory(err);
    size_t i = 0;
    for (sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n), i++) {
        out->nodes[i] = n;
        out->views[i] = (sn_op_node){.graph = g, .node = n, .arena = arena};
        out->vetoes[i] = veto(g, n, sizes);
    }
    return SN_OK;
}

size_t sni_ep_node_count(const sn_ep_graph *graph) {
    return graph ? graph->count : 0;
}

const sn_op_node *sni_ep_node_at(const sn_ep_graph *graph, size_t index) {
    return graph && index < graph->count ? &graph->views[index] : NULL;
}

int sni_ep_depth(const sn_ep_graph *graph) {
    return graph ? graph->depth : 0;
}

/* ---- The graph as a file ---- */

static int by_address(const void *a, const void *b) {
    const sni_const *x = *(sni_const *const *)a, *y = *(sni_const *const *)b;
    return (x > y) - (x < y);
}

/* Constants of more than `inline_bytes`, as if they stood in a file one after the other. */
static sn_status leave_out(const sni_graph *g, size_t inline_bytes, sni_places *places,
                           sn_error *err) {
    size_t most = (size_t)g->value_count + 1;
    *places = (sni_places){.location = "sinter"};
    places->constants = calloc(most, sizeof(*places->constants));
    places->offsets = calloc(most, sizeof *places->offsets);
    if (!places->constants || !places->offsets) return sni_fail_memory(err);
    for (int32_t i = 0; i < g->value_count; i++) {
        const sni_value *v = g->values[i];
        if (v && v->constant && v->constant->tensor.dtype != SN_STRING &&
            sni_tensor_bytes(&v->constant->tensor) > inline_bytes)
            places->constants[places->count++] = v->constant;
    }
    qsort(places->constants, places->count, sizeof(*places->constants), by_address);
    size_t kept = 0;
    for (size_t i = 0; i < places->count; i++)
        if (!i || places->constants[i] != places->constants[i - 1])
            places->constants[kept++] = places->constants[i];
    places->count = kept;
    for (size_t i = 1; i < kept; i++)
        places->offsets[i] =
            places->offsets[i - 1] + sni_tensor_bytes(&places->constants[i - 1]->tensor);
    return SN_OK;
}

typedef struct sink {
    unsigned char *bytes;
    size_t count, capacity;
} sink;

static int collect(void *ctx, const void *bytes, size_t size) {
    sink *s = ctx;
    if (size > s->capacity - s->count) {
        size_t capacity = s->capacity * 2 + size + 4096;
        unsigned char *more = realloc(s->bytes, capacity);
        if (!more) return -1;
        s->bytes = more;
        s->capacity = capacity;
    }
    if (size) memcpy(s->bytes + s->count, bytes, size);
    s->count += size;
    return 0;
}

sn_status sni_onnx_bytes(const sni_graph *g, size_t inline_bytes, unsigned char **bytes,
                         size_t *count, sn_error *err) {
    sink s = {0};
    sni_places places = {0};
    sn_status status = SN_OK;
    if (inline_bytes != SIZE_MAX) status = leave_out(g, inline_bytes, &places, err);
    if (status == SN_OK)
        status = places.count ? sni_write_onnx_beside(g, NULL, &places, collect, &s, err)
                              : sni_write_onnx(g, NULL, collect, &s, err);
    free(places.constants);
    free(places.offsets);
    if (status != SN_OK) {
        free(s.bytes);
        return status;
    }
    *bytes = s.bytes;
    *count = s.count;
    return SN_OK;
}

sn_status sni_ep_graph_onnx(const sn_ep_graph *graph, size_t inline_bytes, const void **bytes,
                            size_t *count, sn_error *err) {
    if (!graph || !bytes || !count)
        return sni_fail(err, SN_INVALID_ARGUMENT, "graph, bytes or count is NULL");
    sni_cutout whole;
    unsigned char *made = NULL;
    SN_TRY(sni_graph_cut_out(graph->g, graph->nodes, graph->count, &whole, err));
    SN_TRY(sni_onnx_bytes(whole.body, inline_bytes, &made, count, err));
    unsigned char *kept = sni_arena_alloc(graph->arena, *count + 1);
    if (kept) memcpy(kept, made, *count);
    free(made);
    *bytes = kept;
    return kept ? SN_OK : sni_fail_memory(err);
}

/* ---- The answer ---- */

sn_status sni_ep_claim(sn_ep_claims *c, sn_ep_claim_kind kind, const size_t *nodes, size_t count,
                       sn_error *err) {
    if (!c || (count && !nodes) || (unsigned)kind > SN_EP_PART)
        return sni_fail(err, SN_INVALID_ARGUMENT, "claims or nodes is NULL, or kind is %d", kind);
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] >= c->graph->count)
            return sni_fail(err, SN_INVALID_ARGUMENT, "node %zu is claimed and there are %zu",
                            nodes[i], c->graph->count);
        if (kind == SN_EP_PART && c->claim[nodes[i]] != SNI_UNCLAIMED)
            return sni_fail(err, SN_INVALID_ARGUMENT, "node %zu is claimed in two parts", nodes[i]);
    }
    if (c->count == c->capacity) {
        int32_t capacity = c->capacity * 2 + 16;
        bool *more = SNI_NEW_ARRAY(c->graph->arena, bool, capacity);
        if (!more) return sni_fail_memory(err);
        if (c->count) memcpy(more, c->exact, (size_t)c->count * sizeof *more);
        c->exact = more;
        c->capacity = capacity;
    }
    c->exact[c->count] = kind == SN_EP_PART;
    for (size_t i = 0; i < count; i++)
        if (c->claim[nodes[i]] == SNI_UNCLAIMED) c->claim[nodes[i]] = c->count;
    c->count++;
    return SN_OK;
}

void sni_ep_refuse(sn_ep_claims *c, size_t node, const char *reason) {
    if (!c || !reason || node >= c->graph->count) return;
    c->reasons[node] = sni_arena_str(c->graph->arena, sni_str_of(reason)).p;
}

/* Takes nodes out that are not to be had; a part that wants one loses all. */
static void take_vetoed_out(sn_ep_claims *c) {
    const sn_ep_graph *g = c->graph;
    bool *broken = SNI_NEW_ARRAY(g->arena, bool, c->count);
    for (size_t i = 0; i < g->count; i++)
        if (c->claim[i] != SNI_UNCLAIMED && g->vetoes[i] && broken) broken[c->claim[i]] = true;
    for (size_t i = 0; i < g->count; i++) {
        int32_t claim = c->claim[i];
        if (claim == SNI_UNCLAIMED) {
            if (!c->reasons[i]) c->reasons[i] = g->vetoes[i] ? g->vetoes[i] : "it was not claimed";
            continue;
        }
        bool part_lost = c->exact[claim] && (!broken || broken[claim]);
        if (!g->vetoes[i] && !part_lost) continue;
        c->claim[i] = SNI_UNCLAIMED;
        c->reasons[i] = g->vetoes[i] ? g->vetoes[i] : "another node of its part is not to be had";
    }
}

sn_status sni_ask(sni_engine *e, const sn_ep_graph *graph, sn_ep_claims *out, sn_error *err) {
    const sn_ep_api *api = &e->provider->api;
    sn_error told = {0};
    *out = (sn_ep_claims){.graph = graph, .engine = e};
    out->claim = SNI_NEW_ARRAY(graph->arena, int32_t, graph->count);
    out->reasons = SNI_NEW_ARRAY(graph->arena, const char *, graph->count);
    if (!out->claim || !out->reasons) return sni_fail_memory(err);
    for (size_t i = 0; i < graph->count; i++) out->claim[i] = SNI_UNCLAIMED;
    sn_status status = api->claim(e->ep, graph, out, &told);
    if (status != SN_OK) {
        sn_error why = {0};
        sni_provider_failed(&why, status, &told);
        sni_engine_log(e, SN_LOG_WARNING, "it gets no nodes, since its claim failed: %s",
                       why.message);
        for (size_t i = 0; i < graph->count; i++) {
            out->claim[i] = SNI_UNCLAIMED;
            out->reasons[i] = "its claim failed";
        }
    }
    take_vetoed_out(out);
    return SN_OK;
}
