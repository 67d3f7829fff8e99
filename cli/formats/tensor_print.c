/* tensor_print.c - values as readable text. */
#include "cli/formats/tensor_print.h"
#include "cli/formats/element.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ELEMENTS 8
#define MAX_ITEMS 8 /* of a sequence */
#define MAX_DEPTH 4
#define MAX_ROWS 8 /* that --top shows */
#define BAR_WIDTH 30

static void add_shape(cli_text *out, const sn_value *tensor) {
    cli_text_addf(out, "%s", sn_dtype_name(sn_tensor_dtype(tensor)));
    cli_text_add_dims(out, sn_tensor_rank(tensor), sn_tensor_dims(tensor));
}

static void add_range(cli_text *out, const cli_view *view) {
    if (view->class == CLI_CLASS_STRING || view->class == CLI_CLASS_COMPLEX || view->count == 0) {
        return;
    }
    double low = INFINITY, high = -INFINITY, sum = 0;
    size_t finite = 0, nan = 0;
    for (size_t i = 0; i < view->count; i++) {
        double value = cli_view_real(view, i);
        nan += isnan(value) != 0;
        if (!isfinite(value)) continue;
        finite++;
        sum += value;
        if (value < low) low = value;
        if (value > high) high = value;
    }
    if (finite) {
        cli_text_addf(out, "  min %.6g  max %.6g  mean %.6g", low, high, sum / (double)finite);
    }
    if (nan) cli_text_addf(out, "  NaN %zu", nan);
    if (finite + nan < view->count) cli_text_addf(out, "  inf %zu", view->count - finite - nan);
}

static void add_first(cli_text *out, const cli_view *view, int indent) {
    if (view->count == 0) return;
    cli_text_addf(out, "%*s", indent + 2, "");
    for (size_t i = 0; i < view->count && i < FIRST_ELEMENTS; i++) {
        if (i) cli_text_addf(out, ", ");
        cli_view_print(view, i, 40, out);
    }
    cli_text_addf(out, view->count > FIRST_ELEMENTS ? ", ...\n" : "\n");
}

/* ---- Class scores ------------------------------------------------------------------------- */

typedef struct score {
    size_t index;
    double value;
} score;

static int by_value(const void *a, const void *b) {
    const score *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void add_bar(cli_text *out, double part) {
    int filled = (int)(part * BAR_WIDTH + 0.5);
    for (int i = 0; i < BAR_WIDTH; i++) cli_text_add(out, i < filled ? "#" : " ", 1);
}

/* One row of `count` scores that begins at `start`. Bars show a probability as it is and other
 * scores between the row's least and largest. */
static void add_top_row(cli_text *out, const cli_view *view, size_t start, size_t count, int top) {
    score *scores = cli_alloc(count, sizeof *scores);
    size_t known = 0;
    double sum = 0, low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        double value = cli_view_real(view, start + i);
        if (!isfinite(value)) continue;
        scores[known++] = (score){i, value};
        sum += value;
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    qsort(scores, known, sizeof *scores, by_value);
    bool probabilities = low >= 0 && high <= 1 + 1e-6 && fabs(sum - 1) < 1e-2;
    for (size_t i = 0; i < known && i < (size_t)top; i++) {
        double part = probabilities ? scores[i].value
                      : high > low  ? (scores[i].value - low) / (high - low)
                                    : 1;
        cli_text_addf(out, "  %6zu  ", scores[i].index);
        add_bar(out, part);
        cli_text_addf(out, "  %.6g\n", scores[i].value);
    }
    free(scores);
}

static void add_top(cli_text *out, const sn_value *tensor, const cli_view *view, int top) {
    int rank = sn_tensor_rank(tensor);
    const int64_t *dims = sn_tensor_dims(tensor);
    if (view->class != CLI_CLASS_FLOAT || rank < 1 || view->count < 2) return;
    size_t columns = 0, wide = 0;
    for (int i = 0; i < rank; i++) {
        if (dims[i] > 1) {
            wide++;
            columns = (size_t)dims[i];
        }
    }
    if (rank == 2 && dims[1] > 1) {
        columns = (size_t)dims[1];
    } else if (wide != 1) {
        return;
    }
    size_t rows = view->count / columns;
    for (size_t row = 0; row < rows && row < MAX_ROWS; row++) {
        if (rows > 1) cli_text_addf(out, "  row %zu\n", row);
        add_top_row(out, view, row * columns, columns, top);
    }
}

/* ---- Values ------------------------------------------------------------------------------- */

static void print_at(cli_text *out, const char *name, const sn_value *value, int top, int depth) {
    int indent = depth * 2;
    cli_text_addf(out, "%*s", indent, "");
    cli_text_add_name(out, name);
    switch (value ? sn_value_kind(value) : SN_KIND_NONE) {
    case SN_KIND_TENSOR: {
        cli_view view = cli_view_of(value);
        cli_text_addf(out, "  ");
        add_shape(out, value);
        add_range(out, &view);
        cli_text_add(out, "\n", 1);
        add_first(out, &view, indent);
        if (top > 0) add_top(out, value, &view, top);
        break;
    }
    case SN_KIND_SEQUENCE: {
        size_t length = sn_sequence_length(value);
        cli_text_addf(out, "  sequence of %zu\n", length);
        for (size_t i = 0; i < length && i < MAX_ITEMS && depth < MAX_DEPTH; i++) {
            char label[32];
            snprintf(label, sizeof label, "[%zu]", i);
            print_at(out, label, sn_sequence_at(value, i), top, depth + 1);
        }
        if (length > MAX_ITEMS) cli_text_addf(out, "%*s  ...\n", indent, "");
        break;
    }
    case SN_KIND_MAP:
        cli_text_addf(out, "  map\n");
        if (depth < MAX_DEPTH) {
            print_at(out, "keys", sn_map_keys(value), 0, depth + 1);
            print_at(out, "values", sn_map_values(value), 0, depth + 1);
        }
        break;
    default:
        cli_text_addf(out, "  nothing (an empty optional)\n");
        break;
    }
}

void cli_print_value(cli_text *out, const char *name, const sn_value *value, int top) {
    print_at(out, name, value, top, 0);
}

void cli_print_type(cli_text *out, const sn_value_info *info) {
    if (info->kind != SN_KIND_TENSOR) {
        cli_text_add_name(out, info->type_text ? info->type_text : "?");
        return;
    }
    cli_text_addf(out, "%s", sn_dtype_name(info->dtype));
    if (!info->has_shape) {
        cli_text_addf(out, " of unknown rank");
        return;
    }
    cli_text_addf(out, "[");
    for (int i = 0; i < info->rank; i++) {
        if (i) cli_text_addf(out, ",");
        const char *symbol = info->symbols[i];
        if (info->dims[i] >= 0) {
            cli_text_addf(out, "%lld", (long long)info->dims[i]);
        } else {
            cli_text_add_name(out, symbol && symbol[0] ? symbol : "?");
        }
    }
    cli_text_addf(out, "]");
}
