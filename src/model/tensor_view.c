/* tensor_view.c - reading TensorProto and SparseTensorProto. */
#include "model/tensor_view.h"

#include "base/checked.h"
#include "model/onnx_fields.h"

#include <inttypes.h>
#include <stdlib.h>

/* A sparse tensor takes its dense size when it is used, however few bytes it has in the file. */
#define DENSE_LIMIT ((size_t)1 << 30)

/* ---- Which typed field holds a type ---- */

typedef struct storage {
    uint32_t field;
    sni_wire_type wire; /* of an element */
} storage;

static storage storage_of(sn_dtype dtype) {
    switch (dtype) {
    case SN_FLOAT32:
    case SN_COMPLEX64:
        return (storage){ONNX_TENSOR_FLOAT_DATA, SNI_WIRE_I32};
    case SN_FLOAT64:
    case SN_COMPLEX128:
        return (storage){ONNX_TENSOR_DOUBLE_DATA, SNI_WIRE_I64};
    case SN_INT64:
        return (storage){ONNX_TENSOR_INT64_DATA, SNI_WIRE_VARINT};
    case SN_UINT32:
    case SN_UINT64:
        return (storage){ONNX_TENSOR_UINT64_DATA, SNI_WIRE_VARINT};
    case SN_STRING:
        return (storage){ONNX_TENSOR_STRING_DATA, SNI_WIRE_LEN};
    default:
        return (storage){ONNX_TENSOR_INT32_DATA, SNI_WIRE_VARINT};
    }
}

/* Numbers that `count` elements take in the typed field: complex ones take two, and types under 8
 * bits are packed into bytes, one byte a number. */
static size_t storage_count(sn_dtype dtype, size_t count) {
    if (dtype == SN_COMPLEX64 || dtype == SN_COMPLEX128) return count * 2;
    if (sni_dtype_subbyte(dtype)) return sn_dtype_bytes(dtype, count);
    return count;
}

static bool is_data_field(uint32_t number) {
    switch (number) {
    case ONNX_TENSOR_FLOAT_DATA:
    case ONNX_TENSOR_INT32_DATA:
    case ONNX_TENSOR_STRING_DATA:
    case ONNX_TENSOR_INT64_DATA:
    case ONNX_TENSOR_DOUBLE_DATA:
    case ONNX_TENSOR_UINT64_DATA:
        return true;
    default:
        return false;
    }
}

/* ---- Reading the message ---- */

static sn_status read_dims(sni_wire *w, const sni_field *f, int64_t *dims, int *rank) {
    sni_values values;
    SN_TRY(sni_field_values(w, f, SNI_WIRE_VARINT, &values));
    uint64_t bits;
    while (sni_values_next(&values, &bits)) {
        if (*rank == SN_MAX_RANK)
            return sni_wire_fail(w, f, "a tensor has more than %d dimensions", SN_MAX_RANK);
        dims[(*rank)++] = (int64_t)bits;
    }
    return values.wire.status;
}

static sn_status parse_number(sni_wire *w, const sni_field *f, sni_str key, sni_str text,
                              uint64_t *out) {
    uint64_t v = 0;
    bool ok = text.n > 0;
    for (size_t i = 0; ok && i < text.n; i++) {
        ok = text.p[i] >= '0' && text.p[i] <= '9' && v <= (INT64_MAX - 9) / 10;
        if (ok) v = v * 10 + (uint64_t)(text.p[i] - '0');
    }
    if (!ok)
        return sni_wire_fail(w, f, "external data has %.*s '%.*s', which is not a size",
                             SNI_FMT(key), SNI_FMT(text));
    *out = v;
    return SN_OK;
}

static sn_status read_external_entry(sni_wire *w, const sni_field *f, sni_external *out) {
    sni_wire entry;
    sni_str key = {0}, value = {0};
    sni_field e;
    SN_TRY(sni_field_message(w, f, &entry));
    while (sni_wire_next(&entry, &e)) {
        if (e.number == ONNX_ENTRY_KEY) SN_TRY(sni_field_str(&entry, &e, &key));
        if (e.number == ONNX_ENTRY_VALUE) SN_TRY(sni_field_str(&entry, &e, &value));
    }
    SN_TRY(entry.status);
    if (sni_str_is(key, "location")) {
        if (out->location.p) return sni_wire_fail(w, f, "external data has two locations");
        out->location = value;
        return SN_OK;
    }
    if (sni_str_is(key, "offset")) return parse_number(w, f, key, value, &out->offset);
    if (sni_str_is(key, "length")) {
        out->has_length = true;
        return parse_number(w, f, key, value, &out->length);
    }
    /* A checksum is advice; prepacked weights are another runtime's private notes. */
    if (sni_str_is(key, "checksum") || (key.n >= 9 && memcmp(key.p, "prepacked", 9) == 0))
        return SN_OK;
    return sni_wire_fail(w, f, "external data has an unknown key '%.*s'", SNI_FMT(key));
}

/* What a scan of the message's fields finds, before type and shape are known to fit it. */
typedef struct scan {
    int64_t dims[SN_MAX_RANK];
    int rank;
    int64_t dtype, location;
    uint32_t other; /* a second field that holds data; 0: none */
} scan;

static void scan_data(const sni_wire *w, const sni_field *f, scan *s, sni_tensor_view *v) {
    if (f->type == SNI_WIRE_LEN && f->size == 0 && f->number != ONNX_TENSOR_STRING_DATA) return;
    if (v->data_field && v->data_field != f->number) s->other = f->number;
    if (!v->data_field) v->data = v->origin + f->offset;
    v->data_field = f->number;
    v->data_size = (size_t)(w->p - v->data);
}

static sn_status scan_fields(sni_wire *w, scan *s, sni_tensor_view *v) {
    sni_field f;
    sni_str raw;
    while (sni_wire_next(w, &f)) {
        if (is_data_field(f.number)) {
            scan_data(w, &f, s, v);
            continue;
        }
        switch (f.number) {
        case ONNX_TENSOR_DIMS:
            SN_TRY(read_dims(w, &f, s->dims, &s->rank));
            break;
        case ONNX_TENSOR_DATA_TYPE:
            SN_TRY(sni_field_int(w, &f, &s->dtype));
            break;
        case ONNX_TENSOR_NAME:
            SN_TRY(sni_field_str(w, &f, &v->name));
            break;
        case ONNX_TENSOR_RAW_DATA:
            SN_TRY(sni_field_str(w, &f, &raw));
            v->raw = (const unsigned char *)raw.p;
            v->raw_size = raw.n;
            break;
        case ONNX_TENSOR_LOCATION:
            SN_TRY(sni_field_int(w, &f, &s->location));
            break;
        case ONNX_TENSOR_EXTERNAL:
            SN_TRY(read_external_entry(w, &f, &v->external));
            break;
        case ONNX_TENSOR_SEGMENT:
            return sni_wire_fail(w, &f, "a tensor is stored in segments, which is not supported");
        default:
            break;
        }
    }
    return w->status;
}

/* Counts the elements of the typed fields, and the text of strings. */
static sn_status count_data(const sni_wire *w, storage how, sni_tensor_view *v, size_t *out) {
    sni_wire data;
    sni_field f;
    size_t count = 0;
    sni_wire_reopen(&data, v->data, v->data_size, w->limits, w->err);
    while (sni_wire_next(&data, &f)) {
        if (f.number != how.field) continue;
        size_t n = 1;
        sni_str text;
        if (how.wire != SNI_WIRE_LEN) {
            SN_TRY(sni_field_count(&data, &f, how.wire, &n));
        } else {
            SN_TRY(sni_field_str(&data, &f, &text));
            v->text_size += text.n + 1; /* below the file's size + count */
        }
        count += n;
    }
    *out = count;
    return data.status;
}

static sn_status check_contents(const sni_wire *w, const scan *s, sni_tensor_view *v,
                                size_t offset) {
    size_t count = (size_t)v->shape.count;
    storage how = storage_of(v->shape.dtype);
    const char *type = sn_dtype_name(v->shape.dtype);
    size_t bytes = sni_tensor_view_bytes(v);
#define REFUSE(...)                                                       \
    sni_fail_context(w->err, sni_fail(w->err, SN_MALFORMED, __VA_ARGS__), \
                     "byte %zu: tensor '%.*s'", offset, SNI_FMT(v->name))
    if (s->location != 0 && s->location != 1)
        return REFUSE("data location %" PRId64 " is not known", s->location);
    v->is_external = s->location == 1;
    bool raw = v->raw && v->raw_size > 0;
    if ((v->is_external && (raw || v->data_field)) || (raw && v->data_field) || s->other)
        return REFUSE("its contents are stored twice");
    if ((raw || v->is_external) && v->shape.dtype == SN_STRING)
        return REFUSE("strings cannot be raw data");
    if (v->is_external) {
        v->raw = NULL;
        if (!v->external.location.n) return REFUSE("its external data has no location");
        if (v->external.has_length && v->external.length != bytes)
            return REFUSE("its external data has %" PRIu64 " bytes where its shape needs %zu",
                          v->external.length, bytes);
        return SN_OK;
    }
    if (raw) {
        if (v->raw_size != bytes)
            return REFUSE("it has %zu bytes of raw data where its shape needs %zu", v->raw_size,
                          bytes);
        return SN_OK;
    }
    v->raw = NULL;
    if (v->data_field && v->data_field != how.field)
        return REFUSE("field %u does not hold elements of type %s", v->data_field, type);
    size_t found = 0;
    if (v->data_field) SN_TRY(count_data(w, how, v, &found));
    if (found != storage_count(v->shape.dtype, count))
        return REFUSE("it has %zu numbers or strings where its shape needs %zu", found,
                      storage_count(v->shape.dtype, count));
#undef REFUSE
    return SN_OK;
}

static sn_status set_shape(const sni_wire *w, sni_str name, size_t offset, int64_t dtype, int rank,
                           const int64_t *dims, sni_tensor *out) {
    sn_status status;
    if (dtype <= 0 || dtype >= SNI_DTYPE_COUNT || !sni_dtype_valid((sn_dtype)dtype))
        status = sni_fail(w->err, SN_MALFORMED, "element type %" PRId64 " is not known", dtype);
    else
        status = sni_tensor_shape(out, (sn_dtype)dtype, rank, dims, w->err);
    if (status == SN_OK) return SN_OK;
    return sni_fail_context(w->err, SN_MALFORMED, "byte %zu: tensor '%.*s'", offset, SNI_FMT(name));
}

sn_status sni_tensor_view_read(sni_wire *w, sni_tensor_view *out) {
    sni_tensor_view v = {.origin = w->limits->origin};
    scan s = {0};
    size_t offset = (size_t)(w->p - v.origin);
    SN_TRY(scan_fields(w, &s, &v));
    SN_TRY(set_shape(w, v.name, offset, s.dtype, s.rank, s.dims, &v.shape));
    SN_TRY(check_contents(w, &s, &v, offset));
    *out = v;
    return SN_OK;
}

size_t sni_tensor_view_bytes(const sni_tensor_view *v) {
    return sn_dtype_bytes(v->shape.dtype, (size_t)v->shape.count);
}

bool sni_tensor_view_in_place(const sni_tensor_view *v) {
    size_t width = sni_dtype_width(v->shape.dtype);
    size_t alignment = width > sizeof(uint64_t) ? sizeof(uint64_t) : width;
    return v->raw && v->raw_size > 0 && !sni_dtype_subbyte(v->shape.dtype) &&
           (uintptr_t)v->raw % alignment == 0;
}

/* ---- Decoding ---- */

/* Stores the low `width` bytes of a number. */
static void store_number(unsigned char *at, uint64_t bits, size_t width) {
    switch (width) {
    case 1: {
        uint8_t b = (uint8_t)bits;
        memcpy(at, &b, 1);
        break;
    }
    case 2: {
        uint16_t h = (uint16_t)bits;
        memcpy(at, &h, 2);
        break;
    }
    case 4: {
        uint32_t s = (uint32_t)bits;
        memcpy(at, &s, 4);
        break;
    }
    default:
        memcpy(at, &bits, 8);
        break;
    }
}

static sn_status fill_numbers(const sni_tensor_view *v, sni_wire *w, unsigned char *data) {
    storage how = storage_of(v->shape.dtype);
    bool subbyte = sni_dtype_subbyte(v->shape.dtype);
    bool complex = v->shape.dtype == SN_COMPLEX64 || v->shape.dtype == SN_COMPLEX128;
    size_t width = sni_dtype_width(v->shape.dtype) / (complex ? 2 : 1);
    size_t left = (size_t)v->shape.count * (complex ? 2 : 1);
    size_t per_byte = subbyte ? 8 / sni_dtype_get(v->shape.dtype)->bits : 1;
    sni_field f;
    while (sni_wire_next(w, &f)) {
        if (f.number != how.field) continue;
        sni_values values;
        uint64_t bits;
        SN_TRY(sni_field_values(w, &f, how.wire, &values));
        while (left && sni_values_next(&values, &bits)) {
            size_t n = per_byte < left ? per_byte : left;
            if (subbyte) {
                uint8_t packed = (uint8_t)bits;
                sni_subbyte_unpack(v->shape.dtype, &packed, data, n);
            } else {
                store_number(data, bits, width);
            }
            data += n * width;
            left -= n;
        }
        SN_TRY(values.wire.status);
    }
    SN_TRY(w->status);
    return left ? sni_fail(w->err, SN_IO, "the file changed while it was read") : SN_OK;
}

static sn_status fill_strings(const sni_tensor_view *v, sni_wire *w, sni_str *data, char *text) {
    size_t left = (size_t)v->shape.count, left_text = v->text_size;
    sni_field f;
    while (left && sni_wire_next(w, &f)) {
        if (f.number != ONNX_TENSOR_STRING_DATA) continue;
        sni_str s;
        SN_TRY(sni_field_str(w, &f, &s));
        if (s.n >= left_text) break;
        memcpy(text, s.p, s.n);
        text[s.n] = 0;
        *data++ = (sni_str){text, s.n};
        text += s.n + 1;
        left_text -= s.n + 1;
        left--;
    }
    SN_TRY(w->status);
    return left ? sni_fail(w->err, SN_IO, "the file changed while it was read") : SN_OK;
}

sn_status sni_tensor_view_fill(const sni_tensor_view *v, void *data, char *text, sn_error *err) {
    if (v->shape.count == 0) return SN_OK;
    if (v->raw) {
        if (sni_dtype_subbyte(v->shape.dtype))
            sni_subbyte_unpack(v->shape.dtype, v->raw, data, (size_t)v->shape.count);
        else
            memcpy(data, v->raw, v->raw_size);
        return SN_OK;
    }
    sni_wire_limits limits;
    sni_wire w;
    sni_wire_init(&w, v->data, v->data_size, &limits, err);
    limits.origin = v->origin;
    if (v->shape.dtype == SN_STRING) return fill_strings(v, &w, data, text);
    return fill_numbers(v, &w, data);
}

/* ---- Sparse tensors ---- */

static sn_status check_sparse(const sni_wire *w, const sni_sparse_view *v, size_t offset) {
    const sni_tensor *values = &v->values.shape, *indices = &v->indices.shape;
    bool shaped = values->rank == 1 && indices->dtype == SN_INT64 &&
                  (indices->rank == 1 || indices->rank == 2) && indices->dims[0] == values->count &&
                  (indices->rank == 1 || indices->dims[1] == v->shape.rank);
    if (shaped) return SN_OK;
    return sni_fail(w->err, SN_MALFORMED,
                    "byte %zu: sparse tensor '%.*s': its indices do not fit its values and shape",
                    offset, SNI_FMT(v->values.name));
}

sn_status sni_sparse_view_read(sni_wire *w, sni_sparse_view *out) {
    sni_sparse_view v = {0};
    int64_t dims[SN_MAX_RANK];
    int rank = 0;
    bool has_values = false, has_indices = false;
    size_t offset = (size_t)(w->p - w->limits->origin);
    sni_field f;
    sni_wire inner;
    while (sni_wire_next(w, &f)) {
        if (f.number == ONNX_SPARSE_DIMS) SN_TRY(read_dims(w, &f, dims, &rank));
        if (f.number == ONNX_SPARSE_VALUES) {
            SN_TRY(sni_field_message(w, &f, &inner));
            SN_TRY(sni_tensor_view_read(&inner, &v.values));
            has_values = true;
        }
        if (f.number == ONNX_SPARSE_INDICES) {
            SN_TRY(sni_field_message(w, &f, &inner));
            SN_TRY(sni_tensor_view_read(&inner, &v.indices));
            has_indices = true;
        }
    }
    SN_TRY(w->status);
    if (!has_values)
        return sni_fail(w->err, SN_MALFORMED, "byte %zu: a sparse tensor has no values", offset);
    /* Without indices there can be no values: what is left out is a tensor of none. */
    if (!has_indices) v.indices.shape = (sni_tensor){.dtype = SN_INT64, .rank = 1};
    SN_TRY(
        set_shape(w, v.values.name, offset, (int64_t)v.values.shape.dtype, rank, dims, &v.shape));
    SN_TRY(check_sparse(w, &v, offset));
    if (sni_tensor_bytes(&v.shape) > DENSE_LIMIT)
        return sni_fail(w->err, SN_LIMIT, "sparse tensor '%.*s' would take %zu bytes when dense",
                        SNI_FMT(v.values.name), sni_tensor_bytes(&v.shape));
    *out = v;
    return SN_OK;
}

/* The row-major position of value i; false if outside the shape. */
static bool position_of(const sni_sparse_view *v, const int64_t *indices, int64_t i, int64_t *out) {
    const sni_tensor *shape = &v->shape;
    if (v->indices.shape.rank == 1) {
        *out = indices[i];
        return indices[i] >= 0 && indices[i] < shape->count;
    }
    int64_t at = 0;
    for (int d = 0; d < shape->rank; d++) {
        int64_t index = indices[i * shape->rank + d];
        if (index < 0 || index >= shape->dims[d]) return false;
        at = at * shape->dims[d] + index;
    }
    *out = at;
    return true;
}

sn_status sni_sparse_view_fill(const sni_sparse_view *v, void *data, char *text, sn_error *err) {
    size_t width = sni_dtype_width(v->shape.dtype), n = (size_t)v->values.shape.count;
    sn_status status = SN_OK;
    unsigned char *values = calloc(n + 1, width);
    int64_t *indices = calloc((size_t)v->indices.shape.count + 1, sizeof *indices);
    if (!values || !indices) {
        status = sni_fail_memory(err);
        goto done;
    }
    if (v->shape.count) memset(data, 0, sni_tensor_bytes(&v->shape));
    status = sni_tensor_view_fill(&v->values, values, text, err);
    if (status == SN_OK) status = sni_tensor_view_fill(&v->indices, indices, NULL, err);
    int64_t last = -1;
    for (size_t i = 0; i < n && status == SN_OK; i++) {
        int64_t at = 0;
        if (!position_of(v, indices, (int64_t)i, &at))
            status = sni_fail(err, SN_MALFORMED,
                              "sparse tensor '%.*s': index %zu lies outside its shape",
                              SNI_FMT(v->values.name), i);
        else if (at <= last)
            status = sni_fail(err, SN_MALFORMED,
                              "sparse tensor '%.*s': index %zu is not above the one before",
                              SNI_FMT(v->values.name), i);
        else
            memcpy((unsigned char *)data + (size_t)at * width, values + i * width, width);
        last = at;
    }
done:
    free(values);
    free(indices);
    return status;
}
