/* dot.c - graphs as Graphviz's DOT language: a box for each node with what it does, its weights and
 * attributes; fused nodes with their parts below each other; edges with their types. */
#include "model/model.h"
#include "ops/sinter/group.h"

#include <stdio.h>

enum { ATTR_ELEMENTS = 8, TEXT_LIMIT = 60, MEMBERS_SHOWN = 24 };

typedef struct drawer {
    sn_write_fn write;
    void *ctx;
    int failed;
    const sni_dot_notes *notes;
    int graphs; /* drawn so far: each has its number */
    sn_error *err;
} drawer;

/* ---- Text ---- */

static void say(drawer *d, const char *text) {
    if (!d->failed) d->failed = d->write(d->ctx, text, strlen(text));
}

/* Text for an HTML-like label: what has a meaning there or is not printable is replaced. */
static void put_text(drawer *d, sni_str text) {
    char safe[8 * TEXT_LIMIT + 8];
    size_t n = 0;
    for (size_t i = 0; i < text.n && i < TEXT_LIMIT; i++) {
        unsigned char c = (unsigned char)text.p[i];
        const char *as = c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : NULL;
        if (as)
            n += (size_t)snprintf(safe + n, 8, "%s", as);
        else
            safe[n++] = c >= 32 && c < 127 && c != '"' && c != '\\' ? (char)c : '.';
    }
    if (text.n > TEXT_LIMIT) n += (size_t)snprintf(safe + n, 8, "...");
    safe[n] = 0;
    say(d, safe);
}

static void put_cstr(drawer *d, const char *text) {
    put_text(d, sni_str_of(text));
}

static void row_begin(drawer *d) {
    say(d, "<tr><td align=\"left\">");
}

static void row_end(drawer *d) {
    say(d, "</td></tr>");
}

static void put_dims(drawer *d, const sni_type *t, const sni_symbols *symbols) {
    put_cstr(d, sn_dtype_name(t->dtype));
    say(d, "[");
    for (int i = 0; t->has_shape && i < t->rank; i++) {
        if (i) say(d, ",");
        put_cstr(d, sni_dim_text(symbols, t->dims[i]));
    }
    say(d, t->has_shape ? "]" : "?]");
}

/* ---- Nodes ---- */

static void put_attr(drawer *d, const sni_attr *a) {
    char text[64];
    if (a->kind == SNI_ATTR_INT) {
        snprintf(text, sizeof text, "%lld", (long long)a->u.i);
    } else if (a->kind == SNI_ATTR_FLOAT) {
        snprintf(text, sizeof text, "%g", (double)a->u.f);
    } else if (a->kind == SNI_ATTR_INTS && a->count <= ATTR_ELEMENTS) {
        size_t n = 0;
        text[0] = 0;
        for (size_t i = 0; i < a->count && n < sizeof text; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld", i ? "," : "",
                                  (long long)a->u.ints[i]);
    } else if (a->kind != SNI_ATTR_STRING) {
        return;
    }
    row_begin(d);
    put_text(d, a->name);
    say(d, " = ");
    if (a->kind == SNI_ATTR_STRING)
        put_text(d, a->u.s);
    else
        put_cstr(d, text);
    row_end(d);
}

/* True if the node stands for several of the model: what the optimiser makes. */
static bool is_fused(const sni_node *n) {
    return n->domain.n && !sni_str_is(n->domain, "ai.onnx.ml");
}

/* A line for each member of a group, with the numbers among its operands. */
static void put_members(drawer *d, const sni_graph *body) {
    int rows = 0;
    for (const sni_node *n = sni_graph_first(body); n && rows <= MEMBERS_SHOWN;
         n = sni_graph_next(body, n), rows++) {
        row_begin(d);
        if (rows < MEMBERS_SHOWN)
            put_text(d, n->type);
        else
            say(d, "...");
        for (int32_t i = 0; i < n->n_in && rows < MEMBERS_SHOWN; i++) {
            const sni_value *v = sni_graph_value(body, n->in[i]);
            const sni_tensor *t;
            char text[32];
            if (!v || !v->constant || v->is_input || v->constant->tensor.count != 1 ||
                v->constant->tensor.dtype != SN_FLOAT32 ||
                sni_const_load(v->constant, &t, NULL) != SN_OK)
                continue;
            snprintf(text, sizeof text, " %g", (double)*(const float *)t->data);
            put_cstr(d, text);
        }
        row_end(d);
    }
}

/* The parts of a fused node: the operator itself, what is added, the activation. */
static void put_parts(drawer *d, const sni_graph *g, const sni_node *n) {
    const sni_attr *activation = sni_node_attr(n, "activation");
    for (int32_t i = 2; i < n->n_in; i++) {
        const sni_formal *f = n->op ? n->op->inputs : NULL;
        for (int32_t k = 0; f && f->name && k < i; k++) f++;
        const sni_value *v = sni_graph_value(g, n->in[i]);
        if (!v || v->constant || !f || !f->name) continue;
        row_begin(d);
        say(d, "+ ");
        put_cstr(d, f->name);
        row_end(d);
    }
    if (activation && activation->kind == SNI_ATTR_STRING && activation->u.s.n) {
        row_begin(d);
        say(d, "<b>");
        put_text(d, activation->u.s);
        say(d, "</b>");
        row_end(d);
    }
}

static void put_weights(drawer *d, const sni_graph *g, const sni_node *n) {
    for (int32_t i = 0; i < n->n_in; i++) {
        const sni_value *v = sni_graph_value(g, n->in[i]);
        if (!v || !v->constant) continue;
        row_begin(d);
        say(d, "<font color=\"#666666\">");
        put_dims(d, &v->type, g->symbols);
        say(d, "</font>");
        row_end(d);
    }
}

static void put_node(drawer *d, const sni_graph *g, const sni_node *n, int number) {
    char line[160];
    bool fused = is_fused(n);
    snprintf(
        line, sizeof line,
        "  n%d_%d [shape=box, style=\"rounded,filled\", fillcolor=\"%s\", penwidth=%d, label=<",
        number, n->id,
        fused            ? "#ffe6b3"
        : n->n_subgraphs ? "#e0d4f7"
                         : "#dcebf7",
        fused ? 2 : 1);
    say(d, line);
    say(d, "<table border=\"0\" cellborder=\"0\" cellspacing=\"0\">");
    row_begin(d);
    say(d, "<b>");
    put_text(d, n->type);
    say(d, "</b>");
    row_end(d);
    if (sni_is_group(n) && sni_group_body(n))
        put_members(d, sni_group_body(n));
    else if (fused)
        put_parts(d, g, n);
    for (int32_t i = 0; i < n->n_attrs; i++)
        if (!sni_str_is(n->attrs[i].name, "activation")) put_attr(d, &n->attrs[i]);
    put_weights(d, g, n);
    if (d->notes) {
        char note[160] = "";
        d->notes->note(d->notes->ctx, n, note, sizeof note);
        row_begin(d);
        say(d, "<font color=\"#8a2500\">");
        put_cstr(d, note);
        say(d, "</font>");
        row_end(d);
    }
    say(d, "</table>>];\n");
}

/* ---- Edges and graphs ---- */

static void put_edge(drawer *d, const sni_graph *g, const sni_value *v, int number,
                     const char *target) {
    char line[96];
    if (v->producer != SNI_NO_ID)
        snprintf(line, sizeof line, "  n%d_%d -> %s [label=<", number, v->producer, target);
    else
        snprintf(line, sizeof line, "  v%d_%d -> %s [label=<", number, v->id, target);
    say(d, line);
    if (v->type.kind == SN_KIND_TENSOR && v->type.dtype) put_dims(d, &v->type, g->symbols);
    say(d, ">];\n");
}

static void put_port(drawer *d, const char *id, sni_str name) {
    say(d, "  ");
    say(d, id);
    say(d, " [shape=oval, style=filled, fillcolor=\"#d7f0d7\", label=<");
    put_text(d, name);
    say(d, ">];\n");
}

static sn_status put_graph(drawer *d, const sni_graph *g, int depth);

static void put_edges(drawer *d, const sni_graph *g, int number) {
    char id[48];
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        snprintf(id, sizeof id, "n%d_%d", number, n->id);
        for (int32_t i = 0; i < n->n_in + n->n_captures; i++) {
            const sni_value *v = sni_graph_value(g, n->in[i]);
            if (v && (!v->constant || v->is_input)) put_edge(d, g, v, number, id);
        }
    }
    for (int32_t i = 0; i < g->n_outputs; i++) {
        snprintf(id, sizeof id, "o%d_%d", number, i);
        put_port(d, id, g->output_names[i]);
        put_edge(d, g, g->values[g->outputs[i]], number, id);
    }
}

static sn_status put_subgraphs(drawer *d, const sni_node *n, int depth) {
    char line[64];
    for (int32_t i = 0; i < n->n_subgraphs && !sni_is_group(n); i++) {
        snprintf(line, sizeof line, "  subgraph cluster_%d {\n  label=<", d->graphs);
        say(d, line);
        put_text(d, n->type);
        say(d, ": ");
        put_text(d, n->subgraphs[i]->name);
        say(d, ">;\n");
        SN_TRY(put_graph(d, n->subgraphs[i], depth + 1));
        say(d, "  }\n");
    }
    return SN_OK;
}

static sn_status put_graph(drawer *d, const sni_graph *g, int depth) {
    int number = d->graphs++;
    char id[48];
    SN_TRY(sni_check_nesting(depth, d->err));
    for (int32_t i = 0; i < g->value_count; i++) {
        const sni_value *v = g->values[i];
        bool free_standing =
            v && v->producer == SNI_NO_ID && v->use_count && (!v->constant || v->is_input);
        if (!free_standing) continue;
        snprintf(id, sizeof id, "v%d_%d", number, v->id);
        put_port(d, id, v->name);
    }
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        put_node(d, g, n, number);
        SN_TRY(put_subgraphs(d, n, depth));
    }
    put_edges(d, g, number);
    return SN_OK;
}

sn_status sni_write_dot(const sni_graph *graph, const sni_dot_notes *notes, sn_write_fn write,
                        void *ctx, sn_error *err) {
    drawer d = {.write = write, .ctx = ctx, .notes = notes, .err = err};
    say(&d, "digraph model {\n  rankdir=TB;\n  ranksep=0.3;\n"
            "  node [fontname=\"Helvetica\", fontsize=11];\n"
            "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#555555\"];\n");
    SN_TRY(put_graph(&d, graph, 0));
    say(&d, "}\n");
    return d.failed ? sni_fail(err, SN_IO, "writing the drawing failed") : SN_OK;
}
