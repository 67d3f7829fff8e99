/* text_parse.c - nodes, graphs, functions and models of ONNX text. */
#include "model/text_parse.h"
#include "model/model.h"
#include "model/onnx_fields.h"
#include "model/text.h"

#include <locale.h>
#include <stdlib.h>

/* ---- Names of values ---- */

/* Names separated by commas, each a string under `field`, up to a token that is no name. A place
 * left empty before a comma is the empty name, as `""` is. */
static sn_status parse_names(sni_parser *p, uint32_t field) {
    bool more;
    for (;;) {
        sni_token_kind kind = p->lex.token.kind;
        sni_str name = SNI_STR("");
        if (kind == SNI_TOKEN_ID || kind == SNI_TOKEN_STRING) {
            SN_TRY(sni_lex_name(&p->lex, &name));
            sni_put_str(&p->msg.out, field, name);
            SN_TRY(sni_lex_accept(&p->lex, ',', &more));
        } else {
            SN_TRY(sni_lex_accept(&p->lex, ',', &more));
            if (more) sni_put_str(&p->msg.out, field, name);
        }
        if (!more) return SN_OK;
    }
}

/* `type name` or `name` as the fields of a ValueInfoProto. */
static sn_status parse_value_info(sni_parser *p, sni_str *name) {
    if (sni_parse_at_type(p)) {
        size_t mark = sni_msg_mark(&p->msg);
        SN_TRY(sni_parse_type(p));
        sni_msg_wrap(&p->msg, mark, ONNX_INFO_TYPE);
    }
    SN_TRY(sni_lex_name(&p->lex, name));
    sni_put_str(&p->msg.out, ONNX_INFO_NAME, *name);
    return SN_OK;
}

/* Value infos up to `close`, each under `field`. One that is given contents is an initializer; it
 * stays under `field` as well if `both`. */
static sn_status parse_values(sni_parser *p, char open, char close, uint32_t field, bool both) {
    bool more;
    SN_TRY(sni_lex_expect(&p->lex, open));
    SN_TRY(sni_lex_accept(&p->lex, close, &more));
    if (more) return SN_OK;
    do {
        sni_lexer start = p->lex;
        size_t mark = sni_msg_mark(&p->msg);
        sni_str name;
        SN_TRY(parse_value_info(p, &name));
        bool contents = sni_lex_is(&p->lex, '=');
        if (!contents || both) {
            sni_msg_wrap(&p->msg, mark, field);
            mark = sni_msg_mark(&p->msg);
        }
        if (contents) {
            p->lex = start;
            sni_msg_cut(&p->msg, mark);
            SN_TRY(sni_parse_tensor(p));
            sni_msg_wrap(&p->msg, mark, ONNX_GRAPH_INITIALIZER);
        }
        SN_TRY(sni_lex_accept(&p->lex, ',', &more));
    } while (more);
    return sni_lex_expect(&p->lex, close);
}

/* ---- Nodes and graphs ---- */

/* `domain.part.Op:overload`. */
static sn_status parse_operator(sni_parser *p) {
    sni_str part, type;
    SN_TRY(sni_lex_name(&p->lex, &type));
    size_t mark = sni_msg_mark(&p->msg);
    bool found, first = true;
    for (;;) {
        SN_TRY(sni_lex_accept(&p->lex, '.', &found));
        if (!found) break;
        SN_TRY(sni_lex_name(&p->lex, &part));
        if (!first) sni_put_raw(&p->msg.out, ".", 1);
        sni_put_raw(&p->msg.out, type.p, type.n);
        first = false;
        type = part;
    }
    sni_msg_wrap(&p->msg, mark, ONNX_NODE_DOMAIN);
    sni_put_str(&p->msg.out, ONNX_NODE_OP_TYPE, type);
    SN_TRY(sni_lex_accept(&p->lex, ':', &found));
    if (!found) return SN_OK;
    SN_TRY(sni_lex_name(&p->lex, &part));
    sni_put_str(&p->msg.out, ONNX_NODE_OVERLOAD, part);
    return SN_OK;
}

static sn_status parse_node(sni_parser *p) {
    bool found;
    SN_TRY(sni_lex_accept(&p->lex, '[', &found));
    if (found) {
        sni_str name;
        SN_TRY(sni_lex_name(&p->lex, &name));
        sni_put_str(&p->msg.out, ONNX_NODE_NAME, name);
        SN_TRY(sni_lex_expect(&p->lex, ']'));
    }
    SN_TRY(parse_names(p, ONNX_NODE_OUTPUT));
    SN_TRY(sni_lex_expect(&p->lex, '='));
    SN_TRY(parse_operator(p));
    size_t attrs;
    SN_TRY(sni_parse_attrs(p, ONNX_NODE_ATTRIBUTE, &attrs));
    SN_TRY(sni_lex_expect(&p->lex, '('));
    SN_TRY(parse_names(p, ONNX_NODE_INPUT));
    SN_TRY(sni_lex_expect(&p->lex, ')'));
    return attrs ? SN_OK : sni_parse_attrs(p, ONNX_NODE_ATTRIBUTE, &attrs);
}

static sn_status parse_nodes(sni_parser *p, uint32_t field) {
    SN_TRY(sni_lex_expect(&p->lex, '{'));
    while (!sni_lex_is(&p->lex, '}')) {
        size_t mark = sni_msg_mark(&p->msg);
        SN_TRY(parse_node(p));
        sni_msg_wrap(&p->msg, mark, field);
    }
    return sni_lex_next(&p->lex);
}

static sn_status expect_arrow(sni_parser *p) {
    if (p->lex.token.kind != SNI_TOKEN_ARROW) return sni_lex_expected(&p->lex, "'=>'");
    return sni_lex_next(&p->lex);
}

sn_status sni_parse_graph(sni_parser *p) {
    SN_TRY(sni_parse_enter(p));
    sni_str name;
    SN_TRY(sni_lex_name(&p->lex, &name));
    sni_put_str(&p->msg.out, ONNX_GRAPH_NAME, name);
    SN_TRY(parse_values(p, '(', ')', ONNX_GRAPH_INPUT, true));
    SN_TRY(expect_arrow(p));
    SN_TRY(parse_values(p, '(', ')', ONNX_GRAPH_OUTPUT, true));
    if (sni_lex_is(&p->lex, '<')) SN_TRY(parse_values(p, '<', '>', ONNX_GRAPH_VALUE_INFO, false));
    SN_TRY(parse_nodes(p, ONNX_GRAPH_NODE));
    sni_parse_leave(p);
    return SN_OK;
}

/* ---- What stands in <> before a model or a function ---- */

typedef enum entry_kind { ENTRY_INT, ENTRY_STRING, ENTRY_OPSETS, ENTRY_PAIRS } entry_kind;

typedef struct entry {
    const char *key;
    uint32_t field;
    entry_kind kind;
} entry;

static const entry model_entries[] = {
    {"ir_version", ONNX_MODEL_IR_VERSION, ENTRY_INT},
    {"opset_import", ONNX_MODEL_OPSET, ENTRY_OPSETS},
    {"producer_name", ONNX_MODEL_PRODUCER_NAME, ENTRY_STRING},
    {"producer_version", ONNX_MODEL_PRODUCER_VERSION, ENTRY_STRING},
    {"domain", ONNX_MODEL_DOMAIN, ENTRY_STRING},
    {"model_version", ONNX_MODEL_VERSION, ENTRY_INT},
    {"doc_string", ONNX_MODEL_DOC, ENTRY_STRING},
    {"metadata_props", ONNX_MODEL_METADATA, ENTRY_PAIRS},
    {0},
};

static const entry function_entries[] = {
    {"opset_import", ONNX_FUNCTION_OPSET, ENTRY_OPSETS},
    {"domain", ONNX_FUNCTION_DOMAIN, ENTRY_STRING},
    {"doc_string", ONNX_FUNCTION_DOC, ENTRY_STRING},
    {"overload", ONNX_FUNCTION_OVERLOAD, ENTRY_STRING},
    {0},
};

/* `[ "key" : value, ... ]`: operator sets (value a number) or pairs of strings. */
static sn_status parse_pairs(sni_parser *p, uint32_t field, bool opsets) {
    bool more;
    SN_TRY(sni_lex_expect(&p->lex, '['));
    SN_TRY(sni_lex_accept(&p->lex, ']', &more));
    if (more) return SN_OK;
    do {
        sni_str key, value;
        int64_t version;
        SN_TRY(sni_lex_string(&p->lex, &key));
        SN_TRY(sni_lex_expect(&p->lex, ':'));
        size_t mark = sni_msg_mark(&p->msg);
        if (opsets) {
            SN_TRY(sni_lex_int(&p->lex, INT64_MIN, INT64_MAX, &version));
            sni_put_str(&p->msg.out, ONNX_OPSET_DOMAIN, key);
            sni_put_int(&p->msg.out, ONNX_OPSET_VERSION, version);
        } else {
            SN_TRY(sni_lex_string(&p->lex, &value));
            sni_put_str(&p->msg.out, ONNX_ENTRY_KEY, key);
            sni_put_str(&p->msg.out, ONNX_ENTRY_VALUE, value);
        }
        sni_msg_wrap(&p->msg, mark, field);
        SN_TRY(sni_lex_accept(&p->lex, ',', &more));
    } while (more);
    return sni_lex_expect(&p->lex, ']');
}

static sn_status parse_entry(sni_parser *p, const entry *table) {
    const entry *e = table;
    while (e->key && !sni_str_is(p->lex.token.text, e->key)) e++;
    if (!e->key || p->lex.token.kind != SNI_TOKEN_ID)
        return sni_lex_expected(&p->lex, "a keyword such as opset_import");
    SN_TRY(sni_lex_next(&p->lex));
    SN_TRY(sni_lex_expect(&p->lex, ':'));
    int64_t number;
    sni_str text;
    switch (e->kind) {
    case ENTRY_INT:
        SN_TRY(sni_lex_int(&p->lex, INT64_MIN, INT64_MAX, &number));
        sni_put_int(&p->msg.out, e->field, number);
        return SN_OK;
    case ENTRY_STRING:
        SN_TRY(sni_lex_string(&p->lex, &text));
        sni_put_str(&p->msg.out, e->field, text);
        return SN_OK;
    case ENTRY_OPSETS:
        return parse_pairs(p, e->field, true);
    default:
        return parse_pairs(p, e->field, false);
    }
}

static sn_status parse_header(sni_parser *p, const entry *table) {
    bool more;
    SN_TRY(sni_lex_accept(&p->lex, '<', &more));
    if (!more) return SN_OK;
    do {
        SN_TRY(parse_entry(p, table));
        SN_TRY(sni_lex_accept(&p->lex, ',', &more));
    } while (more);
    return sni_lex_expect(&p->lex, '>');
}

/* ---- Functions and models ---- */

/* `<name, other : float = 0.5>`: attributes without and with a default. */
static sn_status parse_function_attrs(sni_parser *p) {
    bool more;
    SN_TRY(sni_lex_accept(&p->lex, '<', &more));
    if (!more) return SN_OK;
    do {
        sni_str name;
        SN_TRY(sni_lex_name(&p->lex, &name));
        if (sni_lex_is(&p->lex, ':') || sni_lex_is(&p->lex, '=')) {
            size_t mark = sni_msg_mark(&p->msg);
            SN_TRY(sni_parse_attr(p, name));
            sni_msg_wrap(&p->msg, mark, ONNX_FUNCTION_ATTRIBUTE_PROTO);
        } else {
            sni_put_str(&p->msg.out, ONNX_FUNCTION_ATTRIBUTE, name);
        }
        SN_TRY(sni_lex_accept(&p->lex, ',', &more));
    } while (more);
    return sni_lex_expect(&p->lex, '>');
}

/* `(X, float Y)`: names under `field`; one that has a type is a value info too. */
static sn_status parse_function_values(sni_parser *p, uint32_t field) {
    bool more;
    SN_TRY(sni_lex_expect(&p->lex, '('));
    SN_TRY(sni_lex_accept(&p->lex, ')', &more));
    if (more) return SN_OK;
    do {
        bool typed = sni_parse_at_type(p);
        size_t mark = sni_msg_mark(&p->msg);
        sni_str name;
        SN_TRY(parse_value_info(p, &name));
        if (typed)
            sni_msg_wrap(&p->msg, mark, ONNX_FUNCTION_VALUE_INFO);
        else
            sni_msg_cut(&p->msg, mark);
        sni_put_str(&p->msg.out, field, name);
        SN_TRY(sni_lex_accept(&p->lex, ',', &more));
    } while (more);
    return sni_lex_expect(&p->lex, ')');
}

static sn_status parse_function(sni_parser *p) {
    SN_TRY(parse_header(p, function_entries));
    sni_str name;
    SN_TRY(sni_lex_name(&p->lex, &name));
    sni_put_str(&p->msg.out, ONNX_FUNCTION_NAME, name);
    SN_TRY(parse_function_attrs(p));
    SN_TRY(parse_function_values(p, ONNX_FUNCTION_INPUT));
    SN_TRY(expect_arrow(p));
    SN_TRY(parse_function_values(p, ONNX_FUNCTION_OUTPUT));
    if (sni_lex_is(&p->lex, '<')) SN_TRY(parse_values(p, '<', '>', ONNX_FUNCTION_VALUE_INFO, true));
    return parse_nodes(p, ONNX_FUNCTION_NODE);
}

static sn_status parse_model(sni_parser *p, void *unused) {
    (void)unused;
    SN_TRY(parse_header(p, model_entries));
    size_t mark = sni_msg_mark(&p->msg);
    SN_TRY(sni_parse_graph(p));
    sni_msg_wrap(&p->msg, mark, ONNX_MODEL_GRAPH);
    while (p->lex.token.kind != SNI_TOKEN_END) {
        mark = sni_msg_mark(&p->msg);
        SN_TRY(parse_function(p));
        sni_msg_wrap(&p->msg, mark, ONNX_MODEL_FUNCTION);
    }
    return SN_OK;
}

static sn_status parse_whole_function(sni_parser *p, void *unused) {
    (void)unused;
    return parse_function(p);
}

/* ---- Values ---- */

/* Puts the fields of a TensorProto, SequenceProto or OptionalProto. */
static sn_status parse_value(sni_parser *p, void *result) {
    sn_kind *kind = result;
    if (p->lex.token.kind == SNI_TOKEN_ID && sni_str_is(p->lex.token.text, "none")) {
        *kind = SN_KIND_OPTIONAL;
        return sni_lex_next(&p->lex);
    }
    *kind = sni_lex_is(&p->lex, '[') ? SN_KIND_SEQUENCE : SN_KIND_TENSOR;
    if (*kind == SN_KIND_TENSOR) return sni_parse_tensor(p);
    SN_TRY(sni_parse_enter(p));
    SN_TRY(sni_lex_next(&p->lex));
    int elements = ONNX_ELEM_TENSOR;
    bool more = !sni_lex_is(&p->lex, ']');
    while (more) {
        size_t mark = sni_msg_mark(&p->msg);
        sn_kind inner;
        SN_TRY(parse_value(p, &inner));
        if (inner == SN_KIND_OPTIONAL) return sni_lex_expected(&p->lex, "a tensor or a sequence");
        bool sequence = inner == SN_KIND_SEQUENCE;
        elements = sequence ? ONNX_ELEM_SEQUENCE : ONNX_ELEM_TENSOR;
        sni_msg_wrap(&p->msg, mark, sequence ? ONNX_SEQUENCE_SEQUENCE : ONNX_SEQUENCE_TENSOR);
        SN_TRY(sni_lex_accept(&p->lex, ',', &more));
    }
    sni_put_int(&p->msg.out, ONNX_SEQUENCE_ELEM_TYPE, elements);
    sni_parse_leave(p);
    return sni_lex_expect(&p->lex, ']');
}

/* ---- Entry points ---- */

static int append(void *ctx, const void *bytes, size_t size) {
    sni_msg *m = ctx;
    if (size > m->capacity - m->n) {
        size_t grown = m->capacity + m->capacity / 2 + size + 256;
        unsigned char *p = grown > m->capacity ? realloc(m->p, grown) : NULL;
        if (!p) {
            m->no_memory = true;
            return 1;
        }
        m->p = p;
        m->capacity = grown;
    }
    memcpy(m->p + m->n, bytes, size);
    m->n += size;
    return 0;
}

/* Runs one of the parsers above over the whole text. Numbers are read in the C locale. */
static sn_status encode(sni_str text, sn_status (*parse)(sni_parser *, void *), void *result,
                        sni_text_bytes *out, sn_error *err) {
    sni_arena arena;
    sni_arena_init(&arena, 0);
    sni_parser p = {.depth = 0};
    sni_out_init(&p.msg.out, append, &p.msg, NULL);
    locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), old = (locale_t)0;
    sn_status status = c_locale ? SN_OK : sni_fail_memory(err);
    if (status == SN_OK) {
        old = uselocale(c_locale);
        status = sni_lex_start(&p.lex, text, &arena, err);
    }
    if (status == SN_OK) status = parse(&p, result);
    if (status == SN_OK && p.lex.token.kind != SNI_TOKEN_END)
        status = sni_lex_expected(&p.lex, "the end of the text");
    sni_msg_mark(&p.msg);
    if (status == SN_OK && p.msg.no_memory) status = sni_fail_memory(err);
    if (c_locale) {
        uselocale(old);
        freelocale(c_locale);
    }
    sni_arena_free(&arena);
    if (status == SN_OK)
        *out = (sni_text_bytes){p.msg.p, p.msg.n};
    else
        free(p.msg.p);
    return status;
}

sn_status sni_text_model(sni_str text, sni_text_bytes *out, sn_error *err) {
    return encode(text, parse_model, NULL, out, err);
}

sn_status sni_text_function(sni_str text, sni_text_bytes *out, sn_error *err) {
    return encode(text, parse_whole_function, NULL, out, err);
}

sn_status sni_text_value(sni_str text, sn_kind *kind, sni_text_bytes *out, sn_error *err) {
    sn_kind found = SN_KIND_NONE;
    SN_TRY(encode(text, parse_value, &found, out, err));
    *kind = found;
    return SN_OK;
}

sn_status sni_model_import_text(const char *text, size_t size, sni_model **out, sn_error *err) {
    sni_text_bytes bytes;
    SN_TRY(sni_text_model((sni_str){text, size}, &bytes, err));
    sni_store *store;
    sn_status status = sni_store_new(NULL, 0, &store, err);
    if (status != SN_OK) {
        free(bytes.p);
        return status;
    }
    status = sni_store_own(store, bytes.p, free, err);
    if (status != SN_OK) {
        sni_store_release(store);
        return status;
    }
    return sni_model_import(bytes.p, bytes.n, store, &(sni_import_options){0}, out, err);
}
