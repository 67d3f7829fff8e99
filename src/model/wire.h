/* wire.h - protobuf input: a bounds-checked reader over bytes in memory, without copies.
 *
 *     sni_field f;
 *     while (sni_wire_next(&w, &f)) {
 *         switch (f.number) {
 *         case NAME: SN_TRY(sni_field_str(&w, &f, &name)); break;
 *         case BODY: SN_TRY(sni_field_message(&w, &f, &inner)); ... break;
 *         }
 *     }
 *     return w.status;
 *
 * Fields that no case names are skipped, but their framing is checked all the same. Every failure
 * is SN_MALFORMED (SN_LIMIT for the limits below) and names the byte's offset in the file. */
#ifndef SNI_MODEL_WIRE_H
#define SNI_MODEL_WIRE_H

#include "base/status.h"
#include "base/str.h"

#include <stdint.h>

typedef enum sni_wire_type {
    SNI_WIRE_VARINT = 0,
    SNI_WIRE_I64 = 1,
    SNI_WIRE_LEN = 2,
    SNI_WIRE_I32 = 5
} sni_wire_type;

/* What all readers of one file share. */
typedef struct sni_wire_limits {
    const unsigned char *origin; /* offset 0 */
    int depth;                   /* messages that may be open at once */
    uint64_t messages;           /* inner messages that may still be entered */
} sni_wire_limits;

typedef struct sni_wire {
    const unsigned char *p, *end;
    sni_wire_limits *limits;
    int depth;        /* of messages around this one */
    sn_status status; /* the first failure; sni_wire_next then returns false */
    sn_error *err;
} sni_wire;

typedef struct sni_field {
    uint32_t number;
    sni_wire_type type;
    uint64_t value;             /* VARINT, I64, I32 */
    const unsigned char *bytes; /* LEN: never NULL */
    size_t size;                /* LEN */
    size_t offset;              /* of its tag */
} sni_field;

/* A reader of a whole message; `limits` gets `bytes` as origin and default limits. */
void sni_wire_init(sni_wire *w, const void *bytes, size_t size, sni_wire_limits *limits,
                   sn_error *err);
/* The same for bytes inside the file that `limits` describes. */
void sni_wire_reopen(sni_wire *w, const void *bytes, size_t size, sni_wire_limits *limits,
                     sn_error *err);

/* The next field; false at the end and on failure. */
bool sni_wire_next(sni_wire *w, sni_field *f);

/* Fails the reader at a field. */
sn_status sni_wire_fail(sni_wire *w, const sni_field *f, const char *format, ...) SNI_PRINTF(3, 4);

/* Contents; each fails if the wire type is another one. */
sn_status sni_field_int(sni_wire *w, const sni_field *f, int64_t *out);
sn_status sni_field_float(sni_wire *w, const sni_field *f, float *out);
sn_status sni_field_str(sni_wire *w, const sni_field *f, sni_str *out); /* in place */
sn_status sni_field_message(sni_wire *w, const sni_field *f, sni_wire *out);

/* Elements of a repeated field of numbers, of which one occurrence may hold one (unpacked) or any
 * number (packed). `type` is that of an element. */
typedef struct sni_values {
    sni_wire wire; /* over the packed bytes */
    sni_wire_type type;
    uint64_t single;
    bool has_single;
} sni_values;
sn_status sni_field_values(sni_wire *w, const sni_field *f, sni_wire_type type, sni_values *out);
bool sni_values_next(sni_values *v, uint64_t *bits); /* false: end, or v->wire.status */

/* How many elements one occurrence has, without decoding them; a packed field of varints that ends
 * in the middle of one fails. */
sn_status sni_field_count(sni_wire *w, const sni_field *f, sni_wire_type type, size_t *out);

/* Lists that are not packed: occurrences of a field that follow `f` directly, written alike. What
 * is not well-formed is left for sni_wire_next(), which comes next. */
size_t sni_wire_skip_alike(sni_wire *w, const sni_field *f); /* moves behind them; how many */
/* Reads up to `max` of them; how many. */
size_t sni_wire_ints_alike(sni_wire *w, const sni_field *f, int64_t *to, size_t max);
size_t sni_wire_floats_alike(sni_wire *w, const sni_field *f, float *to, size_t max);

static inline float sni_bits_float(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float v;
    memcpy(&v, &low, sizeof v);
    return v;
}

#endif
