/* tensor_proto.c - values as TensorProto, SequenceProto, MapProto and OptionalProto. */
#include "model/model.h"
#include "model/onnx_fields.h"
#include "model/tensor_view.h"
#include "model/wire_write.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MAX_NESTING = 16 }; /* of sequences, maps and optionals */

/* ---- Decoding ---- */

typedef struct decoder {
    sni_wire_limits limits;
    sni_arena *arena; /* of text */
    sn_error *err;
} decoder;

/* An array of strings in the arena, as `count` of them take it; NULL without memory. */
static sn_status text_room(decoder *d, size_t size, char **out) {
    *out = size ? sni_arena_alloc(d->arena, size) : NULL;
    return size && !*out ? sni_fail_memory(d->err) : SN_OK;
}

static sn_status fail_external(decoder *d, sni_str name) {
    return sni_fail(d->err, SN_UNSUPPORTED, "tensor '%.*s' has external data, which a value cannot",
                    SNI_FMT(name));
}

static sn_status decode_tensor(decoder *d, sni_wire *w, sni_datum *out) {
    sni_tensor_view v;
    sni_tensor t;
    char *text;
    SN_TRY(sni_tensor_view_read(w, &v));
    if (v.is_external) return fail_external(d, v.name);
    SN_TRY(text_room(d, v.text_size, &text));
    SN_TRY(sni_tensor_new(&t, v.shape.dtype, v.shape.rank, v.shape.dims, NULL, d->err));
    sn_status status = sni_tensor_view_fill(&v, t.data, text, d->err);
    if (status != SN_OK) {
        sni_buffer_release(t.buffer);
        return status;
    }
    *out = (sni_datum){.kind = SN_KIND_TENSOR, .tensor = t};
    return SN_OK;
}

/* A sparse tensor becomes the dense one that it stands for. */
static sn_status decode_sparse(decoder *d, sni_wire *w, sni_datum *out) {
    sni_sparse_view v;
    sni_tensor t;
    char *text;
    SN_TRY(sni_sparse_view_read(w, &v));
    if (v.values.is_external || v.indices.is_external) return fail_external(d, v.values.name);
    SN_TRY(text_room(d, v.values.text_size, &text));
    SN_TRY(sni_tensor_new(&t, v.shape.dtype, v.shape.rank, v.shape.dims, NULL, d->err));
    sn_status status = sni_sparse_view_fill(&v, t.data, text, d->err);
    if (status != SN_OK) {
        sni_buffer_release(t.buffer);
        return status;
    }
    *out = (sni_datum){.kind = SN_KIND_TENSOR, .tensor = t};
    return SN_OK;
}

static sn_status decode_sequence(decoder *d, sni_wire *w, int depth, sni_datum *out);
static sn_status decode_map(decoder *d, sni_wire *w, int depth, sni_datum *out);
static sn_status decode_optional(decoder *d, sni_wire *w, int depth, sni_datum *out);

static bool is_element(uint32_t number) {
    return number >= ONNX_SEQUENCE_TENSOR && number <= ONNX_SEQUENCE_OPTIONAL;
}

/* One element of a sequence, or the value of an optional: the field number tells its kind. */
static sn_status decode_element(decoder *d, sni_wire *w, const sni_field *f, int depth,
                                sni_datum *out) {
    sni_wire inner;
    SN_TRY(sni_field_message(w, f, &inner));
    if (depth > MAX_NESTING)
        return sni_fail(d->err, SN_LIMIT, "byte %zu: values are nested more than %d deep",
                        f->offset, MAX_NESTING);
    switch (f->number) {
    case ONNX_SEQUENCE_TENSOR:
        return decode_tensor(d, &inner, out);
    case ONNX_SEQUENCE_SPARSE:
        return decode_sparse(d, &inner, out);
    case ONNX_SEQUENCE_SEQUENCE:
        return decode_sequence(d, &inner, depth, out);
    case ONNX_SEQUENCE_MAP:
        return decode_map(d, &inner, depth, out);
    default:
        return decode_optional(d, &inner, depth, out);
    }
}

static sn_status decode_items(decoder *d, sni_wire *w, int depth, sni_sequence *seq) {
    sni_field f;
    size_t at = 0;
    while (at < seq->count && sni_wire_next(w, &f)) {
        if (!is_element(f.number)) continue;
        sni_datum *item = &seq->items[at++];
        SN_TRY(decode_element(d, w, &f, depth + 1, item));
        if (item->kind == SN_KIND_TENSOR && seq->dtype == SN_UNDEFINED)
            seq->dtype = item->tensor.dtype;
    }
    return w->status;
}

static sn_status decode_sequence(decoder *d, sni_wire *w, int depth, sni_datum *out) {
    sni_wire again = *w;
    sni_field f;
    size_t count = 0;
    while (sni_wire_next(w, &f)) count += is_element(f.number);
    SN_TRY(w->status);
    sni_sequence *seq;
    SN_TRY(sni_sequence_new(count, SN_UNDEFINED, &seq, d->err));
    sni_datum made = {.kind = SN_KIND_SEQUENCE, .seq = seq};
    sn_status status = decode_items(d, &again, depth, seq);
    if (status != SN_OK) {
        sni_datum_clear(&made);
        return status;
    }
    *out = made;
    return SN_OK;
}

/* The keys of a map, int64 or strings, as a tensor of `count`. */
static sn_status decode_keys(decoder *d, sni_wire w, bool strings, size_t count, sni_datum *out) {
    int64_t dims[1] = {(int64_t)count};
    sni_tensor t;
    SN_TRY(sni_tensor_new(&t, strings ? SN_STRING : SN_INT64, 1, dims, NULL, d->err));
    *out = (sni_datum){.kind = SN_KIND_TENSOR, .tensor = t};
    sni_field f;
    size_t at = 0;
    while (at < count && sni_wire_next(&w, &f)) {
        if (strings && f.number == ONNX_MAP_STRING_KEYS) {
            sni_str text;
            SN_TRY(sni_field_str(&w, &f, &text));
            text = sni_arena_str(d->arena, text);
            if (!text.p) return sni_fail_memory(d->err);
            ((sni_str *)t.data)[at++] = text;
        } else if (!strings && f.number == ONNX_MAP_KEYS) {
            sni_values values;
            uint64_t bits;
            SN_TRY(sni_field_values(&w, &f, SNI_WIRE_VARINT, &values));
            while (at < count && sni_values_next(&values, &bits))
                ((int64_t *)t.data)[at++] = (int64_t)bits;
            SN_TRY(values.wire.status);
        }
    }
    return w.status;
}

/* Scalars of one type as the tensor that a map keeps; other values stay a sequence. */
static sn_status pack_values(decoder *d, sni_datum *values) {
    const sni_sequence *seq = values->seq;
    for (size_t i = 0; i < seq->count; i++) {
        const sni_datum *v = &seq->items[i];
        if (v->kind != SN_KIND_TENSOR || v->tensor.count != 1 || v->tensor.dtype != seq->dtype)
            return SN_OK;
    }
    if (seq->count == 0) return SN_OK;
    int64_t dims[1] = {(int64_t)seq->count};
    sni_tensor t;
    SN_TRY(sni_tensor_new(&t, seq->dtype, 1, dims, NULL, d->err));
    size_t width = sni_dtype_width(seq->dtype);
    for (size_t i = 0; i < seq->count; i++)
        memcpy((unsigned char *)t.data + i * width, seq->items[i].tensor.data, width);
    sni_datum_clear(values);
    *values = (sni_datum){.kind = SN_KIND_TENSOR, .tensor = t};
    return SN_OK;
}

/* Some writers put all values of a map into one tensor of the sequence: then that is the values. */
static void take_only_tensor(size_t count, sni_datum *values) {
    sni_sequence *seq = values->seq;
    if (seq->count != 1 || seq->items[0].kind != SN_KIND_TENSOR) return;
    const sni_tensor *t = &seq->items[0].tensor;
    if (t->rank != 1 || (size_t)t->count != count) return;
    sni_datum only = seq->items[0];
    seq->items[0] = (sni_datum){0};
    sni_datum_clear(values);
    *values = only;
}

static sn_status decode_map_parts(decoder *d, sni_wire *w, int depth, sni_map *map) {
    sni_wire again = *w;
    sni_field f;
    size_t ints = 0, strings = 0, n;
    while (sni_wire_next(w, &f)) {
        if (f.number == ONNX_MAP_KEYS) {
            SN_TRY(sni_field_count(w, &f, SNI_WIRE_VARINT, &n));
            ints += n;
        } else if (f.number == ONNX_MAP_STRING_KEYS) {
            strings++;
        } else if (f.number == ONNX_MAP_VALUES) {
            sni_wire inner;
            SN_TRY(sni_field_message(w, &f, &inner));
            if (map->values.kind != SN_KIND_NONE)
                return sni_wire_fail(w, &f, "a map has two lists of values");
            SN_TRY(decode_sequence(d, &inner, depth + 1, &map->values));
        }
    }
    SN_TRY(w->status);
    size_t count = ints + strings;
    if (map->values.kind == SN_KIND_SEQUENCE) take_only_tensor(count, &map->values);
    bool fits = map->values.kind == SN_KIND_SEQUENCE ? map->values.seq->count == count
                                                     : map->values.kind == SN_KIND_TENSOR;
    if ((ints && strings) || !fits)
        return sni_fail(d->err, SN_MALFORMED, "a map's keys and values do not fit together");
    SN_TRY(decode_keys(d, again, strings > 0, count, &map->keys));
    return map->values.kind == SN_KIND_TENSOR ? SN_OK : pack_values(d, &map->values);
}

static sn_status decode_map(decoder *d, sni_wire *w, int depth, sni_datum *out) {
    sni_map *map;
    SN_TRY(sni_map_new(&map, d->err));
    sni_datum made = {.kind = SN_KIND_MAP, .map = map};
    sn_status status = decode_map_parts(d, w, depth, map);
    if (status != SN_OK) {
        sni_datum_clear(&made);
        return status;
    }
    *out = made;
    return SN_OK;
}

static sn_status decode_optional(decoder *d, sni_wire *w, int depth, sni_datum *out) {
    sni_datum made = {0};
    sni_field f;
    sn_status status = SN_OK;
    while (status == SN_OK && sni_wire_next(w, &f)) {
        if (!is_element(f.number)) continue;
        sni_datum_clear(&made); /* of several, the last counts */
        status = decode_element(d, w, &f, depth + 1, &made);
    }
    if (status == SN_OK) status = w->status;
    if (status != SN_OK)
        sni_datum_clear(&made);
    else
        *out = made;
    return status;
}

sn_status sni_datum_decode(sn_kind kind, const unsigned char *bytes, size_t size, sni_arena *arena,
                           sni_datum *out, sn_error *err) {
    decoder d = {.arena = arena, .err = err};
    sni_wire w;
    sni_wire_init(&w, bytes, size, &d.limits, err);
    switch (kind) {
    case SN_KIND_TENSOR:
        return decode_tensor(&d, &w, out);
    case SN_KIND_SPARSE_TENSOR:
        return decode_sparse(&d, &w, out);
    case SN_KIND_SEQUENCE:
        return decode_sequence(&d, &w, 0, out);
    case SN_KIND_MAP:
        return decode_map(&d, &w, 0, out);
    case SN_KIND_OPTIONAL:
        return decode_optional(&d, &w, 0, out);
    default:
        return sni_fail(err, SN_INVALID_ARGUMENT, "%d is not a kind of value that files hold",
                        (int)kind);
    }
}

/* ---- Encoding ---- */

typedef struct named {
    const sni_datum *datum;
    sni_str name;
    int depth;
} named;

static void put_strings(sni_out *out, const sni_tensor *t) {
    const sni_str *s = t->data;
    for (int64_t i = 0; i < t->count; i++) sni_put_str(out, ONNX_TENSOR_STRING_DATA, s[i]);
}

/* Packs elements under 8 bits in pieces that are whole bytes. */
static void put_packed(sni_out *out, const sni_tensor *t) {
    enum { PIECE = 256 };
    unsigned char packed[PIECE];
    const unsigned char *elements = t->data;
    sni_put_header(out, ONNX_TENSOR_RAW_DATA, sn_dtype_bytes(t->dtype, (size_t)t->count));
    for (size_t left = (size_t)t->count; left;) {
        size_t n = left < PIECE ? left : PIECE;
        sni_subbyte_pack(t->dtype, elements, packed, n);
        sni_put_raw(out, packed, sn_dtype_bytes(t->dtype, n));
        elements += n;
        left -= n;
    }
}

void sni_put_tensor(sni_out *out, const sni_tensor *t, sni_str name) {
    if (t->rank) sni_put_packed_ints(out, ONNX_TENSOR_DIMS, t->dims, (size_t)t->rank);
    sni_put_int(out, ONNX_TENSOR_DATA_TYPE, (int64_t)t->dtype);
    if (name.n) sni_put_str(out, ONNX_TENSOR_NAME, name);
    if (t->dtype == SN_STRING)
        put_strings(out, t);
    else if (sni_dtype_subbyte(t->dtype))
        put_packed(out, t);
    else
        sni_put_bytes(out, ONNX_TENSOR_RAW_DATA, t->data, sni_tensor_bytes(t));
}

static void put_datum(sni_out *out, const void *message);

static void put_keys(sni_out *out, const sni_tensor *keys) {
    const sni_str *strings = keys->data;
    sni_put_int(out, ONNX_MAP_KEY_TYPE, (int64_t)keys->dtype);
    if (keys->dtype != SN_STRING)
        sni_put_packed_ints(out, ONNX_MAP_KEYS, keys->data, (size_t)keys->count);
    else
        for (int64_t i = 0; i < keys->count; i++)
            sni_put_str(out, ONNX_MAP_STRING_KEYS, strings[i]);
}

/* A tensor of n values as a SequenceProto of n scalars. */
static void put_scalars(sni_out *out, const void *message) {
    const sni_tensor *t = message;
    size_t width = sni_dtype_width(t->dtype);
    sni_put_int(out, ONNX_SEQUENCE_ELEM_TYPE, ONNX_ELEM_TENSOR);
    for (int64_t i = 0; i < t->count; i++) {
        sni_datum scalar = {.kind = SN_KIND_TENSOR};
        scalar.tensor = (sni_tensor){
            .dtype = t->dtype, .count = 1, .data = (unsigned char *)t->data + (size_t)i * width};
        named n = {.datum = &scalar};
        sni_put_message(out, ONNX_SEQUENCE_TENSOR, put_datum, &n);
    }
}

static void put_map(sni_out *out, const sni_map *map, int depth) {
    put_keys(out, &map->keys.tensor);
    named values = {.datum = &map->values, .depth = depth + 1};
    if (map->values.kind == SN_KIND_TENSOR)
        sni_put_message(out, ONNX_MAP_VALUES, put_scalars, &map->values.tensor);
    else
        sni_put_message(out, ONNX_MAP_VALUES, put_datum, &values);
}

/* The field of a SequenceProto that holds a value, and the number of its type. */
static uint32_t element_field(sn_kind kind, int64_t *type) {
    switch (kind) {
    case SN_KIND_TENSOR:
        *type = ONNX_ELEM_TENSOR;
        return ONNX_SEQUENCE_TENSOR;
    case SN_KIND_SEQUENCE:
        *type = ONNX_ELEM_SEQUENCE;
        return ONNX_SEQUENCE_SEQUENCE;
    case SN_KIND_MAP:
        *type = ONNX_ELEM_MAP;
        return ONNX_SEQUENCE_MAP;
    default:
        *type = ONNX_ELEM_OPTIONAL;
        return ONNX_SEQUENCE_OPTIONAL;
    }
}

static void put_sequence(sni_out *out, const sni_sequence *seq, int depth) {
    int64_t type = ONNX_ELEM_TENSOR;
    if (seq->count) element_field(seq->items[0].kind, &type);
    sni_put_int(out, ONNX_SEQUENCE_ELEM_TYPE, type);
    for (size_t i = 0; i < seq->count; i++) {
        named item = {.datum = &seq->items[i], .depth = depth + 1};
        sni_put_message(out, element_field(seq->items[i].kind, &type), put_datum, &item);
    }
}

static void put_datum(sni_out *out, const void *message) {
    const named *n = message;
    const sni_datum *d = n->datum;
    if (n->depth > MAX_NESTING) {
        sni_out_fail(
            out, sni_fail(out->err, SN_LIMIT, "values are nested more than %d deep", MAX_NESTING));
        return;
    }
    if (d->kind == SN_KIND_TENSOR) {
        sni_put_tensor(out, &d->tensor, n->name);
        return;
    }
    /* The other messages all start with their name. */
    if (n->name.n) sni_put_str(out, ONNX_SEQUENCE_NAME, n->name);
    if (d->kind == SN_KIND_SEQUENCE)
        put_sequence(out, d->seq, n->depth);
    else if (d->kind == SN_KIND_MAP)
        put_map(out, d->map, n->depth);
}

sn_status sni_datum_encode(const sni_datum *datum, sni_str name, sn_write_fn write, void *ctx,
                           sn_error *err) {
    sni_out out;
    named n = {.datum = datum, .name = name};
    sni_out_init(&out, write, ctx, err);
    put_datum(&out, &n);
    return sni_out_finish(&out);
}
