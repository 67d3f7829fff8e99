/* compare.c - compares two values by the rule of the ONNX backend tests. */
#include "cli/testing/compare.h"
#include "cli/formats/element.h"

#include <math.h>
#include <string.h>

#define MAX_DEPTH 16

static const char *kind_name(const sn_value *value) {
    switch (value ? sn_value_kind(value) : SN_KIND_NONE) {
    case SN_KIND_TENSOR:
        return "a tensor";
    case SN_KIND_SEQUENCE:
        return "a sequence";
    case SN_KIND_MAP:
        return "a map";
    case SN_KIND_SPARSE_TENSOR:
        return "a sparse tensor";
    default:
        return "an empty optional";
    }
}

static void add_dims(cli_text *out, const sn_value *value) {
    cli_text_add_dims(out, sn_tensor_rank(value), sn_tensor_dims(value));
}

static bool same_shape(const sn_value *a, const sn_value *b) {
    int rank = sn_tensor_rank(a);
    if (rank != sn_tensor_rank(b)) return false;
    const int64_t *x = sn_tensor_dims(a), *y = sn_tensor_dims(b);
    for (int i = 0; i < rank; i++) {
        if (x[i] != y[i]) return false;
    }
    return true;
}

static bool real_close(double got, double want, cli_tolerance t) {
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
    if (isinf(got) || isinf(want)) return got == want;
    return fabs(got - want) <= t.atol + t.rtol * fabs(want);
}

static bool complex_close(cli_number got, cli_number want, cli_tolerance t) {
    bool finite = isfinite(got.re) && isfinite(got.im) && isfinite(want.re) && isfinite(want.im);
    if (!finite) {
        cli_tolerance exact = {0, 0};
        return real_close(got.re, want.re, exact) && real_close(got.im, want.im, exact);
    }
    return hypot(got.re - want.re, got.im - want.im) <= t.atol + t.rtol * hypot(want.re, want.im);
}

static bool strings_equal(const cli_view *got, const cli_view *want, size_t index) {
    const char *a, *b;
    size_t a_length, b_length;
    if (sn_tensor_get_string(got->value, index, &a, &a_length, NULL) != SN_OK) return false;
    if (sn_tensor_get_string(want->value, index, &b, &b_length, NULL) != SN_OK) return false;
    return a_length == b_length && (a_length == 0 || memcmp(a, b, a_length) == 0);
}

static bool elements_match(const cli_view *got, const cli_view *want, size_t index,
                           cli_tolerance t) {
    if (want->class == CLI_CLASS_STRING) return strings_equal(got, want, index);
    if (want->class == CLI_CLASS_COMPLEX) {
        return complex_close(cli_view_get(got, index), cli_view_get(want, index), t);
    }
    return real_close(cli_view_real(got, index), cli_view_real(want, index), t);
}

/* "[1,0,2]" of a flat index. */
static void add_position(cli_text *out, const sn_value *value, size_t index) {
    int rank = sn_tensor_rank(value);
    const int64_t *dims = sn_tensor_dims(value);
    int64_t position[SN_MAX_RANK] = {0};
    for (int i = rank - 1; i >= 0; i--) {
        position[i] = (int64_t)(index % (size_t)dims[i]);
        index /= (size_t)dims[i];
    }
    cli_text_add_dims(out, rank, position);
}

static bool tensors_match(const sn_value *got, const sn_value *want, cli_tolerance t,
                          cli_text *why) {
    if (sn_tensor_dtype(got) != sn_tensor_dtype(want)) {
        cli_text_addf(why, "got %s, want %s", sn_dtype_name(sn_tensor_dtype(got)),
                      sn_dtype_name(sn_tensor_dtype(want)));
        return false;
    }
    if (!same_shape(got, want)) {
        cli_text_addf(why, "got shape ");
        add_dims(why, got);
        cli_text_addf(why, ", want ");
        add_dims(why, want);
        return false;
    }
    cli_view a = cli_view_of(got), b = cli_view_of(want);
    size_t differing = 0, first = 0;
    double largest = 0;
    for (size_t i = 0; i < b.count; i++) {
        if (elements_match(&a, &b, i, t)) continue;
        if (differing++ == 0) first = i;
        if (b.class == CLI_CLASS_STRING) continue;
        double difference = fabs(cli_view_real(&a, i) - cli_view_real(&b, i));
        if (difference > largest) largest = difference;
    }
    if (differing == 0) return true;
    cli_text_addf(why, "%zu of %zu elements differ, first at ", differing, b.count);
    add_position(why, want, first);
    cli_text_addf(why, ": got ");
    cli_view_print(&a, first, 60, why);
    cli_text_addf(why, ", want ");
    cli_view_print(&b, first, 60, why);
    if (b.class != CLI_CLASS_STRING) cli_text_addf(why, "; largest difference %.3g", largest);
    return false;
}

static bool match(const sn_value *got, const sn_value *want, cli_tolerance t, int depth,
                  cli_text *why) {
    sn_kind kind = want ? sn_value_kind(want) : SN_KIND_NONE;
    if ((got ? sn_value_kind(got) : SN_KIND_NONE) != kind) {
        cli_text_addf(why, "got %s, want %s", kind_name(got), kind_name(want));
        return false;
    }
    if (kind == SN_KIND_NONE) return true;
    if (kind == SN_KIND_TENSOR) return tensors_match(got, want, t, why);
    if (depth >= MAX_DEPTH) {
        cli_text_addf(why, "nested deeper than %d", MAX_DEPTH);
        return false;
    }
    if (kind == SN_KIND_MAP) {
        cli_text_addf(why, "keys: ");
        if (!match(sn_map_keys(got), sn_map_keys(want), t, depth + 1, why)) return false;
        cli_text_clear(why);
        cli_text_addf(why, "values: ");
        if (!match(sn_map_values(got), sn_map_values(want), t, depth + 1, why)) return false;
        cli_text_clear(why);
        return true;
    }
    size_t length = sn_sequence_length(want);
    if (sn_sequence_length(got) != length) {
        cli_text_addf(why, "got a sequence of %zu, want %zu", sn_sequence_length(got), length);
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        cli_text inner = {0};
        bool same = match(sn_sequence_at(got, i), sn_sequence_at(want, i), t, depth + 1, &inner);
        if (!same) cli_text_addf(why, "item %zu: %s", i, cli_text_str(&inner));
        cli_text_free(&inner);
        if (!same) return false;
    }
    return true;
}

bool cli_values_match(const sn_value *got, const sn_value *want, cli_tolerance tolerance,
                      cli_text *why) {
    cli_text text = {0};
    bool same = match(got, want, tolerance, 0, &text);
    if (!same) cli_text_add(why, cli_text_str(&text), text.length);
    cli_text_free(&text);
    return same;
}
