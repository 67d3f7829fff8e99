/* CategoryMapper, LabelEncoder and OneHotEncoder: categories by name, number and position. */
#include "ops/core/lookup.h"
#include "ops/ml/ml.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <math.h>

/* ---- CategoryMapper ---- */

typedef struct category_params {
    sni_ints ints;
    sni_strings strings;
    int64_t default_int;
    sni_str default_string;
    sni_lookup by_int, by_string; /* prepared */
} category_params;

static sn_status category_prepare(void *params, sni_arena *arena, sn_error *err) {
    category_params *p = params;
    if (p->ints.n != p->strings.n)
        return sni_fail(err, SN_INVALID_MODEL, "%zu cats_int64s for %zu cats_strings", p->ints.n,
                        p->strings.n);
    SN_TRY(sni_lookup_make(&p->by_int, SN_INT64, p->ints.v, p->ints.n, arena, err));
    return sni_lookup_make(&p->by_string, SN_STRING, p->strings.v, p->strings.n, arena, err);
}

static sn_status category_ref(sni_kernel *k) {
    const category_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    bool text = x->dtype == SN_STRING;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = sni_lookup_element(text ? &p->by_string : &p->by_int, x, i);
        if (text)
            ((int64_t *)y->data)[i] = at < 0 ? p->default_int : p->ints.v[at];
        else
            ((sni_str *)y->data)[i] = at < 0 ? p->default_string : p->strings.v[at];
    }
    return SN_OK;
}

static sn_status category_infer(sni_infer *c) {
    if (c->in[0]->dtype)
        SN_TRY(sni_infer_set_type(c, 0, c->in[0]->dtype == SN_STRING ? SN_INT64 : SN_STRING));
    return sni_infer_same(c);
}

const sni_op sni_op_CategoryMapper = {
    .name = "CategoryMapper",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T1"}),
    .outputs = SNI_FORMALS({"Y", "T2"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T(SN_STRING) | SNI_T(SN_INT64)},
                           {"T2", SNI_T(SN_STRING) | SNI_T(SN_INT64)}),
    .params = SNI_PARAMS(
        {"cats_int64s", SNI_ATTR_INTS, offsetof(category_params, ints)},
        {"cats_strings", SNI_ATTR_STRINGS, offsetof(category_params, strings)},
        {"default_int64", SNI_ATTR_INT, offsetof(category_params, default_int), .number = -1},
        {"default_string", SNI_ATTR_STRING, offsetof(category_params, default_string),
         .text = "_Unused"}),
    .params_size = sizeof(category_params),
    .prepare = category_prepare,
    .infer = category_infer,
    .ref = category_ref,
};

/* ---- LabelEncoder ---- */

typedef struct list_params { /* keys or values: at most one of the four */
    sni_ints ints;
    sni_floats floats;
    sni_strings strings;
    const sni_tensor *tensor;
} list_params;

typedef struct encoder_params {
    list_params keys, values;
    sni_strings classes; /* version 1: names by number */
    int64_t default_int;
    float default_float;
    sni_str default_string;
    const sni_tensor *default_tensor;
    sni_lookup lookup; /* prepared, like what follows */
    sn_dtype value_type;
    const void *value_list;    /* elements of value_type */
    const void *default_value; /* one more */
} encoder_params;

/* The list that is given: its element type, elements and length. */
static sn_status given_list(const list_params *p, const char *what, sn_dtype *dtype,
                            const void **data, size_t *count, sn_error *err) {
    int lists = (p->ints.n > 0) + (p->floats.n > 0) + (p->strings.n > 0) + (p->tensor != NULL);
    if (lists != 1)
        return sni_fail(err, SN_INVALID_MODEL, "there are %d lists of %s, not one", lists, what);
    *dtype = p->tensor     ? p->tensor->dtype
             : p->ints.n   ? SN_INT64
             : p->floats.n ? SN_FLOAT32
                           : SN_STRING;
    *data = p->tensor     ? p->tensor->data
            : p->ints.n   ? (const void *)p->ints.v
            : p->floats.n ? (const void *)p->floats.v
                          : (const void *)p->strings.v;
    *count = p->tensor     ? (size_t)p->tensor->count
             : p->ints.n   ? p->ints.n
             : p->floats.n ? p->floats.n
                           : p->strings.n;
    return SN_OK;
}

/* Keys in the form a lookup takes: integers as int64, floats as double. */
static sn_status index_keys(encoder_params *p, sn_dtype dtype, const void *keys, size_t count,
                            sni_arena *arena, sn_error *err) {
    sn_dtype kind = sni_dtype_get(dtype)->cls == SNI_CLASS_I ? SN_INT64
                    : dtype == SN_STRING                     ? SN_STRING
                                                             : SN_FLOAT64;
    if (dtype != kind) {
        sni_tensor t = {.dtype = dtype, .count = (int64_t)count, .data = (void *)keys};
        int64_t *wide = SNI_NEW_ARRAY(arena, int64_t, count);
        if (!wide) return sni_fail_memory(err);
        for (size_t i = 0; i < count; i++) {
            double d = sni_number_at(&t, (int64_t)i);
            if (kind == SN_INT64)
                wide[i] = (int64_t)d; /* of 32 bits at most */
            else
                memcpy(&wide[i], &d, sizeof d);
        }
        keys = wide;
    }
    return sni_lookup_make(&p->lookup, kind, keys, count, arena, err);
}

static sn_status set_default(encoder_params *p, sni_arena *arena, sn_error *err) {
    unsigned char *element = sni_arena_alloc(arena, sizeof(sni_str));
    if (!element) return sni_fail_memory(err);
    sni_tensor one = {.dtype = p->value_type, .count = 1, .data = element};
    double number = p->value_type == SN_FLOAT32 ? (double)p->default_float : -1;
    if (p->default_tensor) {
        if (p->default_tensor->dtype != p->value_type || p->default_tensor->count != 1)
            return sni_fail(err, SN_INVALID_MODEL, "default_tensor is not one %s",
                            sn_dtype_name(p->value_type));
        memcpy(element, p->default_tensor->data, sni_dtype_width(p->value_type));
    } else if (p->value_type == SN_STRING) {
        memcpy(element, &p->default_string, sizeof p->default_string);
    } else if (p->value_type == SN_INT64) {
        memcpy(element, &p->default_int, sizeof p->default_int);
    } else {
        sni_store_numbers(&one, SN_FLOAT64, &number, false);
    }
    p->default_value = element;
    return SN_OK;
}

static sn_status encoder_prepare(void *params, sni_arena *arena, sn_error *err) {
    encoder_params *p = params;
    const sni_types values = SNI_T(SN_STRING) | SNI_T(SN_INT64) | SNI_T(SN_FLOAT32) |
                             SNI_T(SN_INT32) | SNI_T(SN_INT16) | SNI_T(SN_FLOAT64);
    if (p->classes.n)
        return sni_lookup_make(&p->lookup, SN_STRING, p->classes.v, p->classes.n, arena, err);
    sn_dtype key_type = SN_UNDEFINED;
    const void *keys = NULL;
    size_t n_keys = 0, n_values = 0;
    SN_TRY(given_list(&p->keys, "keys", &key_type, &keys, &n_keys, err));
    SN_TRY(given_list(&p->values, "values", &p->value_type, &p->value_list, &n_values, err));
    if (n_keys != n_values)
        return sni_fail(err, SN_INVALID_MODEL, "%zu keys for %zu values", n_keys, n_values);
    if (!(SNI_T(key_type) & values) || !(SNI_T(p->value_type) & values))
        return sni_fail(err, SN_INVALID_MODEL, "%s and %s are no types of keys and values",
                        sn_dtype_name(key_type), sn_dtype_name(p->value_type));
    SN_TRY(index_keys(p, key_type, keys, n_keys, arena, err));
    return set_default(p, arena, err);
}

/* Version 1: a name to its number, or a number to its name. */
static void encode_classes(const encoder_params *p, const sni_tensor *x, sni_tensor *y) {
    for (int64_t i = 0; i < x->count; i++) {
        if (x->dtype == SN_STRING) {
            int64_t at = sni_lookup_element(&p->lookup, x, i);
            ((int64_t *)y->data)[i] = at < 0 ? p->default_int : at;
        } else {
            int64_t v = sni_index_at(x, i);
            bool known = v >= 0 && v < (int64_t)p->classes.n;
            ((sni_str *)y->data)[i] = known ? p->classes.v[v] : p->default_string;
        }
    }
}

static sn_status encoder_ref(sni_kernel *k) {
    const encoder_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    if (p->classes.n) {
        encode_classes(p, x, y);
        return SN_OK;
    }
    size_t width = sni_dtype_width(p->value_type);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = sni_lookup_element(&p->lookup, x, i);
        memcpy((unsigned char *)y->data + (size_t)i * width,
               at < 0 ? p->default_value
                      : (const unsigned char *)p->value_list + (size_t)at * width,
               width);
    }
    return SN_OK;
}

static sn_status encoder_infer(sni_infer *c) {
    const encoder_params *p = c->params;
    sn_dtype in = c->in[0]->dtype;
    if (p->classes.n) {
        const sni_types types = SNI_T(SN_STRING) | SNI_T(SN_INT64);
        if (in && !(SNI_T(in) & types))
            return SNI_INFER_FAIL(c, "classes are strings or int64, not %s", sn_dtype_name(in));
        if (in) SN_TRY(sni_infer_set_type(c, 0, in == SN_STRING ? SN_INT64 : SN_STRING));
    } else {
        if (in && (in == SN_STRING) != (p->lookup.kind == SN_STRING))
            return SNI_INFER_FAIL(c, "%s elements are looked up among %s keys", sn_dtype_name(in),
                                  sn_dtype_name(p->lookup.kind));
        SN_TRY(sni_infer_set_type(c, 0, p->value_type));
    }
    return sni_infer_same(c);
}

#define LABEL_TYPES                                                                               \
    (SNI_T(SN_STRING) | SNI_T(SN_INT64) | SNI_T(SN_FLOAT32) | SNI_T(SN_INT32) | SNI_T(SN_INT16) | \
     SNI_T(SN_FLOAT64))

const sni_op sni_op_LabelEncoder = {
    .name = "LabelEncoder",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1, 2, 4),
    .inputs = SNI_FORMALS({"X", "T1"}),
    .outputs = SNI_FORMALS({"Y", "T2"}),
    .types = SNI_TYPE_VARS({"T1", LABEL_TYPES}, {"T2", LABEL_TYPES}),
    .params = SNI_PARAMS(
        {"keys_int64s", SNI_ATTR_INTS, offsetof(encoder_params, keys.ints)},
        {"keys_floats", SNI_ATTR_FLOATS, offsetof(encoder_params, keys.floats)},
        {"keys_strings", SNI_ATTR_STRINGS, offsetof(encoder_params, keys.strings)},
        {"keys_tensor", SNI_ATTR_TENSOR, offsetof(encoder_params, keys.tensor)},
        {"values_int64s", SNI_ATTR_INTS, offsetof(encoder_params, values.ints)},
        {"values_floats", SNI_ATTR_FLOATS, offsetof(encoder_params, values.floats)},
        {"values_strings", SNI_ATTR_STRINGS, offsetof(encoder_params, values.strings)},
        {"values_tensor", SNI_ATTR_TENSOR, offsetof(encoder_params, values.tensor)},
        {"classes_strings", SNI_ATTR_STRINGS, offsetof(encoder_params, classes)},
        {"default_int64", SNI_ATTR_INT, offsetof(encoder_params, default_int), .number = -1},
        {"default_float", SNI_ATTR_FLOAT, offsetof(encoder_params, default_float), .number = -0.0},
        {"default_string", SNI_ATTR_STRING, offsetof(encoder_params, default_string),
         .text = "_Unused"},
        {"default_tensor", SNI_ATTR_TENSOR, offsetof(encoder_params, default_tensor)}),
    .params_size = sizeof(encoder_params),
    .prepare = encoder_prepare,
    .infer = encoder_infer,
    .ref = encoder_ref,
};

/* ---- OneHotEncoder ---- */

typedef struct one_hot_params {
    sni_ints ints;
    sni_strings strings;
    int64_t zeros;
    sni_lookup lookup; /* prepared */
} one_hot_params;

static sn_status one_hot_prepare(void *params, sni_arena *arena, sn_error *err) {
    one_hot_params *p = params;
    if ((p->ints.n > 0) == (p->strings.n > 0))
        return sni_fail(err, SN_INVALID_MODEL, "one of cats_int64s and cats_strings is needed");
    if (p->strings.n)
        return sni_lookup_make(&p->lookup, SN_STRING, p->strings.v, p->strings.n, arena, err);
    return sni_lookup_make(&p->lookup, SN_INT64, p->ints.v, p->ints.n, arena, err);
}

static sn_status one_hot_ref(sni_kernel *k) {
    const one_hot_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    int64_t width = (int64_t)p->lookup.count;
    float *out = y->data;
    for (int64_t i = 0; i < y->count; i++) out[i] = 0;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = sni_lookup_element(&p->lookup, x, i);
        if (at >= 0)
            out[i * width + at] = 1;
        else if (!p->zeros)
            return SNI_KERNEL_FAIL(k, "element %lld is none of %lld categories", (long long)i,
                                   (long long)width);
    }
    return SN_OK;
}

static sn_status one_hot_infer(sni_infer *c) {
    const one_hot_params *p = c->params;
    sn_dtype in = c->in[0]->dtype;
    if (in && (in == SN_STRING) != (p->lookup.kind == SN_STRING))
        return SNI_INFER_FAIL(c, "%s elements are looked up among %s categories", sn_dtype_name(in),
                              sn_dtype_name(p->lookup.kind));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    sni_dim dims[SN_MAX_RANK + 1];
    for (int i = 0; i < rank; i++) dims[i] = sni_infer_dim(c, 0, i);
    dims[rank] = (sni_dim)p->lookup.count;
    return sni_infer_set_shape(c, 0, rank + 1, dims);
}

const sni_op sni_op_OneHotEncoder = {
    .name = "OneHotEncoder",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "float"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FEATURES | SNI_T(SN_STRING)}),
    .params = SNI_PARAMS({"cats_int64s", SNI_ATTR_INTS, offsetof(one_hot_params, ints)},
                         {"cats_strings", SNI_ATTR_STRINGS, offsetof(one_hot_params, strings)},
                         {"zeros", SNI_ATTR_INT, offsetof(one_hot_params, zeros), .number = 1}),
    .params_size = sizeof(one_hot_params),
    .prepare = one_hot_prepare,
    .infer = one_hot_infer,
    .ref = one_hot_ref,
};
