/* kv_cache.c - caches of keys and values: their shapes, what they store, and appending to them. */
#include "ops/attention/kv_cache.h"

#include "base/checked.h"
#include "base/floats.h"
#include "base/lengths.h"
#include "base/threadpool.h"
#include "ops/core/compute.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>
#include <math.h>

/* ---- Shapes ---- */

sn_status sni_infer_cache(sni_infer *c, int i, sni_dim batch, sni_dim heads, sni_dim size,
                          sni_dim *length) {
    *length = 0;
    if (!sni_infer_given(c, i)) return SN_OK;
    *length = sni_infer_shaped(c, i) && sni_infer_rank(c, i) == 4 ? sni_infer_dim(c, i, 2)
                                                                  : sni_dim_fresh(c->symbols);
    if (!sni_infer_shaped(c, i)) return SN_OK;
    if (sni_infer_rank(c, i) != 4 || sni_dim_differ(sni_infer_dim(c, i, 0), batch) ||
        sni_dim_differ(sni_infer_dim(c, i, 1), heads) ||
        sni_dim_differ(sni_infer_dim(c, i, 3), size))
        return SNI_INFER_FAIL(c, "the cache at input %d does not fit the heads", i);
    return SN_OK;
}

sn_status sni_same_i64(sni_kernel *k, int64_t n, int64_t v, const int64_t **out) {
    int64_t *all = NULL;
    SN_TRY(sni_scratch_i64(k, n, &all));
    for (int64_t i = 0; i < n; i++) all[i] = v;
    *out = all;
    return SN_OK;
}

sn_status sni_attention_past(sni_kernel *k, const sni_tensor *given, int64_t fresh, int64_t *past,
                             int64_t *rows) {
    *rows = *past + fresh;
    if (!given) return SN_OK;
    *rows = *past;
    if (given->count != 1)
        return SNI_KERNEL_FAIL(k, "past_sequence_length has %" PRId64 " elements", given->count);
    *past = sni_index_at(given, 0);
    if (*past < 0 || fresh > *rows || *past > *rows - fresh)
        return SNI_KERNEL_FAIL(
            k, "%" PRId64 " keys before %" PRId64 " new ones in a cache of %" PRId64, *past, fresh,
            *rows);
    return SN_OK;
}

/* ---- What is stored ---- */

/* NaN becomes `high`. */
static int quantized(float v, float scale, float low, float high) {
    float q = nearbyintf(v * (scale == 0 ? 1 : 1 / scale));
    q = q < high ? q : high;
    return (int)(q > low ? q : low);
}

void sni_kv_store(sn_dtype stored, const float *scale, const float *row, int64_t n, void *to) {
    uint8_t *pairs = to;
    if (stored == SN_INT8) {
        for (int64_t i = 0; i < n; i++)
            ((int8_t *)to)[i] = (int8_t)quantized(row[i], scale[i], -128, 127);
        return;
    }
    if (stored != SN_UINT8) {
        sni_narrow(stored, row, to, (size_t)n, false);
        return;
    }
    for (int64_t i = 0; i < n; i += 2) {
        int low = quantized(row[i], scale[i], -8, 7) + 8;
        int high = i + 1 < n ? quantized(row[i + 1], scale[i + 1], -8, 7) + 8 : 8;
        pairs[i / 2] = (uint8_t)(low | high << 4);
    }
}

void sni_kv_load(const sni_heads *h, int64_t b, int64_t head, int64_t s, int64_t n, float *to) {
    const sn_dtype stored = h->stored ? h->stored : SN_FLOAT32;
    const void *from = sni_element(h->data, sni_heads_at(h, b, head, s), sni_dtype_width(stored));
    const float *scale = h->scale ? h->scale + head * n : NULL;
    if (stored == SN_FLOAT32) {
        sni_copy_bytes(to, from, (size_t)n * sizeof *to);
    } else if (stored == SN_INT8) {
        for (int64_t i = 0; i < n; i++) to[i] = (float)((const int8_t *)from)[i] * scale[i];
    } else if (stored == SN_UINT8) {
        for (int64_t i = 0; i < n; i++) {
            int q = ((const uint8_t *)from)[i / 2] >> i % 2 * 4 & 15;
            to[i] = (float)(q - 8) * scale[i];
        }
    } else {
        sni_widen(stored, from, to, (size_t)n);
    }
}

typedef struct expansion {
    const sni_attention *a;
    const sni_heads *from;
    int64_t size;
    float *to;
} expansion;

/* Rows [begin, end) of all heads of all batches. */
static void expand_rows(void *ctx, int64_t begin, int64_t end) {
    const expansion *e = ctx;
    const int64_t total = e->a->total, heads = e->a->kv_heads;
    for (int64_t i = begin; i < end; i++)
        sni_kv_load(e->from, i / total / heads, i / total % heads, i % total, e->size,
                    e->to + i * e->size);
}

sn_status sni_kv_expand(sni_kernel *k, const sni_attention *a, int64_t size, sni_heads *h) {
    enum { GRAIN = 4096 };
    void *all = NULL;
    int64_t rows;
    if (sni_heads_plain(h)) return SN_OK;
    if (!sni_mul_i64(a->batches * a->kv_heads, a->total, &rows)) return sni_fail_memory(k->err);
    SN_TRY(sni_scratch_matrix(k, rows, size, sizeof(float), &all));
    expansion e = {a, h, size, all};
    sni_parallel_for(k->threads, rows, GRAIN / (size + 1) + 1, expand_rows, &e);
    *h = sni_heads_outer(all, a->kv_heads, a->total, size);
    return SN_OK;
}

sn_status sni_kv_scales(sni_kernel *k, const sni_attention *a, int input, sni_kv_quant quant,
                        const float **out) {
    const sni_tensor *given = sni_in(k, input);
    const int64_t all = a->kv_heads * a->head_size, want = quant == SNI_KV_PER_TENSOR ? 1 : all;
    void *room = NULL;
    if (quant == SNI_KV_PLAIN) return SN_OK;
    if (!given || given->count != want)
        return SNI_KERNEL_FAIL(k, "input %d has %" PRId64 " scales, not %" PRId64, input,
                               given ? given->count : 0, want);
    *out = given->data;
    if (quant == SNI_KV_PER_CHANNEL) return SN_OK;
    SN_TRY(sni_scratch_matrix(k, a->kv_heads, a->head_size, sizeof(float), &room));
    for (int64_t i = 0; i < all; i++) ((float *)room)[i] = *(const float *)given->data;
    *out = room;
    return SN_OK;
}

/* ---- Appending ---- */

typedef struct joining {
    const sni_attention *a;
    const sni_cache *c;
    const int64_t *used;
    int64_t fresh, size;
    const sni_heads *rows; /* the new ones */
    sni_heads old, to;
    size_t width; /* bytes of what strides of `old` and `to` count */
    bool in_place;
} joining;

static void join_head(const joining *j, int64_t b, int64_t head) {
    const sni_cache *c = j->c;
    const size_t row = (size_t)j->to.row * j->width, from_width = sni_dtype_width(j->a->dtype);
    const int64_t used = j->used[b], filled = used + j->fresh;
    const int64_t rows = j->in_place ? sni_min(c->rows, j->a->total) : c->rows;
    const float *scale = c->scale ? c->scale + head * j->size : NULL;
    unsigned char *to = (unsigned char *)(uintptr_t)sni_element(
        j->to.data, sni_heads_at(&j->to, b, head, 0), j->width);
    if (used > 0 && !j->in_place)
        memmove(to, sni_element(c->past, sni_heads_at(&j->old, b, head, 0), j->width),
                (size_t)used * row);
    for (int64_t r = 0; r < j->fresh; r++) {
        const void *from =
            sni_element(j->rows->data, sni_heads_at(j->rows, b, head, r), from_width);
        unsigned char *at = to + (size_t)(used + r) * row;
        if (c->stored)
            sni_kv_store(c->stored, scale, from, j->size, at);
        else
            memcpy(at, from, row);
    }
    if (filled < rows) memset(to + (size_t)filled * row, 0, (size_t)(rows - filled) * row);
}

static void join_heads(void *ctx, int64_t begin, int64_t end) {
    const joining *j = ctx;
    const int64_t heads = j->a->kv_heads;
    for (int64_t i = begin; i < end; i++) join_head(j, i / heads, i % heads);
}

sn_status sni_attention_join(sni_kernel *k, const sni_attention *a, const sni_cache *c,
                             const int64_t *used, int64_t fresh, int64_t size, sni_heads *h) {
    enum { GRAIN = 1 << 14 }; /* bytes worth a thread */
    joining j = {a, c, used, fresh, size, h};
    void *all = c->present;
    int64_t units = sni_kv_units(c->stored, size), groups, rows;
    if (!sni_mul_i64(a->batches, a->kv_heads, &groups) || !sni_mul_i64(groups, c->rows, &rows))
        return sni_fail_memory(k->err);
    j.width = sni_dtype_width(c->stored ? c->stored : a->dtype);
    if (!all) SN_TRY(sni_scratch_matrix(k, rows, units, j.width, &all));
    j.to = sni_heads_outer(all, a->kv_heads, c->rows, units);
    j.old = sni_heads_outer(c->past, a->kv_heads, c->past_rows, units);
    j.in_place = c->past && c->past == all && c->past_rows == c->rows;
    double each = (double)(j.in_place ? fresh : c->rows) * (double)units * (double)j.width;
    if (rows && units)
        sni_parallel_for(k->threads, groups, 1 + (int64_t)(GRAIN / (each + 1)), join_heads, &j);
    j.to.stored = c->stored;
    j.to.scale = c->scale;
    *h = j.to;
    return SN_OK;
}

/* What a cache of type `dtype` stores if that is not what is computed with. */
static sn_dtype stored_as(const sni_attention *a, sn_dtype dtype) {
    return dtype == a->dtype ? SN_UNDEFINED : dtype;
}

sn_status sni_attention_join_tensors(sni_kernel *k, const sni_attention *a, const sni_tensor *past,
                                     sni_tensor *present, const sni_append *append, sni_heads *h) {
    sni_cache c = {.past_rows = past ? past->dims[2] : 0, .rows = append->rows};
    if (!past && !present) return SN_OK;
    const sn_dtype type = present ? present->dtype : past->dtype;
    bool same = !past || !present || past->dtype == type;
    if (same && a->dtype == SN_FLOAT32 && (present || append->scale)) {
        c.past = past ? past->data : NULL;
        c.present = present ? present->data : NULL;
        c.stored = stored_as(a, type);
        c.scale = append->scale;
        return sni_attention_join(k, a, &c, append->used, append->fresh, append->size, h);
    }
    SN_TRY(sni_in_as(k, past, a->dtype, &c.past));
    SN_TRY(sni_out_as(k, present, a->dtype, &c.present));
    SN_TRY(sni_attention_join(k, a, &c, append->used, append->fresh, append->size, h));
    sni_out_done(k, present, a->dtype, c.present);
    return SN_OK;
}
