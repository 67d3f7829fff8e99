/* RotaryEmbedding (RoPE) of ai.onnx and, with other inputs, of com.microsoft: rotates pairs of
 * elements of each head by angles that grow with the position. */
#include "ops/attention/rotary.h"

#include "base/checked.h"
#include "base/threadpool.h"
#include "ops/core/compute.h"
#include "ops/core/kernel_hooks.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

typedef struct rotary_params {
    int64_t interleaved, num_heads, rotary_embedding_dim;
    int64_t packed; /* com.microsoft: whether batches of unequal length are packed: the same work */
    float scale;    /* com.microsoft: declared, but without effect */
} rotary_params;

#define BODY "ops/attention/rotary.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

void sni_rotate(int threads, sn_dtype dtype, const sni_rotary *r) {
    int64_t each = r->heads * r->size;
    if (each > 0)
        sni_parallel_for(threads, r->batches * r->length, 8192 / each + 1,
                         dtype == SN_FLOAT64 ? rotate_positions_f64 : rotate_positions_f32,
                         (void *)(uintptr_t)r);
}

sn_status sni_rotary_check(sni_kernel *k, const int64_t *ids, int64_t n, int64_t rows) {
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= rows)
            return SNI_KERNEL_FAIL(k, "position %" PRId64 " is outside a cache of %" PRId64, ids[i],
                                   rows);
    return SN_OK;
}

/* ---- Of ai.onnx ---- */

/* Head size from the shape of X; a symbol if it is not known. */
static sn_status head_size(sni_infer *c, sni_dim *size) {
    const rotary_params *p = c->params;
    int rank = sni_infer_rank(c, 0);
    *size = sni_infer_dim(c, 0, rank - 1);
    if (rank != 3 && rank != 4) return SNI_INFER_FAIL(c, "X has rank %d, not 3 or 4", rank);
    if (rank == 4) return SN_OK;
    if (p->num_heads < 1)
        return SNI_INFER_FAIL(c, "X of rank 3 with num_heads %lld", (long long)p->num_heads);
    if (sni_dim_known(*size) && (*size % p->num_heads || *size < p->num_heads))
        return SNI_INFER_FAIL(c, "%lld elements do not divide into %lld heads", (long long)*size,
                              (long long)p->num_heads);
    *size = sni_dim_floordiv(c->symbols, *size, p->num_heads);
    return SN_OK;
}

static sn_status check_cache(sni_infer *c, int i, sni_dim half) {
    bool ids = sni_infer_given(c, 3);
    if (!sni_infer_shaped(c, i)) return SN_OK;
    int rank = sni_infer_rank(c, i);
    if (rank != (ids ? 2 : 3) || sni_dim_differ(sni_infer_dim(c, i, rank - 1), half))
        return SNI_INFER_FAIL(c, "the cache at input %d has rank %d, or not %lld columns", i, rank,
                              (long long)half);
    if (!ids &&
        (sni_dim_differ(sni_infer_dim(c, i, 0), sni_infer_dim(c, 0, 0)) ||
         sni_dim_differ(sni_infer_dim(c, i, 1), sni_infer_dim(c, 0, sni_infer_rank(c, 0) - 2))))
        return SNI_INFER_FAIL(c, "the cache at input %d does not fit batch and length of X", i);
    return SN_OK;
}

static sn_status rotary_infer(sni_infer *c) {
    const rotary_params *p = c->params;
    sni_dim size;
    int64_t rotated = p->rotary_embedding_dim;
    if (rotated < 0 || rotated % 2)
        return SNI_INFER_FAIL(c, "rotary_embedding_dim is %lld, not even", (long long)rotated);
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    SN_TRY(head_size(c, &size));
    if (sni_dim_known(size) && (rotated > size || (rotated == 0 && size % 2)))
        return SNI_INFER_FAIL(c, "heads of %lld elements cannot be rotated in %lld",
                              (long long)size, (long long)rotated);
    sni_dim half = rotated ? rotated / 2 : sni_dim_floordiv(c->symbols, size, 2);
    SN_TRY(check_cache(c, 1, half));
    SN_TRY(check_cache(c, 2, half));
    if (sni_infer_shaped(c, 1) && sni_infer_shaped(c, 2) &&
        sni_dim_differ(sni_infer_dim(c, 1, 0), sni_infer_dim(c, 2, 0)))
        return SNI_INFER_FAIL(c, "caches of different lengths");
    if (sni_infer_shaped(c, 3) &&
        (sni_infer_rank(c, 3) != 2 ||
         sni_dim_differ(sni_infer_dim(c, 3, 0), sni_infer_dim(c, 0, 0)) ||
         sni_dim_differ(sni_infer_dim(c, 3, 1), sni_infer_dim(c, 0, sni_infer_rank(c, 0) - 2))))
        return SNI_INFER_FAIL(c, "position_ids do not fit batch and length of X");
    return sni_infer_same(c);
}

/* X to Y; `r` has number and size of heads, and positions. */
static sn_status run_rotary(sni_kernel *k, sni_rotary *r, const sni_tensor *cosines,
                            const sni_tensor *sines) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    const void *from = NULL;
    void *to = NULL;
    SN_TRY(sni_in_as(k, x, dtype, &from));
    SN_TRY(sni_in_as(k, cosines, dtype, &r->cosines));
    SN_TRY(sni_in_as(k, sines, dtype, &r->sines));
    SN_TRY(sni_out_as(k, y, dtype, &to));
    r->batches = x->dims[0];
    r->length = x->dims[x->rank - 2];
    r->x = x->rank == 3 ? sni_heads_inner(from, r->length, r->heads * r->size, r->size)
                        : sni_heads_outer(from, r->heads, r->length, r->size);
    r->y = r->x;
    r->y.data = to;
    if (k->hooks && k->hooks->rotary && dtype == SN_FLOAT32)
        r->hook = r->interleaved ? k->hooks->rotary->neighbours : k->hooks->rotary->halves;
    if (x->count) sni_rotate(k->threads, dtype, r);
    sni_out_done(k, y, dtype, to);
    return SN_OK;
}

static sn_status rotary_ref(sni_kernel *k) {
    const rotary_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *cache = sni_in(k, 1), *ids = sni_in(k, 3);
    bool flat = x->rank == 3;
    sni_rotary r = {.heads = flat ? p->num_heads : x->dims[1],
                    .interleaved = p->interleaved != 0,
                    .ids = ids ? ids->data : NULL};
    r.size = x->dims[x->rank - 1] / (flat ? r.heads : 1);
    r.rotated = p->rotary_embedding_dim ? p->rotary_embedding_dim : r.size;
    if (ids) SN_TRY(sni_rotary_check(k, r.ids, ids->count, cache->dims[0]));
    return run_rotary(k, &r, cache, sni_in(k, 2));
}

const sni_op sni_op_RotaryEmbedding = {
    .name = "RotaryEmbedding",
    .versions = SNI_VERSIONS(23),
    .inputs = SNI_FORMALS({"X", "T"}, {"cos_cache", "T"}, {"sin_cache", "T"},
                          {"position_ids", "int64", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(
        {"interleaved", SNI_ATTR_INT, offsetof(rotary_params, interleaved)},
        {"num_heads", SNI_ATTR_INT, offsetof(rotary_params, num_heads)},
        {"rotary_embedding_dim", SNI_ATTR_INT, offsetof(rotary_params, rotary_embedding_dim)}),
    .params_size = sizeof(rotary_params),
    .infer = rotary_infer,
    .ref = rotary_ref,
};

/* ---- Of com.microsoft ---- */

/* A head's size in X of rank 3 follows from the number of heads or, where that is not given, from
 * the caches. */
static sn_status ms_head_size(sni_infer *c, sni_dim *size) {
    const rotary_params *p = c->params;
    if (sni_infer_rank(c, 0) == 4 || p->num_heads > 0) return head_size(c, size);
    if (sni_infer_rank(c, 0) != 3 || p->rotary_embedding_dim)
        return SNI_INFER_FAIL(c, "X of rank %d without num_heads", sni_infer_rank(c, 0));
    *size = sni_dim_fresh(c->symbols);
    if (!sni_infer_shaped(c, 2) || sni_infer_rank(c, 2) != 2) return SN_OK;
    sni_dim width = sni_infer_dim(c, 0, 2);
    *size = sni_dim_mul(c->symbols, sni_infer_dim(c, 2, 1), 2);
    if (sni_dim_known(*size) && sni_dim_known(width) && (*size == 0 || width % *size))
        return SNI_INFER_FAIL(c, "%" PRId64 " elements do not divide into heads of %" PRId64, width,
                              *size);
    return SN_OK;
}

/* position_ids: one for each position, or the first position of every batch. */
static sn_status check_positions(sni_infer *c) {
    if (!sni_infer_shaped(c, 1)) return SN_OK;
    int rank = sni_infer_rank(c, 1), length = sni_infer_rank(c, 0) - 2;
    if (rank == 2 ? sni_dim_differ(sni_infer_dim(c, 1, 0), sni_infer_dim(c, 0, 0)) ||
                        sni_dim_differ(sni_infer_dim(c, 1, 1), sni_infer_dim(c, 0, length))
                  : rank > 2 || (rank == 1 && sni_dim_differ(sni_infer_dim(c, 1, 0), 1)))
        return SNI_INFER_FAIL(c, "position_ids do not fit batch and length of X");
    return SN_OK;
}

static sn_status ms_rotary_infer(sni_infer *c) {
    const rotary_params *p = c->params;
    int64_t rotated = p->rotary_embedding_dim;
    sni_dim size;
    if (rotated < 0 || rotated % 2)
        return SNI_INFER_FAIL(c, "rotary_embedding_dim is %" PRId64 ", not even", rotated);
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    SN_TRY(ms_head_size(c, &size));
    if (sni_dim_known(size) && (rotated > size || (rotated == 0 && size % 2)))
        return SNI_INFER_FAIL(c, "heads of %" PRId64 " elements cannot be rotated in %" PRId64,
                              size, rotated);
    sni_dim half = rotated ? rotated / 2 : sni_dim_floordiv(c->symbols, size, 2);
    for (int i = 2; i < 4; i++)
        if (sni_infer_shaped(c, i) &&
            (sni_infer_rank(c, i) != 2 || sni_dim_differ(sni_infer_dim(c, i, 1), half)))
            return SNI_INFER_FAIL(c,
                                  "the cache at input %d has rank %d, or not %" PRId64 " columns",
                                  i, sni_infer_rank(c, i), half);
    if (sni_infer_shaped(c, 2) && sni_infer_shaped(c, 3) &&
        sni_dim_differ(sni_infer_dim(c, 2, 0), sni_infer_dim(c, 3, 0)))
        return SNI_INFER_FAIL(c, "caches of different lengths");
    SN_TRY(check_positions(c));
    return sni_infer_same(c);
}

static sn_status ms_rotary_ref(sni_kernel *k) {
    const rotary_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *ids = sni_in(k, 1), *cache = sni_in(k, 2);
    bool flat = x->rank == 3;
    int64_t width = x->dims[x->rank - 1], length = x->dims[x->rank - 2], *rows = NULL;
    sni_rotary r = {.interleaved = p->interleaved != 0};
    r.size = !flat ? width : p->num_heads > 0 ? width / p->num_heads : 2 * cache->dims[1];
    r.heads = !flat ? x->dims[1] : r.size > 0 ? width / r.size : 0;
    r.rotated = p->rotary_embedding_dim ? p->rotary_embedding_dim : r.size;
    SN_TRY(sni_scratch_i64(k, x->dims[0] * length, &rows));
    for (int64_t i = 0; i < x->dims[0] * length; i++) {
        bool each = ids->rank == 2;
        if (!sni_add_i64(sni_index_at(ids, each ? i : 0), each ? 0 : i % length, &rows[i]))
            return SNI_KERNEL_FAIL(k, "positions from %" PRId64 " on", sni_index_at(ids, 0));
    }
    SN_TRY(sni_rotary_check(k, rows, x->dims[0] * length, cache->dims[0]));
    r.ids = rows;
    return run_rotary(k, &r, cache, sni_in(k, 3));
}

const sni_op sni_op_ms_RotaryEmbedding = {
    .name = "RotaryEmbedding",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"input", "T"}, {"position_ids", "int64"}, {"cos_cache", "T"},
                          {"sin_cache", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(
        {"interleaved", SNI_ATTR_INT, offsetof(rotary_params, interleaved)},
        {"is_packed_batching", SNI_ATTR_INT, offsetof(rotary_params, packed)},
        {"num_heads", SNI_ATTR_INT, offsetof(rotary_params, num_heads)},
        {"rotary_embedding_dim", SNI_ATTR_INT, offsetof(rotary_params, rotary_embedding_dim)},
        {"scale", SNI_ATTR_FLOAT, offsetof(rotary_params, scale), .number = 1}),
    .params_size = sizeof(rotary_params),
    .infer = ms_rotary_infer,
    .ref = ms_rotary_ref,
};
