/* attention_core.c - the attention that all reference kernels of attention operators share. */
#include "ops/attention/attention_core.h"

#include "base/checked.h"
#include "base/threadpool.h"
#include "ops/core/compute.h"
#include "ops/attention/kv_cache.h"
#include "ops/core/kernel_hooks.h"
#include "ops/core/tensor_util.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

enum { SCORE_BYTES = 16 << 20 }; /* of scores worked out at once */

enum { SCORES = 1, PROBABILITIES = 2 }; /* stages of the work on a row of scores */

/* Whether causality, window and padding let query q of batch b see key j. */
static bool is_seen(const sni_attention *a, int64_t b, int64_t q, int64_t j) {
    int64_t beyond = j - (q + a->before[b]);
    if (a->causal && beyond > 0) return false;
    if (a->right >= 0 && beyond > a->right) return false;
    if (a->left >= 0 && -beyond > a->left) return false;
    return !a->lengths || j < a->lengths[b];
}

#define BODY "ops/attention/attention_core.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

/* ---- Scores and sums ---- */

static const void *head_at(const sni_attention *a, const sni_heads *h, int64_t i, bool shared) {
    int64_t b = i / a->q_heads, head = i % a->q_heads;
    if (shared) head = head / (a->q_heads / a->kv_heads);
    return sni_element(h->data, b * h->batch + head * h->head, sni_dtype_width(a->dtype));
}

static void scores_locate(const void *ctx, int64_t i, sni_gemm *g) {
    const sni_attention *a = ctx;
    g->a = head_at(a, &a->q, a->first + i, false);
    g->b = head_at(a, &a->k, a->first + i, true);
    g->c = sni_element(a->scores, i * a->q_length * a->total, sni_dtype_width(a->dtype));
}

static void values_locate(const void *ctx, int64_t i, sni_gemm *g) {
    const sni_attention *a = ctx;
    g->a = sni_element(a->scores, i * a->q_length * a->total, sni_dtype_width(a->dtype));
    g->b = head_at(a, &a->v, a->first + i, true);
    g->c = (void *)(uintptr_t)head_at(a, &a->y, a->first + i, false);
}

/* The scores or probabilities of all heads, through a subgraph. */
static sn_status modify(sni_kernel *k, sni_attention *a, int32_t graph) {
    if (graph < 0) return SN_OK;
    int64_t dims[4] = {a->batches, a->q_heads, a->q_length, a->total};
    sni_datum in = {.kind = SN_KIND_TENSOR}, out = {0};
    const sni_datum *ins[1] = {&in};
    sni_tensor *t = &in.tensor;
    const void *made;
    sn_status status = sni_tensor_new(t, a->mods->dtype, 4, dims, k->budget, k->err);
    if (status != SN_OK) return status;
    if (t->dtype == a->dtype)
        sni_copy_bytes(t->data, a->scores, sni_tensor_bytes(t));
    else
        sni_out_done(k, t, a->dtype, a->scores);
    status = sni_run_subgraph(k, graph, ins, 1, &out, 1);
    if (status != SN_OK) goto done;
    if (out.kind != SN_KIND_TENSOR || out.tensor.dtype != t->dtype || out.tensor.rank != 4 ||
        memcmp(out.tensor.dims, dims, sizeof dims)) {
        status = SNI_KERNEL_FAIL(k, "subgraph %d does not keep type and shape of what it is given",
                                 (int)graph);
        goto done;
    }
    status = sni_in_as(k, &out.tensor, a->dtype, &made);
    if (status == SN_OK)
        sni_copy_bytes(a->scores, made, (size_t)t->count * sni_dtype_width(a->dtype));
done:
    sni_datum_clear(&in);
    sni_datum_clear(&out);
    return status;
}

static void run_rows(sni_kernel *k, sni_attention *a, int64_t n, int stages) {
    a->stages = stages;
    sni_parallel_for(k->threads, n * a->q_length, 2048 / (a->total + 1) + 1,
                     a->dtype == SN_FLOAT64 ? rows_f64 : rows_f32, a);
}

/* Products of n heads to probabilities. */
static sn_status weigh(sni_kernel *k, sni_attention *a, int64_t n) {
    if (!a->mods) {
        run_rows(k, a, n, SCORES | PROBABILITIES);
        return SN_OK;
    }
    run_rows(k, a, n, SCORES);
    SN_TRY(modify(k, a, a->mods->score));
    run_rows(k, a, n, PROBABILITIES);
    return modify(k, a, a->mods->prob);
}

/* Scratch for results that nothing reads: scores or caches may still be wanted. */
static sn_status unwanted_results(sni_kernel *k, sni_attention *a) {
    int64_t heads = a->batches * a->q_heads, rows;
    void *place;
    if (!sni_mul_i64(heads, a->q_length, &rows))
        return sni_fail(k->err, SN_LIMIT, "%" PRId64 " queries", a->q_length);
    SN_TRY(sni_scratch_matrix(k, rows, a->v_size, sni_dtype_width(a->dtype), &place));
    a->y = sni_heads_outer(place, a->q_heads, a->q_length, a->v_size);
    return SN_OK;
}

/* All heads, a chunk at a time, or at once where subgraphs are to see them together. */
sn_status sni_attend(sni_kernel *k, sni_attention *a) {
    int64_t count = a->batches * a->q_heads, each;
    size_t width = sni_dtype_width(a->dtype);
    if (!sni_mul_i64(a->q_length, a->total, &each) || each > INT64_MAX / 16)
        return sni_fail(k->err, SN_LIMIT, "%" PRId64 " queries for %" PRId64 " keys", a->q_length,
                        a->total);
    if (!a->y.data) SN_TRY(unwanted_results(k, a));
    const sni_kernel_hooks *hooks = sni_kernel_hooks_for(k, a->dtype);
    bool done = false;
    if (hooks) SN_TRY(hooks->attend(k, a, &done));
    if (done) return SN_OK;
    SN_TRY(sni_kv_expand(k, a, a->head_size, &a->k));
    SN_TRY(sni_kv_expand(k, a, a->v_size, &a->v));
    int64_t chunk = SCORE_BYTES / (each * (int64_t)width + 1) + 1;
    if (chunk > count || a->mods) chunk = count;
    SN_TRY(sni_scratch_matrix(k, chunk, each, width, &a->scores));
    SN_TRY(sni_scratch_matrix(k, chunk, each, width, &a->bias));
    sni_gemm qk = {.m = a->q_length,
                   .n = a->total,
                   .k = a->head_size,
                   .a_row = a->q.row,
                   .a_col = 1,
                   .b_row = 1,
                   .b_col = a->k.row,
                   .c_row = a->total};
    sni_gemm pv = {.m = a->q_length,
                   .n = a->v_size,
                   .k = a->total,
                   .a_row = a->total,
                   .a_col = 1,
                   .b_row = a->v.row,
                   .b_col = 1,
                   .c_row = a->y.row};
    for (a->first = 0; a->first < count; a->first += chunk) {
        int64_t n = count - a->first < chunk ? count - a->first : chunk;
        SN_TRY(sni_gemm_batch(k, a->dtype, &qk, n, scores_locate, a));
        SN_TRY(weigh(k, a, n));
        SN_TRY(sni_gemm_batch(k, a->dtype, &pv, n, values_locate, a));
    }
    return SN_OK;
}

/* ---- Masks ---- */

sn_status sni_infer_attention_mask(sni_infer *c, int i, const sni_dim scores[4], bool shorter) {
    if (!sni_infer_shaped(c, i)) return SN_OK;
    int rank = sni_infer_rank(c, i);
    if (rank < 1 || rank > 4) return SNI_INFER_FAIL(c, "the mask has rank %d", rank);
    for (int j = 0; j < rank; j++) {
        sni_dim d = sni_infer_dim(c, i, j), s = scores[4 - rank + j];
        if (!sni_dim_known(d) || !sni_dim_known(s)) continue;
        bool last = j == rank - 1;
        if (last ? (shorter ? d > s : d != s) : d != 1 && d != s)
            return SNI_INFER_FAIL(c, "the mask has size %" PRId64 " where the scores have %" PRId64,
                                  d, s);
    }
    return SN_OK;
}

sn_status sni_attention_mask(sni_kernel *k, sni_attention *a, const sni_tensor *mask) {
    if (!mask) return SN_OK;
    a->bool_mask = mask->dtype == SN_BOOL;
    if (a->bool_mask)
        a->mask = mask->data;
    else
        SN_TRY(sni_in_as(k, mask, a->dtype, &a->mask));
    int64_t strides[SN_MAX_RANK];
    sni_strides(mask->rank, mask->dims, strides);
    for (int i = 0; i < 3; i++) {
        int at = i - (4 - mask->rank);
        a->mask_stride[i] = at < 0 || mask->dims[at] == 1 ? 0 : strides[at];
    }
    a->mask_length = mask->dims[mask->rank - 1];
    return SN_OK;
}

/* Whether a mask of padding fits; sizes that are not known do. */
static bool padding_fits(int rank, const sni_dim *d, const sni_dim scores[4]) {
    sni_dim batch = scores[0], total = scores[3];
    switch (rank) {
    case 1:
        return !sni_dim_differ(d[0], batch) ||
               (batch < INT32_MAX && (d[0] == 2 * batch || d[0] == 3 * batch + 2));
    case 2:
        return (d[1] == 1 && (d[0] == 1 || !sni_dim_differ(d[0], batch))) ||
               (!sni_dim_differ(d[0], batch) && !sni_dim_differ(d[1], total));
    case 3:
        return !sni_dim_differ(d[0], batch) && !sni_dim_differ(d[1], scores[2]) &&
               !sni_dim_differ(d[2], total);
    case 4:
        return !sni_dim_differ(d[0], batch) && !sni_dim_differ(d[1], 1) &&
               !sni_dim_differ(d[2], d[3]) &&
               !(sni_dim_known(d[3]) && sni_dim_known(total) && d[3] < total);
    default:
        return false;
    }
}

sn_status sni_infer_padding(sni_infer *c, int i, const sni_dim scores[4]) {
    if (!sni_infer_shaped(c, i)) return SN_OK;
    if (!padding_fits(sni_infer_rank(c, i), c->in[i]->dims, scores))
        return SNI_INFER_FAIL(c, "the mask at input %d does not fit batch, queries and keys", i);
    return SN_OK;
}

/* Whether a mask says that key j is padding for query q of batch b. */
static bool is_padding(const sni_attention *a, const sni_tensor *mask, int64_t b, int64_t q,
                       int64_t j) {
    const int32_t *m = mask->data;
    int64_t side = mask->dims[mask->rank - 1];
    switch (mask->rank) {
    case 1:
        if (j >= m[b]) return true;
        return side == 2 * a->batches && j < m[b + a->batches];
    case 2:
        return m[b * side + j] <= 0;
    case 3:
        return m[(b * a->q_length + q) * side + j] <= 0;
    default:
        return m[(b * side + a->before[b] + q) * side + j] <= 0;
    }
}

static void fill_padding(const sni_attention *a, const sni_tensor *mask, float filter,
                         int64_t queries, void *out) {
    int64_t at = 0;
    for (int64_t b = 0; b < a->batches; b++)
        for (int64_t q = 0; q < queries; q++)
            for (int64_t j = 0; j < a->total; j++, at++) {
                float v = is_padding(a, mask, b, q, j) ? filter : 0;
                if (a->dtype == SN_FLOAT64)
                    ((double *)out)[at] = (double)v;
                else
                    ((float *)out)[at] = v;
            }
}

sn_status sni_attention_padding(sni_kernel *k, sni_attention *a, const sni_tensor *mask,
                                float filter) {
    void *out = NULL;
    if (!mask) return SN_OK;
    sni_dim scores[4] = {a->batches, a->q_heads, a->q_length, a->total};
    if (!padding_fits(mask->rank, mask->dims, scores))
        return SNI_KERNEL_FAIL(k, "the mask does not fit batch, queries and keys");
    if (mask->rank == 2 && mask->dims[1] == 1 && a->total != 1) return SN_OK;
    for (int64_t b = 0; mask->rank == 4 && b < a->batches; b++)
        if (a->before[b] + a->q_length > mask->dims[2])
            return SNI_KERNEL_FAIL(k, "a mask of %" PRId64 " rows for %" PRId64 " queries",
                                   mask->dims[2], a->before[b] + a->q_length);
    int64_t queries = mask->rank < 3 ? 1 : a->q_length, rows;
    if (!sni_mul_i64(a->batches, queries, &rows)) return sni_fail_memory(k->err);
    SN_TRY(sni_scratch_matrix(k, rows, a->total, sni_dtype_width(a->dtype), &out));
    fill_padding(a, mask, filter, queries, out);
    a->padding = out;
    a->padding_stride[0] = queries * a->total;
    a->padding_stride[1] = queries > 1 ? a->total : 0;
    return SN_OK;
}
