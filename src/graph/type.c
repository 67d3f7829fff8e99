/* type.c - types of values. */
#include "graph/graph.h"

#include <inttypes.h>
#include <stdio.h>

enum { TEXT_SIZE = 1024, DEPTH_LIMIT = 16 };

typedef struct text {
    char bytes[TEXT_SIZE];
    size_t used;
} text;

static void put(text *t, const char *s) {
    int n = snprintf(t->bytes + t->used, TEXT_SIZE - t->used, "%s", s);
    t->used += (size_t)n < TEXT_SIZE - t->used ? (size_t)n : TEXT_SIZE - 1 - t->used;
}

static void put_tensor(text *t, const sni_type *type, const sni_symbols *symbols) {
    put(t, sn_dtype_name(type->dtype));
    if (!type->has_shape) return;
    put(t, "[");
    for (int i = 0; i < type->rank; i++) {
        if (i) put(t, ",");
        put(t, sni_dim_text(symbols, type->dims[i]));
    }
    put(t, "]");
}

static void put_type(text *t, const sni_type *type, const sni_symbols *symbols, int depth) {
    static const char *const open[] = {[SN_KIND_TENSOR] = "tensor(",
                                       [SN_KIND_SEQUENCE] = "seq(",
                                       [SN_KIND_MAP] = "map(",
                                       [SN_KIND_OPTIONAL] = "optional(",
                                       [SN_KIND_SPARSE_TENSOR] = "sparse_tensor("};
    if (!type || type->kind == SN_KIND_NONE || depth > DEPTH_LIMIT) {
        put(t, "unknown");
        return;
    }
    put(t, open[type->kind]);
    if (type->kind == SN_KIND_TENSOR || type->kind == SN_KIND_SPARSE_TENSOR) {
        put_tensor(t, type, symbols);
    } else {
        if (type->kind == SN_KIND_MAP) {
            put(t, sn_dtype_name(type->dtype));
            put(t, ", ");
        }
        put_type(t, type->inner, symbols, depth + 1);
    }
    put(t, ")");
}

sni_str sni_type_text(const sni_type *type, const sni_symbols *symbols, sni_arena *arena) {
    text t = {.used = 0};
    put_type(&t, type, symbols, 0);
    return sni_arena_str(arena, (sni_str){t.bytes, t.used});
}

bool sni_type_copy(sni_type *dst, const sni_type *src, sni_arena *arena) {
    sni_type made = *src;
    if (src->has_shape) {
        sni_dim *dims = SNI_NEW_ARRAY(arena, sni_dim, src->rank);
        if (!dims) return false;
        for (int i = 0; i < src->rank; i++) dims[i] = src->dims[i];
        made.dims = dims;
    }
    if (src->inner) {
        sni_type *inner = SNI_NEW(arena, sni_type);
        if (!inner || !sni_type_copy(inner, src->inner, arena)) return false;
        made.inner = inner;
    }
    *dst = made;
    return true;
}

bool sni_type_compatible(const sni_type *a, const sni_type *b) {
    if (!a || !b || a->kind == SN_KIND_NONE || b->kind == SN_KIND_NONE) return true;
    if (a->kind != b->kind) return false;
    if (a->dtype && b->dtype && a->dtype != b->dtype) return false;
    if (a->inner && b->inner) return sni_type_compatible(a->inner, b->inner);
    if (!a->has_shape || !b->has_shape) return true;
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (sni_dim_known(a->dims[i]) && sni_dim_known(b->dims[i]) && a->dims[i] != b->dims[i])
            return false;
    return true;
}
