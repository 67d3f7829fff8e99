/* text_attr.c - attributes of ONNX text. */
#include "model/onnx_fields.h"
#include "model/text_parse.h"

/* A kind of attribute: what an annotation calls it, its number, and the field of its value. The
 * second half are the lists of the first half, in the same order. */
typedef struct attr_kind {
    const char *name;
    int type;
    uint32_t field;
} attr_kind;

enum { FLOAT, INT, STRING, TENSOR, GRAPH, TYPE, REFERENCE, SINGLES = REFERENCE };

static const attr_kind kinds[2 * SINGLES] = {
    {"float", ONNX_ATTR_TYPE_FLOAT, ONNX_ATTR_F},
    {"int", ONNX_ATTR_TYPE_INT, ONNX_ATTR_I},
    {"string", ONNX_ATTR_TYPE_STRING, ONNX_ATTR_S},
    {"tensor", ONNX_ATTR_TYPE_TENSOR, ONNX_ATTR_T},
    {"graph", ONNX_ATTR_TYPE_GRAPH, ONNX_ATTR_G},
    {"type_proto", ONNX_ATTR_TYPE_TYPE_PROTO, ONNX_ATTR_TP},
    {"floats", ONNX_ATTR_TYPE_FLOATS, ONNX_ATTR_FLOATS},
    {"ints", ONNX_ATTR_TYPE_INTS, ONNX_ATTR_INTS},
    {"strings", ONNX_ATTR_TYPE_STRINGS, ONNX_ATTR_STRINGS},
    {"tensors", ONNX_ATTR_TYPE_TENSORS, ONNX_ATTR_TENSORS},
    {"graphs", ONNX_ATTR_TYPE_GRAPHS, ONNX_ATTR_GRAPHS},
    {"type_protos", ONNX_ATTR_TYPE_TYPE_PROTOS, ONNX_ATTR_TYPE_PROTOS},
};

/* `: kind`, if it is there; *kind is -1 if not. */
static sn_status parse_annotation(sni_parser *p, int *kind) {
    bool found;
    *kind = -1;
    SN_TRY(sni_lex_accept(&p->lex, ':', &found));
    if (!found) return SN_OK;
    for (int i = 0; i < 2 * SINGLES; i++)
        if (p->lex.token.kind == SNI_TOKEN_ID && sni_str_is(p->lex.token.text, kinds[i].name)) {
            *kind = i;
            return sni_lex_next(&p->lex);
        }
    return sni_lex_expected(&p->lex, "the kind of an attribute (int, floats, tensor, ...)");
}

/* A type alone, or the type of a tensor whose contents follow? Looks ahead and returns. */
static sn_status type_or_tensor(sni_parser *p, int *kind) {
    sni_lexer start = p->lex;
    size_t mark = sni_msg_mark(&p->msg);
    SN_TRY(sni_parse_type(p));
    const sni_token *t = &p->lex.token;
    bool tensor = sni_lex_is(&p->lex, '{') || sni_lex_is(&p->lex, '=') || t->kind == SNI_TOKEN_ID ||
                  t->kind == SNI_TOKEN_STRING;
    *kind = tensor ? TENSOR : TYPE;
    sni_msg_cut(&p->msg, mark);
    p->lex = start;
    return SN_OK;
}

/* What kind of value the current token starts. */
static sn_status value_kind(sni_parser *p, int *kind) {
    const sni_token *t = &p->lex.token;
    if (sni_lex_is(&p->lex, '@')) {
        *kind = REFERENCE;
    } else if (sni_lex_at_number(&p->lex)) {
        *kind = sni_lex_at_float(&p->lex) ? FLOAT : INT;
    } else if (t->kind == SNI_TOKEN_STRING) {
        sni_lexer ahead = p->lex; /* a quoted name with parameters after it is a graph */
        SN_TRY(sni_lex_next(&ahead));
        *kind = sni_lex_is(&ahead, '(') ? GRAPH : STRING;
    } else if (sni_parse_at_type(p)) {
        return type_or_tensor(p, kind);
    } else if (t->kind == SNI_TOKEN_ID) {
        *kind = GRAPH;
    } else {
        return sni_lex_expected(&p->lex, "an attribute's value");
    }
    return SN_OK;
}

/* Puts one value of a kind under `field`. */
static sn_status parse_value(sni_parser *p, int kind, uint32_t field) {
    float f;
    int64_t i;
    sni_str s;
    size_t mark = sni_msg_mark(&p->msg);
    switch (kind) {
    case FLOAT:
        SN_TRY(sni_lex_f32(&p->lex, &f));
        sni_put_float(&p->msg.out, field, f);
        return SN_OK;
    case INT:
        SN_TRY(sni_lex_int(&p->lex, INT64_MIN, INT64_MAX, &i));
        sni_put_int(&p->msg.out, field, i);
        return SN_OK;
    case STRING:
        SN_TRY(sni_lex_string(&p->lex, &s));
        sni_put_str(&p->msg.out, field, s);
        return SN_OK;
    case TENSOR:
        SN_TRY(sni_parse_tensor(p));
        break;
    case GRAPH:
        SN_TRY(sni_parse_graph(p));
        break;
    default:
        SN_TRY(sni_parse_type(p));
        break;
    }
    sni_msg_wrap(&p->msg, mark, field);
    return SN_OK;
}

static sn_status parse_reference(sni_parser *p, int annotated) {
    sni_str name;
    SN_TRY(sni_lex_expect(&p->lex, '@'));
    SN_TRY(sni_lex_name(&p->lex, &name));
    if (annotated >= 0) sni_put_int(&p->msg.out, ONNX_ATTR_TYPE, kinds[annotated].type);
    sni_put_str(&p->msg.out, ONNX_ATTR_REF, name);
    return SN_OK;
}

static sn_status mismatch(const sni_parser *p, int wanted, int found) {
    return sni_lex_fail(&p->lex, SN_MALFORMED, "expected an attribute value of kind %s, found %s",
                        kinds[wanted].name, kinds[found].name);
}

/* The elements of a list up to its ']', as elements of kind *kind (-1: as the first one is). An
 * integer may stand in a list of floats; *restart is set if a list taken for integers is one. */
static sn_status parse_elements(sni_parser *p, int *kind, bool *restart) {
    bool more = true;
    *restart = false;
    while (more) {
        int found;
        SN_TRY(value_kind(p, &found));
        if (found == REFERENCE) return sni_lex_expected(&p->lex, "a value (lists hold no '@')");
        if (*kind < 0) *kind = found;
        if (found == FLOAT && *kind == INT) {
            *restart = true;
            return SN_OK;
        }
        if (found != *kind && !(found == INT && *kind == FLOAT)) return mismatch(p, *kind, found);
        SN_TRY(parse_value(p, *kind, kinds[*kind + SINGLES].field));
        SN_TRY(sni_lex_accept(&p->lex, ',', &more));
    }
    return SN_OK;
}

static sn_status parse_list(sni_parser *p, int annotated) {
    if (annotated >= 0 && annotated < SINGLES)
        return sni_lex_fail(&p->lex, SN_MALFORMED, "the attribute is said to be %s, not a list",
                            kinds[annotated].name);
    SN_TRY(sni_lex_expect(&p->lex, '['));
    int kind = annotated < 0 ? -1 : annotated - SINGLES;
    if (sni_lex_is(&p->lex, ']')) {
        if (kind < 0)
            return sni_lex_fail(&p->lex, SN_MALFORMED,
                                "an empty list needs its kind, such as 'axes : ints = []'");
    } else {
        sni_lexer start = p->lex;
        size_t mark = sni_msg_mark(&p->msg);
        bool restart;
        SN_TRY(parse_elements(p, &kind, &restart));
        if (restart) {
            if (annotated >= 0) return mismatch(p, INT, FLOAT);
            p->lex = start;
            sni_msg_cut(&p->msg, mark);
            kind = FLOAT;
            SN_TRY(parse_elements(p, &kind, &restart));
        }
    }
    sni_put_int(&p->msg.out, ONNX_ATTR_TYPE, kinds[kind + SINGLES].type);
    return sni_lex_expect(&p->lex, ']');
}

sn_status sni_parse_attr(sni_parser *p, sni_str name) {
    int annotated, kind;
    sni_put_str(&p->msg.out, ONNX_ATTR_NAME, name);
    SN_TRY(parse_annotation(p, &annotated));
    SN_TRY(sni_lex_expect(&p->lex, '='));
    if (sni_lex_is(&p->lex, '[')) return parse_list(p, annotated);
    SN_TRY(value_kind(p, &kind));
    if (kind == REFERENCE) return parse_reference(p, annotated);
    if (annotated == FLOAT && kind == INT) kind = FLOAT;
    if (annotated >= 0 && annotated != kind) return mismatch(p, annotated, kind);
    sni_put_int(&p->msg.out, ONNX_ATTR_TYPE, kinds[kind].type);
    return parse_value(p, kind, kinds[kind].field);
}

sn_status sni_parse_attrs(sni_parser *p, uint32_t field, size_t *count) {
    bool more;
    *count = 0;
    SN_TRY(sni_lex_accept(&p->lex, '<', &more));
    if (!more) return SN_OK;
    do {
        sni_str name;
        SN_TRY(sni_lex_name(&p->lex, &name));
        size_t mark = sni_msg_mark(&p->msg);
        SN_TRY(sni_parse_attr(p, name));
        sni_msg_wrap(&p->msg, mark, field);
        (*count)++;
        SN_TRY(sni_lex_accept(&p->lex, ',', &more));
    } while (more);
    return sni_lex_expect(&p->lex, '>');
}
