/* tensor_json.c - tensors as JSON arrays, read straight into their memory and written from it. */
#include "server/api/tensor_json.h"

#include "base/floats.h"
#include "server/api/float_text.h"

#include <math.h>

bool srv_tensor_has_json(sn_dtype dtype) {
    switch (dtype) {
    case SN_FLOAT32:
    case SN_FLOAT64:
    case SN_FLOAT16:
    case SN_BFLOAT16:
    case SN_INT8:
    case SN_INT16:
    case SN_INT32:
    case SN_INT64:
    case SN_UINT8:
    case SN_UINT16:
    case SN_UINT32:
    case SN_UINT64:
    case SN_BOOL:
    case SN_STRING:
        return true;
    default:
        return false;
    }
}

/* ---- Reading ------------------------------------------------------------------------------ */

static bool special(srv_json_in *in, double *out) {
    sni_str text;
    if (!srv_json_string(in, &text)) return false;
    if (sni_str_is(text, "NaN")) {
        *out = (double)NAN;
    } else if (sni_str_is(text, "Infinity")) {
        *out = (double)INFINITY;
    } else if (sni_str_is(text, "-Infinity")) {
        *out = -(double)INFINITY;
    } else {
        srv_json_fail(in, "a number is expected");
        return false;
    }
    return true;
}

static bool read_real(srv_json_in *in, double *out) {
    return *in->at == '"' ? special(in, out) : srv_json_double(in, out);
}

static bool read_signed(srv_json_in *in, unsigned bits, void *to) {
    int64_t value, most = INT64_MAX >> (64 - bits);
    if (!srv_json_int(in, &value)) return false;
    if (value > most || value < -most - 1) {
        srv_json_fail(in, "a number out of range");
        return false;
    }
    memcpy(to, &value, bits / 8); /* the low end comes first */
    return true;
}

static bool read_unsigned(srv_json_in *in, unsigned bits, void *to) {
    uint64_t value;
    if (!srv_json_uint(in, &value)) return false;
    if (value > UINT64_MAX >> (64 - bits)) {
        srv_json_fail(in, "a number out of range");
        return false;
    }
    memcpy(to, &value, bits / 8);
    return true;
}

static bool read_truth(srv_json_in *in, void *to) {
    bool truth;
    int64_t number;
    if (srv_json_peek(in) == SRV_JSON_BOOL) {
        if (!srv_json_bool(in, &truth)) return false;
    } else {
        if (!srv_json_int(in, &number)) return false;
        truth = number != 0;
    }
    memcpy(to, &truth, 1);
    return true;
}

static bool read_narrow(srv_json_in *in, sn_dtype dtype, void *to) {
    double value;
    if (!read_real(in, &value)) return false;
    uint16_t bits = dtype == SN_FLOAT16 ? sni_f64_to_f16(value) : sni_f32_to_bf16((float)value);
    float back = dtype == SN_FLOAT16 ? sni_f16_to_f32(bits) : sni_bf16_to_f32(bits);
    if (isinf(back) && !isinf(value)) {
        srv_json_fail(in, "a number out of range");
        return false;
    }
    memcpy(to, &bits, 2);
    return true;
}

static bool read_string(srv_json_in *in, srv_input *input, size_t index) {
    sni_str text;
    sn_error err;
    if (!srv_json_string(in, &text)) return false;
    if (sn_tensor_set_string(input->value, index, text.p, text.n, &err) != SN_OK) {
        srv_json_fail(in, "%s", err.message);
        return false;
    }
    return true;
}

static bool read_wide(srv_json_in *in, sn_dtype dtype, void *to) {
    double value;
    if (!read_real(in, &value)) return false;
    if (dtype == SN_FLOAT64) {
        memcpy(to, &value, 8);
    } else {
        float narrow = (float)value;
        memcpy(to, &narrow, 4);
    }
    return true;
}

static bool read_element(srv_json_in *in, srv_input *input, size_t index) {
    char *data = input->memory;
    switch (input->dtype) {
    case SN_FLOAT32:
        if (*in->at == '"') return read_wide(in, SN_FLOAT32, data + index * 4);
        float value;
        if (!srv_json_float(in, &value)) return false;
        memcpy(data + index * 4, &value, 4);
        return true;
    case SN_FLOAT64:
        return read_wide(in, SN_FLOAT64, data + index * 8);
    case SN_FLOAT16:
    case SN_BFLOAT16:
        return read_narrow(in, input->dtype, data + index * 2);
    case SN_INT8:
        return read_signed(in, 8, data + index);
    case SN_INT16:
        return read_signed(in, 16, data + index * 2);
    case SN_INT32:
        return read_signed(in, 32, data + index * 4);
    case SN_INT64:
        return read_signed(in, 64, data + index * 8);
    case SN_UINT8:
        return read_unsigned(in, 8, data + index);
    case SN_UINT16:
        return read_unsigned(in, 16, data + index * 2);
    case SN_UINT32:
        return read_unsigned(in, 32, data + index * 4);
    case SN_UINT64:
        return read_unsigned(in, 64, data + index * 8);
    case SN_BOOL:
        return read_truth(in, data + index);
    case SN_STRING:
        return read_string(in, input, index);
    default:
        srv_json_fail(in, "%s cannot be given as JSON", srv_type_name(input->dtype));
        return false;
    }
}

bool srv_tensor_read(srv_json_in *in, srv_input *input) {
    size_t filled = 0;
    int base = in->depth;
    if (!srv_json_array(in)) return false;
    while (in->depth > base) {
        if (!srv_json_element(in)) {
            if (in->status != SN_OK) return false;
            continue;
        }
        while (*in->at == ' ' || *in->at == '\n' || *in->at == '\r' || *in->at == '\t') in->at++;
        if (*in->at == '[') {
            if (!srv_json_array(in)) return false;
            continue;
        }
        if (filled == input->count) {
            srv_json_fail(in, "input '%.*s' has more than the %zu elements of its shape",
                          SNI_FMT(input->name), input->count);
            return false;
        }
        if (!read_element(in, input, filled++)) return false;
    }
    if (filled == input->count) return true;
    srv_json_fail(in, "input '%.*s' has %zu elements, its shape has %zu", SNI_FMT(input->name),
                  filled, input->count);
    return false;
}

/* ---- Writing ------------------------------------------------------------------------------ */

static void put_special(srv_text *text, double value) {
    srv_text_adds(text, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

static void put_float(srv_text *text, float value) {
    if (!isfinite(value)) {
        put_special(text, (double)value);
        return;
    }
    char *space = srv_text_reserve(text, SRV_FLOAT_TEXT);
    if (space) text->length += srv_float_text(value, space);
}

static void put_double(srv_text *text, double value) {
    char digits[SRV_FLOAT_TEXT];
    if (!isfinite(value)) {
        put_special(text, value);
    } else {
        srv_text_add(text, digits, srv_double_text(value, digits));
    }
}

static void put_string(srv_text *text, const srv_output *output, size_t index) {
    const char *string = "";
    size_t length = 0;
    sn_tensor_get_string(output->owner->value, output->first + index, &string, &length, NULL);
    srv_json_out out = {.text = text};
    srv_json_put_str(&out, (sni_str){string, length});
}

static int64_t load_signed(const char *at, sn_dtype dtype) {
    int8_t a;
    int16_t b;
    int32_t c;
    int64_t d;
    switch (dtype) {
    case SN_INT8:
        memcpy(&a, at, 1);
        return a;
    case SN_INT16:
        memcpy(&b, at, 2);
        return b;
    case SN_INT32:
        memcpy(&c, at, 4);
        return c;
    default:
        memcpy(&d, at, 8);
        return d;
    }
}

static void put_element(srv_text *text, const srv_output *output, size_t width, size_t index) {
    const char *at = (const char *)output->data + index * width;
    float f;
    double d;
    uint16_t half;
    uint64_t u = 0;
    switch (output->dtype) {
    case SN_FLOAT32:
        memcpy(&f, at, 4);
        put_float(text, f);
        break;
    case SN_FLOAT64:
        memcpy(&d, at, 8);
        put_double(text, d);
        break;
    case SN_FLOAT16:
    case SN_BFLOAT16:
        memcpy(&half, at, 2);
        put_float(text, output->dtype == SN_FLOAT16 ? sni_f16_to_f32(half) : sni_bf16_to_f32(half));
        break;
    case SN_INT8:
    case SN_INT16:
    case SN_INT32:
    case SN_INT64:
        srv_text_add_int(text, load_signed(at, output->dtype));
        break;
    case SN_BOOL:
        srv_text_adds(text, *at ? "true" : "false");
        break;
    default:
        memcpy(&u, at, width);
        srv_text_add_uint(text, u);
    }
}

void srv_tensor_write(srv_json_out *out, const srv_output *output) {
    srv_text *text = out->text;
    size_t width = sn_dtype_bytes(output->dtype, 1);
    srv_json_begin(out, '[');
    for (size_t i = 0; i < output->count && !text->failed; i++) {
        if (i) srv_text_add(text, ",", 1);
        if (output->dtype == SN_STRING) {
            put_string(text, output, i);
        } else {
            put_element(text, output, width, i);
        }
    }
    srv_json_end(out, ']');
}
