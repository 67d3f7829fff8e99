#include "base/dtype.h"

static const sni_dtype_facts facts[SNI_DTYPE_COUNT] = {
#define SNI_DTYPE(code, name_, onnx_, bits_, width_, class_) \
    [code] = {.name = name_,                                 \
              .onnx_name = onnx_,                            \
              .bits = bits_,                                 \
              .width = width_,                               \
              .cls = SNI_CLASS_##class_},
#include "base/dtype.def"
#undef SNI_DTYPE
};

static const sni_dtype_facts unknown = {.name = "undefined", .onnx_name = "undefined"};

const sni_dtype_facts *sni_dtype_get(sn_dtype dtype) {
    size_t i = (size_t)dtype;
    return i < SNI_DTYPE_COUNT && facts[i].name ? &facts[i] : &unknown;
}

const char *sn_dtype_name(sn_dtype dtype) {
    return sni_dtype_get(dtype)->name;
}

size_t sn_dtype_bytes(sn_dtype dtype, size_t count) {
    size_t bits = sni_dtype_get(dtype)->bits, total;
    if (bits == 0) return 0;
    if (bits >= 8) return __builtin_mul_overflow(count, bits / 8, &total) ? SIZE_MAX : total;
    size_t per_byte = 8 / bits;
    return count / per_byte + (count % per_byte != 0);
}

sn_dtype sni_dtype_find(sni_str name) {
    for (int i = 0; i < SNI_DTYPE_COUNT; i++)
        if (facts[i].name &&
            (sni_str_is(name, facts[i].name) || sni_str_is(name, facts[i].onnx_name)))
            return (sn_dtype)i;
    return SN_UNDEFINED;
}

void sni_subbyte_unpack(sn_dtype dtype, const void *packed, void *elements, size_t count) {
    const sni_dtype_facts *f = sni_dtype_get(dtype);
    const uint8_t *src = packed;
    uint8_t *dst = elements;
    unsigned bits = f->bits, mask = (1u << bits) - 1, sign = 1u << (bits - 1);
    for (size_t i = 0; i < count; i++) {
        size_t bit = i * bits;
        unsigned v = (unsigned)(src[bit / 8] >> (bit % 8)) & mask;
        if (f->cls == SNI_CLASS_I && (v & sign)) v |= ~mask;
        dst[i] = (uint8_t)v;
    }
}

void sni_subbyte_pack(sn_dtype dtype, const void *elements, void *packed, size_t count) {
    unsigned bits = sni_dtype_get(dtype)->bits, mask = (1u << bits) - 1;
    const uint8_t *src = elements;
    uint8_t *dst = packed;
    memset(dst, 0, sn_dtype_bytes(dtype, count));
    for (size_t i = 0; i < count; i++) {
        size_t bit = i * bits;
        dst[bit / 8] = (uint8_t)(dst[bit / 8] | ((src[i] & mask) << (bit % 8)));
    }
}
