/* lookup.c - a hash index with linear probing. */
#include "ops/core/lookup.h"

#include "ops/core/tensor_util.h"

#include <math.h>

static uint64_t mix(uint64_t h) {
    h *= UINT64_C(0x9E3779B97F4A7C15);
    h ^= h >> 32;
    h *= UINT64_C(0xD6E8FEB86659FD93);
    return h ^ h >> 32;
}

static uint64_t hash(sn_dtype kind, const void *key) {
    uint64_t h = 0;
    if (kind == SN_STRING) {
        sni_str s = *(const sni_str *)key;
        for (size_t i = 0; i < s.n; i++) h = (h ^ (unsigned char)s.p[i]) * UINT64_C(0x100000001B3);
        return mix(h + s.n);
    }
    if (kind == SN_FLOAT64) {
        double d = *(const double *)key;
        if (isnan(d)) d = (double)NAN;
        if (d == 0) d = 0; /* -0 equals 0 */
        memcpy(&h, &d, sizeof h);
        return mix(h);
    }
    memcpy(&h, key, sizeof h);
    return mix(h);
}

static bool equal(sn_dtype kind, const void *a, const void *b) {
    if (kind == SN_STRING) return sni_str_eq(*(const sni_str *)a, *(const sni_str *)b);
    if (kind == SN_INT64) return *(const int64_t *)a == *(const int64_t *)b;
    double x = *(const double *)a, y = *(const double *)b;
    return x == y || (isnan(x) && isnan(y));
}

static const void *key_at(const sni_lookup *l, size_t i) {
    return (const unsigned char *)l->keys + i * sni_dtype_width(l->kind);
}

static int32_t *find_slot(const sni_lookup *l, const void *key) {
    for (uint64_t h = hash(l->kind, key);; h++) {
        int32_t *slot = &l->slots[h & l->mask];
        if (*slot == 0 || equal(l->kind, key_at(l, (size_t)*slot - 1), key)) return slot;
    }
}

sn_status sni_lookup_make(sni_lookup *l, sn_dtype kind, const void *keys, size_t count,
                          sni_arena *arena, sn_error *err) {
    size_t size = 16;
    if (count >= INT32_MAX) return sni_fail(err, SN_LIMIT, "%zu keys are too many", count);
    while (size < 2 * count) size *= 2;
    *l = (sni_lookup){kind, keys, count, SNI_NEW_ARRAY(arena, int32_t, size), size - 1};
    if (!l->slots) return sni_fail_memory(err);
    for (size_t i = 0; i < count; i++) {
        int32_t *slot = find_slot(l, key_at(l, i));
        if (*slot == 0) *slot = (int32_t)i + 1;
    }
    return SN_OK;
}

int64_t sni_lookup_find(const sni_lookup *l, const void *key) {
    return (int64_t)*find_slot(l, key) - 1;
}

int64_t sni_lookup_element(const sni_lookup *l, const sni_tensor *t, int64_t i) {
    if ((t->dtype == SN_STRING) != (l->kind == SN_STRING)) return -1;
    if (t->dtype == SN_STRING) return sni_lookup_find(l, (const sni_str *)t->data + i);
    if (l->kind == SN_INT64 && (t->dtype == SN_INT64 || t->dtype == SN_INT32)) {
        int64_t v = sni_index_at(t, i);
        return sni_lookup_find(l, &v);
    }
    double d = sni_number_at(t, i);
    if (l->kind == SN_FLOAT64) return sni_lookup_find(l, &d);
    if (!(d > -0x1p63 && d < 0x1p63) || d != trunc(d)) return -1;
    return sni_lookup_find(l, &(int64_t){(int64_t)d});
}
