/* export_versions.c - the operator sets to declare in a file or text made of a graph. */
#include "model/export.h"
#include "model/spell.h"
#include "model/text.h"
#include "ops/core/op.h"

#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>

/* Operators whose newest versions only take more element types or have new attributes and inputs
 * that are optional: a node that uses none of those reads the same since an earlier version. */
typedef struct old_form {
    const char *op;
    int16_t since;
    int16_t inputs;    /* with at most this many inputs; 0: any */
    const char *attrs; /* without these attributes */
} old_form;

static const old_form old_forms[] = {
    {"Acos", 7},
    {"Acosh", 9},
    {"Asin", 7},
    {"Asinh", 9},
    {"Atan", 7},
    {"Atanh", 9},
    {"AveragePool", 11, 0, "dilations"},
    {"Bernoulli", 15},
    {"Cast", 13, 0, "saturate round_mode"},
    {"CastLike", 15, 0, "saturate round_mode"},
    {"Celu", 12},
    {"Constant", 13},
    {"ConstantOfShape", 9},
    {"Conv", 11},
    {"ConvTranspose", 11},
    {"Cos", 7},
    {"Cosh", 9},
    {"DequantizeLinear", 13, 0, "block_size output_dtype"},
    {"Det", 11},
    {"Dropout", 13},
    {"Elu", 6},
    {"Equal", 13},
    {"EyeLike", 9},
    {"Flatten", 13},
    {"GRU", 14},
    {"GlobalAveragePool", 1},
    {"GlobalLpPool", 2},
    {"GlobalMaxPool", 1},
    {"HardSigmoid", 6},
    {"HardSwish", 14},
    {"Identity", 13},
    {"If", 13},
    {"InstanceNormalization", 6},
    {"IsInf", 10},
    {"IsNaN", 13},
    {"LSTM", 14},
    {"Loop", 13},
    {"LpNormalization", 1},
    {"LpPool", 11, 0, "ceil_mode dilations"},
    {"MaxPool", 12},
    {"MaxRoiPool", 1},
    {"MaxUnpool", 11},
    {"Multinomial", 7},
    {"NegativeLogLikelihoodLoss", 13},
    {"OptionalGetElement", 15},
    {"OptionalHasElement", 15, 1},
    {"Pad", 13, 3},
    {"QLinearMatMul", 10},
    {"QuantizeLinear", 13, 0, "block_size output_dtype precision saturate"},
    {"RNN", 14},
    {"RandomNormal", 1},
    {"RandomNormalLike", 1},
    {"RandomUniform", 1},
    {"RandomUniformLike", 1},
    {"Range", 11, 0, "stash_type"},
    {"Reshape", 14},
    {"Resize", 13, 0, "antialias axes keep_aspect_ratio_policy"},
    {"RoiAlign", 16},
    {"Round", 11},
    {"Scan", 11},
    {"ScatterElements", 16},
    {"ScatterND", 16},
    {"Selu", 6},
    {"Shape", 15},
    {"Sin", 7},
    {"Sinh", 9},
    {"Size", 13},
    {"Softplus", 1},
    {"Softsign", 1},
    {"SplitToSequence", 11},
    {"Squeeze", 13},
    {"Tan", 7},
    {"ThresholdedRelu", 10},
    {"TopK", 11},
    {"Transpose", 13},
    {"Unsqueeze", 13},
};

enum {
    /* Before it, many operators did not take negative axes and took broadcasting as attributes. */
    LOWEST_OPSET = 13
};

static bool word_in(const char *words, sni_str word) {
    for (const char *w = words; w && *w;) {
        size_t n = strcspn(w, " ");
        if (sni_str_eq(word, (sni_str){w, n})) return true;
        w += n + (w[n] == ' ');
    }
    return false;
}

static bool has_form(const sni_node *n, const old_form *f) {
    if (!sni_str_is(n->type, f->op) || (f->inputs && n->n_in > f->inputs)) return false;
    for (int32_t i = 0; i < n->n_attrs; i++)
        if (word_in(f->attrs, n->attrs[i].name)) return false;
    return true;
}

/* The operator set that brought an element type to a node. */
static int64_t type_since(const sni_node *n, const sni_value *v) {
    if (!v || v->type.kind != SN_KIND_TENSOR) return 0;
    switch (v->type.dtype) {
    case SN_FLOAT8E4M3FN:
    case SN_FLOAT8E4M3FNUZ:
    case SN_FLOAT8E5M2:
    case SN_FLOAT8E5M2FNUZ:
        return 19;
    case SN_UINT4:
    case SN_INT4:
        return 21;
    case SN_FLOAT4E2M1:
        return 23;
    case SN_FLOAT8E8M0:
        return 24;
    case SN_UINT2:
    case SN_INT2:
        return 25;
    case SN_UINT16:
    case SN_INT16:
        return sni_str_is(n->type, "QuantizeLinear") || sni_str_is(n->type, "DequantizeLinear") ? 21
                                                                                                : 0;
    default:
        return 0;
    }
}

/* The lowest version of its domain that a node needs, going by its form and its types. */
static int64_t needed_version(const sni_graph *g, const sni_node *n) {
    int64_t version = n->op ? sni_op_version(n->op) : n->version;
    if (!n->op || n->domain.n) return version;
    for (size_t i = 0; i < sizeof(old_forms) / sizeof(old_forms[0]); i++)
        if (has_form(n, &old_forms[i])) {
            version = old_forms[i].since;
            break;
        }
    for (int32_t i = 0; i < n->n_in + n->n_out; i++) {
        int64_t since =
            type_since(n, sni_graph_value(g, i < n->n_in ? n->in[i] : n->out[i - n->n_in]));
        if (since > version) version = since;
    }
    return version;
}

/* The index of a domain; n if it is not there. */
static size_t find(const sni_opset *opsets, size_t n, sni_str domain) {
    size_t i = 0;
    while (i < n && !sni_str_eq(opsets[i].domain, domain)) i++;
    return i;
}

/* The collected domains; few, so a list will do. */
typedef struct collection {
    sni_arena *arena;
    const sni_model *model;
    bool spell;
    sni_opset *opsets;
    size_t n, capacity;
    sn_error *err;
} collection;

static sn_status need(collection *c, sni_str domain, int64_t version) {
    size_t i = find(c->opsets, c->n, domain);
    if (i < c->n) {
        if (c->opsets[i].version < version) c->opsets[i].version = version;
        return SN_OK;
    }
    if (c->n == c->capacity) {
        size_t capacity = c->capacity * 2 + 8;
        sni_opset *grown = SNI_NEW_ARRAY(c->arena, sni_opset, capacity);
        if (!grown) return sni_fail_memory(c->err);
        if (c->n) memcpy(grown, c->opsets, c->n * sizeof(*grown));
        c->opsets = grown;
        c->capacity = capacity;
    }
    const sni_model *m = c->model;
    i = m ? find(m->opsets, m->n_opsets, domain) : 0;
    if (m && i < m->n_opsets && m->opsets[i].version > version) version = m->opsets[i].version;
    c->opsets[c->n++] = (sni_opset){domain, version};
    return SN_OK;
}

static sn_status collect(collection *c, const sni_graph *g) {
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        sni_str body;
        if (!c->spell || !sni_spell(g, n, LOWEST_OPSET, c->arena, &body))
            SN_TRY(need(c, n->domain,
                        c->model || !n->op ? needed_version(g, n) : sni_op_version(n->op)));
        for (int32_t i = 0; i < n->n_subgraphs; i++) SN_TRY(collect(c, n->subgraphs[i]));
    }
    return SN_OK;
}

/* The file format version that came with an ai.onnx operator set. */
static int64_t ir_version_of(int64_t opset) {
    static const struct {
        int16_t opset, ir;
    } first[] = {{26, 13}, {25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9}, {15, 8}};
    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
        if (opset >= first[i].opset) return first[i].ir;
    return 7;
}

sn_status sni_export_choose(const sni_graph *g, const sni_model *model, bool spell,
                            sni_arena *arena, sni_export_versions *out, sn_error *err) {
    collection c = {.arena = arena, .model = model, .spell = spell, .err = err};
    SN_TRY(need(&c, SNI_STR(""), LOWEST_OPSET));
    SN_TRY(collect(&c, g));
    *out = (sni_export_versions){ir_version_of(c.opsets[0].version), c.opsets, c.n};
    return SN_OK;
}

/* ---- Functions ---- */

enum { FUNCTION_IR = 8 }; /* the file format that has functions */

/* Names of what a node has of its inputs or outputs: "x0, x2". */
static sni_str list_names(sni_arena *arena, char letter, const int32_t *ids, int32_t n) {
    sni_str text = SNI_STR("");
    for (int32_t i = 0; i < n && text.p; i++)
        if (ids[i] != SNI_NO_ID)
            text = sni_arena_printf(arena, "%.*s%s%c%d", (int)text.n, text.p, text.n ? ", " : "",
                                    letter, (int)i);
    return text;
}

static sn_status add_function(const sni_node *n, sni_str text, int64_t opset, size_t number,
                              sni_arena *arena, sni_export_function **out, sn_error *err) {
    sni_export_function *f = SNI_NEW(arena, sni_export_function);
    sni_text_bytes bytes;
    if (!f) return sni_fail_memory(err);
    f->text = text;
    f->name = sni_arena_printf(arena, "%.*s_%zu", (int)n->type.n, n->type.p, number);
    sni_str whole = sni_arena_printf(
        arena, "<domain: \"ai.sinter\", opset_import: [\"\" : %" PRId64 "]> %.*s %.*s", opset,
        (int)f->name.n, f->name.p, (int)text.n, text.p);
    if (!f->name.p || !whole.p) return sni_fail_memory(err);
    SN_TRY(sni_text_function(whole, &bytes, err));
    char *copy = sni_arena_alloc(arena, bytes.n + 1);
    if (copy) memcpy(copy, bytes.p, bytes.n);
    free(bytes.p);
    if (!copy) return sni_fail_memory(err);
    f->bytes = (sni_str){copy, bytes.n};
    *out = f;
    return SN_OK;
}

static sn_status spell_graph(sni_export *e, int64_t opset, sni_arena *arena,
                             sni_export_function **list, sn_error *err) {
    const sni_graph *g = e->graph;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        sni_str body;
        size_t number = 1;
        for (int32_t i = 0; i < n->n_subgraphs; i++)
            SN_TRY(spell_graph(&e->subgraphs[n->id][i], opset, arena, list, err));
        if (!sni_spell(g, n, opset, arena, &body)) continue;
        sni_str in = list_names(arena, 'x', n->in, n->n_in);
        sni_str out = list_names(arena, 'y', n->out, n->n_out);
        sni_str text = sni_arena_printf(arena, "(%.*s) => (%.*s) {\n%.*s}\n", (int)in.n, in.p,
                                        (int)out.n, out.p, (int)body.n, body.p);
        if (!in.p || !out.p || !text.p) return sni_fail_memory(err);
        sni_export_function *f = *list, **last = list;
        while (f && !sni_str_eq(f->text, text)) {
            number++;
            last = &f->next;
            f = f->next;
        }
        if (!f) {
            SN_TRY(add_function(n, text, opset, number, arena, &f, err));
            *last = f;
        }
        e->calls[n->id] = f->name;
    }
    return SN_OK;
}

sn_status sni_export_spell(sni_export *e, sni_export_versions *versions, sni_arena *arena,
                           sni_export_function **out, sn_error *err) {
    sni_export_function *list = NULL;
    locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!c_locale) return sni_fail_memory(err);
    locale_t old = uselocale(c_locale); /* numbers have a point, whatever the user's locale */
    sn_status status = spell_graph(e, versions->opsets[0].version, arena, &list, err);
    uselocale(old);
    freelocale(c_locale);
    if (status == SN_OK && list) {
        collection c = {.arena = arena,
                        .opsets = versions->opsets,
                        .n = versions->n_opsets,
                        .capacity = versions->n_opsets,
                        .err = err};
        SN_TRY(need(&c, SNI_STR("ai.sinter"), 1));
        versions->opsets = c.opsets;
        versions->n_opsets = c.n;
        if (versions->ir_version < FUNCTION_IR) versions->ir_version = FUNCTION_IR;
    }
    if (status == SN_OK) *out = list;
    return status;
}
