/* dtype.h - facts about element types; the table is dtype.def. */
#ifndef SNI_BASE_DTYPE_H
#define SNI_BASE_DTYPE_H

#include "base/str.h"
#include "sinter.h"

#define SNI_DTYPE_COUNT 27 /* one past the largest sn_dtype */

/* How arithmetic treats a type. */
typedef enum sni_class {
    SNI_CLASS_NONE,
    SNI_CLASS_I, /* signed integer */
    SNI_CLASS_U, /* unsigned integer */
    SNI_CLASS_B, /* bool: one byte, 0 or not 0 */
    SNI_CLASS_F, /* float or double */
    SNI_CLASS_S, /* narrow float, stored only; computed in float */
    SNI_CLASS_C, /* complex */
    SNI_CLASS_T  /* string */
} sni_class;

typedef struct sni_dtype_facts {
    const char *name;
    const char *onnx_name;
    unsigned bits;  /* of an element in packed (file and API) storage; 0 for strings */
    unsigned width; /* bytes of an element in run-time memory */
    sni_class cls;
} sni_dtype_facts;

/* Facts of any number; those of no type have bits, width and class 0. */
const sni_dtype_facts *sni_dtype_get(sn_dtype dtype);

static inline size_t sni_dtype_width(sn_dtype dtype) {
    return sni_dtype_get(dtype)->width;
}

static inline bool sni_dtype_valid(sn_dtype dtype) {
    return sni_dtype_get(dtype)->width != 0;
}

/* True if elements under 8 bits are packed in files and API tensors but not in run-time memory. */
static inline bool sni_dtype_subbyte(sn_dtype dtype) {
    unsigned bits = sni_dtype_get(dtype)->bits;
    return bits != 0 && bits < 8;
}

/* The type with that sinter or ONNX name; SN_UNDEFINED if there is none. */
sn_dtype sni_dtype_find(sni_str name);

/* Packed storage to one element a byte (sign-extended for int4 and int2), and back. `packed` has
 * ceil(count * bits / 8) bytes, low bits first; unused high bits are written as 0. */
void sni_subbyte_unpack(sn_dtype dtype, const void *packed, void *elements, size_t count);
void sni_subbyte_pack(sn_dtype dtype, const void *elements, void *packed, size_t count);

#endif
