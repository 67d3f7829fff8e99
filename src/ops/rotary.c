/* RotaryEmbedding: pairs of elements of each head turned by angles that grow with the position. */
#include "base/threadpool.h"
#include "ops/compute.h"

typedef struct rotary_params {
    int64_t interleaved, num_heads, rotary_embedding_dim;
} rotary_params;

typedef struct rotary {
    const void *x, *cosines, *sines; /* caches: (rows, rotated / 2) */
    void *y;
    const int64_t *ids; /* row of the caches for each position; NULL: its number */
    int64_t length, heads, size, rotated;
    int64_t batch_step, head_step, row_step;
    bool interleaved;
} rotary;

#define BODY "ops/rotary.inc.c"
#include "ops/each_float.inc.h"
#undef BODY

/* Head size from the shape of X; a symbol if it is not known. */
static sn_status head_size(sni_infer *c, sni_dim *size) {
    const rotary_params *p = c->params;
    int rank = sni_infer_rank(c, 0);
    *size = sni_infer_dim(c, 0, rank - 1);
    if (rank != 3 && rank != 4) return SNI_INFER_FAIL(c, "X has rank %d, not 3 or 4", rank);
    if (rank == 4) return SN_OK;
    if (p->num_heads < 1)
        return SNI_INFER_FAIL(c, "X of rank 3 with num_heads %lld", (long long)p->num_heads);
    if (sni_dim_known(*size) && *size % p->num_heads)
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

static sn_status rotary_ref(sni_kernel *k) {
    const rotary_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *cache = sni_in(k, 1), *ids = sni_in(k, 3);
    sni_tensor *y = sni_out(k, 0);
    bool flat = x->rank == 3;
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    rotary r = {.length = x->dims[x->rank - 2],
                .heads = flat ? p->num_heads : x->dims[1],
                .interleaved = p->interleaved != 0,
                .ids = ids ? ids->data : NULL};
    r.size = x->dims[x->rank - 1] / (flat ? r.heads : 1);
    r.rotated = p->rotary_embedding_dim ? p->rotary_embedding_dim : r.size;
    r.row_step = x->dims[x->rank - 1];
    r.head_step = flat ? r.size : r.length * r.size;
    r.batch_step = r.length * r.heads * r.size;
    int64_t positions = x->dims[0] * r.length;
    for (int64_t i = 0; ids && i < positions; i++)
        if (r.ids[i] < 0 || r.ids[i] >= cache->dims[0])
            return SNI_KERNEL_FAIL(k, "position %lld is outside a cache of %lld",
                                   (long long)r.ids[i], (long long)cache->dims[0]);
    SN_TRY(sni_in_as(k, x, dtype, &r.x));
    SN_TRY(sni_in_as(k, cache, dtype, &r.cosines));
    SN_TRY(sni_in_as(k, sni_in(k, 2), dtype, &r.sines));
    SN_TRY(sni_out_as(k, y, dtype, &r.y));
    if (x->count)
        sni_parallel_for(k->threads, positions, 8192 / (r.heads * r.size) + 1,
                         dtype == SN_FLOAT64 ? positions_f64 : positions_f32, &r);
    sni_out_done(k, y, dtype, r.y);
    return SN_OK;
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
