/* make_tensor.c - tensors from JSON arrays, raw bytes, other types and random numbers. */
#include "cli/formats/make_tensor.h"
#include "cli/formats/element.h"
#include "cli/formats/json_read.h"

#include <math.h>
#include <string.h>

/* ---- JSON --------------------------------------------------------------------------------- */

/* The lengths of the arrays on the way down to the first element. */
static sn_status json_shape(const cli_json_doc *doc, int *rank, int64_t *dims, sn_error *err) {
    size_t at = 0;
    *rank = 0;
    while (doc->nodes[at].kind == CLI_JSON_ARRAY) {
        if (*rank == SN_MAX_RANK) {
            return cli_fail(err, SN_LIMIT, "JSON arrays nested deeper than %d", SN_MAX_RANK);
        }
        dims[(*rank)++] = doc->nodes[at].count;
        if (doc->nodes[at].count == 0) break;
        at++;
    }
    return SN_OK;
}

static bool json_special(const cli_json_node *node, double *out) {
    static const struct {
        const char *name;
        double value;
    } specials[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
    for (size_t i = 0; i < 3; i++) {
        if (node->kind == CLI_JSON_STRING && node->length == strlen(specials[i].name) &&
            memcmp(node->text, specials[i].name, node->length) == 0) {
            *out = specials[i].value;
            return true;
        }
    }
    return false;
}

static bool json_number(const cli_json_node *node, cli_number *out) {
    int64_t whole;
    uint64_t large;
    double real;
    if (node->kind == CLI_JSON_TRUE || node->kind == CLI_JSON_FALSE) {
        *out = cli_number_uint(node->kind == CLI_JSON_TRUE);
    } else if (cli_json_int(node, &whole)) {
        *out = cli_number_int(whole);
    } else if (cli_json_uint(node, &large)) {
        *out = cli_number_uint(large);
    } else if (cli_json_real(node, &real) || json_special(node, &real)) {
        *out = cli_number_real(real);
    } else {
        return false;
    }
    return true;
}

static sn_status set_from_json(sn_value *tensor, const cli_view *view, size_t index,
                               const cli_json_node *node, sn_error *err) {
    if (view->class == CLI_CLASS_STRING) {
        if (node->kind != CLI_JSON_STRING) {
            return cli_fail(err, SN_BAD_DATA, "JSON element %zu is no string", index);
        }
        return sn_tensor_set_string(tensor, index, node->text, node->length, err);
    }
    cli_number number;
    if (!json_number(node, &number)) {
        return cli_fail(err, SN_BAD_DATA, "JSON element %zu is %s", index,
                        node->kind == CLI_JSON_NUMBER ? "out of range" : "no number");
    }
    if (!cli_view_set(view, index, number)) {
        return cli_fail(err, SN_BAD_DATA, "JSON element %zu, %.20s, does not fit %s", index,
                        node->kind == CLI_JSON_NUMBER ? node->text : "a special number",
                        sn_dtype_name(view->dtype));
    }
    return SN_OK;
}

/* Walks the arrays, which must all have the lengths of `dims`. */
static sn_status fill_from_json(const cli_json_doc *doc, sn_value *tensor, int rank,
                                const int64_t *dims, sn_error *err) {
    cli_view view = cli_view_of(tensor);
    size_t ends[SN_MAX_RANK]; /* node index past each open array */
    int depth = 0;
    size_t filled = 0;
    for (size_t at = 0; at < doc->count;) {
        while (depth > 0 && at >= ends[depth - 1]) depth--;
        const cli_json_node *node = &doc->nodes[at];
        bool array = node->kind == CLI_JSON_ARRAY;
        if (array != (depth < rank) || (array && node->count != dims[depth])) {
            return cli_fail(err, SN_BAD_DATA, "JSON arrays differ in length or depth");
        }
        if (array) {
            ends[depth++] = node->next;
            at++;
            continue;
        }
        sn_status status = set_from_json(tensor, &view, filled++, node, err);
        if (status != SN_OK) return status;
        at = node->next;
    }
    return SN_OK;
}

sn_status cli_tensor_from_json(const char *bytes, size_t size, sn_dtype dtype, sn_value **out,
                               sn_error *err) {
    cli_json_doc doc;
    int rank = 0;
    int64_t dims[SN_MAX_RANK];
    sn_value *tensor = NULL;
    sn_status status = cli_json_parse(bytes, size, &doc, err);
    if (status != SN_OK) return status;
    status = json_shape(&doc, &rank, dims, err);
    size_t count = 1; /* every element takes a node: no shape that the text does not fill */
    for (int i = 0; i < rank && status == SN_OK; i++) {
        if (__builtin_mul_overflow(count, (size_t)dims[i], &count) || count > doc.count) {
            status = cli_fail(err, SN_BAD_DATA, "JSON arrays differ in length or depth");
        }
    }
    if (status == SN_OK) status = sn_tensor_create(dtype, rank, dims, &tensor, err);
    if (status == SN_OK) status = fill_from_json(&doc, tensor, rank, dims, err);
    cli_json_free(&doc);
    if (status == SN_OK) {
        *out = tensor;
    } else {
        sn_value_destroy(tensor);
    }
    return status;
}

/* ---- Raw bytes ---------------------------------------------------------------------------- */

sn_status cli_tensor_from_bytes(const char *bytes, size_t size, const cli_tensor_type *type,
                                sn_value **out, sn_error *err) {
    sn_dtype dtype = type->dtype;
    int64_t whole[SN_MAX_RANK];
    int free_axis = -1;
    size_t count = 1;
    for (int i = 0; i < type->rank; i++) {
        whole[i] = type->dims[i];
        if (type->dims[i] < 0 && free_axis >= 0) {
            return cli_fail(err, SN_INVALID_ARGUMENT,
                            "raw bytes for a shape with several free dimensions; give --shape");
        }
        if (type->dims[i] < 0) {
            free_axis = i;
        } else if (__builtin_mul_overflow(count, (size_t)type->dims[i], &count)) {
            return cli_fail(err, SN_LIMIT, "the shape is too large");
        }
    }
    int bits = cli_dtype_bits(dtype);
    if (bits == 0) return cli_fail(err, SN_BAD_DATA, "strings cannot be read from raw bytes");
    if (free_axis >= 0) {
        size_t row = sn_dtype_bytes(dtype, count);
        whole[free_axis] = row ? (int64_t)(size / row) : 0;
        if (__builtin_mul_overflow(count, (size_t)whole[free_axis], &count)) {
            return cli_fail(err, SN_LIMIT, "the shape is too large");
        }
    }
    size_t need = sn_dtype_bytes(dtype, count);
    if (need != size) {
        return cli_fail(err, SN_BAD_DATA, "has %zu bytes, but %zu elements of %s take %zu", size,
                        count, sn_dtype_name(dtype), need);
    }
    sn_value *tensor = NULL;
    sn_status status = sn_tensor_create(dtype, type->rank, whole, &tensor, err);
    if (status != SN_OK) return status;
    if (size) memcpy(sn_tensor_data(tensor), bytes, size);
    *out = tensor;
    return SN_OK;
}

/* ---- Conversion --------------------------------------------------------------------------- */

sn_status cli_tensor_convert(const sn_value *tensor, sn_dtype dtype, sn_value **out,
                             sn_error *err) {
    sn_value *result = NULL;
    cli_view from = cli_view_of(tensor);
    if (from.class == CLI_CLASS_STRING || cli_dtype_class(dtype) == CLI_CLASS_STRING) {
        return cli_fail(err, SN_BAD_DATA, "%s cannot become %s", sn_dtype_name(from.dtype),
                        sn_dtype_name(dtype));
    }
    sn_status status =
        sn_tensor_create(dtype, sn_tensor_rank(tensor), sn_tensor_dims(tensor), &result, err);
    if (status != SN_OK) return status;
    cli_view to = cli_view_of(result);
    for (size_t i = 0; i < from.count; i++) {
        if (cli_view_set(&to, i, cli_view_get(&from, i))) continue;
        cli_text text = {0};
        cli_view_print(&from, i, 40, &text);
        status = cli_fail(err, SN_BAD_DATA, "element %zu, %s, does not fit %s", i,
                          cli_text_str(&text), sn_dtype_name(dtype));
        cli_text_free(&text);
        sn_value_destroy(result);
        return status;
    }
    *out = result;
    return SN_OK;
}

/* ---- Random ------------------------------------------------------------------------------- */

/* splitmix64: one step of a counter, well mixed. */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

sn_status cli_tensor_random(uint64_t seed, sn_dtype dtype, int rank, const int64_t *dims,
                            sn_value **out, sn_error *err) {
    sn_value *tensor = NULL;
    sn_status status = sn_tensor_create(dtype, rank, dims, &tensor, err);
    if (status != SN_OK) return status;
    cli_view view = cli_view_of(tensor);
    bool real = view.class == CLI_CLASS_FLOAT || view.class == CLI_CLASS_COMPLEX;
    uint64_t state = seed;
    for (size_t i = 0; i < view.count && view.class != CLI_CLASS_STRING; i++) {
        uint64_t bits = next_random(&state);
        double unit = (double)(bits >> 11) * 0x1p-53;
        cli_view_set(&view, i, real ? cli_number_real(unit) : cli_number_uint(bits >> 63));
    }
    *out = tensor;
    return SN_OK;
}
