/* top.c - the classification extension: the largest elements of each row with their indices. */
#include "server/api/top.h"

#include "base/floats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool srv_top_possible(const srv_output *output) {
    switch (output->dtype) {
    case SN_FLOAT32:
    case SN_FLOAT64:
    case SN_FLOAT16:
    case SN_BFLOAT16:
    case SN_INT32:
    case SN_INT64:
        return output->rank > 0;
    default:
        return false;
    }
}

static size_t row_length(const srv_output *output) {
    return (size_t)output->dims[output->rank - 1];
}

static size_t wanted(const srv_output *output) {
    size_t length = row_length(output), top = output->wanted->top;
    return top < length ? top : length;
}

static double element(const srv_output *output, size_t index) {
    const char *data = output->data;
    float f;
    double d;
    int32_t i;
    int64_t l;
    uint16_t half;
    switch (output->dtype) {
    case SN_FLOAT32:
        memcpy(&f, data + index * 4, 4);
        return (double)f;
    case SN_FLOAT64:
        memcpy(&d, data + index * 8, 8);
        return d;
    case SN_INT32:
        memcpy(&i, data + index * 4, 4);
        return i;
    case SN_INT64:
        memcpy(&l, data + index * 8, 8);
        return (double)l;
    default:
        memcpy(&half, data + index * 2, 2);
        f = output->dtype == SN_FLOAT16 ? sni_f16_to_f32(half) : sni_bf16_to_f32(half);
        return (double)f;
    }
}

void srv_top_dims(const srv_output *output, int64_t *dims) {
    for (int i = 0; i + 1 < output->rank; i++) dims[i] = output->dims[i];
    dims[output->rank - 1] = (int64_t)wanted(output);
}

typedef struct ranked {
    double value;
    size_t index;
} ranked;

static int by_value(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    bool x_nan = isnan(x->value), y_nan = isnan(y->value);
    if (x_nan != y_nan) return x_nan ? 1 : -1;
    if (!x_nan && x->value != y->value) return x->value > y->value ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* Gives each string to `put`. */
static bool each(const srv_output *output, void (*put)(void *ctx, const char *text, size_t length),
                 void *ctx) {
    size_t length = row_length(output), top = wanted(output);
    size_t rows = length ? output->count / length : 0;
    ranked *row = malloc((length ? length : 1) * sizeof *row);
    if (!row) return false;
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < length; i++) row[i] = (ranked){element(output, r * length + i), i};
        qsort(row, length, sizeof *row, by_value);
        for (size_t i = 0; i < top; i++) {
            char text[400];
            int n = snprintf(text, sizeof text, "%f:%zu", row[i].value, row[i].index);
            put(ctx, text, n > 0 && (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
        }
    }
    free(row);
    return true;
}

static void put_json(void *ctx, const char *text, size_t length) {
    srv_json_put_str(ctx, (sni_str){text, length});
}

static void put_binary(void *ctx, const char *text, size_t length) {
    unsigned char size[4] = {(unsigned char)length, (unsigned char)(length >> 8), 0, 0};
    srv_text_add(ctx, size, 4);
    srv_text_add(ctx, text, length);
}

void srv_top_write(srv_json_out *out, const srv_output *output) {
    srv_json_begin(out, '[');
    if (!each(output, put_json, out)) out->text->failed = true;
    srv_json_end(out, ']');
}

void srv_top_binary(srv_text *out, const srv_output *output) {
    if (!each(output, put_binary, out)) out->failed = true;
}
