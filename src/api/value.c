/* value.c - tensors, sequences and maps as callers see them.
 *
 * A value is counted; its contents are not guarded: whoever writes to it sees to it that nobody
 * else reads. On the way into a run memory is borrowed where possible, on the way out it is handed
 * over where nobody else holds it. */
#include "api/value.h"

#include "base/checked.h"

#include <stdlib.h>

/* ---- Making ---- */

static sn_status check_shape(sn_dtype dtype, int rank, const int64_t *dims, sn_error *err) {
    if (!sni_dtype_valid(dtype))
        return sni_fail(err, SN_INVALID_ARGUMENT, "%d is no element type", (int)dtype);
    if (rank < 0 || rank > SN_MAX_RANK)
        return sni_fail(err, SN_INVALID_ARGUMENT, "rank %d is not between 0 and %d", rank,
                        SN_MAX_RANK);
    if (rank > 0 && !dims) return sni_fail(err, SN_INVALID_ARGUMENT, "dims is NULL");
    return SN_OK;
}

/* An empty value of a kind, with one holder; NULL when memory runs out. */
static sn_value *new_of_kind(sn_kind kind) {
    sn_value *v = calloc(1, sizeof *v);
    if (!v) return NULL;
    atomic_init(&v->refs, 1);
    v->kind = kind;
    return v;
}

/* A tensor without data, whose shape and byte count are set. */
static sn_status value_new(sn_dtype dtype, int rank, const int64_t *dims, sn_value **out,
                           sn_error *err) {
    SN_TRY(check_shape(dtype, rank, dims, err));
    sni_tensor shape = {0};
    SN_TRY(sni_tensor_shape(&shape, dtype, rank, dims, err));
    sn_value *v = new_of_kind(SN_KIND_TENSOR);
    if (!v) return sni_fail_memory(err);
    v->dtype = dtype;
    v->rank = rank;
    for (int i = 0; i < rank; i++) v->dims[i] = dims[i];
    v->count = (size_t)shape.count;
    v->bytes = sn_dtype_bytes(dtype, v->count);
    *out = v;
    return SN_OK;
}

sn_status sn_tensor_create(sn_dtype dtype, int rank, const int64_t *dims, sn_value **out,
                           sn_error *err) {
    if (!out) return sni_fail(err, SN_INVALID_ARGUMENT, "out is NULL");
    sn_value *v;
    SN_TRY(value_new(dtype, rank, dims, &v, err));
    sn_status status = SN_OK;
    if (dtype == SN_STRING) {
        v->strings = calloc(v->count + 1, sizeof *v->strings);
        if (!v->strings) status = sni_fail_memory(err);
    } else {
        status = sni_buffer_new(v->bytes, NULL, &v->buffer, err);
        if (status == SN_OK) {
            v->data = v->buffer->data;
            memset(v->data, 0, v->bytes);
        }
    }
    if (status == SN_OK)
        *out = v;
    else
        sn_value_destroy(v);
    return status;
}

sn_status sn_tensor_wrap(sn_dtype dtype, int rank, const int64_t *dims, void *data, size_t bytes,
                         sn_value **out, sn_error *err) {
    return sn_tensor_adopt(dtype, rank, dims, data, bytes, NULL, NULL, out, err);
}

sn_status sn_tensor_adopt(sn_dtype dtype, int rank, const int64_t *dims, void *data, size_t bytes,
                          sn_release_fn release, void *ctx, sn_value **out, sn_error *err) {
    if (!out) return sni_fail(err, SN_INVALID_ARGUMENT, "out is NULL");
    if (dtype == SN_STRING)
        return sni_fail(err, SN_INVALID_ARGUMENT, "string tensors cannot wrap memory");
    sn_value *v;
    SN_TRY(value_new(dtype, rank, dims, &v, err));
    sn_status status = SN_OK;
    if (bytes < v->bytes || (!data && v->bytes))
        status = sni_fail(err, SN_INVALID_ARGUMENT, "the tensor takes %zu bytes and %zu are there",
                          v->bytes, data ? bytes : 0);
    if (status != SN_OK) {
        sn_value_destroy(v);
        return status;
    }
    v->data = data;
    v->release = release;
    v->release_ctx = ctx;
    *out = v;
    return SN_OK;
}

sn_status sn_sequence_create(sn_value *const *items, size_t count, sn_value **out, sn_error *err) {
    if (!out || (count && !items))
        return sni_fail(err, SN_INVALID_ARGUMENT, "%s is NULL", out ? "items" : "out");
    for (size_t i = 0; i < count; i++)
        if (!items[i]) return sni_fail(err, SN_INVALID_ARGUMENT, "item %zu is NULL", i);
    sn_value *v = new_of_kind(SN_KIND_SEQUENCE);
    sn_value **copy = calloc(count + 1, sizeof *copy);
    if (!v || !copy) {
        free(v);
        free(copy);
        return sni_fail_memory(err);
    }
    if (count) memcpy(copy, items, count * sizeof *copy);
    v->items = copy;
    v->n_items = count;
    *out = v;
    return SN_OK;
}

/* How many keys or values a map's part stands for: items of a sequence, elements of a tensor. */
static size_t length_of(const sn_value *v) {
    return v->kind == SN_KIND_SEQUENCE ? v->n_items : v->count;
}

sn_status sn_map_create(sn_value *keys, sn_value *values, sn_value **out, sn_error *err) {
    if (!keys || !values || !out) return sni_fail(err, SN_INVALID_ARGUMENT, "an argument is NULL");
    if (keys->kind != SN_KIND_TENSOR || (keys->dtype != SN_INT64 && keys->dtype != SN_STRING))
        return sni_fail(err, SN_INVALID_ARGUMENT, "keys must be an int64 or string tensor");
    if (length_of(keys) != length_of(values))
        return sni_fail(err, SN_INVALID_ARGUMENT, "%zu keys for %zu values", length_of(keys),
                        length_of(values));
    sn_value *v = new_of_kind(SN_KIND_MAP);
    if (!v) return sni_fail_memory(err);
    v->keys = keys;
    v->values = values;
    *out = v;
    return SN_OK;
}

sn_status sn_none_create(sn_value **out, sn_error *err) {
    if (!out) return sni_fail(err, SN_INVALID_ARGUMENT, "out is NULL");
    sn_value *v = new_of_kind(SN_KIND_NONE);
    if (!v) return sni_fail_memory(err);
    *out = v;
    return SN_OK;
}

sn_value *sn_value_retain(sn_value *value) {
    if (value) atomic_fetch_add_explicit(&value->refs, 1, memory_order_relaxed);
    return value;
}

void sn_value_destroy(sn_value *value) {
    if (!value || atomic_fetch_sub_explicit(&value->refs, 1, memory_order_acq_rel) != 1) return;
    if (value->release) value->release(value->release_ctx, value->data);
    sni_buffer_release(value->buffer);
    for (size_t i = 0; value->strings && i < value->count; i++) free((void *)value->strings[i].p);
    free(value->strings);
    for (size_t i = 0; i < value->n_items; i++) sn_value_destroy(value->items[i]);
    free(value->items);
    sn_value_destroy(value->keys);
    sn_value_destroy(value->values);
    free(value);
}

/* ---- Looking ---- */

/* Every question may be asked of NULL and of other kinds: the answer is then empty. */
static bool is_tensor(const sn_value *v) {
    return v && v->kind == SN_KIND_TENSOR;
}

sn_kind sn_value_kind(const sn_value *value) {
    return value ? value->kind : SN_KIND_NONE;
}

sn_dtype sn_tensor_dtype(const sn_value *value) {
    return is_tensor(value) ? value->dtype : SN_UNDEFINED;
}

int sn_tensor_rank(const sn_value *value) {
    return is_tensor(value) ? value->rank : 0;
}

const int64_t *sn_tensor_dims(const sn_value *value) {
    return is_tensor(value) ? value->dims : NULL;
}

size_t sn_tensor_count(const sn_value *value) {
    return is_tensor(value) ? value->count : 0;
}

size_t sn_tensor_bytes(const sn_value *value) {
    return is_tensor(value) ? value->bytes : 0;
}

void *sn_tensor_data(sn_value *value) {
    return is_tensor(value) ? value->data : NULL;
}

const void *sn_tensor_const_data(const sn_value *value) {
    return is_tensor(value) ? value->data : NULL;
}

static sn_status check_string(const sn_value *v, size_t index, sn_error *err) {
    if (!is_tensor(v) || v->dtype != SN_STRING)
        return sni_fail(err, SN_INVALID_ARGUMENT, "the value is no string tensor");
    if (index >= v->count)
        return sni_fail(err, SN_INVALID_ARGUMENT, "element %zu of %zu", index, v->count);
    return SN_OK;
}

sn_status sn_tensor_get_string(const sn_value *value, size_t index, const char **text,
                               size_t *length, sn_error *err) {
    SN_TRY(check_string(value, index, err));
    if (!text) return sni_fail(err, SN_INVALID_ARGUMENT, "text is NULL");
    *text = value->strings[index].p ? value->strings[index].p : "";
    if (length) *length = value->strings[index].n;
    return SN_OK;
}

/* Memory for `length` bytes and a NUL, which is set. */
static char *new_text(size_t length) {
    size_t size;
    char *text = sni_add_size(length, 1, &size) ? malloc(size) : NULL;
    if (text) text[length] = 0;
    return text;
}

/* Takes `text` over. */
static void replace_text(sn_value *v, size_t index, char *text, size_t length) {
    free((void *)v->strings[index].p);
    v->strings[index] = (sni_str){text, length};
}

sn_status sn_tensor_set_string(sn_value *value, size_t index, const char *text, size_t length,
                               sn_error *err) {
    SN_TRY(check_string(value, index, err));
    if (!text && length) return sni_fail(err, SN_INVALID_ARGUMENT, "text is NULL");
    char *copy = new_text(length);
    if (!copy) return sni_fail_memory(err);
    if (length) memcpy(copy, text, length); /* may be the text that is there */
    replace_text(value, index, copy, length);
    return SN_OK;
}

sn_status sn_tensor_resize_string(sn_value *value, size_t index, size_t length, char **text,
                                  sn_error *err) {
    SN_TRY(check_string(value, index, err));
    if (!text) return sni_fail(err, SN_INVALID_ARGUMENT, "text is NULL");
    char *made = new_text(length);
    if (!made) return sni_fail_memory(err);
    replace_text(value, index, made, length);
    *text = made;
    return SN_OK;
}

size_t sn_sequence_length(const sn_value *value) {
    return value && value->kind == SN_KIND_SEQUENCE ? value->n_items : 0;
}

const sn_value *sn_sequence_at(const sn_value *value, size_t index) {
    return index < sn_sequence_length(value) ? value->items[index] : NULL;
}

const sn_value *sn_map_keys(const sn_value *value) {
    return value && value->kind == SN_KIND_MAP ? value->keys : NULL;
}

const sn_value *sn_map_values(const sn_value *value) {
    return value && value->kind == SN_KIND_MAP ? value->values : NULL;
}

/* ---- Into a run ---- */

/* Whether kernels may read the caller's memory in place. */
static bool is_aligned(const sn_value *v) {
    size_t width = sni_dtype_width(v->dtype);
    if (width > 8) width = 8; /* complex128 is two doubles */
    return (uintptr_t)v->data % width == 0;
}

/* Strings and aligned whole-byte types are borrowed; others are copied into the run-time form,
 * where every element has bytes of its own. */
static sn_status tensor_to_datum(const sn_value *v, sni_datum *out, sn_error *err) {
    sni_tensor t = {0};
    SN_TRY(sni_tensor_shape(&t, v->dtype, v->rank, v->dims, err));
    if (v->dtype == SN_STRING) {
        t.data = v->strings;
    } else if (sni_dtype_subbyte(v->dtype)) {
        SN_TRY(sni_tensor_new(&t, v->dtype, v->rank, v->dims, NULL, err));
        sni_subbyte_unpack(v->dtype, v->data, t.data, v->count);
    } else if (!is_aligned(v)) {
        SN_TRY(sni_tensor_new(&t, v->dtype, v->rank, v->dims, NULL, err));
        if (v->bytes) memcpy(t.data, v->data, v->bytes);
    } else {
        t.data = v->data;
    }
    *out = (sni_datum){.kind = SN_KIND_TENSOR, .tensor = t};
    return SN_OK;
}

static sn_status sequence_to_datum(const sn_value *v, sni_datum *out, sn_error *err) {
    sni_sequence *s;
    sn_dtype dtype = v->n_items ? sn_tensor_dtype(v->items[0]) : SN_UNDEFINED;
    SN_TRY(sni_sequence_new(v->n_items, dtype, &s, err));
    sni_datum made = {.kind = SN_KIND_SEQUENCE, .seq = s};
    sn_status status = SN_OK;
    for (size_t i = 0; i < v->n_items && status == SN_OK; i++)
        status = sni_value_to_datum(v->items[i], &s->items[i], err);
    if (status == SN_OK)
        *out = made;
    else
        sni_datum_clear(&made);
    return status;
}

static sn_status map_to_datum(const sn_value *v, sni_datum *out, sn_error *err) {
    sni_datum made = {.kind = SN_KIND_MAP};
    SN_TRY(sni_map_new(&made.map, err));
    sn_status status = sni_value_to_datum(v->keys, &made.map->keys, err);
    if (status == SN_OK) status = sni_value_to_datum(v->values, &made.map->values, err);
    if (status == SN_OK)
        *out = made;
    else
        sni_datum_clear(&made);
    return status;
}

sn_status sni_value_to_datum(const sn_value *value, sni_datum *out, sn_error *err) {
    switch (value->kind) {
    case SN_KIND_TENSOR:
        return tensor_to_datum(value, out, err);
    case SN_KIND_SEQUENCE:
        return sequence_to_datum(value, out, err);
    case SN_KIND_MAP:
        return map_to_datum(value, out, err);
    default:
        *out = (sni_datum){.kind = SN_KIND_NONE};
        return SN_OK;
    }
}

/* ---- Out of a run ---- */

static sn_status strings_from(const sni_tensor *t, sn_value *v, sn_error *err) {
    const sni_str *from = t->data;
    for (size_t i = 0; i < v->count; i++)
        SN_TRY(sn_tensor_set_string(v, i, from[i].p, from[i].n, err));
    return SN_OK;
}

/* True if the value may take over the tensor's memory. */
static bool can_take(const sni_tensor *t) {
    return t->buffer && atomic_load(&t->buffer->refs) == 1 && t->dtype != SN_STRING &&
           !sni_dtype_subbyte(t->dtype) && t->data == t->buffer->data;
}

/* The memory is the caller's from now on and counts against no run any more. */
static void take_buffer(sni_tensor *t, sn_value *v) {
    sni_budget_give(t->buffer->budget, t->buffer->bytes);
    t->buffer->budget = NULL;
    v->buffer = t->buffer;
    v->data = t->data;
    t->buffer = NULL;
    t->data = NULL;
}

/* `take`: nobody else holds what the tensor is a part of. */
static sn_status value_from_tensor(sni_tensor *t, bool take, sn_value **out, sn_error *err) {
    sn_value *v;
    if (take && can_take(t)) {
        SN_TRY(value_new(t->dtype, t->rank, t->dims, &v, err));
        take_buffer(t, v);
        *out = v;
        return SN_OK;
    }
    SN_TRY(sn_tensor_create(t->dtype, t->rank, t->dims, &v, err));
    sn_status status = SN_OK;
    if (t->dtype == SN_STRING)
        status = strings_from(t, v, err);
    else if (sni_dtype_subbyte(t->dtype))
        sni_subbyte_pack(t->dtype, t->data, v->data, v->count);
    else if (v->bytes)
        memcpy(v->data, t->data, v->bytes);
    if (status == SN_OK)
        *out = v;
    else
        sn_value_destroy(v);
    return status;
}

static sn_status value_from(sni_datum *datum, bool take, sn_value **out, sn_error *err);

/* `take` holds for the items only if nobody else has the sequence. */
static sn_status value_from_sequence(sni_sequence *s, bool take, sn_value **out, sn_error *err) {
    sn_value *v;
    SN_TRY(sn_sequence_create(NULL, 0, &v, err));
    free(v->items);
    v->items = calloc(s->count + 1, sizeof *v->items);
    sn_status status = v->items ? SN_OK : sni_fail_memory(err);
    take = take && atomic_load(&s->refs) == 1;
    for (size_t i = 0; i < s->count && status == SN_OK; i++) {
        status = value_from(&s->items[i], take, &v->items[i], err);
        if (status == SN_OK) v->n_items++;
    }
    if (status == SN_OK)
        *out = v;
    else
        sn_value_destroy(v);
    return status;
}

static sn_status value_from_map(sni_map *m, bool take, sn_value **out, sn_error *err) {
    sn_value *keys = NULL, *values = NULL;
    take = take && atomic_load(&m->refs) == 1;
    sn_status status = value_from(&m->keys, take, &keys, err);
    if (status == SN_OK) status = value_from(&m->values, take, &values, err);
    if (status == SN_OK) status = sn_map_create(keys, values, out, err);
    if (status != SN_OK) {
        sn_value_destroy(keys);
        sn_value_destroy(values);
    }
    return status;
}

/* Recursion is bounded by the nesting of types, which import limits. */
static sn_status value_from(sni_datum *datum, bool take, sn_value **out, sn_error *err) {
    switch (datum->kind) {
    case SN_KIND_TENSOR:
        return value_from_tensor(&datum->tensor, take, out, err);
    case SN_KIND_SEQUENCE:
        return value_from_sequence(datum->seq, take, out, err);
    case SN_KIND_MAP:
        return value_from_map(datum->map, take, out, err);
    default:
        return sn_none_create(out, err);
    }
}

sn_status sni_value_from_datum(sni_datum *datum, sn_value **out, sn_error *err) {
    return value_from(datum, true, out, err);
}
