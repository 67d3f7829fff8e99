/* text_type.c - types and tensors of ONNX text. */
#include "base/checked.h"
#include "base/floats.h"
#include "model/onnx_fields.h"
#include "model/text_parse.h"

#include <stdlib.h>

enum { RANK_MAX = 64 }; /* of what can be written; the importer takes fewer */

/* ---- The message under construction ---- */

size_t sni_msg_mark(sni_msg *m) {
    sni_out_finish(&m->out);
    return m->n;
}

void sni_msg_cut(sni_msg *m, size_t mark) {
    sni_msg_mark(m);
    m->n = mark;
}

void sni_msg_wrap(sni_msg *m, size_t mark, uint32_t field) {
    size_t end = sni_msg_mark(m), length = end - mark;
    sni_put_header(&m->out, field, length);
    size_t header = sni_msg_mark(m) - end;
    unsigned char held[20];
    if (header == 0 || header > sizeof(held)) return; /* out of memory: nothing was put */
    memcpy(held, m->p + end, header);
    memmove(m->p + mark + header, m->p + mark, length);
    memcpy(m->p + mark, held, header);
}

sn_status sni_parse_enter(sni_parser *p) {
    if (p->depth == SNI_TEXT_DEPTH)
        return sni_lex_fail(&p->lex, SN_LIMIT, "nested deeper than %d levels", SNI_TEXT_DEPTH);
    p->depth++;
    return SN_OK;
}

/* ---- Types ---- */

static const struct {
    const char *name;
    uint32_t field;
} compound_types[] = {
    {"seq", ONNX_TYPE_PROTO_SEQUENCE},
    {"map", ONNX_TYPE_PROTO_MAP},
    {"optional", ONNX_TYPE_PROTO_OPTIONAL},
    {"sparse_tensor", ONNX_TYPE_PROTO_SPARSE},
};

/* The TypeProto field of a compound type's name; 0 if it is none. */
static uint32_t compound_type(sni_str name) {
    for (size_t i = 0; i < sizeof(compound_types) / sizeof(compound_types[0]); i++)
        if (sni_str_is(name, compound_types[i].name)) return compound_types[i].field;
    return 0;
}

bool sni_text_is_type(sni_str name) {
    return sni_dtype_find(name) != SN_UNDEFINED || compound_type(name) != 0;
}

bool sni_parse_at_type(const sni_parser *p) {
    return p->lex.token.kind == SNI_TOKEN_ID && sni_text_is_type(p->lex.token.text);
}

static sn_status parse_dtype(sni_parser *p, sn_dtype *out) {
    if (p->lex.token.kind != SNI_TOKEN_ID) return sni_lex_expected(&p->lex, "an element type");
    *out = sni_dtype_find(p->lex.token.text);
    if (*out == SN_UNDEFINED) return sni_lex_expected(&p->lex, "an element type");
    return sni_lex_next(&p->lex);
}

/* One TensorShapeProto.Dimension: `?`, a name or a size. */
static sn_status parse_dim(sni_parser *p) {
    size_t mark = sni_msg_mark(&p->msg);
    if (sni_lex_is(&p->lex, '?')) {
        SN_TRY(sni_lex_next(&p->lex));
    } else if (p->lex.token.kind == SNI_TOKEN_INT) {
        int64_t size;
        SN_TRY(sni_lex_int(&p->lex, 0, INT64_MAX, &size));
        sni_put_int(&p->msg.out, ONNX_DIM_VALUE, size);
    } else {
        sni_str name;
        if (p->lex.token.kind != SNI_TOKEN_ID && p->lex.token.kind != SNI_TOKEN_STRING)
            return sni_lex_expected(&p->lex, "a dimension");
        SN_TRY(sni_lex_name(&p->lex, &name));
        sni_put_str(&p->msg.out, ONNX_DIM_PARAM, name);
    }
    sni_msg_wrap(&p->msg, mark, ONNX_SHAPE_DIM);
    return SN_OK;
}

/* TypeProto.Tensor: `float` is a scalar, `float[]` has unknown rank. */
static sn_status parse_tensor_type(sni_parser *p) {
    sn_dtype dtype;
    SN_TRY(parse_dtype(p, &dtype));
    sni_put_int(&p->msg.out, ONNX_TENSOR_TYPE_ELEM, dtype);
    size_t mark = sni_msg_mark(&p->msg);
    bool found;
    SN_TRY(sni_lex_accept(&p->lex, '[', &found));
    if (found) {
        SN_TRY(sni_lex_accept(&p->lex, ']', &found));
        if (found) return SN_OK;
        do {
            SN_TRY(parse_dim(p));
            SN_TRY(sni_lex_accept(&p->lex, ',', &found));
        } while (found);
        SN_TRY(sni_lex_expect(&p->lex, ']'));
    }
    sni_msg_wrap(&p->msg, mark, ONNX_TENSOR_TYPE_SHAPE);
    return SN_OK;
}

/* What stands in the parentheses of a compound type. */
static sn_status parse_compound_type(sni_parser *p, uint32_t field) {
    if (field == ONNX_TYPE_PROTO_SPARSE) return parse_tensor_type(p);
    uint32_t inner = ONNX_SEQUENCE_TYPE_ELEM;
    if (field == ONNX_TYPE_PROTO_MAP) {
        sn_dtype key;
        SN_TRY(parse_dtype(p, &key));
        SN_TRY(sni_lex_expect(&p->lex, ','));
        sni_put_int(&p->msg.out, ONNX_MAP_TYPE_KEY, key);
        inner = ONNX_MAP_TYPE_VALUE;
    }
    size_t mark = sni_msg_mark(&p->msg);
    SN_TRY(sni_parse_type(p));
    sni_msg_wrap(&p->msg, mark, inner);
    return SN_OK;
}

sn_status sni_parse_type(sni_parser *p) {
    if (!sni_parse_at_type(p)) return sni_lex_expected(&p->lex, "a type");
    SN_TRY(sni_parse_enter(p));
    size_t mark = sni_msg_mark(&p->msg);
    uint32_t field = compound_type(p->lex.token.text);
    if (field == 0) {
        field = ONNX_TYPE_PROTO_TENSOR;
        SN_TRY(parse_tensor_type(p));
    } else {
        SN_TRY(sni_lex_next(&p->lex));
        SN_TRY(sni_lex_expect(&p->lex, '('));
        SN_TRY(parse_compound_type(p, field));
        SN_TRY(sni_lex_expect(&p->lex, ')'));
    }
    sni_msg_wrap(&p->msg, mark, field);
    sni_parse_leave(p);
    return SN_OK;
}

/* ---- Tensors ---- */

static sn_status parse_integer_element(sni_parser *p, const sni_dtype_facts *f, uint64_t *bits) {
    if (f->cls == SNI_CLASS_I) {
        int64_t v, most = (int64_t)(UINT64_MAX >> (65 - f->bits));
        SN_TRY(sni_lex_int(&p->lex, -most - 1, most, &v));
        *bits = (uint64_t)v;
        return SN_OK;
    }
    if (f->cls == SNI_CLASS_B) {
        sni_str text = p->lex.token.text;
        bool yes = sni_str_is(text, "true");
        if (p->lex.token.kind == SNI_TOKEN_ID && (yes || sni_str_is(text, "false"))) {
            *bits = yes;
            return sni_lex_next(&p->lex);
        }
        return sni_lex_uint(&p->lex, 1, bits);
    }
    return sni_lex_uint(&p->lex, UINT64_MAX >> (64 - f->bits), bits);
}

/* A narrow float: an integer is the element's bits, as in ONNX; anything else is its value. */
static sn_status parse_narrow_element(sni_parser *p, sn_dtype dtype, unsigned char *out) {
    const sni_dtype_facts *f = sni_dtype_get(dtype);
    uint64_t bits = 0;
    if (p->lex.token.kind == SNI_TOKEN_INT) {
        SN_TRY(sni_lex_uint(&p->lex, UINT64_MAX >> (64 - f->bits), &bits));
        memcpy(out, &bits, f->width);
    } else if (dtype == SN_FLOAT16) {
        double v;
        SN_TRY(sni_lex_f64(&p->lex, &v));
        uint16_t h = sni_f64_to_f16(v);
        memcpy(out, &h, sizeof(h));
    } else {
        float v;
        SN_TRY(sni_lex_f32(&p->lex, &v));
        sni_narrow(dtype, &v, out, 1, true);
    }
    return SN_OK;
}

/* Reads one number of a tensor's contents into `out`, 8 bytes; complex types have two each. */
static sn_status parse_element(sni_parser *p, sn_dtype dtype, unsigned char out[8], size_t *size) {
    const sni_dtype_facts *f = sni_dtype_get(dtype);
    *size = f->cls == SNI_CLASS_C ? f->width / 2 : f->width;
    if (f->cls == SNI_CLASS_S) return parse_narrow_element(p, dtype, out);
    if (f->cls == SNI_CLASS_F || f->cls == SNI_CLASS_C) {
        if (*size == sizeof(double)) {
            double v;
            SN_TRY(sni_lex_f64(&p->lex, &v));
            memcpy(out, &v, sizeof(v));
        } else {
            float v;
            SN_TRY(sni_lex_f32(&p->lex, &v));
            memcpy(out, &v, sizeof(v));
        }
        return SN_OK;
    }
    uint64_t bits;
    SN_TRY(parse_integer_element(p, f, &bits));
    memcpy(out, &bits, sizeof(bits)); /* little-endian: the low bytes come first */
    return SN_OK;
}

/* `{ ... }` as string_data or raw_data; gives the number of elements it has. */
static sn_status parse_contents(sni_parser *p, sn_dtype dtype, int64_t *count) {
    size_t mark = sni_msg_mark(&p->msg);
    int64_t numbers = 0;
    bool more = !sni_lex_is(&p->lex, '}');
    while (more) {
        if (p->lex.token.kind == SNI_TOKEN_ELLIPSIS)
            return sni_lex_fail(&p->lex, SN_MALFORMED,
                                "this text was printed without the contents of its large tensors");
        if (dtype == SN_STRING) {
            sni_str text;
            SN_TRY(sni_lex_string(&p->lex, &text));
            sni_put_str(&p->msg.out, ONNX_TENSOR_STRING_DATA, text);
        } else {
            unsigned char element[8];
            size_t size;
            SN_TRY(parse_element(p, dtype, element, &size));
            sni_put_raw(&p->msg.out, element, size);
        }
        numbers++;
        SN_TRY(sni_lex_accept(&p->lex, ',', &more));
    }
    if (!sni_lex_is(&p->lex, '}')) return sni_lex_expected(&p->lex, "',' or '}'");
    bool complex = sni_dtype_get(dtype)->cls == SNI_CLASS_C;
    if (complex && numbers % 2)
        return sni_lex_fail(&p->lex, SN_MALFORMED, "a complex tensor needs pairs of numbers");
    *count = complex ? numbers / 2 : numbers;
    if (dtype == SN_STRING) return SN_OK;
    size_t end = sni_msg_mark(&p->msg);
    if (sni_dtype_subbyte(dtype) && end - mark == (size_t)numbers && numbers > 0) {
        unsigned char *elements = malloc((size_t)numbers);
        if (!elements) return sni_fail_memory(p->lex.err);
        memcpy(elements, p->msg.p + mark, (size_t)numbers);
        sni_subbyte_pack(dtype, elements, p->msg.p + mark, (size_t)numbers);
        free(elements);
        sni_msg_cut(&p->msg, mark + sn_dtype_bytes(dtype, (size_t)numbers));
    }
    sni_msg_wrap(&p->msg, mark, ONNX_TENSOR_RAW_DATA);
    return SN_OK;
}

/* `[ "location": "file", ... ]`: contents in another file. */
static sn_status parse_external(sni_parser *p) {
    bool more;
    do {
        sni_str key, value;
        SN_TRY(sni_lex_string(&p->lex, &key));
        SN_TRY(sni_lex_expect(&p->lex, ':'));
        SN_TRY(sni_lex_string(&p->lex, &value));
        size_t mark = sni_msg_mark(&p->msg);
        sni_put_str(&p->msg.out, ONNX_ENTRY_KEY, key);
        sni_put_str(&p->msg.out, ONNX_ENTRY_VALUE, value);
        sni_msg_wrap(&p->msg, mark, ONNX_TENSOR_EXTERNAL);
        SN_TRY(sni_lex_accept(&p->lex, ',', &more));
    } while (more);
    sni_put_int(&p->msg.out, ONNX_TENSOR_LOCATION, 1);
    return sni_lex_expect(&p->lex, ']');
}

static sn_status parse_sizes(sni_parser *p, int *rank, int64_t dims[RANK_MAX]) {
    bool more;
    *rank = 0;
    SN_TRY(sni_lex_accept(&p->lex, '[', &more));
    if (!more) return SN_OK;
    do {
        if (*rank == RANK_MAX)
            return sni_lex_fail(&p->lex, SN_LIMIT, "a tensor has more than %d dimensions",
                                RANK_MAX);
        if (p->lex.token.kind != SNI_TOKEN_INT)
            return sni_lex_expected(&p->lex, "a size (a tensor with contents needs them all)");
        SN_TRY(sni_lex_int(&p->lex, 0, INT64_MAX, &dims[*rank]));
        sni_put_int(&p->msg.out, ONNX_TENSOR_DIMS, dims[(*rank)++]);
        SN_TRY(sni_lex_accept(&p->lex, ',', &more));
    } while (more);
    return sni_lex_expect(&p->lex, ']');
}

sn_status sni_parse_tensor(sni_parser *p) {
    sn_dtype dtype;
    SN_TRY(parse_dtype(p, &dtype));
    sni_put_int(&p->msg.out, ONNX_TENSOR_DATA_TYPE, dtype);
    int rank;
    int64_t dims[RANK_MAX], wanted, count = 0;
    SN_TRY(parse_sizes(p, &rank, dims));
    if (!sni_shape_count(rank, dims, &wanted))
        return sni_lex_fail(&p->lex, SN_LIMIT, "the tensor's size does not fit 64 bits");
    if (p->lex.token.kind == SNI_TOKEN_ID || p->lex.token.kind == SNI_TOKEN_STRING) {
        sni_str name;
        SN_TRY(sni_lex_name(&p->lex, &name));
        sni_put_str(&p->msg.out, ONNX_TENSOR_NAME, name);
    }
    bool found;
    SN_TRY(sni_lex_accept(&p->lex, '=', &found));
    SN_TRY(sni_lex_accept(&p->lex, '[', &found));
    if (found) return parse_external(p);
    SN_TRY(sni_lex_expect(&p->lex, '{'));
    SN_TRY(parse_contents(p, dtype, &count));
    if (count != wanted)
        return sni_lex_fail(&p->lex, SN_MALFORMED,
                            "the tensor's shape has %lld elements but its contents are %lld",
                            (long long)wanted, (long long)count);
    return sni_lex_next(&p->lex);
}
