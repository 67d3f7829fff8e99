/* load_body.c - the load generator's request: made-up tensors in the shapes the model takes. */
#include "server/load/load_client.h"

#include "server/api/codes.h"
#include "server/api/json_in.h"
#include "server/api/json_out.h"
#include "model/wire.h"
#include "model/wire_write.h"
#include "server/api/tensor_json.h"

#include "base/checked.h"

#include <stdlib.h>

#define MOST_BYTES (1u << 30)

srv_load_input *srv_load_add_input(srv_load_model *model) {
    if (model->count == model->capacity) {
        size_t more = model->capacity ? model->capacity * 2 : 8;
        srv_load_input *grown = SNI_NEW_ARRAY(&model->arena, srv_load_input, more);
        if (!grown) return NULL;
        if (model->count) memcpy(grown, model->inputs, model->count * sizeof *grown);
        model->inputs = grown;
        model->capacity = more;
    }
    return &model->inputs[model->count++];
}

/* ---- Shapes and data ---------------------------------------------------------------------- */

static sn_status read_shape(srv_load_input *input, const char *spec, sn_error *err) {
    int rank = 0;
    for (const char *at = spec; *at; rank++) {
        size_t length = strcspn(at, "x,");
        uint64_t size;
        if (rank == SN_MAX_RANK || !srv_parse_uint((sni_str){at, length}, INT32_MAX, &size)) {
            return sni_fail(err, SN_INVALID_ARGUMENT, "'%s' is not a shape such as 1x3x224x224",
                            spec);
        }
        input->dims[rank] = (int64_t)size;
        at += length + (at[length] != 0);
    }
    input->rank = rank;
    return SN_OK;
}

static sn_status fix_shape(srv_load_input *input, const srv_load_options *options, sn_error *err) {
    for (size_t i = 0; i < options->shape_count; i++) {
        const char *sign = strchr(options->shapes[i], '=');
        size_t length = sign ? (size_t)(sign - options->shapes[i]) : 0;
        if (sign && length == input->name.n &&
            memcmp(options->shapes[i], input->name.p, length) == 0) {
            return read_shape(input, sign + 1, err);
        }
    }
    for (int i = 0; i < input->rank; i++) {
        if (input->dims[i] < 0) input->dims[i] = options->open;
    }
    return SN_OK;
}

/* Reproducible numbers: small whole ones for integers, 0 to 1 for floats, nothing for strings. */
static void fill_data(srv_load_input *input, size_t count) {
    uint32_t seed = 12345;
    float *floats = input->data;
    double *doubles = input->data;
    unsigned char *bytes = input->data;
    size_t size = count ? input->bytes / count : 1;
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        float value = (float)(seed >> 8) / 16777216.0f;
        if (input->dtype == SN_FLOAT32) {
            floats[i] = value;
        } else if (input->dtype == SN_FLOAT64) {
            doubles[i] = (double)value;
        } else if (input->dtype != SN_STRING && input->dtype != SN_FLOAT16 &&
                   input->dtype != SN_BFLOAT16) {
            bytes[i * size] = (unsigned char)(seed >> 24 & 1);
        }
    }
}

sn_status srv_load_fill(srv_load_model *model, const srv_load_options *options, sn_error *err) {
    for (size_t i = 0; i < model->count; i++) {
        srv_load_input *input = &model->inputs[i];
        int64_t count;
        SN_TRY(fix_shape(input, options, err));
        if (!sni_shape_count(input->rank, input->dims, &count) || count > (int64_t)MOST_BYTES / 16)
            return sni_fail(err, SN_LIMIT, "input '%.*s' is too large", SNI_FMT(input->name));
        input->bytes = input->dtype == SN_STRING ? (size_t)count * 4
                                                 : sn_dtype_bytes(input->dtype, (size_t)count);
        input->data = sni_arena_alloc(&model->arena, input->bytes + 16);
        if (!input->data) return sni_fail_memory(err);
        memset(input->data, 0, input->bytes);
        fill_data(input, (size_t)count);
    }
    return SN_OK;
}

/* ---- HTTP --------------------------------------------------------------------------------- */

static void put_input(srv_json_out *json, const srv_load_input *input, bool as_json) {
    srv_json_begin(json, '{');
    srv_json_key(json, "name");
    srv_json_put_str(json, input->name);
    srv_json_pair_string(json, "datatype", srv_type_name(input->dtype));
    srv_json_key(json, "shape");
    srv_json_begin(json, '[');
    for (int i = 0; i < input->rank; i++) srv_json_put_int(json, input->dims[i]);
    srv_json_end(json, ']');
    if (as_json) {
        srv_output values = {.dtype = input->dtype, .data = input->data, .bytes = input->bytes};
        values.count = input->bytes / sn_dtype_bytes(input->dtype, 1);
        srv_json_key(json, "data");
        srv_tensor_write(json, &values);
    } else {
        srv_json_key(json, "parameters");
        srv_json_begin(json, '{');
        srv_json_pair_uint(json, "binary_data_size", input->bytes);
        srv_json_end(json, '}');
    }
    srv_json_end(json, '}');
}

sn_status srv_load_http_request(const srv_load_model *model, const srv_load_options *options,
                                const srv_target *target, srv_text *out, sn_error *err) {
    srv_text body = {0};
    srv_json_out json = {.text = &body};
    bool binary = false;
    srv_json_begin(&json, '{');
    srv_json_key(&json, "parameters");
    srv_json_begin(&json, '{');
    srv_json_pair_bool(&json, "binary_data_output", !options->json_tensors);
    srv_json_end(&json, '}');
    srv_json_key(&json, "inputs");
    srv_json_begin(&json, '[');
    for (size_t i = 0; i < model->count; i++) {
        bool as_json = options->json_tensors && srv_tensor_has_json(model->inputs[i].dtype) &&
                       model->inputs[i].dtype != SN_STRING;
        put_input(&json, &model->inputs[i], as_json);
        binary = binary || !as_json;
    }
    srv_json_end(&json, ']');
    srv_json_end(&json, '}');
    size_t text = body.length;
    for (size_t i = 0; i < model->count && !options->json_tensors; i++) {
        srv_text_add(&body, model->inputs[i].data, model->inputs[i].bytes);
    }
    srv_text_addf(out, "POST /v2/models/%s%s%s/infer HTTP/1.1\r\nHost: %s\r\n", options->model,
                  options->version ? "/versions/" : "", options->version ? options->version : "",
                  target->host);
    if (options->token) srv_text_addf(out, "Authorization: Bearer %s\r\n", options->token);
    if (binary) srv_text_addf(out, "Inference-Header-Content-Length: %zu\r\n", text);
    srv_text_addf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n\r\n",
                  binary ? "application/octet-stream" : "application/json", body.length);
    srv_text_add(out, body.data, body.length);
    bool ok = !body.failed && !out->failed;
    srv_text_free(&body);
    if (options->json_tensors && binary) {
        return sni_fail(err, SN_UNSUPPORTED, "an input's type cannot be sent as JSON");
    }
    return ok ? SN_OK : sni_fail_memory(err);
}

static bool read_dims(srv_json_in *in, srv_load_input *input) {
    int64_t dim;
    if (!srv_json_array(in)) return false;
    while (srv_json_element(in)) {
        if (!srv_json_int(in, &dim)) return false;
        if (input->rank == SN_MAX_RANK) return srv_json_fail(in, "a shape is too long") == SN_OK;
        input->dims[input->rank++] = dim;
    }
    return in->status == SN_OK;
}

static void read_input(srv_json_in *in, srv_load_model *model) {
    srv_load_input *input = srv_load_add_input(model);
    bool optional = false;
    sni_str key, text;
    if (!input || !srv_json_object(in)) return;
    while (srv_json_member(in, &key)) {
        if (sni_str_is(key, "name")) {
            if (srv_json_string(in, &text)) input->name = sni_arena_str(&model->arena, text);
        } else if (sni_str_is(key, "datatype")) {
            if (srv_json_string(in, &text)) input->dtype = srv_type_find(text);
        } else if (sni_str_is(key, "shape")) {
            read_dims(in, input);
        } else if (sni_str_is(key, "optional")) {
            srv_json_bool(in, &optional);
        } else {
            srv_json_skip(in);
        }
    }
    if (optional) model->count--;
}

sn_status srv_load_read_json(srv_load_model *model, const char *text, size_t size, sn_error *err) {
    srv_json_in in;
    sni_str key;
    srv_json_open(&in, text, size, &model->arena, err);
    if (srv_json_object(&in)) {
        while (srv_json_member(&in, &key)) {
            if (!sni_str_is(key, "inputs")) {
                srv_json_skip(&in);
            } else if (srv_json_array(&in)) {
                while (srv_json_element(&in)) read_input(&in, model);
            }
        }
    }
    return srv_json_close(&in);
}

/* ---- gRPC --------------------------------------------------------------------------------- */

static void emit_input(sni_out *out, const void *data) {
    const srv_load_input *input = data;
    sni_put_str(out, 1, input->name);
    sni_put_str(out, 2, sni_str_of(srv_type_name(input->dtype)));
    if (input->rank) sni_put_packed_ints(out, 3, input->dims, (size_t)input->rank);
}

sn_status srv_load_grpc_request(const srv_load_model *model, const srv_load_options *options,
                                srv_text *out, sn_error *err) {
    sni_out wire;
    srv_text_add(out, "\0\0\0\0", 5);
    sni_out_init(&wire, srv_text_write, out, err);
    sni_put_str(&wire, 1, sni_str_of(options->model));
    if (options->version) sni_put_str(&wire, 2, sni_str_of(options->version));
    for (size_t i = 0; i < model->count; i++) {
        sni_put_message(&wire, 5, emit_input, &model->inputs[i]);
    }
    for (size_t i = 0; i < model->count; i++) {
        sni_put_bytes(&wire, 7, model->inputs[i].data, model->inputs[i].bytes);
    }
    SN_TRY(sni_out_finish(&wire));
    if (out->failed) return sni_fail_memory(err);
    size_t size = out->length - 5;
    for (int i = 0; i < 4; i++) out->data[1 + i] = (char)(size >> (24 - 8 * i));
    return SN_OK;
}

static sn_status read_tensor(sni_wire *outer, const sni_field *at, srv_load_model *model) {
    srv_load_input *input = srv_load_add_input(model);
    sni_wire wire;
    sni_field field;
    sni_values values;
    sni_str text;
    uint64_t dim;
    if (!input) return SN_NO_MEMORY;
    SN_TRY(sni_field_message(outer, at, &wire));
    while (sni_wire_next(&wire, &field)) {
        if (field.number == 1) {
            SN_TRY(sni_field_str(&wire, &field, &text));
            input->name = sni_arena_str(&model->arena, text);
        } else if (field.number == 2) {
            SN_TRY(sni_field_str(&wire, &field, &text));
            input->dtype = srv_type_find(text);
        } else if (field.number == 3) {
            SN_TRY(sni_field_values(&wire, &field, SNI_WIRE_VARINT, &values));
            while (input->rank < SN_MAX_RANK && sni_values_next(&values, &dim)) {
                input->dims[input->rank++] = (int64_t)dim;
            }
        }
    }
    return wire.status;
}

sn_status srv_load_read_protobuf(srv_load_model *model, const void *bytes, size_t size,
                                 sn_error *err) {
    sni_wire_limits limits;
    sni_wire wire;
    sni_field field;
    sni_wire_init(&wire, bytes, size, &limits, err);
    while (sni_wire_next(&wire, &field)) {
        if (field.number == 4) SN_TRY(read_tensor(&wire, &field, model));
    }
    return wire.status;
}
