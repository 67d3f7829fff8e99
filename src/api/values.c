/* values.c - the values of a model, with what is known of their types. */
#include "api/model.h"
#include "api/custom.h"
#include "ops/core/op.h"

#include "sinter_part.h"

typedef struct walk {
    sn_model_value_fn fn;
    void *ctx;
    sni_arena arena; /* of one value's description */
    sn_error *err;
} walk;

static sn_status visit_value(walk *w, const sni_graph *g, const sni_value *v) {
    const sni_tensor *t = NULL;
    sn_value_info info;
    if (v->constant) SN_TRY(sni_const_load(v->constant, &t, w->err));
    SN_TRY(sni_describe_type(v->name, &v->type, g->symbols, &w->arena, &info, w->err));
    sn_value weight;
    if (t && !sni_dtype_subbyte(t->dtype)) sni_value_view(&weight, t);
    sn_status status =
        w->fn(w->ctx, &info, t && !sni_dtype_subbyte(t->dtype) ? &weight : NULL, w->err);
    sni_arena_reset(&w->arena);
    return status;
}

static sn_status visit_graph(walk *w, const sni_graph *g, int depth) {
    if (depth > SNI_MAX_NESTING)
        return sni_fail(w->err, SN_LIMIT, "bodies are nested more than %d deep", SNI_MAX_NESTING);
    for (int32_t i = 0; i < g->value_count; i++)
        if (g->values[i] && g->values[i]->name.n) SN_TRY(visit_value(w, g, g->values[i]));
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        for (int32_t i = 0; i < n->n_subgraphs; i++)
            SN_TRY(visit_graph(w, n->subgraphs[i], depth + 1));
    return SN_OK;
}

sn_status sn_model_values(const sn_model *model, sn_model_value_fn fn, void *ctx, sn_error *err) {
    if (!model || !fn)
        return sni_fail(err, SN_INVALID_ARGUMENT, "sn_model_values: model or fn is NULL");
    walk w = {.fn = fn, .ctx = ctx, .err = err};
    sni_arena_init(&w.arena, 0);
    sn_status status = visit_graph(&w, model->model->graph, 0);
    sni_arena_free(&w.arena);
    return status;
}
