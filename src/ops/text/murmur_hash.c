/* MurmurHash3: a 32-bit hash of the bytes of each element. */
#include "ops/core/op.h"
#include "ops/core/tensor_util.h"

typedef struct hash_params {
    int64_t positive, seed;
} hash_params;

static uint32_t rotate(uint32_t v, int by) {
    return v << by | v >> (32 - by);
}

static uint32_t scramble(uint32_t v) {
    return rotate(v * UINT32_C(0xCC9E2D51), 15) * UINT32_C(0x1B873593);
}

/* MurmurHash3_x86_32: words are little-endian. */
static uint32_t murmur(const unsigned char *p, size_t n, uint32_t seed) {
    uint32_t h = seed, tail = 0;
    for (size_t i = 0; i + 4 <= n; i += 4) {
        uint32_t word = (uint32_t)p[i] | (uint32_t)p[i + 1] << 8 | (uint32_t)p[i + 2] << 16 |
                        (uint32_t)p[i + 3] << 24;
        h = rotate(h ^ scramble(word), 13) * 5 + UINT32_C(0xE6546B64);
    }
    for (size_t i = n; i > (n & ~(size_t)3); i--) tail = tail << 8 | p[i - 1];
    if (n & 3) h ^= scramble(tail);
    h ^= (uint32_t)n;
    h = (h ^ h >> 16) * UINT32_C(0x85EBCA6B);
    h = (h ^ h >> 13) * UINT32_C(0xC2B2AE35);
    return h ^ h >> 16;
}

static sn_status hash_infer(sni_infer *c) {
    const hash_params *p = c->params;
    if (p->seed < INT32_MIN || p->seed > UINT32_MAX)
        return SNI_INFER_FAIL(c, "the seed %lld has more than 32 bits", (long long)p->seed);
    SN_TRY(sni_infer_set_type(c, 0, p->positive ? SN_UINT32 : SN_INT32));
    return sni_infer_same(c);
}

static sn_status hash_ref(sni_kernel *k) {
    const hash_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    uint32_t *y = sni_out(k, 0)->data, seed = (uint32_t)(uint64_t)p->seed;
    size_t width = sni_dtype_width(x->dtype);
    for (int64_t i = 0; i < x->count; i++) {
        if (x->dtype == SN_STRING) {
            sni_str s = ((const sni_str *)x->data)[i];
            y[i] = murmur((const unsigned char *)s.p, s.n, seed);
        } else {
            y[i] = murmur(sni_element(x->data, i, width), width, seed);
        }
    }
    return SN_OK;
}

const sni_op sni_op_ms_MurmurHash3 = {
    .name = "MurmurHash3",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T1"}),
    .outputs = SNI_FORMALS({"Y", "T2"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T(SN_UINT32) | SNI_T(SN_INT32) | SNI_T(SN_UINT64) |
                                      SNI_T(SN_INT64) | SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT64) |
                                      SNI_T(SN_STRING)},
                           {"T2", SNI_T(SN_UINT32) | SNI_T(SN_INT32)}),
    .params = SNI_PARAMS({"positive", SNI_ATTR_INT, offsetof(hash_params, positive), .number = 1},
                         {"seed", SNI_ATTR_INT, offsetof(hash_params, seed)}),
    .params_size = sizeof(hash_params),
    .infer = hash_infer,
    .ref = hash_ref,
};
