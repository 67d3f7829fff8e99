/* import_attr.c - AttributeProto of every kind, and references to a function's attributes. */
#include "model/import.h"
#include "model/onnx_fields.h"

#include <inttypes.h>

/* What one kind of attribute is made of. */
typedef struct form {
    int64_t type; /* AttributeProto.AttributeType */
    uint32_t field;
    sni_attr_kind kind;
} form;

static const form forms[] = {
    {ONNX_ATTR_TYPE_FLOAT, ONNX_ATTR_F, SNI_ATTR_FLOAT},
    {ONNX_ATTR_TYPE_INT, ONNX_ATTR_I, SNI_ATTR_INT},
    {ONNX_ATTR_TYPE_STRING, ONNX_ATTR_S, SNI_ATTR_STRING},
    {ONNX_ATTR_TYPE_TENSOR, ONNX_ATTR_T, SNI_ATTR_TENSOR},
    {ONNX_ATTR_TYPE_GRAPH, ONNX_ATTR_G, SNI_ATTR_GRAPH},
    {ONNX_ATTR_TYPE_TYPE_PROTO, ONNX_ATTR_TP, SNI_ATTR_TYPE},
    {ONNX_ATTR_TYPE_SPARSE_TENSOR, ONNX_ATTR_SPARSE, SNI_ATTR_TENSOR},
    {ONNX_ATTR_TYPE_FLOATS, ONNX_ATTR_FLOATS, SNI_ATTR_FLOATS},
    {ONNX_ATTR_TYPE_INTS, ONNX_ATTR_INTS, SNI_ATTR_INTS},
    {ONNX_ATTR_TYPE_STRINGS, ONNX_ATTR_STRINGS, SNI_ATTR_STRINGS},
    {ONNX_ATTR_TYPE_TENSORS, ONNX_ATTR_TENSORS, SNI_ATTR_TENSORS},
    {ONNX_ATTR_TYPE_GRAPHS, ONNX_ATTR_GRAPHS, SNI_ATTR_GRAPHS},
    {ONNX_ATTR_TYPE_TYPE_PROTOS, ONNX_ATTR_TYPE_PROTOS, SNI_ATTR_TYPES},
    {ONNX_ATTR_TYPE_SPARSE_TENSORS, ONNX_ATTR_SPARSES, SNI_ATTR_TENSORS},
};
enum { FORMS = sizeof forms / sizeof *forms };

static const form *form_of_field(uint32_t field) {
    for (int i = 0; i < FORMS; i++)
        if (forms[i].field == field) return &forms[i];
    return NULL;
}

static const form *form_of_type(int64_t type) {
    for (int i = 0; i < FORMS; i++)
        if (forms[i].type == type) return &forms[i];
    return NULL;
}

static sni_wire_type element_wire(const form *how) {
    return how->kind == SNI_ATTR_FLOATS ? SNI_WIRE_I32
           : how->kind == SNI_ATTR_INTS ? SNI_WIRE_VARINT
                                        : SNI_WIRE_LEN;
}

/* The head of the message: names, kind, and the number of elements. */
typedef struct head {
    sni_str name, reference;
    const form *how;
    size_t count;
} head;

static sn_status read_head(sni_importer *imp, sni_message message, head *out) {
    sni_wire w = sni_import_open(imp, message);
    head h = {0};
    sni_field f;
    int64_t type = ONNX_ATTR_TYPE_UNDEFINED;
    const form *seen = NULL;
    while (sni_wire_next(&w, &f)) {
        const form *how = form_of_field(f.number);
        if (f.number == ONNX_ATTR_NAME) SN_TRY(sni_field_str(&w, &f, &h.name));
        if (f.number == ONNX_ATTR_REF) SN_TRY(sni_field_str(&w, &f, &h.reference));
        if (f.number == ONNX_ATTR_TYPE) SN_TRY(sni_field_int(&w, &f, &type));
        if (!how) continue;
        /* Writers without field presence put empty values of the other kinds. */
        bool zero = f.type == SNI_WIRE_LEN ? f.size == 0 : f.value == 0;
        if (zero && seen) continue;
        seen = how;
        sni_wire_skip_alike(&w, &f);
    }
    SN_TRY(w.status);
    h.how = type == ONNX_ATTR_TYPE_UNDEFINED ? seen : form_of_type(type);
    if (!h.how && !h.reference.n)
        return sni_fail(imp->err, SN_MALFORMED,
                        "attribute '%.*s' has kind %" PRId64 ", which is not known",
                        SNI_FMT(h.name), type);
    *out = h;
    return SN_OK;
}

static sn_status count_elements(sni_importer *imp, sni_message message, head *h) {
    sni_wire w = sni_import_open(imp, message);
    sni_field f;
    while (sni_wire_next(&w, &f)) {
        size_t n = 1;
        if (f.number != h->how->field) continue;
        if (element_wire(h->how) != SNI_WIRE_LEN)
            SN_TRY(sni_field_count(&w, &f, element_wire(h->how), &n));
        if (element_wire(h->how) == f.type) n += sni_wire_skip_alike(&w, &f);
        h->count += n;
    }
    return w.status;
}

/* ---- Values ---- */

static sn_status read_graph(sni_importer *imp, sni_scope *scope, sni_node *n, sni_wire *w,
                            const sni_field *f, int32_t *out) {
    sni_wire inner;
    SN_TRY(sni_field_message(w, f, &inner));
    if (!n) return sni_wire_fail(w, f, "a graph is not allowed as an attribute here");
    return sni_import_subgraph(imp, scope, n, (sni_message){f->bytes, f->size}, out);
}

static sn_status read_tensor(sni_importer *imp, const form *how, sni_wire *w, const sni_field *f,
                             sni_const **out) {
    sni_wire inner;
    SN_TRY(sni_field_message(w, f, &inner));
    bool sparse = how->field == ONNX_ATTR_SPARSE || how->field == ONNX_ATTR_SPARSES;
    return sparse ? sni_import_sparse(imp, &inner, out, NULL)
                  : sni_import_tensor(imp, &inner, out, NULL);
}

static sn_status read_string(sni_importer *imp, sni_wire *w, const sni_field *f, sni_str *out) {
    sni_str text;
    SN_TRY(sni_field_str(w, f, &text));
    return sni_import_copy(imp, text, out);
}

/* Reads string `at` of a list. One like the two before it shares their text: trees name the kind of
 * each of their nodes. */
static sn_status read_next_string(sni_importer *imp, sni_wire *w, const sni_field *f, sni_str *list,
                                  size_t at) {
    sni_str text;
    SN_TRY(sni_field_str(w, f, &text));
    for (size_t back = 1; back <= 2 && back <= at; back++) {
        if (!sni_str_eq(list[at - back], text)) continue;
        list[at] = list[at - back];
        return SN_OK;
    }
    return sni_import_copy(imp, text, &list[at]);
}

static sn_status read_type(sni_importer *imp, sni_wire *w, const sni_field *f, sni_type *out) {
    sni_wire inner;
    SN_TRY(sni_field_message(w, f, &inner));
    bool skip = imp->skip_shapes;
    imp->skip_shapes = false;
    sn_status status = sni_import_type(imp, &inner, out);
    imp->skip_shapes = skip;
    return status;
}

static sn_status read_one(sni_importer *imp, sni_scope *scope, sni_node *n, const form *how,
                          sni_wire *w, const sni_field *f, sni_attr *out) {
    switch (how->kind) {
    case SNI_ATTR_FLOAT:
        return sni_field_float(w, f, &out->u.f);
    case SNI_ATTR_INT:
        return sni_field_int(w, f, &out->u.i);
    case SNI_ATTR_STRING:
        return read_string(imp, w, f, &out->u.s);
    case SNI_ATTR_TENSOR:
        return read_tensor(imp, how, w, f, &out->u.tensor);
    case SNI_ATTR_GRAPH:
        return read_graph(imp, scope, n, w, f, &out->u.graph);
    default: {
        sni_type *type = SNI_NEW(&imp->store->arena, sni_type);
        if (!type) return sni_import_no_memory(imp);
        out->u.type = type;
        return read_type(imp, w, f, type);
    }
    }
}

/* The single kinds. Numbers and text may be left out when they are 0 or empty. */
static sn_status read_single(sni_importer *imp, sni_scope *scope, sni_node *n, sni_message message,
                             const head *h, sni_attr *out) {
    sni_wire w = sni_import_open(imp, message);
    sni_field f;
    size_t found = 0;
    if (h->how->kind == SNI_ATTR_STRING) out->u.s = (sni_str){"", 0};
    while (sni_wire_next(&w, &f)) {
        if (f.number != h->how->field) continue;
        if (found++)
            return sni_wire_fail(&w, &f, "attribute '%.*s' has two values", SNI_FMT(h->name));
        SN_TRY(read_one(imp, scope, n, h->how, &w, &f, out));
    }
    SN_TRY(w.status);
    bool may_be_absent = h->how->kind == SNI_ATTR_FLOAT || h->how->kind == SNI_ATTR_INT ||
                         h->how->kind == SNI_ATTR_STRING;
    if (!found && !may_be_absent)
        return sni_fail(imp->err, SN_MALFORMED, "attribute '%.*s' has no value", SNI_FMT(h->name));
    return SN_OK;
}

/* Arrays of one plural attribute; the one of its kind is set. */
typedef union lists {
    float *floats;
    int64_t *ints;
    sni_str *strings;
    sni_const **tensors;
    int32_t *graphs;
    sni_type *types;
} lists;

static sn_status make_list(sni_importer *imp, const head *h, lists *l, sni_attr *out) {
    sni_arena *arena = &imp->store->arena;
    void *made = NULL;
    switch (h->how->kind) {
    case SNI_ATTR_FLOATS:
        out->u.floats = made = l->floats = SNI_NEW_ARRAY(arena, float, h->count);
        break;
    case SNI_ATTR_INTS:
        out->u.ints = made = l->ints = SNI_NEW_ARRAY(arena, int64_t, h->count);
        break;
    case SNI_ATTR_STRINGS:
        out->u.strings = made = l->strings = SNI_NEW_ARRAY(arena, sni_str, h->count);
        break;
    case SNI_ATTR_TENSORS:
        made = l->tensors = SNI_NEW_ARRAY(arena, sni_const *, h->count);
        out->u.tensors = l->tensors;
        break;
    case SNI_ATTR_GRAPHS:
        out->u.graphs = made = l->graphs = SNI_NEW_ARRAY(arena, int32_t, h->count);
        break;
    default:
        out->u.types = made = l->types = SNI_NEW_ARRAY(arena, sni_type, h->count);
        break;
    }
    return made ? SN_OK : sni_import_no_memory(imp);
}

static sn_status read_numbers(sni_wire *w, const sni_field *f, const head *h, const lists *l,
                              size_t *at) {
    sni_values values;
    uint64_t bits;
    SN_TRY(sni_field_values(w, f, element_wire(h->how), &values));
    while (*at < h->count && sni_values_next(&values, &bits)) {
        if (h->how->kind == SNI_ATTR_FLOATS)
            l->floats[(*at)++] = sni_bits_float(bits);
        else
            l->ints[(*at)++] = (int64_t)bits;
    }
    SN_TRY(values.wire.status);
    *at += h->how->kind == SNI_ATTR_FLOATS
               ? sni_wire_floats_alike(w, f, l->floats + *at, h->count - *at)
               : sni_wire_ints_alike(w, f, l->ints + *at, h->count - *at);
    return SN_OK;
}

static sn_status read_list(sni_importer *imp, sni_scope *scope, sni_node *n, sni_message message,
                           const head *h, sni_attr *out) {
    lists l;
    SN_TRY(make_list(imp, h, &l, out));
    sni_wire w = sni_import_open(imp, message);
    sni_field f;
    size_t at = 0;
    while (at < h->count && sni_wire_next(&w, &f)) {
        if (f.number != h->how->field) continue;
        switch (h->how->kind) {
        case SNI_ATTR_FLOATS:
        case SNI_ATTR_INTS:
            SN_TRY(read_numbers(&w, &f, h, &l, &at));
            break;
        case SNI_ATTR_STRINGS:
            SN_TRY(read_next_string(imp, &w, &f, l.strings, at));
            at++;
            break;
        case SNI_ATTR_TENSORS:
            SN_TRY(read_tensor(imp, h->how, &w, &f, &l.tensors[at++]));
            break;
        case SNI_ATTR_GRAPHS:
            SN_TRY(read_graph(imp, scope, n, &w, &f, &l.graphs[at++]));
            break;
        default:
            SN_TRY(read_type(imp, &w, &f, &l.types[at++]));
            break;
        }
    }
    out->count = at;
    return w.status;
}

/* ---- References ---- */

const sni_argument *sni_argument_find(const sni_arguments *arguments, sni_str name) {
    for (size_t i = 0; i < arguments->n; i++)
        if (sni_str_eq(arguments->v[i].name, name)) return &arguments->v[i];
    return NULL;
}

sn_status sni_import_attr_names(sni_importer *imp, sni_message message, sni_str *name,
                                sni_str *reference) {
    head h;
    SN_TRY(read_head(imp, message, &h));
    *name = h.name;
    *reference = h.reference;
    return SN_OK;
}

/* Puts what a function's attribute was given in place of a reference to it. */
static sn_status follow(sni_importer *imp, sni_scope *scope, sni_node *n, const head *h,
                        sni_attr *out, bool *present) {
    if (!scope->arguments)
        return sni_fail(imp->err, SN_INVALID_MODEL,
                        "attribute '%.*s' refers to '%.*s' of a function, but is in none",
                        SNI_FMT(h->name), SNI_FMT(h->reference));
    const sni_argument *a = sni_argument_find(scope->arguments, h->reference);
    *present = a != NULL;
    if (!a) return SN_OK;
    if (a->attr) {
        if (a->attr->kind == SNI_ATTR_GRAPH || a->attr->kind == SNI_ATTR_GRAPHS)
            return sni_fail(imp->err, SN_UNSUPPORTED, "a function is given a graph");
        *out = *a->attr;
    } else {
        bool given;
        sni_scope *from = a->scope ? a->scope : scope;
        SN_TRY(sni_import_attr(imp, from, from->graph == scope->graph ? n : NULL, a->message, out,
                               &given));
    }
    return sni_import_copy(imp, h->name, &out->name);
}

sn_status sni_import_attr(sni_importer *imp, sni_scope *scope, sni_node *n, sni_message message,
                          sni_attr *out, bool *present) {
    head h;
    SN_TRY(read_head(imp, message, &h));
    *out = (sni_attr){0};
    *present = true;
    if (!h.name.n) return sni_fail(imp->err, SN_MALFORMED, "an attribute has no name");
    if (h.reference.n) return follow(imp, scope, n, &h, out, present);
    SN_TRY(sni_import_copy(imp, h.name, &out->name));
    out->kind = h.how->kind;
    if (h.how->kind < SNI_ATTR_FLOATS) return read_single(imp, scope, n, message, &h, out);
    SN_TRY(count_elements(imp, message, &h));
    return read_list(imp, scope, n, message, &h, out);
}
