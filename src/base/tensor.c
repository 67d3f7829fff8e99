#include "base/tensor.h"

#include "base/checked.h"
#include "base/pages.h"
#include "base/buffer_cache.h"

#include <inttypes.h>
#include <stdlib.h>

/* Largest tensor, in bytes: a bound that keeps every later size computation far from overflow. */
#define TENSOR_LIMIT ((size_t)1 << 40)

sn_status sni_budget_take(sni_budget *budget, size_t bytes, sn_error *err) {
    if (!budget) return SN_OK;
    size_t before = atomic_fetch_add(&budget->used, bytes);
    if (budget->limit == 0 || (before <= budget->limit && bytes <= budget->limit - before))
        return SN_OK;
    atomic_fetch_sub(&budget->used, bytes);
    return sni_fail(err, SN_LIMIT, "memory limit of %zu bytes reached: %zu in use, %zu more needed",
                    budget->limit, before, bytes);
}

void sni_budget_give(sni_budget *budget, size_t bytes) {
    if (budget) atomic_fetch_sub(&budget->used, bytes);
}

/* Up to here allocators serve plain requests from lists, and aligned ones several times slower. */
enum { SMALL_BLOCK = 896 };

/* `total` bytes of the heap for a buffer, a multiple of SNI_ALIGN; NULL if there are none. */
static sni_buffer *heap_block(size_t total) {
    size_t lead = 0, size = 0;
    bool small = total <= SMALL_BLOCK;
    unsigned char *block = small ? malloc(total + SNI_ALIGN) : sni_buffer_cache_take(total, &size);
    if (!block) return NULL;
    if (small) lead = SNI_ALIGN - (uintptr_t)block % SNI_ALIGN;
    sni_buffer *b = (sni_buffer *)(void *)(block + lead);
    b->lead = lead;
    b->size = size;
    return b;
}

static void heap_free(sni_buffer *b) {
    if (b->size)
        sni_buffer_cache_put(b, b->size);
    else
        free((unsigned char *)b - b->lead);
}

static sn_status buffer_new(size_t bytes, bool mapped, sni_budget *budget, sni_buffer **out,
                            sn_error *err) {
    size_t total;
    if (!sni_add_size(bytes, sizeof(sni_buffer), &total) || total > SIZE_MAX / 2)
        return sni_fail(err, SN_LIMIT, "a buffer of %zu bytes is too large", bytes);
    total = (total + SNI_ALIGN - 1) & ~(size_t)(SNI_ALIGN - 1);
    SN_TRY(sni_budget_take(budget, bytes, err));
    sni_buffer *b = mapped ? sni_pages_map(total) : heap_block(total);
    if (!b) {
        sni_budget_give(budget, bytes);
        return sni_fail(err, SN_NO_MEMORY, "out of memory allocating %zu bytes", bytes);
    }
    atomic_init(&b->refs, 1);
    b->bytes = bytes;
    b->mapped = mapped ? total : 0;
    b->budget = budget;
    *out = b;
    return SN_OK;
}

sn_status sni_buffer_new(size_t bytes, sni_budget *budget, sni_buffer **out, sn_error *err) {
    return buffer_new(bytes, false, budget, out, err);
}

sn_status sni_buffer_new_mapped(size_t bytes, sni_budget *budget, sni_buffer **out, sn_error *err) {
    return buffer_new(bytes, true, budget, out, err);
}

sni_buffer *sni_buffer_retain(sni_buffer *buffer) {
    if (buffer) atomic_fetch_add(&buffer->refs, 1);
    return buffer;
}

void sni_buffer_release(sni_buffer *buffer) {
    if (!buffer || atomic_fetch_sub(&buffer->refs, 1) != 1) return;
    sni_budget_give(buffer->budget, buffer->bytes);
    if (buffer->mapped)
        sni_pages_unmap(buffer, buffer->mapped);
    else
        heap_free(buffer);
}

sn_status sni_tensor_shape(sni_tensor *t, sn_dtype dtype, int rank, const int64_t *dims,
                           sn_error *err) {
    int64_t count;
    if (rank < 0 || rank > SN_MAX_RANK)
        return sni_fail(err, SN_LIMIT, "rank %d is more than the %d supported", rank, SN_MAX_RANK);
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0)
            return sni_fail(err, SN_BAD_DATA, "dimension %d is negative (%" PRId64 ")", i, dims[i]);
    size_t bytes;
    if (!sni_shape_count(rank, dims, &count) ||
        !sni_mul_size((size_t)count, sni_dtype_width(dtype), &bytes) || bytes > TENSOR_LIMIT)
        return sni_fail(err, SN_LIMIT, "a tensor this large is not supported");
    t->dtype = dtype;
    t->rank = rank;
    t->count = count;
    for (int i = 0; i < rank; i++) t->dims[i] = dims[i];
    return SN_OK;
}

sn_status sni_tensor_new(sni_tensor *t, sn_dtype dtype, int rank, const int64_t *dims,
                         sni_budget *budget, sn_error *err) {
    sni_tensor made = {0};
    SN_TRY(sni_tensor_shape(&made, dtype, rank, dims, err));
    SN_TRY(sni_buffer_new(sni_tensor_bytes(&made), budget, &made.buffer, err));
    made.data = made.buffer->data;
    if (dtype == SN_STRING) memset(made.data, 0, sni_tensor_bytes(&made));
    *t = made;
    return SN_OK;
}

int64_t sni_tensor_span(const sni_tensor *t, int from, int to) {
    int64_t product = 1;
    for (int i = from; i < to; i++) product *= t->dims[i];
    return product;
}

sn_status sni_sequence_new(size_t count, sn_dtype dtype, sni_sequence **out, sn_error *err) {
    size_t bytes;
    if (!sni_mul_size(count, sizeof(sni_datum), &bytes) ||
        !sni_add_size(bytes, sizeof(sni_sequence), &bytes))
        return sni_fail(err, SN_LIMIT, "a sequence of %zu values is too long", count);
    sni_sequence *s = calloc(1, bytes);
    if (!s) return sni_fail_memory(err);
    atomic_init(&s->refs, 1);
    s->dtype = dtype;
    s->count = count;
    *out = s;
    return SN_OK;
}

sn_status sni_map_new(sni_map **out, sn_error *err) {
    sni_map *m = calloc(1, sizeof *m);
    if (!m) return sni_fail_memory(err);
    atomic_init(&m->refs, 1);
    *out = m;
    return SN_OK;
}

static void sequence_release(sni_sequence *s) {
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1) return;
    for (size_t i = 0; i < s->count; i++) sni_datum_clear(&s->items[i]);
    free(s);
}

static void map_release(sni_map *m) {
    if (!m || atomic_fetch_sub(&m->refs, 1) != 1) return;
    sni_datum_clear(&m->keys);
    sni_datum_clear(&m->values);
    free(m);
}

void sni_datum_clear(sni_datum *d) {
    sni_buffer_release(d->tensor.buffer);
    sequence_release(d->seq);
    map_release(d->map);
    d->kind = SN_KIND_NONE;
    d->tensor.buffer = NULL;
    d->tensor.data = NULL;
    d->seq = NULL;
    d->map = NULL;
}

sn_status sni_datum_share(sni_datum *dst, const sni_datum *src, sni_budget *budget, sn_error *err) {
    if (src->kind == SN_KIND_TENSOR && !src->tensor.buffer) {
        const sni_tensor *t = &src->tensor;
        SN_TRY(sni_tensor_new(&dst->tensor, t->dtype, t->rank, t->dims, budget, err));
        if (t->count) memcpy(dst->tensor.data, t->data, sni_tensor_bytes(t));
        dst->kind = SN_KIND_TENSOR;
        return SN_OK;
    }
    *dst = *src;
    sni_buffer_retain(dst->tensor.buffer);
    if (dst->seq) atomic_fetch_add(&dst->seq->refs, 1);
    if (dst->map) atomic_fetch_add(&dst->map->refs, 1);
    return SN_OK;
}
