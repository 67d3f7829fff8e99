/* base.c - the graph that is worked on, cleaned up, and the layers in it. */
#include "quantize/quantize.h"

#include "model/model.h"
#include "opt/opt.h"

#include <stdlib.h>

/* ---- The base graph ---- */

/* What is done to a graph before its layers are looked at: nothing that a reader of the result
 * would not recognise. */
static const char *const kept_rules[] = {"dead-code",
                                         "identity",
                                         "fold-constants",
                                         "common-subexpressions",
                                         "shape-values",
                                         "conv-batchnorm",
                                         "batchnorm-conv",
                                         "linear-batchnorm",
                                         "conv-transpose-batchnorm"};

static bool is_kept_rule(const char *name) {
    for (size_t i = 0; i < sizeof kept_rules / sizeof *kept_rules; i++)
        if (strcmp(kept_rules[i], name) == 0) return true;
    return false;
}

static sn_status clean(sni_graph *g, sn_error *err) {
    size_t count = 0, n = 0;
    sni_opt_report report = {0};
    while (sni_opt_name(count)) count++;
    const char **disabled = calloc(count + 1, sizeof *disabled);
    if (!disabled) return sni_fail_memory(err);
    for (size_t i = 0; i < count; i++)
        if (!is_kept_rule(sni_opt_name(i))) disabled[n++] = sni_opt_name(i);
    sni_opt_options options = {.level = 2, .disabled = disabled, .n_disabled = n, .portable = true};
    sn_status status = sni_optimize(g, &options, &report, err);
    free(disabled);
    return status;
}

/* Takes out the nodes that nothing reads any more. */
static void drop_dead_nodes(sni_graph *g) {
    for (int32_t id = g->last; id != SNI_NO_ID;) {
        sni_node *n = g->nodes[id];
        bool used = false;
        id = n->prev;
        for (int32_t i = 0; i < n->n_out && !used; i++)
            used = n->out[i] >= 0 && g->values[n->out[i]]->use_count > 0;
        if (!used) sni_graph_remove_node(g, n);
    }
}

static sn_status model_of(const sni_model *like, sni_graph *g, sn_model **out, sn_error *err) {
    sni_store *store = g->store;
    sni_model *m = SNI_NEW(&store->arena, sni_model);
    sn_status status = m ? sni_graph_sort(g, err) : sni_store_no_memory(store, err);
    if (status == SN_OK) {
        drop_dead_nodes(g);
        sni_graph_remove_dead_values(g);
        status = sni_graph_verify(g, err);
    }
    if (status != SN_OK) {
        sni_store_release(store);
        return status;
    }
    *m = *like;
    m->store = store;
    m->graph = g;
    m->output_types = NULL;
    return sni_model_make(m, out, err);
}

sn_status sni_q_copy(const sni_quantizer *q, sni_graph **out, sn_error *err) {
    sni_store *store;
    SN_TRY(sni_store_new(q->store, 0, &store, err));
    sn_status status = sni_graph_clone(q->base, store, out, err);
    if (status != SN_OK) sni_store_release(store);
    return status;
}

sn_status sni_q_model(const sni_quantizer *q, sni_graph *g, sn_model **out, sn_error *err) {
    return model_of(q->model->model, g, out, err);
}

/* ---- Models that are quantised already ---- */

static bool is_quantised_op(sni_str type) {
    static const char *const begins[] = {"QLinear",  "QGemm",          "QAttention", "QMoE",
                                         "MatMulNB", "MatMulBnb4",     "MatMulInte", "ConvInte",
                                         "Dynamic",  "QuantizeLinear", "Dequantize", "GatherBlockQ",
                                         "QEmbed",   "QOrdered"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        size_t n = strlen(begins[i]);
        if (type.n >= n && memcmp(type.p, begins[i], n) == 0) return true;
    }
    return false;
}

static sn_status check_floats(const sni_graph *g, sn_error *err) {
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        if (is_quantised_op(n->type))
            return sni_fail(err, SN_INVALID_MODEL,
                            "the model is quantised already: node '%.*s' is %.*s",
                            SNI_FMT(sni_node_label(g, n)), SNI_FMT(n->type));
    return SN_OK;
}

/* ---- Layers ---- */

static int64_t attr_int(const sni_node *n, const char *name, int64_t otherwise) {
    const sni_attr *a = sni_node_attr(n, name);
    return a && a->kind == SNI_ATTR_INT ? a->u.i : otherwise;
}

static bool attr_is_one(const sni_node *n, const char *name) {
    const sni_attr *a = sni_node_attr(n, name);
    return !a || a->u.f == 1.0f;
}

/* The constant of floats that input `slot` is, maybe through a transposition (*turned; NULL: it
 * must not be); SNI_NO_ID if it is none. */
static int32_t weights_of(const sni_graph *g, const sni_node *n, int slot, bool *turned) {
    const sni_value *v = slot < n->n_in ? sni_graph_value(g, n->in[slot]) : NULL;
    const sni_node *from = v ? sni_value_producer(g, v) : NULL;
    if (from && turned && sni_str_is(from->type, "Transpose") && from->n_in == 1) {
        v = sni_graph_value(g, from->in[0]);
        *turned = v && v->constant && v->constant->tensor.rank == 2;
        const sni_attr *perm = sni_node_attr(from, "perm");
        if (!*turned || (perm && (perm->count != 2 || perm->u.ints[0] != 1))) return SNI_NO_ID;
    }
    bool ok = v && v->constant && !v->is_input && v->constant->tensor.dtype == SN_FLOAT32 &&
              v->constant->tensor.count > 0;
    return ok ? v->id : SNI_NO_ID;
}

static bool is_constant_or_none(const sni_graph *g, const sni_node *n, int slot, int32_t *out) {
    *out = slot < n->n_in ? n->in[slot] : SNI_NO_ID;
    const sni_value *v = sni_graph_value(g, *out);
    return !v || (v->constant && !v->is_input && v->constant->tensor.dtype == SN_FLOAT32);
}

#define CAN(p) (1u << SN_QUANTIZE_TO_##p)

static bool read_conv(const sni_graph *g, const sni_node *n, sni_qlayer *l) {
    l->w = weights_of(g, n, 1, NULL);
    if (l->w < 0) return false;
    const sni_tensor *w = &g->values[l->w]->constant->tensor;
    if (w->rank < 3) return false;
    l->kind = SNI_Q_CONV;
    l->n = w->dims[0];
    l->k = w->count / w->dims[0];
    l->can = CAN(FLOAT);
    if (is_constant_or_none(g, n, 2, &l->bias))
        l->can |= CAN(INT8);
    else
        l->note = "its bias is no constant";
    return true;
}

static bool read_product(const sni_graph *g, const sni_node *n, sni_qlayer *l) {
    bool gemm = sni_str_is(n->type, "Gemm"), turned = false;
    l->w = weights_of(g, n, 1, &turned);
    if (l->w < 0) return false;
    const sni_tensor *w = &g->values[l->w]->constant->tensor;
    if (w->rank != 2) return false;
    l->kind = SNI_Q_PRODUCT;
    l->reads_rows = !gemm || attr_int(n, "transB", 0) == 0;
    l->by_rows = l->reads_rows != turned;
    l->k = w->dims[l->by_rows ? 0 : 1];
    l->n = w->dims[l->by_rows ? 1 : 0];
    l->can = CAN(FLOAT);
    l->bias = SNI_NO_ID;
    bool plain = !gemm || (attr_int(n, "transA", 0) == 0 && attr_is_one(n, "alpha") &&
                           attr_is_one(n, "beta"));
    const sni_value *b = NULL;
    if (gemm && !is_constant_or_none(g, n, 2, &l->bias)) plain = false;
    if (plain && l->bias >= 0) b = sni_graph_value(g, l->bias);
    if (!plain || (b && b->constant->tensor.count != l->n)) {
        l->note = "it is no plain product with a constant bias";
        return true;
    }
    l->can |= CAN(INT8) | CAN(INT8_DYNAMIC);
    if (l->k >= 16)
        l->can |= CAN(INT4) | CAN(INT2);
    else
        l->note = "fewer than 16 inputs are no block";
    return true;
}

static bool read_gather(const sni_graph *g, const sni_node *n, sni_qlayer *l) {
    enum { FEW = 4096 };
    l->w = weights_of(g, n, 0, NULL);
    if (l->w < 0 || attr_int(n, "axis", 0) != 0) return false;
    const sni_tensor *w = &g->values[l->w]->constant->tensor;
    if (w->rank != 2 || w->count < FEW) return false;
    l->kind = SNI_Q_GATHER;
    l->n = w->dims[0];
    l->k = w->dims[1];
    l->bias = SNI_NO_ID;
    l->can = CAN(FLOAT);
    if (l->k % 32 == 0) l->can |= CAN(INT8) | CAN(INT8_DYNAMIC) | CAN(INT4) | CAN(INT2);
    return true;
}

static bool read_layer(const sni_graph *g, const sni_node *n, sni_qlayer *l) {
    *l = (sni_qlayer){.node = n->id, .note = ""};
    for (int i = 0; i < SNI_PRECISIONS; i++) l->losses[i] = -1;
    if (n->domain.n) return false;
    bool is = sni_str_is(n->type, "Conv") ? read_conv(g, n, l)
              : sni_str_is(n->type, "Gemm") || sni_str_is(n->type, "MatMul")
                  ? read_product(g, n, l)
                  : sni_str_is(n->type, "Gather") && read_gather(g, n, l);
    if (!is) return false;
    l->x = n->in[l->kind == SNI_Q_GATHER ? 1 : 0];
    const sni_value *x = sni_graph_value(g, l->x);
    if (l->kind != SNI_Q_GATHER && x->constant) {
        l->can = CAN(FLOAT);
        l->note = "its input is a constant";
    }
    l->bytes = (uint64_t)(l->n * l->k) * sizeof(float);
    return true;
}

static sn_status keep_named(sni_quantizer *q) {
    for (size_t i = 0; i < q->o.keep_count; i++) {
        bool found = false;
        for (size_t j = 0; j < q->n_layers; j++) {
            if (strcmp(q->layers[j].name, q->o.keep[i]) != 0) continue;
            q->layers[j].can = CAN(FLOAT);
            q->layers[j].note = "kept as asked";
            found = true;
        }
        if (!found)
            return sni_fail(q->err, SN_NOT_FOUND, "the model has no layer '%s' to keep",
                            q->o.keep[i]);
    }
    return SN_OK;
}

static sn_status find_layers(sni_quantizer *q) {
    sni_graph *g = q->base;
    sni_arena *arena = &q->store->arena;
    q->layers = SNI_NEW_ARRAY(arena, sni_qlayer, g->node_count + 1);
    if (!q->layers) return sni_fail_memory(q->err);
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        sni_qlayer *l = &q->layers[q->n_layers];
        if (!read_layer(g, n, l)) continue;
        sni_str name = sni_arena_str(arena, sni_node_label(g, n));
        sni_str op = sni_arena_str(arena, n->type);
        if (!name.p || !op.p) return sni_fail_memory(q->err);
        l->name = name.p;
        l->op = op.p;
        q->n_layers++;
    }
    return keep_named(q);
}

/* ---- Opening ---- */

/* Whether a value of the graph has a name that ends so. */
static bool has_suffix(const sni_graph *g, sni_str suffix) {
    for (int32_t i = 0; i < g->value_count; i++) {
        sni_str name = g->values[i]->name;
        if (name.n >= suffix.n && memcmp(name.p + name.n - suffix.n, suffix.p, suffix.n) == 0)
            return true;
    }
    return false;
}

/* Every value that can be asked for has a name, and no name ends as those of bytes will. */
static sn_status name_values(sni_quantizer *q) {
    sni_graph *g = q->base;
    sni_arena *arena = &g->store->arena;
    sni_str tail = SNI_STR("_quantized"), made = SNI_STR("_made");
    while (tail.p && has_suffix(g, tail)) tail = sni_arena_printf(arena, "%s_", tail.p);
    while (made.p && has_suffix(g, made)) made = sni_arena_printf(arena, "%s_", made.p);
    if (!tail.p || !made.p) return sni_fail_memory(q->err);
    q->bytes_suffix = tail.p;
    for (int32_t i = 0; i < g->value_count; i++) {
        sni_value *v = g->values[i];
        if (v->name.n || v->constant) continue;
        v->name = sni_arena_printf(arena, "value_%d%s", (int)i, made.p);
        if (!v->name.p) return sni_fail_memory(q->err);
    }
    return SN_OK;
}

static sn_status open_base(sni_quantizer *q) {
    sni_store *first;
    sni_graph *g = NULL, *again = NULL;
    const sni_model *from = (q->smoothed ? q->smoothed : q->model)->model;
    SN_TRY(sni_store_new(from->store, 0, &first, q->err));
    sn_status status = sni_graph_clone(from->graph, first, &g, q->err);
    if (status == SN_OK) {
        sni_graph_fold_input_defaults(g);
        status = check_floats(g, q->err);
    }
    if (status == SN_OK) status = clean(g, q->err);
    if (status == SN_OK) sni_graph_remove_dead_values(g);
    /* The copy has ids without gaps, which copies of it keep. */
    if (status == SN_OK) status = sni_store_new(first, 0, &q->store, q->err);
    if (status == SN_OK) status = sni_graph_clone(g, q->store, &q->base, q->err);
    sni_store_release(first);
    if (status == SN_OK) status = name_values(q);
    if (status == SN_OK) status = sni_q_copy(q, &again, q->err);
    if (status == SN_OK) status = sni_q_model(q, again, &q->plain, q->err);
    return status;
}

sn_status sni_q_open(sni_quantizer *q) {
    if (q->model->is_compiled)
        return sni_fail(q->err, SN_INVALID_MODEL, "a compiled model cannot be changed");
    SN_TRY(open_base(q));
    q->seen = calloc((size_t)q->base->value_count + 1, sizeof *q->seen);
    if (!q->seen) return sni_fail_memory(q->err);
    return find_layers(q);
}

void sni_q_close(sni_quantizer *q) {
    for (int32_t i = 0; q->seen && i < q->base->value_count; i++) sni_observer_free(q->seen[i]);
    free(q->seen);
    sn_model_destroy(q->plain);
    sni_q_reference_free(q->reference);
    sni_store_release(q->store);
}

const float *sni_q_floats(const sni_quantizer *q, int32_t value, const sni_tensor **shape) {
    const sni_value *v = sni_graph_value(q->base, value);
    const sni_tensor *t = NULL;
    if (!v || !v->constant || v->constant->tensor.dtype != SN_FLOAT32) return NULL;
    if (sni_const_load(v->constant, &t, NULL) != SN_OK) return NULL;
    if (shape) *shape = t;
    return t->data;
}
