/* CastMap, DictVectorizer and ZipMap: between maps and tensors. */
#include "ops/tensor/cast_text.h"
#include "ops/core/lookup.h"
#include "ops/ml/ml.h"
#include "ops/core/seq_util.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <stdlib.h>

/* The keys and values of a map input; values must be a tensor. */
static sn_status map_parts(sni_kernel *k, const sni_tensor **keys, const sni_tensor **values) {
    if (k->in[0]->kind != SN_KIND_MAP) return SNI_KERNEL_FAIL(k, "the input is no map");
    const sni_map *m = k->in[0]->map;
    if (m->keys.kind != SN_KIND_TENSOR || m->values.kind != SN_KIND_TENSOR ||
        m->keys.tensor.count != m->values.tensor.count)
        return SNI_KERNEL_FAIL(k, "the map's keys and values do not go together");
    *keys = &m->keys.tensor;
    *values = &m->values.tensor;
    return SN_OK;
}

/* ---- CastMap ---- */

typedef struct cast_map_params {
    int32_t cast_to, map_form;
    int64_t max_map;
} cast_map_params;

static const sn_dtype cast_types[] = {SN_FLOAT32, SN_STRING, SN_INT64};
enum { DENSE, SPARSE };

static sn_status cast_values(sni_kernel *k, const sni_tensor *x, sni_tensor *y) {
    if (x->dtype == y->dtype) {
        if (x->count) memcpy(y->data, x->data, sni_tensor_bytes(x));
        return SN_OK;
    }
    if (y->dtype == SN_STRING) return sni_numbers_to_text(k, x, y);
    if (x->dtype == SN_STRING) return sni_text_to_numbers(k, x, y, NULL);
    if (x->count) sni_convert(x->dtype, x->data, y->dtype, y->data, (size_t)x->count, NULL);
    return SN_OK;
}

typedef struct keyed {
    int64_t key, at;
} keyed;

static int by_key(const void *a, const void *b) {
    int64_t p = ((const keyed *)a)->key, q = ((const keyed *)b)->key;
    return (p > q) - (p < q);
}

/* Positions of a map's elements in the order of their keys. */
static sn_status key_order(sni_kernel *k, const sni_tensor *keys, keyed **out) {
    void *memory = NULL;
    SN_TRY(sni_scratch_array(k, keys->count, sizeof(keyed), &memory));
    keyed *order = memory;
    for (int64_t i = 0; i < keys->count; i++) order[i] = (keyed){sni_index_at(keys, i), i};
    if (keys->count) qsort(order, (size_t)keys->count, sizeof *order, by_key);
    *out = order;
    return SN_OK;
}

static sn_status cast_map_ref(sni_kernel *k) {
    const cast_map_params *p = k->params;
    const sni_tensor *keys = NULL, *values = NULL;
    keyed *order = NULL;
    void *memory = NULL;
    sn_dtype dtype = cast_types[p->cast_to];
    size_t width = sni_dtype_width(dtype);
    SN_TRY(map_parts(k, &keys, &values));
    if (keys->dtype != SN_INT64) return SNI_KERNEL_FAIL(k, "the map's keys are not int64");
    SN_TRY(key_order(k, keys, &order));
    SN_TRY(sni_scratch_array(k, values->count, width, &memory));
    sni_tensor cast = {.dtype = dtype, .rank = 1, .count = values->count, .data = memory};
    SN_TRY(cast_values(k, values, &cast));
    int64_t size = p->map_form == SPARSE ? p->max_map : values->count;
    SN_TRY(sni_out_alloc(k, 0, dtype, 2, (int64_t[]){1, size}));
    sni_tensor *y = sni_out(k, 0);
    if (dtype != SN_STRING && y->count) memset(y->data, 0, sni_tensor_bytes(y));
    for (int64_t i = 0; i < values->count; i++) {
        int64_t at = p->map_form == SPARSE ? order[i].key : i;
        if (at < 0 || at >= size)
            return SNI_KERNEL_FAIL(k, "key %lld is outside a map of %lld", (long long)at,
                                   (long long)size);
        memcpy((unsigned char *)y->data + (size_t)at * width,
               (const unsigned char *)memory + (size_t)order[i].at * width, width);
    }
    return SN_OK;
}

static sn_status cast_map_infer(sni_infer *c) {
    const cast_map_params *p = c->params;
    if (p->map_form == SPARSE && p->max_map < 1)
        return SNI_INFER_FAIL(c, "max_map is %lld", (long long)p->max_map);
    SN_TRY(sni_infer_set_type(c, 0, cast_types[p->cast_to]));
    sni_dim n = p->map_form == SPARSE ? p->max_map : sni_dim_fresh(c->symbols);
    return sni_infer_set_shape(c, 0, 2, (sni_dim[]){1, n});
}

const sni_op sni_op_CastMap = {
    .name = "CastMap",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T1"}),
    .outputs = SNI_FORMALS({"Y", "T2"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_MAP},
                           {"T2", SNI_T(SN_STRING) | SNI_T(SN_FLOAT32) | SNI_T(SN_INT64)}),
    .params =
        SNI_PARAMS({"cast_to", SNI_ATTR_STRING, offsetof(cast_map_params, cast_to),
                    .text = "TO_FLOAT", .choices = "TO_FLOAT|TO_STRING|TO_INT64"},
                   {"map_form", SNI_ATTR_STRING, offsetof(cast_map_params, map_form),
                    .text = "DENSE", .choices = "DENSE|SPARSE"},
                   {"max_map", SNI_ATTR_INT, offsetof(cast_map_params, max_map), .number = 1}),
    .params_size = sizeof(cast_map_params),
    .flags = SNI_OP_ALLOCATES,
    .infer = cast_map_infer,
    .ref = cast_map_ref,
};

/* ---- DictVectorizer ---- */

typedef struct dict_params {
    sni_ints ints;
    sni_strings strings;
    sni_lookup lookup; /* prepared */
} dict_params;

static sn_status dict_prepare(void *params, sni_arena *arena, sn_error *err) {
    dict_params *p = params;
    if ((p->ints.n > 0) == (p->strings.n > 0))
        return sni_fail(err, SN_INVALID_MODEL, "one vocabulary is needed");
    if (p->strings.n)
        return sni_lookup_make(&p->lookup, SN_STRING, p->strings.v, p->strings.n, arena, err);
    return sni_lookup_make(&p->lookup, SN_INT64, p->ints.v, p->ints.n, arena, err);
}

static sn_status dict_ref(sni_kernel *k) {
    const dict_params *p = k->params;
    const sni_tensor *keys = NULL, *values = NULL;
    SN_TRY(map_parts(k, &keys, &values));
    if (keys->dtype != p->lookup.kind)
        return SNI_KERNEL_FAIL(k, "the map's keys are %s, the vocabulary's %s",
                               sn_dtype_name(keys->dtype), sn_dtype_name(p->lookup.kind));
    size_t width = sni_dtype_width(values->dtype);
    SN_TRY(sni_out_alloc(k, 0, values->dtype, 2, (int64_t[]){1, (int64_t)p->lookup.count}));
    sni_tensor *y = sni_out(k, 0);
    if (y->dtype != SN_STRING) memset(y->data, 0, sni_tensor_bytes(y));
    for (int64_t i = 0; i < keys->count; i++) {
        int64_t at = sni_lookup_element(&p->lookup, keys, i);
        if (at < 0) continue;
        memcpy((unsigned char *)y->data + (size_t)at * width,
               (const unsigned char *)values->data + (size_t)i * width, width);
    }
    return SN_OK;
}

static sn_status dict_infer(sni_infer *c) {
    const dict_params *p = c->params;
    const sni_type *value = c->in[0]->inner;
    if (value && value->dtype) SN_TRY(sni_infer_set_type(c, 0, value->dtype));
    return sni_infer_set_shape(c, 0, 2, (sni_dim[]){1, (sni_dim)p->lookup.count});
}

const sni_op sni_op_DictVectorizer = {
    .name = "DictVectorizer",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T1"}),
    .outputs = SNI_FORMALS({"Y", "T2"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_MAP}, {"T2", SNI_T(SN_STRING) | SNI_T(SN_FLOAT32) |
                                                         SNI_T(SN_FLOAT64) | SNI_T(SN_INT64)}),
    .params = SNI_PARAMS({"int64_vocabulary", SNI_ATTR_INTS, offsetof(dict_params, ints)},
                         {"string_vocabulary", SNI_ATTR_STRINGS, offsetof(dict_params, strings)}),
    .params_size = sizeof(dict_params),
    .flags = SNI_OP_ALLOCATES,
    .prepare = dict_prepare,
    .infer = dict_infer,
    .ref = dict_ref,
};

/* ---- ZipMap ---- */

/* A sequence of one map per row, all with the same keys. The maps share two buffers. */
static sn_status zip_rows(sni_kernel *k, const sni_ml_labels *labels, const sni_tensor *x,
                          int64_t rows, int64_t width, sni_sequence *out) {
    sni_tensor keys = {0}, values = {0};
    SN_TRY(sni_tensor_new(&keys, sni_ml_label_type(labels), 1, &width, k->budget, k->err));
    sn_status status =
        sni_tensor_new(&values, SN_FLOAT32, 2, (int64_t[]){rows, width}, k->budget, k->err);
    if (status != SN_OK) goto done;
    if (x->count) memcpy(values.data, x->data, sni_tensor_bytes(x));
    for (int64_t c = 0; c < width; c++) sni_ml_put_label(labels, &keys, c, c);
    for (int64_t r = 0; r < rows; r++) {
        sni_datum *item = &out->items[r];
        status = sni_map_new(&item->map, k->err);
        if (status != SN_OK) goto done;
        item->kind = SN_KIND_MAP;
        sni_map *m = item->map;
        m->keys = (sni_datum){.kind = SN_KIND_TENSOR, .tensor = keys};
        sni_buffer_retain(keys.buffer);
        m->values = (sni_datum){.kind = SN_KIND_TENSOR, .tensor = values};
        sni_tensor *row = &m->values.tensor;
        row->rank = 1;
        row->count = row->dims[0] = width;
        row->data = (float *)values.data + r * width;
        sni_buffer_retain(values.buffer);
    }
done:
    sni_buffer_release(keys.buffer);
    sni_buffer_release(values.buffer);
    return status;
}

static sn_status zip_ref(sni_kernel *k) {
    const sni_ml_labels *labels = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_ml_rows rows;
    SN_TRY(sni_ml_rows_of(k, x, &rows));
    if (rows.width != sni_ml_label_count(labels))
        return SNI_KERNEL_FAIL(k, "%lld columns for %lld labels", (long long)rows.width,
                               (long long)sni_ml_label_count(labels));
    sni_datum d = {.kind = SN_KIND_SEQUENCE};
    SN_TRY(sni_sequence_new((size_t)rows.rows, SN_FLOAT32, &d.seq, k->err));
    sn_status status = zip_rows(k, labels, x, rows.rows, rows.width, d.seq);
    if (status == SN_OK)
        sni_out_give(k, 0, &d);
    else
        sni_datum_clear(&d);
    return status;
}

static sn_status zip_infer(sni_infer *c) {
    const sni_ml_labels *labels = c->params;
    if ((labels->ints.n > 0) == (labels->strings.n > 0))
        return SNI_INFER_FAIL(c, "one list of class labels is needed");
    sni_dim rows;
    bool known;
    SN_TRY(sni_ml_row_dim(c, &rows, &known));
    sni_type value = {.kind = SN_KIND_TENSOR, .dtype = SN_FLOAT32};
    sni_type map = {.kind = SN_KIND_MAP, .dtype = sni_ml_label_type(labels), .inner = &value};
    sni_type sequence = {.kind = SN_KIND_SEQUENCE, .inner = &map};
    return sni_infer_set_full_type(c, 0, &sequence);
}

const sni_op sni_op_ZipMap = {
    .name = "ZipMap",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "float"}),
    .outputs = SNI_FORMALS({"Z", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_SEQ}),
    .params =
        SNI_PARAMS({"classlabels_int64s", SNI_ATTR_INTS, offsetof(sni_ml_labels, ints)},
                   {"classlabels_strings", SNI_ATTR_STRINGS, offsetof(sni_ml_labels, strings)}),
    .params_size = sizeof(sni_ml_labels),
    .flags = SNI_OP_ALLOCATES,
    .infer = zip_infer,
    .ref = zip_ref,
};
