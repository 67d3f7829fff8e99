/* describe.c - what a model says of itself: ports, operators, weights, cost. */
#include "api/model.h"

#include "ops/core/op.h"

#include <pthread.h>
#include <stdlib.h>

enum { DEPTH_LIMIT = 64 };

/* Text of an arena as a C string: it ends with a NUL there. */
static const char *c_string(sni_str s) {
    return s.p ? s.p : "";
}

const char *sn_model_warning(const sn_model *model, size_t index) {
    const sni_note *n = model ? model->model->store->notes : NULL;
    for (; n && index > 0; index--) n = n->next;
    return n ? n->text.p : NULL;
}

/* ---- Ports ---- */

/* The type of the elements of sequences, optionals and maps, however deep. */
static const sni_type *innermost(const sni_type *t) {
    while (t->inner) t = t->inner;
    return t;
}

static sn_status describe_type(sni_str name, const sni_type *type, const sni_symbols *symbols,
                               sni_arena *arena, sn_value_info *out, int depth, sn_error *err) {
    if (depth > DEPTH_LIMIT)
        return sni_fail(err, SN_LIMIT, "a type is nested more than %d deep", DEPTH_LIMIT);
    sni_str text = sni_type_text(type, symbols, arena);
    sni_str copy = sni_arena_str(arena, name);
    if (!text.p || !copy.p) return sni_fail_memory(err);
    sn_value_info *element = NULL;
    if (type->inner) {
        element = SNI_NEW(arena, sn_value_info);
        if (!element) return sni_fail_memory(err);
        SN_TRY(describe_type((sni_str){0}, type->inner, symbols, arena, element, depth + 1, err));
    }
    *out = (sn_value_info){.name = copy.p,
                           .kind = type->kind,
                           .dtype = innermost(type)->dtype,
                           .key = type->kind == SN_KIND_MAP ? type->dtype : SN_UNDEFINED,
                           .element = element,
                           .has_shape = type->has_shape,
                           .rank = type->has_shape ? type->rank : 0,
                           .type_text = text.p};
    for (int i = 0; i < out->rank; i++) {
        bool known = sni_dim_known(type->dims[i]);
        out->dims[i] = known ? type->dims[i] : -1;
        out->symbols[i] = known ? "" : sni_dim_text(symbols, type->dims[i]);
    }
    return SN_OK;
}

sn_status sni_describe_type(sni_str name, const sni_type *type, const sni_symbols *symbols,
                            sni_arena *arena, sn_value_info *out, sn_error *err) {
    return describe_type(name, type, symbols, arena, out, 0, err);
}

/* The same of a model's value, into the model's arena. */
static sn_status fill_info(sn_model *m, sni_str name, const sni_type *type, sn_value_info *out,
                           sn_error *err) {
    return describe_type(name, type, m->model->graph->symbols, &m->arena, out, 0, err);
}

/* Inputs without a default, or those with one: the former come first, so that positions in the
 * caller's list of inputs do not depend on the others. */
static sn_status add_inputs(sn_model *m, bool optional, sn_error *err) {
    const sni_graph *g = m->model->graph;
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const sni_value *v = g->values[g->inputs[i]];
        if ((v->constant != NULL) != optional) continue;
        sni_port *p = &m->inputs[m->n_inputs++];
        p->type = &v->type;
        p->graph_index = i;
        p->optional = optional;
        SN_TRY(fill_info(m, v->name, &v->type, &p->info, err));
    }
    return SN_OK;
}

/* Outputs are shown as the file declares them; inference fills in what it does not say. */
static sn_status add_outputs(sn_model *m, sn_error *err) {
    const sni_graph *g = m->model->graph;
    for (int32_t i = 0; i < g->n_outputs; i++) {
        const sni_type *inferred = &g->values[g->outputs[i]]->type;
        const sni_type *declared = m->model->output_types ? &m->model->output_types[i] : NULL;
        const sni_type *type = declared && declared->kind != SN_KIND_NONE ? declared : inferred;
        sni_port *p = &m->outputs[m->n_outputs++];
        p->type = type;
        p->graph_index = i;
        SN_TRY(fill_info(m, g->output_names[i], type, &p->info, err));
    }
    return SN_OK;
}

/* ---- Operators, weights, cost ---- */

typedef struct survey {
    sn_model *m;
    size_t op_capacity;
    int32_t *op_index; /* positions in m->operators by hash of domain and name; -1: free */
    size_t op_index_size;
    sn_error *err;
} survey;

static size_t hash_of(const char *domain, const char *name) {
    uint64_t h = 14695981039346656037u;
    for (; *domain; domain++) h = (h ^ (unsigned char)*domain) * 1099511628211u;
    h *= 1099511628211u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

/* The place of an operator in the index: taken by it, or free. */
static int32_t *find_use(survey *s, const char *domain, const char *name) {
    size_t at = hash_of(domain, name) & (s->op_index_size - 1);
    for (; s->op_index[at] >= 0; at = (at + 1) & (s->op_index_size - 1)) {
        const sn_operator_use *u = &s->m->operators[s->op_index[at]];
        if (strcmp(domain, u->domain) == 0 && strcmp(name, u->name) == 0) break;
    }
    return &s->op_index[at];
}

/* Makes space for one more operator: the table doubles and its index is made anew. */
static sn_status grow_operators(survey *s) {
    size_t more = s->op_capacity ? s->op_capacity * 2 : 32;
    sn_operator_use *bigger = SNI_NEW_ARRAY(&s->m->arena, sn_operator_use, more);
    int32_t *index = SNI_NEW_ARRAY(&s->m->arena, int32_t, more * 2);
    if (!bigger || !index) return sni_fail_memory(s->err);
    if (s->op_capacity) memcpy(bigger, s->m->operators, s->op_capacity * sizeof *bigger);
    s->m->operators = bigger;
    s->op_capacity = more;
    s->op_index = index;
    s->op_index_size = more * 2;
    for (size_t i = 0; i < more * 2; i++) index[i] = -1;
    for (size_t i = 0; i < s->m->info.operator_count; i++)
        *find_use(s, bigger[i].domain, bigger[i].name) = (int32_t)i;
    return SN_OK;
}

/* Counts a node with the others of its operator. */
static sn_status count_operator(survey *s, const sni_node *n) {
    sn_model_info *info = &s->m->info;
    info->node_count++;
    if (info->operator_count == s->op_capacity) SN_TRY(grow_operators(s));
    int32_t *at = find_use(s, c_string(n->domain), c_string(n->type));
    if (*at >= 0) {
        s->m->operators[*at].count++;
        return SN_OK;
    }
    *at = (int32_t)info->operator_count;
    s->m->operators[info->operator_count++] = (sn_operator_use){.domain = c_string(n->domain),
                                                                .name = c_string(n->type),
                                                                .count = 1,
                                                                .supported = n->op != NULL};
    return SN_OK;
}

/* Multiplications of a node by its inferred shapes; those of unknown shapes are counted apart. */
static void count_macs(survey *s, const sni_graph *g, const sni_node *n) {
    if (!n->op || !n->op->macs) return;
    const sni_type *in[32] = {0};
    sni_type out[8] = {{0}};
    for (int32_t i = 0; i < n->n_in && i < 32; i++) {
        const sni_value *v = sni_graph_value(g, n->in[i]);
        in[i] = v ? &v->type : NULL;
    }
    for (int32_t i = 0; i < n->n_out && i < 8; i++) {
        const sni_value *v = sni_graph_value(g, n->out[i]);
        if (v) out[i] = v->type;
    }
    sni_infer c = {.op = n->op,
                   .node = n,
                   .params = n->params,
                   .n_in = n->n_in < 32 ? n->n_in : 32,
                   .n_out = n->n_out < 8 ? n->n_out : 8,
                   .in = in,
                   .out = out};
    int64_t macs = n->op->macs(&c);
    if (macs < 0)
        s->m->info.macs_unknown++;
    else
        s->m->info.macs += (uint64_t)macs;
}

static void count_weight(sn_model_info *info, const sni_const *c) {
    info->weight_count++;
    info->weight_bytes += c->file_bytes;
    if (c->tensor.dtype != SN_STRING) info->parameter_count += (uint64_t)c->tensor.count;
}

static sn_status survey_graph(survey *s, const sni_graph *g, int depth) {
    SN_TRY(sni_check_nesting(depth, s->err));
    for (int32_t i = 0; i < g->value_count; i++)
        if (g->values[i] && g->values[i]->constant)
            count_weight(&s->m->info, g->values[i]->constant);
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        SN_TRY(count_operator(s, n));
        count_macs(s, g, n);
        for (int32_t i = 0; i < n->n_subgraphs; i++)
            SN_TRY(survey_graph(s, n->subgraphs[i], depth + 1));
    }
    return SN_OK;
}

/* Orders for qsort: operators by domain and name, weights by size, then by name. */
static int by_name(const void *a, const void *b) {
    const sn_operator_use *x = a, *y = b;
    int c = strcmp(x->domain, y->domain);
    return c ? c : strcmp(x->name, y->name);
}

sn_status sni_model_describe(sn_model *m, sn_error *err) {
    const sni_model *model = m->model;
    const sni_graph *g = model->graph;
    m->inputs = SNI_NEW_ARRAY(&m->arena, sni_port, g->n_inputs);
    m->outputs = SNI_NEW_ARRAY(&m->arena, sni_port, g->n_outputs);
    if (!m->inputs || !m->outputs) return sni_fail_memory(err);
    SN_TRY(add_inputs(m, false, err));
    SN_TRY(add_inputs(m, true, err));
    SN_TRY(add_outputs(m, err));
    m->info = (sn_model_info){.ir_version = model->ir_version,
                              .model_version = model->model_version,
                              .producer_name = c_string(model->producer_name),
                              .producer_version = c_string(model->producer_version),
                              .domain = c_string(model->domain),
                              .doc = c_string(model->doc),
                              .graph_name = c_string(g->name),
                              .graph_doc = c_string(model->graph_doc),
                              .has_model_version = model->has_model_version,
                              .opset_count = model->n_opsets,
                              .metadata_count = model->n_metadata};
    survey s = {.m = m, .err = err};
    SN_TRY(survey_graph(&s, g, 0));
    if (m->operators) qsort(m->operators, m->info.operator_count, sizeof *m->operators, by_name);
    return SN_OK;
}

/* ---- Weights: told when first asked for, as most callers never do ---- */

static int by_bytes(const void *a, const void *b) {
    const sni_weight *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->info.name, y->info.name);
}

/* Constants of a graph and its subgraphs; the table has space for all of them. */
static sn_status add_weights(sn_model *m, const sni_graph *g, size_t *count, int depth) {
    SN_TRY(sni_check_nesting(depth, NULL));
    for (int32_t i = 0; i < g->value_count; i++) {
        const sni_value *v = g->values[i];
        if (!v || !v->constant) continue;
        sni_weight *w = &m->weights[*count];
        w->bytes = v->constant->file_bytes;
        SN_TRY(fill_info(m, v->name, &v->type, &w->info, NULL));
        ++*count;
    }
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        for (int32_t i = 0; i < n->n_subgraphs; i++)
            SN_TRY(add_weights(m, n->subgraphs[i], count, depth + 1));
    return SN_OK;
}

/* The table, which stays; NULL: out of memory. */
static const sni_weight *list_weights(sn_model *m) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    size_t count = 0;
    pthread_mutex_lock(&lock);
    if (!m->weights) {
        m->weights = SNI_NEW_ARRAY(&m->arena, sni_weight, m->info.weight_count);
        if (m->weights && add_weights(m, m->model->graph, &count, 0) == SN_OK)
            qsort(m->weights, count, sizeof *m->weights, by_bytes);
        else
            m->weights = NULL;
    }
    const sni_weight *weights = m->weights;
    pthread_mutex_unlock(&lock);
    return weights;
}

/* ---- The public questions ---- */

size_t sn_model_input_count(const sn_model *model) {
    return model ? model->n_inputs : 0;
}

size_t sn_model_output_count(const sn_model *model) {
    return model ? model->n_outputs : 0;
}

static sn_status get_port(const sni_port *ports, size_t count, size_t index, const char *what,
                          sn_value_info *out, sn_error *err) {
    if (!out) return sni_fail(err, SN_INVALID_ARGUMENT, "out is NULL");
    if (index >= count)
        return sni_fail(err, SN_INVALID_ARGUMENT, "%s %zu of a model that has %zu", what, index,
                        count);
    *out = ports[index].info;
    return SN_OK;
}

sn_status sn_model_input(const sn_model *model, size_t index, sn_value_info *out, sn_error *err) {
    if (!model) return sni_fail(err, SN_INVALID_ARGUMENT, "model is NULL");
    return get_port(model->inputs, model->n_inputs, index, "input", out, err);
}

sn_status sn_model_output(const sn_model *model, size_t index, sn_value_info *out, sn_error *err) {
    if (!model) return sni_fail(err, SN_INVALID_ARGUMENT, "model is NULL");
    return get_port(model->outputs, model->n_outputs, index, "output", out, err);
}

bool sn_model_input_is_optional(const sn_model *model, size_t index) {
    return model && index < model->n_inputs && model->inputs[index].optional;
}

void sn_model_get_info(const sn_model *model, sn_model_info *out) {
    if (model && out) *out = model->info;
}

bool sn_model_opset(const sn_model *model, size_t index, const char **domain, int64_t *version) {
    if (!model || index >= model->model->n_opsets) return false;
    if (domain) *domain = c_string(model->model->opsets[index].domain);
    if (version) *version = model->model->opsets[index].version;
    return true;
}

bool sn_model_metadata(const sn_model *model, size_t index, const char **key, const char **value) {
    if (!model || index >= model->model->n_metadata) return false;
    if (key) *key = c_string(model->model->metadata[index].key);
    if (value) *value = c_string(model->model->metadata[index].value);
    return true;
}

bool sn_model_operator(const sn_model *model, size_t index, sn_operator_use *out) {
    if (!model || !out || index >= model->info.operator_count) return false;
    *out = model->operators[index];
    return true;
}

bool sn_model_weight(const sn_model *model, size_t index, sn_value_info *out, uint64_t *bytes) {
    if (!model || index >= model->info.weight_count) return false;
    const sni_weight *weights = list_weights((sn_model *)model);
    if (!weights) return false;
    if (out) *out = weights[index].info;
    if (bytes) *bytes = weights[index].bytes;
    return true;
}
