/* wire_write.c - protobuf output. */
#include "model/wire_write.h"

enum { VARINT = 0, I64 = 1, LEN = 2, I32 = 5 };

void sni_out_init(sni_out *out, sn_write_fn write, void *ctx, sn_error *err) {
    out->write = write;
    out->ctx = ctx;
    out->bytes = 0;
    out->status = SN_OK;
    out->err = err;
    out->held = 0;
}

static void hand_on(sni_out *out, const void *bytes, size_t size) {
    if (size == 0 || out->status != SN_OK) return;
    if (out->write(out->ctx, bytes, size) != 0)
        out->status = sni_fail(out->err, SN_IO, "writing failed after %llu bytes",
                               (unsigned long long)out->bytes);
}

static void flush(sni_out *out) {
    hand_on(out, out->buffer, out->held);
    out->held = 0;
}

sn_status sni_out_finish(sni_out *out) {
    if (out->write) flush(out);
    return out->status;
}

void sni_out_fail(sni_out *out, sn_status status) {
    if (out->status == SN_OK) out->status = status;
}

void sni_put_raw(sni_out *out, const void *bytes, size_t size) {
    if (out->status != SN_OK || size == 0) return;
    if (out->write) {
        if (size > sizeof out->buffer - out->held) flush(out);
        if (size > sizeof out->buffer) {
            hand_on(out, bytes, size);
        } else {
            memcpy(out->buffer + out->held, bytes, size);
            out->held += size;
        }
    }
    out->bytes += size;
}

static void put_varint(sni_out *out, uint64_t v) {
    unsigned char b[10];
    size_t n = 0;
    do {
        b[n] = (unsigned char)(v & 0x7f);
        v >>= 7;
        if (v) b[n] |= 0x80;
        n++;
    } while (v);
    sni_put_raw(out, b, n);
}

static size_t varint_size(uint64_t v) {
    size_t n = 1;
    while (v >>= 7) n++;
    return n;
}

static void put_tag(sni_out *out, uint32_t field, unsigned type) {
    put_varint(out, (uint64_t)field << 3 | type);
}

static void put_fixed(sni_out *out, uint64_t bits, size_t size) {
    unsigned char b[8];
    for (size_t i = 0; i < size; i++) b[i] = (unsigned char)(bits >> (8 * i));
    sni_put_raw(out, b, size);
}

static uint32_t float_bits(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

void sni_put_uint(sni_out *out, uint32_t field, uint64_t v) {
    put_tag(out, field, VARINT);
    put_varint(out, v);
}

void sni_put_int(sni_out *out, uint32_t field, int64_t v) {
    sni_put_uint(out, field, (uint64_t)v);
}

void sni_put_float(sni_out *out, uint32_t field, float v) {
    put_tag(out, field, I32);
    put_fixed(out, float_bits(v), 4);
}

void sni_put_double(sni_out *out, uint32_t field, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_tag(out, field, I64);
    put_fixed(out, bits, 8);
}

void sni_put_header(sni_out *out, uint32_t field, uint64_t length) {
    put_tag(out, field, LEN);
    put_varint(out, length);
}

void sni_put_bytes(sni_out *out, uint32_t field, const void *bytes, size_t size) {
    sni_put_header(out, field, size);
    sni_put_raw(out, bytes, size);
}

void sni_put_str(sni_out *out, uint32_t field, sni_str s) {
    sni_put_bytes(out, field, s.p, s.n);
}

void sni_put_packed_ints(sni_out *out, uint32_t field, const int64_t *v, size_t n) {
    uint64_t length = 0;
    for (size_t i = 0; i < n; i++) length += varint_size((uint64_t)v[i]);
    sni_put_header(out, field, length);
    for (size_t i = 0; i < n; i++) put_varint(out, (uint64_t)v[i]);
}

void sni_put_packed_floats(sni_out *out, uint32_t field, const float *v, size_t n) {
    sni_put_header(out, field, (uint64_t)n * 4);
    for (size_t i = 0; i < n; i++) put_fixed(out, float_bits(v[i]), 4);
}

void sni_put_message(sni_out *out, uint32_t field, sni_emit_fn emit, const void *message) {
    if (out->status != SN_OK) return;
    sni_out size;
    sni_out_init(&size, NULL, NULL, out->err);
    emit(&size, message);
    if (size.status != SN_OK) {
        sni_out_fail(out, size.status);
        return;
    }
    sni_put_header(out, field, size.bytes);
    if (!out->write) {
        out->bytes += size.bytes;
        return;
    }
    uint64_t start = out->bytes;
    emit(out, message);
    if (out->status == SN_OK && out->bytes - start != size.bytes)
        out->status = sni_fail(
            out->err, SN_INTERNAL, "field %u was measured as %llu bytes but took %llu", field,
            (unsigned long long)size.bytes, (unsigned long long)(out->bytes - start));
}
