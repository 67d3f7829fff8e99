/* wire.c - protobuf input. */
#include "model/wire.h"

#include <stdarg.h>
#include <stdio.h>

/* A subgraph takes three levels (graph, node, attribute); graph nesting has its own, lower limit.
 */
enum { MAX_DEPTH = 256, MAX_VARINT = 10 };
#define MAX_MESSAGES ((uint64_t)1 << 26)

void sni_wire_reopen(sni_wire *w, const void *bytes, size_t size, sni_wire_limits *limits,
                     sn_error *err) {
    static const unsigned char nothing[1];
    const unsigned char *p = size ? bytes : nothing;
    *w = (sni_wire){.p = p, .end = p + size, .limits = limits, .err = err};
}

void sni_wire_init(sni_wire *w, const void *bytes, size_t size, sni_wire_limits *limits,
                   sn_error *err) {
    sni_wire_reopen(w, bytes, size, limits, err);
    *limits = (sni_wire_limits){.origin = w->p, .depth = MAX_DEPTH, .messages = MAX_MESSAGES};
}

static size_t offset_of(const sni_wire *w, const unsigned char *p) {
    return (size_t)(p - w->limits->origin);
}

static sn_status fail_at(sni_wire *w, size_t offset, sn_status status, const char *what) {
    if (w->status == SN_OK) w->status = sni_fail(w->err, status, "byte %zu: %s", offset, what);
    return w->status;
}

sn_status sni_wire_fail(sni_wire *w, const sni_field *f, const char *format, ...) {
    char text[SN_ERROR_MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fail_at(w, f->offset, SN_MALFORMED, text);
}

static bool read_long_varint(sni_wire *w, uint64_t *out) {
    const unsigned char *start = w->p;
    uint64_t v = 0;
    for (unsigned i = 0; i < MAX_VARINT; i++) {
        if (w->p == w->end) {
            fail_at(w, offset_of(w, start), SN_MALFORMED, "a number is cut off");
            return false;
        }
        unsigned char b = *w->p++;
        v |= (uint64_t)(b & 0x7f) << (7 * i);
        if (b < 0x80) {
            if (i == MAX_VARINT - 1 && b > 1) break;
            *out = v;
            return true;
        }
    }
    fail_at(w, offset_of(w, start), SN_MALFORMED, "a number has more than 64 bits");
    return false;
}

/* Nearly all of them have one byte. */
static inline bool read_varint(sni_wire *w, uint64_t *out) {
    if (w->p == w->end || *w->p >= 0x80) return read_long_varint(w, out);
    *out = *w->p++;
    return true;
}

static bool read_fixed(sni_wire *w, size_t size, uint64_t *out) {
    if ((size_t)(w->end - w->p) < size) {
        fail_at(w, offset_of(w, w->p), SN_MALFORMED, "a fixed-size number is cut off");
        return false;
    }
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++) v |= (uint64_t)w->p[i] << (8 * i);
    w->p += size;
    *out = v;
    return true;
}

static bool read_length(sni_wire *w, sni_field *f) {
    uint64_t size;
    if (!read_varint(w, &size)) return false;
    if (size > (uint64_t)(w->end - w->p)) {
        sni_wire_fail(w, f, "field %u has %llu bytes but only %zu are left in its message",
                      f->number, (unsigned long long)size, (size_t)(w->end - w->p));
        return false;
    }
    f->bytes = w->p;
    f->size = (size_t)size;
    w->p += f->size;
    return true;
}

static bool read_scalar(sni_wire *w, sni_wire_type type, uint64_t *out) {
    if (type == SNI_WIRE_VARINT) return read_varint(w, out);
    return read_fixed(w, type == SNI_WIRE_I64 ? 8 : 4, out);
}

bool sni_wire_next(sni_wire *w, sni_field *f) {
    if (w->status != SN_OK || w->p == w->end) return false;
    *f = (sni_field){.offset = offset_of(w, w->p)};
    uint64_t tag;
    if (!read_varint(w, &tag)) return false;
    unsigned type = (unsigned)(tag & 7);
    uint64_t number = tag >> 3;
    if (number == 0 || number > 0x1fffffff) {
        sni_wire_fail(w, f, "%llu is not a field number", (unsigned long long)number);
        return false;
    }
    f->number = (uint32_t)number;
    f->type = (sni_wire_type)type;
    switch (type) {
    case SNI_WIRE_VARINT:
    case SNI_WIRE_I64:
    case SNI_WIRE_I32:
        return read_scalar(w, f->type, &f->value);
    case SNI_WIRE_LEN:
        return read_length(w, f);
    default:
        sni_wire_fail(w, f, "field %u has wire type %u, which ONNX does not use", f->number, type);
        return false;
    }
}

static sn_status expect(sni_wire *w, const sni_field *f, sni_wire_type type) {
    if (f->type == type) return SN_OK;
    return sni_wire_fail(w, f, "field %u has wire type %u instead of %u", f->number,
                         (unsigned)f->type, (unsigned)type);
}

sn_status sni_field_int(sni_wire *w, const sni_field *f, int64_t *out) {
    SN_TRY(expect(w, f, SNI_WIRE_VARINT));
    *out = (int64_t)f->value;
    return SN_OK;
}

sn_status sni_field_float(sni_wire *w, const sni_field *f, float *out) {
    SN_TRY(expect(w, f, SNI_WIRE_I32));
    *out = sni_bits_float(f->value);
    return SN_OK;
}

sn_status sni_field_str(sni_wire *w, const sni_field *f, sni_str *out) {
    SN_TRY(expect(w, f, SNI_WIRE_LEN));
    *out = (sni_str){(const char *)f->bytes, f->size};
    return SN_OK;
}

sn_status sni_field_message(sni_wire *w, const sni_field *f, sni_wire *out) {
    SN_TRY(expect(w, f, SNI_WIRE_LEN));
    if (w->depth + 1 >= w->limits->depth)
        return fail_at(w, f->offset, SN_LIMIT, "messages are nested too deeply");
    if (w->limits->messages == 0)
        return fail_at(w, f->offset, SN_LIMIT, "the file has too many messages");
    w->limits->messages--;
    int depth = w->depth + 1;
    sni_wire_reopen(out, f->bytes, f->size, w->limits, w->err);
    out->depth = depth;
    return SN_OK;
}

sn_status sni_field_values(sni_wire *w, const sni_field *f, sni_wire_type type, sni_values *out) {
    if (f->type != SNI_WIRE_LEN) SN_TRY(expect(w, f, type));
    *out = (sni_values){.type = type, .single = f->value, .has_single = f->type != SNI_WIRE_LEN};
    sni_wire_reopen(&out->wire, f->bytes, f->type == SNI_WIRE_LEN ? f->size : 0, w->limits, w->err);
    return SN_OK;
}

bool sni_values_next(sni_values *v, uint64_t *bits) {
    if (v->has_single) {
        v->has_single = false;
        *bits = v->single;
        return true;
    }
    if (v->wire.status != SN_OK || v->wire.p == v->wire.end) return false;
    return read_scalar(&v->wire, v->type, bits);
}

sn_status sni_field_count(sni_wire *w, const sni_field *f, sni_wire_type type, size_t *out) {
    if (f->type != SNI_WIRE_LEN) {
        SN_TRY(expect(w, f, type));
        *out = 1;
        return SN_OK;
    }
    size_t n = 0, width = type == SNI_WIRE_I64 ? 8 : 4;
    if (type == SNI_WIRE_VARINT) {
        for (size_t i = 0; i < f->size; i++) n += f->bytes[i] < 0x80;
        if (f->size && f->bytes[f->size - 1] >= 0x80)
            return sni_wire_fail(w, f, "field %u ends in the middle of a number", f->number);
    } else {
        n = f->size / width;
        if (f->size % width)
            return sni_wire_fail(w, f, "field %u has %zu bytes, not a multiple of %zu", f->number,
                                 f->size, width);
    }
    *out = n;
    return SN_OK;
}

/* ---- Lists that are not packed ---- */

/* The end of the number that begins at p; NULL: it is cut off or too long. */
static inline const unsigned char *varint_at(const unsigned char *p, const unsigned char *end,
                                             uint64_t *out) {
    uint64_t v = 0;
    for (unsigned i = 0; i < MAX_VARINT && p != end; i++) {
        unsigned char b = *p++;
        v |= (uint64_t)(b & 0x7f) << (7 * i);
        if (b >= 0x80) continue;
        *out = v;
        return i == MAX_VARINT - 1 && b > 1 ? NULL : p;
    }
    return NULL;
}

static inline const unsigned char *fixed_at(const unsigned char *p, const unsigned char *end,
                                            size_t size, uint64_t *out) {
    uint64_t v = 0;
    if ((size_t)(end - p) < size) return NULL;
    for (size_t i = 0; i < size; i++) v |= (uint64_t)p[i] << (8 * i);
    *out = v;
    return p + size;
}

static inline const unsigned char *bytes_at(const unsigned char *p, const unsigned char *end) {
    uint64_t size;
    p = varint_at(p, end, &size);
    return p && size <= (uint64_t)(end - p) ? p + size : NULL;
}

/* The tag of a field if it has one byte; 0x80, which begins no field of one byte, otherwise. */
static unsigned char short_tag(const sni_wire *w, const sni_field *f) {
    return f->number < 16 && w->limits->origin[f->offset] < 0x80 ? w->limits->origin[f->offset]
                                                                 : 0x80;
}

size_t sni_wire_skip_alike(sni_wire *w, const sni_field *f) {
    unsigned char tag = short_tag(w, f);
    size_t n = 0;
    if (tag == 0x80) return 0;
    for (; w->p != w->end && *w->p == tag; n++) {
        const unsigned char *p = w->p + 1;
        uint64_t ignored;
        p = f->type == SNI_WIRE_LEN ? bytes_at(p, w->end)
            : f->type == SNI_WIRE_VARINT
                ? varint_at(p, w->end, &ignored)
                : fixed_at(p, w->end, f->type == SNI_WIRE_I64 ? 8 : 4, &ignored);
        if (!p) break;
        w->p = p;
    }
    return n;
}

size_t sni_wire_ints_alike(sni_wire *w, const sni_field *f, int64_t *to, size_t max) {
    unsigned char tag = short_tag(w, f);
    size_t n = 0;
    if (tag == 0x80 || f->type != SNI_WIRE_VARINT) return 0;
    for (; n < max && w->p != w->end && *w->p == tag; n++) {
        uint64_t v;
        const unsigned char *p = varint_at(w->p + 1, w->end, &v);
        if (!p) break;
        to[n] = (int64_t)v;
        w->p = p;
    }
    return n;
}

size_t sni_wire_floats_alike(sni_wire *w, const sni_field *f, float *to, size_t max) {
    unsigned char tag = short_tag(w, f);
    size_t n = 0;
    if (tag == 0x80 || f->type != SNI_WIRE_I32) return 0;
    for (; n < max && w->p != w->end && *w->p == tag; n++) {
        uint64_t v;
        const unsigned char *p = fixed_at(w->p + 1, w->end, 4, &v);
        if (!p) break;
        to[n] = sni_bits_float(v);
        w->p = p;
    }
    return n;
}
