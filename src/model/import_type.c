/* import_type.c - TypeProto and ValueInfoProto. */
#include "model/import.h"
#include "model/onnx_fields.h"

#include <inttypes.h>

static sn_status read_dtype(sni_wire *w, const sni_field *f, sn_dtype *out) {
    int64_t v;
    SN_TRY(sni_field_int(w, f, &v));
    if (v < 0 || v >= SNI_DTYPE_COUNT || (v > 0 && !sni_dtype_valid((sn_dtype)v)))
        return sni_wire_fail(w, f, "element type %" PRId64 " is not known", v);
    *out = (sn_dtype)v;
    return SN_OK;
}

/* The size that the caller of the import gives a dimension of this name or denotation; -1: none. */
static int64_t given_size(const sni_importer *imp, sni_str name, sni_str denotation) {
    for (size_t i = 0; i < imp->options.n_dimensions; i++) {
        const sn_dimension *d = &imp->options.dimensions[i];
        sni_str text = d->by_denotation ? denotation : name;
        if (text.n && sni_str_is(text, d->name)) return d->size;
    }
    return -1;
}

/* A negative size is how some exporters say that it is not known. */
static sn_status read_dim(sni_importer *imp, sni_wire *w, sni_dim *out) {
    sni_symbols *symbols = imp->model->graph->symbols;
    int64_t size = -1;
    sni_str name = {0}, denotation = {0};
    sni_field f;
    while (sni_wire_next(w, &f)) {
        if (f.number == ONNX_DIM_DENOTATION) SN_TRY(sni_field_str(w, &f, &denotation));
        if (f.number == ONNX_DIM_VALUE) SN_TRY(sni_field_int(w, &f, &size));
        if (f.number == ONNX_DIM_PARAM) SN_TRY(sni_field_str(w, &f, &name));
    }
    SN_TRY(w->status);
    if (size < 0) size = given_size(imp, name, denotation);
    sni_dim d = size >= 0 ? size : name.n ? sni_dim_named(symbols, name) : sni_dim_fresh(symbols);
    if (d == SNI_DIM_FAIL) return sni_fail_memory(imp->err);
    *out = d;
    return SN_OK;
}

static sn_status read_shape(sni_importer *imp, sni_wire *w, sni_type *out) {
    sni_dim dims[SN_MAX_RANK];
    int rank = 0;
    sni_field f;
    while (sni_wire_next(w, &f)) {
        sni_wire dim;
        if (f.number != ONNX_SHAPE_DIM) continue;
        if (rank == SN_MAX_RANK)
            return sni_wire_fail(w, &f, "a shape has more than %d dimensions", SN_MAX_RANK);
        SN_TRY(sni_field_message(w, &f, &dim));
        SN_TRY(read_dim(imp, &dim, &dims[rank++]));
    }
    SN_TRY(w->status);
    sni_dim *copy = SNI_NEW_ARRAY(&imp->store->arena, sni_dim, rank);
    if (!copy) return sni_import_no_memory(imp);
    for (int i = 0; i < rank; i++) copy[i] = dims[i];
    out->dims = copy;
    out->rank = rank;
    out->has_shape = true;
    return SN_OK;
}

static sn_status read_tensor(sni_importer *imp, sni_wire *w, sni_type *out) {
    sni_field f;
    sni_wire shape;
    while (sni_wire_next(w, &f)) {
        if (f.number == ONNX_TENSOR_TYPE_ELEM) SN_TRY(read_dtype(w, &f, &out->dtype));
        if (f.number == ONNX_TENSOR_TYPE_SHAPE && !imp->skip_shapes) {
            SN_TRY(sni_field_message(w, &f, &shape));
            SN_TRY(read_shape(imp, &shape, out));
        }
    }
    return w->status;
}

static sn_status read_type(sni_importer *imp, sni_wire *w, sni_type *out, int depth);

/* The element of a sequence or optional (field 1), or the key and value of a map. */
static sn_status read_inner(sni_importer *imp, sni_wire *w, sni_type *out, int depth) {
    uint32_t number = out->kind == SN_KIND_MAP ? ONNX_MAP_TYPE_VALUE : ONNX_SEQUENCE_TYPE_ELEM;
    sni_field f;
    while (sni_wire_next(w, &f)) {
        if (out->kind == SN_KIND_MAP && f.number == ONNX_MAP_TYPE_KEY)
            SN_TRY(read_dtype(w, &f, &out->dtype));
        if (f.number != number) continue;
        sni_wire element;
        sni_type *inner = SNI_NEW(&imp->store->arena, sni_type);
        if (!inner) return sni_import_no_memory(imp);
        SN_TRY(sni_field_message(w, &f, &element));
        SN_TRY(read_type(imp, &element, inner, depth + 1));
        out->inner = inner;
    }
    return w->status;
}

static sn_status read_type(sni_importer *imp, sni_wire *w, sni_type *out, int depth) {
    sni_type type = {0};
    sni_field f;
    if (depth > SNI_MAX_TYPE_NESTING)
        return sni_fail(imp->err, SN_LIMIT, "a type is nested more than %d deep",
                        SNI_MAX_TYPE_NESTING);
    while (sni_wire_next(w, &f)) {
        sn_kind kind = f.number == ONNX_TYPE_PROTO_TENSOR     ? SN_KIND_TENSOR
                       : f.number == ONNX_TYPE_PROTO_SPARSE   ? SN_KIND_SPARSE_TENSOR
                       : f.number == ONNX_TYPE_PROTO_SEQUENCE ? SN_KIND_SEQUENCE
                       : f.number == ONNX_TYPE_PROTO_OPTIONAL ? SN_KIND_OPTIONAL
                       : f.number == ONNX_TYPE_PROTO_MAP      ? SN_KIND_MAP
                                                              : SN_KIND_NONE;
        if (f.number == ONNX_TYPE_PROTO_OPAQUE)
            return sni_fail(imp->err, SN_UNSUPPORTED, "byte %zu: opaque types are not supported",
                            f.offset);
        if (kind == SN_KIND_NONE) continue;
        sni_wire body;
        type = (sni_type){.kind = kind};
        SN_TRY(sni_field_message(w, &f, &body));
        if (kind == SN_KIND_TENSOR || kind == SN_KIND_SPARSE_TENSOR)
            SN_TRY(read_tensor(imp, &body, &type));
        else
            SN_TRY(read_inner(imp, &body, &type, depth));
    }
    SN_TRY(w->status);
    *out = type;
    return SN_OK;
}

sn_status sni_import_type(sni_importer *imp, sni_wire *w, sni_type *out) {
    return read_type(imp, w, out, 0);
}

sn_status sni_import_info(sni_importer *imp, sni_wire *w, sni_str *name, sni_type *type) {
    sni_field f;
    sni_wire inner;
    *name = (sni_str){0};
    *type = (sni_type){0};
    while (sni_wire_next(w, &f)) {
        if (f.number == ONNX_INFO_NAME) SN_TRY(sni_field_str(w, &f, name));
        if (f.number == ONNX_INFO_TYPE) {
            SN_TRY(sni_field_message(w, &f, &inner));
            SN_TRY(sni_import_type(imp, &inner, type));
        }
    }
    return w->status;
}
