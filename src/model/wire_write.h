/* wire_write.h - protobuf output: fields appended to an sn_write_fn.
 *
 * A message is written by a function that puts its fields. Lengths of inner messages come from
 * running that function once with the output only counting, so nothing is held in memory, and the
 * function must put the same bytes each time. The first failure is kept; later puts do nothing. */
#ifndef SNI_MODEL_WIRE_WRITE_H
#define SNI_MODEL_WIRE_WRITE_H

#include "base/status.h"
#include "base/str.h"

#include <stdint.h>

typedef struct sni_out {
    sn_write_fn write; /* NULL: count only */
    void *ctx;
    uint64_t bytes;   /* put so far */
    sn_status status; /* the first failure */
    sn_error *err;    /* told of it; may be NULL */
    size_t held;      /* bytes of `buffer` that `write` has not seen yet */
    unsigned char buffer[512];
} sni_out;

/* An output to `write`, NULL to count only; `err` may be NULL. */
void sni_out_init(sni_out *out, sn_write_fn write, void *ctx, sn_error *err);
/* Hands on what is held; the outcome of all puts. */
sn_status sni_out_finish(sni_out *out);
/* Makes `status` the outcome; for a writer whose own source failed (and filled out->err). */
void sni_out_fail(sni_out *out, sn_status status);

/* True when only sizes matter: contents may be given as NULL. */
static inline bool sni_out_counting(const sni_out *out) {
    return !out->write;
}

/* One field each. Nothing is left out: the caller decides about defaults. */
void sni_put_int(sni_out *out, uint32_t field, int64_t v); /* int64, int32, bool, enum */
void sni_put_uint(sni_out *out, uint32_t field, uint64_t v);
void sni_put_float(sni_out *out, uint32_t field, float v);
void sni_put_double(sni_out *out, uint32_t field, double v);
void sni_put_str(sni_out *out, uint32_t field, sni_str s); /* string and bytes */
void sni_put_bytes(sni_out *out, uint32_t field, const void *bytes, size_t size);
void sni_put_packed_ints(sni_out *out, uint32_t field, const int64_t *v, size_t n);
void sni_put_packed_floats(sni_out *out, uint32_t field, const float *v, size_t n);

typedef void (*sni_emit_fn)(sni_out *out, const void *message);
/* An inner message that `emit` writes. */
void sni_put_message(sni_out *out, uint32_t field, sni_emit_fn emit, const void *message);

/* The parts of a long field: its header, then `length` bytes in pieces. */
void sni_put_header(sni_out *out, uint32_t field, uint64_t length);
void sni_put_raw(sni_out *out, const void *bytes, size_t size);

#endif
