/* rest_infer_read.c - inference requests from JSON. */
#include "server/api/rest_infer.h"
#include "server/api/json_in.h"
#include "server/api/tensor_json.h"
#include "server/server.h"

#include <stdlib.h>

/* An input as the JSON describes it, before its data is read. */
typedef struct described {
    srv_input *input;
    bool has_name, has_type, has_shape, has_binary;
    uint64_t binary_size;
    const char *data; /* where its "data" begins in the text, or NULL */
    bool data_read;
} described;

/* A failure that the request knows of already ends the reading, too. */
static bool stop(srv_json_in *in) {
    if (in->status == SN_OK) in->status = SN_BAD_DATA;
    return false;
}

static bool read_shape(srv_json_in *in, srv_request *request, srv_input *input) {
    if (!srv_json_array(in)) return false;
    input->rank = 0;
    while (srv_json_element(in)) {
        int64_t dim;
        if (!srv_json_int(in, &dim)) return false;
        if (input->rank == SN_MAX_RANK || dim < 0) {
            srv_request_fail(request, SRV_INVALID,
                             dim < 0 ? "a shape has a negative dimension"
                                     : "a shape has more than %d dimensions",
                             SN_MAX_RANK);
            return stop(in);
        }
        input->dims[input->rank++] = dim;
    }
    return in->status == SN_OK;
}

static bool read_type(srv_json_in *in, srv_request *request, srv_input *input) {
    sni_str name;
    if (!srv_json_string(in, &name)) return false;
    input->dtype = srv_type_find(name);
    if (input->dtype != SN_UNDEFINED) return true;
    srv_request_fail(request, SRV_INVALID, "there is no datatype '%.*s'", SNI_FMT(name));
    return stop(in);
}

static bool read_input_parameters(srv_json_in *in, srv_request *request, described *d) {
    sni_str key;
    if (!srv_json_object(in)) return false;
    while (srv_json_member(in, &key)) {
        if (sni_str_is(key, "binary_data_size")) {
            d->has_binary = srv_json_uint(in, &d->binary_size);
        } else if (sni_str_is(key, "shared_memory_region")) {
            srv_request_fail(request, SRV_UNIMPLEMENTED, "shared memory is not supported");
            return stop(in);
        } else {
            srv_json_skip(in);
        }
    }
    return in->status == SN_OK;
}

/* Memory for the tensor and its elements from the JSON at `in`. */
static bool read_data(srv_json_in *in, srv_request *request, described *d) {
    if (!srv_tensor_has_json(d->input->dtype)) {
        srv_request_fail(request, SRV_INVALID, "%s can only be sent as binary data",
                         srv_type_name(d->input->dtype));
        return stop(in);
    }
    /* every element takes two characters at least: no memory for a shape that the text cannot fill
     */
    if (d->input->dtype != SN_STRING || d->input->rank > 0) {
        int64_t count = 1;
        for (int i = 0; i < d->input->rank; i++) {
            if (__builtin_mul_overflow(count, d->input->dims[i], &count)) count = INT64_MAX / 32;
            if (count > in->end - in->start && count != 0) count = INT64_MAX / 32;
        }
        if (count > in->end - in->start) {
            srv_request_fail(request, SRV_INVALID, "input '%.*s' has fewer elements than its shape",
                             SNI_FMT(d->input->name));
            return stop(in);
        }
    }
    if (srv_input_allocate(request, d->input) != SRV_OK) return stop(in);
    d->data_read = true;
    return srv_tensor_read(in, d->input);
}

static bool read_member(srv_json_in *in, srv_request *request, described *d, sni_str key) {
    if (sni_str_is(key, "name")) {
        d->has_name = srv_json_string(in, &d->input->name);
        return d->has_name;
    }
    if (sni_str_is(key, "shape")) {
        d->has_shape = read_shape(in, request, d->input);
        return d->has_shape;
    }
    if (sni_str_is(key, "datatype")) {
        d->has_type = read_type(in, request, d->input);
        return d->has_type;
    }
    if (sni_str_is(key, "parameters")) return read_input_parameters(in, request, d);
    if (!sni_str_is(key, "data")) return srv_json_skip(in);
    if (d->data) {
        srv_json_fail(in, "\"data\" twice");
        return false;
    }
    d->data = in->at;
    if (d->has_name && d->has_shape && d->has_type) return read_data(in, request, d);
    return srv_json_skip(in);
}

/* Goes back to data that came before its shape or type. */
static bool read_late_data(srv_json_in *in, srv_request *request, described *d) {
    srv_json_in again = *in;
    again.at = d->data;
    bool ok = read_data(&again, request, d);
    if (!ok) {
        in->status = again.status;
        in->at = again.at;
    }
    return ok;
}

/* Memory for a tensor whose bytes follow the text, and the segments that they go to. */
static bool expect_binary(srv_json_in *in, srv_infer_text *infer, described *d) {
    srv_request *request = infer->request;
    srv_input *input = d->input;
    if (!infer->binary) {
        srv_request_fail(request, SRV_INVALID,
                         "input '%.*s' has binary_data_size, but the request has no "
                         "Inference-Header-Content-Length",
                         SNI_FMT(input->name));
        return stop(in);
    }
    if (srv_input_allocate(request, input) != SRV_OK) return stop(in);
    if (input->dtype == SN_STRING) {
        if (d->binary_size > request->server->limits.body) {
            srv_request_fail(request, SRV_TOO_LARGE, "input '%.*s' is too large",
                             SNI_FMT(input->name));
            return stop(in);
        }
        if (srv_request_charge(request, (size_t)d->binary_size) != SRV_OK) return stop(in);
        input->bytes = (size_t)d->binary_size;
        input->memory = srv_buffer_take(&request->server->buffers, input->bytes);
    } else if (d->binary_size != input->bytes) {
        srv_request_fail(request, SRV_INVALID,
                         "input '%.*s' announces %llu bytes, its shape and datatype take %zu",
                         SNI_FMT(input->name), (unsigned long long)d->binary_size, input->bytes);
        return stop(in);
    }
    if (!input->memory) {
        srv_request_fail(request, SRV_UNAVAILABLE, "out of memory");
        return stop(in);
    }
    input->awaited = true;
    return true;
}

static bool read_input(srv_json_in *in, srv_infer_text *infer) {
    srv_request *request = infer->request;
    described d = {.input = srv_request_add_input(request)};
    sni_str key;
    if (!d.input) return stop(in);
    if (!srv_json_object(in)) return false;
    while (srv_json_member(in, &key)) {
        if (!read_member(in, request, &d, key)) return false;
    }
    if (in->status != SN_OK) return false;
    const char *missing = !d.has_name    ? "name"
                          : !d.has_type  ? "datatype"
                          : !d.has_shape ? "shape"
                                         : NULL;
    if (missing) {
        srv_request_fail(request, SRV_INVALID, "an input has no \"%s\"", missing);
        return stop(in);
    }
    if (d.has_binary && d.data) {
        srv_request_fail(request, SRV_INVALID, "input '%.*s' has both data and binary_data_size",
                         SNI_FMT(d.input->name));
        return stop(in);
    }
    if (d.has_binary) return expect_binary(in, infer, &d);
    if (!d.data) {
        srv_request_fail(request, SRV_INVALID, "input '%.*s' has no data", SNI_FMT(d.input->name));
        return stop(in);
    }
    return d.data_read || read_late_data(in, request, &d);
}

static bool read_output_parameters(srv_json_in *in, srv_wanted *wanted) {
    sni_str key;
    uint64_t top;
    if (!srv_json_object(in)) return false;
    while (srv_json_member(in, &key)) {
        if (sni_str_is(key, "binary_data")) {
            wanted->chosen = srv_json_bool(in, &wanted->binary);
        } else if (sni_str_is(key, "classification")) {
            if (srv_json_uint(in, &top)) wanted->top = top > 10000 ? 10000 : (uint32_t)top;
        } else {
            srv_json_skip(in);
        }
    }
    return in->status == SN_OK;
}

static bool read_output(srv_json_in *in, srv_infer_text *infer) {
    srv_request *request = infer->request;
    srv_wanted *wanted = srv_request_add_wanted(request);
    sni_str key;
    if (!wanted) return stop(in);
    if (!srv_json_object(in)) return false;
    while (srv_json_member(in, &key)) {
        if (sni_str_is(key, "name")) {
            srv_json_string(in, &wanted->name);
        } else if (sni_str_is(key, "parameters")) {
            read_output_parameters(in, wanted);
        } else {
            srv_json_skip(in);
        }
    }
    if (in->status == SN_OK && !wanted->name.p) {
        srv_request_fail(request, SRV_INVALID, "an output has no \"name\"");
        return stop(in);
    }
    return in->status == SN_OK;
}

static bool read_parameters(srv_json_in *in, srv_infer_text *infer) {
    sni_str key;
    uint64_t number;
    if (!srv_json_object(in)) return false;
    while (srv_json_member(in, &key)) {
        if (sni_str_is(key, "priority")) {
            srv_json_uint(in, &infer->request->priority);
        } else if (sni_str_is(key, "timeout")) { /* microseconds */
            if (srv_json_uint(in, &number)) {
                infer->request->timeout_ns = number < UINT64_MAX / 4000 ? number * 1000 : 0;
            }
        } else if (sni_str_is(key, "binary_data_output")) {
            srv_json_bool(in, &infer->binary_default);
        } else {
            srv_json_skip(in);
        }
    }
    return in->status == SN_OK;
}

static bool read_top_level(srv_json_in *in, srv_infer_text *infer, sni_str key) {
    bool inputs = sni_str_is(key, "inputs"), outputs = sni_str_is(key, "outputs");
    if (sni_str_is(key, "id")) return srv_json_string(in, &infer->request->id);
    if (sni_str_is(key, "parameters")) return read_parameters(in, infer);
    if (!inputs && !outputs) return srv_json_skip(in);
    if (!srv_json_array(in)) return false;
    while (srv_json_element(in)) {
        if (!(inputs ? read_input(in, infer) : read_output(in, infer))) return false;
    }
    return in->status == SN_OK;
}

/* "parameters" may follow the outputs whose default it sets. */
static void apply_default(srv_infer_text *infer) {
    for (size_t i = 0; i < infer->request->wanted_count; i++) {
        srv_wanted *wanted = &infer->request->wanted[i];
        if (!wanted->chosen) wanted->binary = infer->binary_default;
    }
}

srv_code srv_rest_read_request(srv_infer_text *infer, const srv_text *text) {
    srv_request *request = infer->request;
    sn_error err = {0};
    srv_json_in in;
    sni_str key;
    if (!text->data) return srv_request_fail(request, SRV_INVALID, "the body is empty");
    srv_json_open(&in, text->data, text->length, &request->arena, &err);
    srv_json_limit_depth(&in, request->server->limits.depth);
    if (srv_json_object(&in)) {
        while (srv_json_member(&in, &key)) {
            if (!read_top_level(&in, infer, key)) break;
        }
    }
    if (srv_json_close(&in) != SN_OK) {
        if (request->code == SRV_OK) srv_request_fail_error(request, &err);
        return request->code;
    }
    apply_default(infer);
    if (request->input_count == 0) {
        return srv_request_fail(request, SRV_INVALID, "the request has no inputs");
    }
    return SRV_OK;
}
