/* text_print.c - graphs as ONNX text. */
#include "model/text_print.h"
#include "model/export.h"

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>

typedef struct printer {
    sni_out *out;
    int depth; /* of indentation */
} printer;

static void print_graph(printer *p, const sni_export *e, const sni_model *model);

static void line(printer *p) {
    sni_print(p->out, "\n");
    for (int i = 0; i < p->depth; i++) sni_print(p->out, "  ");
}

static void print_info(printer *p, const sni_type *type, sni_str name, const sni_symbols *symbols) {
    if (sni_type_printable(type)) {
        sni_print_type(p->out, type, symbols);
        sni_print(p->out, " ");
    }
    sni_print_name(p->out, name);
}

/* ---- Attributes ---- */

static const char *kind_name(sni_attr_kind kind) {
    static const char *const names[] = {NULL,      "float",      "int",        "string", "tensor",
                                        "graph",   "type_proto", "floats",     "ints",   "strings",
                                        "tensors", "graphs",     "type_protos"};
    return names[kind];
}

static void print_tensor(printer *p, sni_const *c) {
    sni_print_const_type(p->out, c);
    sni_print_contents(p->out, c);
}

static void print_attr_type(printer *p, const sni_export *e, const sni_type *type) {
    if (sni_type_printable(type))
        sni_print_type(p->out, type, e->graph->symbols);
    else
        sni_out_fail(p->out, sni_fail(p->out->err, SN_UNSUPPORTED,
                                      "an attribute's type is not known well enough to print"));
}

/* One value: element i of a list, or the only one. */
static void print_attr_value(printer *p, const sni_export *e, const sni_node *n, const sni_attr *a,
                             size_t i) {
    const sni_export *subs = e->subgraphs[n->id];
    switch (a->kind) {
    case SNI_ATTR_FLOAT:
        sni_print_float(p->out, a->u.f);
        break;
    case SNI_ATTR_INT:
        sni_print_number(p->out, a->u.i);
        break;
    case SNI_ATTR_STRING:
        sni_print_quoted(p->out, a->u.s);
        break;
    case SNI_ATTR_TENSOR:
        print_tensor(p, a->u.tensor);
        break;
    case SNI_ATTR_GRAPH:
        print_graph(p, &subs[a->u.graph], NULL);
        break;
    case SNI_ATTR_TYPE:
        print_attr_type(p, e, a->u.type);
        break;
    case SNI_ATTR_FLOATS:
        sni_print_float(p->out, a->u.floats[i]);
        break;
    case SNI_ATTR_INTS:
        sni_print_number(p->out, a->u.ints[i]);
        break;
    case SNI_ATTR_STRINGS:
        sni_print_quoted(p->out, a->u.strings[i]);
        break;
    case SNI_ATTR_TENSORS:
        print_tensor(p, a->u.tensors[i]);
        break;
    case SNI_ATTR_GRAPHS:
        print_graph(p, &subs[a->u.graphs[i]], NULL);
        break;
    case SNI_ATTR_TYPES:
        print_attr_type(p, e, &a->u.types[i]);
        break;
    case SNI_ATTR_NONE:
        break;
    }
}

static void print_attr(printer *p, const sni_export *e, const sni_node *n, const sni_attr *a) {
    bool list = a->kind >= SNI_ATTR_FLOATS;
    sni_print_name(p->out, a->name);
    if (kind_name(a->kind) && (a->ref.n || (list && a->count == 0))) {
        sni_print(p->out, " : ");
        sni_print(p->out, kind_name(a->kind));
    }
    sni_print(p->out, " = ");
    if (a->ref.n) {
        sni_print(p->out, "@");
        sni_print_name(p->out, a->ref);
        return;
    }
    if (!list) {
        print_attr_value(p, e, n, a, 0);
        return;
    }
    sni_print(p->out, "[");
    for (size_t i = 0; i < a->count; i++) {
        if (i) sni_print(p->out, ", ");
        print_attr_value(p, e, n, a, i);
    }
    sni_print(p->out, "]");
}

/* ---- Nodes ---- */

static void print_ids(printer *p, const sni_export *e, const int32_t *ids, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        if (i) sni_print(p->out, ", ");
        sni_print_name(p->out, ids[i] == SNI_NO_ID ? SNI_STR("") : e->values[ids[i]]);
    }
}

/* The outputs' types as a comment: readers infer them. */
static void print_types(printer *p, const sni_export *e, const sni_node *n) {
    const char *before = "  # ";
    for (int32_t i = 0; i < n->n_out; i++) {
        const sni_value *v = sni_graph_value(e->graph, n->out[i]);
        if (!v || !sni_type_printable(&v->type)) continue;
        sni_print(p->out, before);
        sni_print_type(p->out, &v->type, e->graph->symbols);
        before = ", ";
    }
}

static void print_node(printer *p, const sni_export *e, const sni_node *n) {
    line(p);
    if (n->name.n) {
        sni_print(p->out, "[");
        sni_print_name(p->out, n->name);
        sni_print(p->out, "] ");
    }
    print_ids(p, e, n->out, n->n_out);
    sni_print(p->out, " = ");
    sni_print_operator(p->out, n->domain, n->type);
    bool nested = n->n_subgraphs > 0;
    if (!nested && n->n_attrs) {
        for (int32_t i = 0; i < n->n_attrs; i++) {
            sni_print(p->out, i ? ", " : " <");
            print_attr(p, e, n, &n->attrs[i]);
        }
        sni_print(p->out, ">");
    }
    sni_print(p->out, " (");
    print_ids(p, e, n->in, n->n_in);
    sni_print(p->out, nested ? ") <" : ")");
    print_types(p, e, n);
    if (!nested) return;
    p->depth++;
    for (int32_t i = 0; i < n->n_attrs; i++) {
        line(p);
        print_attr(p, e, n, &n->attrs[i]);
        if (i + 1 < n->n_attrs) sni_print(p->out, ",");
    }
    p->depth--;
    line(p);
    sni_print(p->out, ">");
}

static void print_nodes(printer *p, const sni_export *e) {
    const sni_graph *g = e->graph;
    sni_print(p->out, " {");
    p->depth++;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) print_node(p, e, n);
    for (int32_t i = 0; i < g->n_outputs; i++) {
        if (!e->copied[i]) continue;
        line(p);
        sni_print_name(p->out, e->outputs[i]);
        sni_print(p->out, " = Identity (");
        sni_print_name(p->out, e->values[g->outputs[i]]);
        sni_print(p->out, ")");
    }
    p->depth--;
    line(p);
    sni_print(p->out, "}");
}

/* ---- Graphs ---- */

/* True if readers cannot infer a value's type. */
static bool needs_info(const sni_export *e, const sni_value *v) {
    const sni_node *n = sni_value_producer(e->graph, v);
    return n && !n->op && sni_type_printable(&v->type);
}

/* Constants, and the types of values that nobody can infer, between < and >. */
static void print_values(printer *p, const sni_export *e) {
    const sni_graph *g = e->graph;
    const char *note = NULL; /* after the comma that may follow */
    char text[48];
    bool any = false;
    for (int32_t i = 0; i < g->value_count; i++) {
        const sni_value *v = g->values[i];
        if (!v || v->is_input || !(v->constant || needs_info(e, v))) continue;
        if (any) sni_print(p->out, ",");
        if (note) sni_print(p->out, note);
        note = NULL;
        if (!any) {
            sni_print(p->out, " <");
            p->depth++;
        }
        any = true;
        line(p);
        if (v->constant)
            sni_print_const_type(p->out, v->constant);
        else
            sni_print_type(p->out, &v->type, g->symbols);
        sni_print(p->out, " ");
        sni_print_name(p->out, e->values[i]);
        if (!v->constant) continue;
        sni_print(p->out, " =");
        sni_print_contents(p->out, v->constant);
        if (!sni_const_printable(v->constant)) {
            snprintf(text, sizeof(text), "  # %" PRIu64 " bytes", v->constant->file_bytes);
            note = text;
        }
    }
    if (!any) return;
    if (note) sni_print(p->out, note);
    p->depth--;
    line(p);
    sni_print(p->out, ">");
}

static void print_graph(printer *p, const sni_export *e, const sni_model *model) {
    const sni_graph *g = e->graph;
    sni_print_name(p->out, g->name);
    sni_print(p->out, " (");
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const sni_value *v = g->values[g->inputs[i]];
        if (i) sni_print(p->out, ", ");
        if (v->constant) {
            sni_print_const_type(p->out, v->constant);
            sni_print(p->out, " ");
            sni_print_name(p->out, e->values[v->id]);
            sni_print(p->out, " =");
            sni_print_contents(p->out, v->constant);
        } else {
            print_info(p, &v->type, e->values[v->id], g->symbols);
        }
    }
    sni_print(p->out, ") => (");
    for (int32_t i = 0; i < g->n_outputs; i++) {
        if (i) sni_print(p->out, ", ");
        print_info(p, sni_export_output_type(g, model, i), e->outputs[i], g->symbols);
    }
    sni_print(p->out, ")");
    print_values(p, e);
    print_nodes(p, e);
}

/* ---- Models ---- */

static void print_entry(printer *p, const char *key, sni_str value) {
    if (value.n == 0) return;
    sni_print(p->out, ",");
    line(p);
    sni_print(p->out, key);
    sni_print(p->out, ": ");
    sni_print_quoted(p->out, value);
}

static void print_pair(printer *p, size_t i, sni_str key) {
    if (i) sni_print(p->out, ", ");
    sni_print_quoted(p->out, key);
    sni_print(p->out, " : ");
}

static void print_header(printer *p, const sni_export_versions *v, const sni_model *m) {
    sni_print(p->out, "<");
    p->depth++;
    line(p);
    sni_print(p->out, "ir_version: ");
    sni_print_number(p->out, v->ir_version);
    sni_print(p->out, ",");
    line(p);
    sni_print(p->out, "opset_import: [");
    for (size_t i = 0; i < v->n_opsets; i++) {
        print_pair(p, i, v->opsets[i].domain);
        sni_print_number(p->out, v->opsets[i].version);
    }
    sni_print(p->out, "]");
    if (m) {
        print_entry(p, "producer_name", m->producer_name);
        print_entry(p, "producer_version", m->producer_version);
        print_entry(p, "domain", m->domain);
        if (m->model_version) {
            sni_print(p->out, ",");
            line(p);
            sni_print(p->out, "model_version: ");
            sni_print_number(p->out, m->model_version);
        }
        print_entry(p, "doc_string", m->doc);
        if (m->n_metadata) {
            sni_print(p->out, ",");
            line(p);
            sni_print(p->out, "metadata_props: [");
            for (size_t i = 0; i < m->n_metadata; i++) {
                print_pair(p, i, m->metadata[i].key);
                sni_print_quoted(p->out, m->metadata[i].value);
            }
            sni_print(p->out, "]");
        }
    }
    p->depth--;
    line(p);
    sni_print(p->out, ">\n");
}

sn_status sni_write_text(const sni_graph *graph, const sni_model *model, sn_write_fn write,
                         void *ctx, sn_error *err) {
    sni_arena arena;
    sni_arena_init(&arena, 0);
    sni_export *e;
    sni_export_versions versions;
    sni_out out;
    locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    sn_status status = c_locale ? SN_OK : sni_fail_memory(err);
    if (status == SN_OK) status = sni_export_names(graph, NULL, &arena, &e, err);
    if (status == SN_OK) status = sni_export_choose(graph, model, false, &arena, &versions, err);
    if (status == SN_OK) {
        locale_t old = uselocale(c_locale); /* numbers have a point, whatever the user's locale */
        sni_out_init(&out, write, ctx, err);
        printer p = {.out = &out};
        print_header(&p, &versions, model);
        print_graph(&p, e, model);
        sni_print(&out, "\n");
        status = sni_out_finish(&out);
        uselocale(old);
    }
    if (c_locale) freelocale(c_locale);
    sni_arena_free(&arena);
    return status;
}
