/* model_learn.c - what the engine's importer and tables know of a model's values and operators. */
#include "ort/graph.h"
#include "sinter_part.h"

#include <stdlib.h>
#include <string.h>

/* ---- Values ---- */

static sn_status copy_strings(const sn_value *from, sn_value **out, sn_error *err) {
    sn_value *v;
    sn_status status =
        sn_tensor_create(SN_STRING, sn_tensor_rank(from), sn_tensor_dims(from), &v, err);
    if (status != SN_OK) return status;
    for (size_t i = 0; i < sn_tensor_count(from) && status == SN_OK; i++) {
        const char *text;
        size_t length;
        status = sn_tensor_get_string(from, i, &text, &length, err);
        if (status == SN_OK) status = sn_tensor_set_string(v, i, text, length, err);
    }
    if (status == SN_OK)
        *out = v;
    else
        sn_value_destroy(v);
    return status;
}

static sn_status keep_weight(OrtValueInfo *v, const sn_value *weight, sn_error *err) {
    sn_value *kept;
    sn_status status =
        sn_tensor_dtype(weight) == SN_STRING
            ? copy_strings(weight, &kept, err)
            : sn_tensor_wrap(sn_tensor_dtype(weight), sn_tensor_rank(weight),
                             sn_tensor_dims(weight), (void *)sn_tensor_const_data(weight),
                             sn_tensor_bytes(weight), &kept, err);
    if (status == SN_OK) v->weight = ort_of_sn(kept);
    return status;
}

static sn_status learn(OrtGraph *g, const sn_value_info *info, const sn_value *weight,
                       sn_error *err) {
    OrtValueInfo *v = ort_graph_find(g, info->name);
    if (v && !v->type && info->kind != SN_KIND_NONE) {
        sn_status status = ort_to_sn(ort_type_of_info(info, &v->type), err);
        if (status != SN_OK) return status;
    }
    if (v && v->is_initializer && !v->weight && weight) {
        sn_status status = keep_weight(v, weight, err);
        if (status != SN_OK) return status;
    }
    for (size_t i = 0; i < g->node_count; i++)
        for (size_t b = 0; b < g->nodes[i]->body_count; b++) {
            sn_status status = learn(g->nodes[i]->bodies[b], info, weight, err);
            if (status != SN_OK) return status;
        }
    return SN_OK;
}

static sn_status learn_value(void *ctx, const sn_value_info *info, const sn_value *weight,
                             sn_error *err) {
    return learn(ctx, info, weight, err);
}

/* Results of operators that the engine does not know have the types that the file declares. */
static OrtStatus *learn_outputs(OrtModel *model, const sn_model *imported) {
    for (size_t i = 0; i < sn_model_output_count(imported); i++) {
        sn_value_info info;
        sn_error err;
        if (sn_model_output(imported, i, &info, &err) != SN_OK) return ort_fail_sn(&err);
        OrtValueInfo *v = ort_graph_find(model->graph, info.name);
        if (!v || info.kind == SN_KIND_NONE) continue;
        if (v->type && (v->type->kind != ONNX_TYPE_TENSOR || v->type->tensor.has_shape)) continue;
        ort_ReleaseTypeInfo(v->type);
        v->type = NULL;
        ORT_TRY(ort_type_of_info(&info, &v->type));
    }
    return NULL;
}

OrtStatus *ort_model_learn(OrtModel *model, const sn_model *imported) {
    sn_error err;
    if (sn_model_values(imported, learn_value, model->graph, &err) != SN_OK)
        return ort_fail_sn(&err);
    return learn_outputs(model, imported);
}

/* ---- Constants that the engine works out ---- */

typedef struct fold {
    OrtGraph *graph;
    OrtValue **weights; /* by number of the value */
} fold;

static sn_status keep_folded(void *ctx, const sn_value_info *info, const sn_value *weight,
                             sn_error *err) {
    fold *f = ctx;
    const OrtValueInfo *v = ort_graph_find(f->graph, info->name);
    if (!v || !v->producer || !weight || v->is_output || f->weights[v->number]) return SN_OK;
    OrtValueInfo kept = {0};
    sn_status status = keep_weight(&kept, weight, err);
    f->weights[v->number] = kept.weight;
    return status;
}

static bool is_folded(const fold *f, const OrtNode *n) {
    size_t made = 0;
    for (size_t i = 0; i < n->output_count; i++) {
        if (!n->outputs[i]) continue;
        if (!f->weights[n->outputs[i]->number]) return false;
        made++;
    }
    return made > 0;
}

/* The node's results become initialisers. */
static bool fold_node(fold *f, OrtNode *n) {
    for (size_t o = 0; o < n->output_count; o++) {
        OrtValueInfo *v = n->outputs[o];
        if (!v) continue;
        v->is_initializer = true;
        v->weight = f->weights[v->number];
        f->weights[v->number] = NULL;
        if (!ort_list_add(&f->graph->initializers, &f->graph->initializer_count, v)) return false;
    }
    return true;
}

/* Nodes whose results nobody needs go as well, last ones first. */
static bool is_dead(const OrtNode *n) {
    for (size_t o = 0; o < n->output_count; o++) {
        const OrtValueInfo *v = n->outputs[o];
        if (!v) continue;
        if (v->is_output) return false;
        for (size_t u = 0; u < v->use_count; u++)
            if (!v->uses[u].node->is_gone) return false;
    }
    return true;
}

static OrtStatus *take_out(fold *f) {
    OrtGraph *g = f->graph;
    for (size_t i = 0; i < g->node_count; i++) {
        if (!is_folded(f, g->nodes[i])) continue;
        if (!fold_node(f, g->nodes[i])) return ort_fail_memory();
        g->nodes[i]->is_gone = true;
    }
    for (size_t i = g->node_count; i-- > 0;)
        if (is_dead(g->nodes[i])) g->nodes[i]->is_gone = true;
    size_t kept = 0;
    bool good = true;
    for (size_t i = 0; i < g->node_count; i++) {
        OrtNode *n = g->nodes[i];
        if (good && n->is_gone) good = ort_list_add(&g->constants, &g->constant_count, n);
        if (!good || !n->is_gone) g->nodes[kept++] = n;
    }
    g->node_count = kept;
    return good ? NULL : ort_fail_memory();
}

OrtStatus *ort_model_fold(OrtModel *model, const sn_model *folded) {
    fold f = {.graph = model->graph};
    sn_error err;
    size_t count = model->graph->value_count;
    f.weights = calloc(count + 1, sizeof(OrtValue *));
    if (!f.weights) return ort_fail_memory();
    OrtStatus *status =
        sn_model_values(folded, keep_folded, &f, &err) == SN_OK ? NULL : ort_fail_sn(&err);
    if (!status) status = take_out(&f);
    for (size_t i = 0; i < count; i++) sn_value_destroy(ort_sn(f.weights[i]));
    free(f.weights);
    return status ? status : ort_graph_link(model->graph);
}

/* ---- Operators ---- */

int ort_since_version(const char *domain, const char *op, int64_t opset) {
    sn_operator_info info;
    for (size_t i = 0; sn_operator(i, &info); i++) {
        if (strcmp(info.domain, domain) != 0 || strcmp(info.name, op) != 0) continue;
        int since = 0;
        for (const char *p = info.versions; *p;) {
            char *end;
            long version = strtol(p, &end, 10);
            if (end == p) break;
            if (version <= opset) since = (int)version;
            p = *end ? end + 1 : end;
        }
        return since;
    }
    return domain[0] ? 1 : 0; /* of somebody else's domain */
}
