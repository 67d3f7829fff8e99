/* rest_infer.c - POST .../infer: the request from JSON and binary tensors, the answer as both. */
#include "server/api/json_in.h"
#include "server/engine/repository.h"
#include "server/api/routes.h"
#include "server/engine/scheduler.h"
#include "server/api/tensor_json.h"
#include "server/api/top.h"
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>

/* What goes with an HTTP request while it is an inference request. */
typedef struct infer {
    srv_task task; /* brings the finished request back to the connection's loop */
    srv_http *http;
    srv_request *request;
    bool binary;         /* tensors follow the text */
    bool binary_default; /* outputs are binary unless they say otherwise */
    srv_segment *segments;
    size_t segment_count;
    struct iovec *tail;
    srv_text *packed; /* strings in binary form, one for each output */
} infer;

/* An input as the JSON describes it, before its data is read. */
typedef struct described {
    srv_input *input;
    bool has_name, has_type, has_shape, has_binary;
    uint64_t binary_size;
    const char *data; /* where its "data" begins in the text, or NULL */
    bool data_read;
} described;

static void free_infer(infer *work) {
    for (size_t i = 0; work->packed && i < work->request->output_count; i++) {
        srv_text_free(&work->packed[i]);
    }
    srv_request_free(work->request);
    free(work);
}

static void infer_finished(srv_http *http) {
    if (http->work) free_infer(http->work);
    http->work = NULL;
}

/* ---- Reading the JSON --------------------------------------------------------------------- */

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
static bool expect_binary(srv_json_in *in, infer *work, described *d) {
    srv_request *request = work->request;
    srv_input *input = d->input;
    if (!work->binary) {
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

static bool read_input(srv_json_in *in, infer *work) {
    srv_request *request = work->request;
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
    if (d.has_binary) return expect_binary(in, work, &d);
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

static bool read_output(srv_json_in *in, infer *work) {
    srv_request *request = work->request;
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

static bool read_parameters(srv_json_in *in, infer *work) {
    sni_str key;
    uint64_t number;
    if (!srv_json_object(in)) return false;
    while (srv_json_member(in, &key)) {
        if (sni_str_is(key, "priority")) {
            srv_json_uint(in, &work->request->priority);
        } else if (sni_str_is(key, "timeout")) { /* microseconds */
            if (srv_json_uint(in, &number)) {
                work->request->timeout_ns = number < UINT64_MAX / 4000 ? number * 1000 : 0;
            }
        } else if (sni_str_is(key, "binary_data_output")) {
            srv_json_bool(in, &work->binary_default);
        } else {
            srv_json_skip(in);
        }
    }
    return in->status == SN_OK;
}

static bool read_top_level(srv_json_in *in, infer *work, sni_str key) {
    bool inputs = sni_str_is(key, "inputs"), outputs = sni_str_is(key, "outputs");
    if (sni_str_is(key, "id")) return srv_json_string(in, &work->request->id);
    if (sni_str_is(key, "parameters")) return read_parameters(in, work);
    if (!inputs && !outputs) return srv_json_skip(in);
    if (!srv_json_array(in)) return false;
    while (srv_json_element(in)) {
        if (!(inputs ? read_input(in, work) : read_output(in, work))) return false;
    }
    return in->status == SN_OK;
}

/* "parameters" may follow the outputs whose default it sets. */
static void apply_default(infer *work) {
    for (size_t i = 0; i < work->request->wanted_count; i++) {
        srv_wanted *wanted = &work->request->wanted[i];
        if (!wanted->chosen) wanted->binary = work->binary_default;
    }
}

/* Reads the text of the request; the outcome is in the request. */
static srv_code read_request(infer *work, srv_http *http) {
    srv_request *request = work->request;
    sn_error err = {0};
    srv_json_in in;
    sni_str key;
    if (!http->text.data) return srv_request_fail(request, SRV_INVALID, "the body is empty");
    srv_json_open(&in, http->text.data, http->text.length, &request->arena, &err);
    srv_json_limit_depth(&in, request->server->limits.depth);
    if (srv_json_object(&in)) {
        while (srv_json_member(&in, &key)) {
            if (!read_top_level(&in, work, key)) break;
        }
    }
    if (srv_json_close(&in) != SN_OK) {
        if (request->code == SRV_OK) srv_request_fail_error(request, &err);
        return request->code;
    }
    apply_default(work);
    if (request->input_count == 0) {
        return srv_request_fail(request, SRV_INVALID, "the request has no inputs");
    }
    return SRV_OK;
}

/* ---- From the connection to the scheduler ------------------------------------------------- */

static infer *begin(srv_http *http, bool binary) {
    infer *work = calloc(1, sizeof *work);
    srv_request *request = work ? srv_request_new(srv_http_server(http)) : NULL;
    if (!request) {
        free(work);
        srv_http_error(http, SRV_UNAVAILABLE, "out of memory");
        return NULL;
    }
    work->http = http;
    work->request = request;
    work->binary = binary;
    request->times.received = http->started_ns;
    http->work = work;
    http->finished = infer_finished;
    char why[SRV_MESSAGE];
    srv_code code = srv_repository_find(request->server->repository, http->model, http->version,
                                        &request->model, why, sizeof why);
    if (code == SRV_OK) {
        if (read_request(work, http) == SRV_OK) return work;
        snprintf(why, sizeof why, "%s", request->message);
        code = request->code;
    }
    srv_http_error(http, code, "%s", why);
    return NULL;
}

bool srv_rest_infer_text(srv_http *http) {
    infer *work = begin(http, true);
    srv_body *body = &http->body;
    if (!work) {
        http->close = true;
        return false;
    }
    srv_request *request = work->request;
    work->segments = SNI_NEW_ARRAY(&request->arena, srv_segment, request->input_count);
    if (!work->segments) {
        srv_http_error(http, SRV_UNAVAILABLE, "out of memory");
        return false;
    }
    for (size_t i = 0; i < request->input_count; i++) {
        srv_input *input = &request->inputs[i];
        if (input->awaited) {
            work->segments[work->segment_count++] = (srv_segment){input->memory, input->bytes};
        }
    }
    body->segments = work->segments;
    body->segment_count = work->segment_count;
    return true;
}

static void infer_done_in_loop(srv_task *task);

static void infer_done(srv_request *request) {
    infer *work = request->ctx;
    work->task.fn = infer_done_in_loop;
    srv_loop_post(work->http->conn.loop, &work->task);
}

static void cancel_infer(srv_http *http) {
    infer *work = http->work;
    srv_cancel(work->request);
}

/* Makes tensors of what has come. */
static srv_code complete_inputs(infer *work) {
    srv_request *request = work->request;
    for (size_t i = 0; i < request->input_count; i++) {
        srv_input *input = &request->inputs[i];
        if (input->dtype == SN_STRING && input->memory) {
            srv_code code = srv_input_strings(request, input, input->memory, input->bytes);
            srv_buffer_give(&request->server->buffers, input->memory, input->bytes);
            input->memory = NULL;
            input->bytes = 0;
            if (code != SRV_OK) return code;
        }
        if (srv_input_finish(request, input) != SRV_OK) return request->code;
    }
    return srv_request_check(request);
}

void srv_rest_infer(srv_http *http) {
    infer *work = http->work ? http->work : begin(http, false);
    if (!work) return;
    srv_request *request = work->request;
    request->trace_id = http->head.traceparent;
    if (request->trace_id.n) request->trace_id = sni_arena_str(&request->arena, request->trace_id);
    if (complete_inputs(work) != SRV_OK) {
        srv_http_error(http, request->code, "%s", request->message);
        return;
    }
    request->done = infer_done;
    request->ctx = work;
    srv_conn_hold(&http->conn);
    srv_http_wait(http, work, cancel_infer);
    srv_submit(request);
}

/* ---- The answer --------------------------------------------------------------------------- */

static bool is_binary(const infer *work, const srv_output *output) {
    return output->wanted ? output->wanted->binary : work->binary_default;
}

static void write_output(infer *work, srv_json_out *json, size_t index) {
    srv_http *http = work->http;
    const srv_output *output = &work->request->outputs[index];
    bool top = output->wanted && output->wanted->top > 0 && srv_top_possible(output);
    srv_json_begin(json, '{');
    srv_json_pair_string(json, "name", output->name);
    srv_json_pair_string(json, "datatype", top ? "BYTES" : srv_type_name(output->dtype));
    int64_t dims[SN_MAX_RANK];
    memcpy(dims, output->dims, sizeof dims);
    if (top) srv_top_dims(output, dims);
    srv_json_key(json, "shape");
    srv_json_begin(json, '[');
    for (int i = 0; i < output->rank; i++) srv_json_put_int(json, dims[i]);
    srv_json_end(json, ']');
    if (is_binary(work, output) || !(top || srv_tensor_has_json(output->dtype))) {
        struct iovec piece = {(void *)(uintptr_t)output->data, output->bytes};
        if (top || output->dtype == SN_STRING) {
            srv_text *packed = &work->packed[index];
            if (top) {
                srv_top_binary(packed, output);
            } else {
                srv_output_strings(output, packed);
            }
            if (packed->failed) http->out.failed = true;
            piece = (struct iovec){packed->data, packed->length};
        }
        srv_json_key(json, "parameters");
        srv_json_begin(json, '{');
        srv_json_pair_uint(json, "binary_data_size", piece.iov_len);
        srv_json_end(json, '}');
        http->tail[http->tail_count++] = piece;
    } else {
        srv_json_key(json, "data");
        if (top) {
            srv_top_write(json, output);
        } else {
            srv_tensor_write(json, output);
        }
    }
    srv_json_end(json, '}');
}

static void write_answer(infer *work) {
    srv_http *http = work->http;
    srv_request *request = work->request;
    srv_text_clear(&http->out);
    srv_json_out json = {.text = &http->out};
    srv_json_begin(&json, '{');
    srv_json_pair_string(&json, "model_name", request->model->name);
    char version[24];
    snprintf(version, sizeof version, "%lld", (long long)request->model->version);
    srv_json_pair_string(&json, "model_version", version);
    if (request->id.n) {
        srv_json_key(&json, "id");
        srv_json_put_str(&json, request->id);
    }
    srv_json_key(&json, "outputs");
    srv_json_begin(&json, '[');
    for (size_t i = 0; i < request->output_count; i++) write_output(work, &json, i);
    srv_json_end(&json, ']');
    srv_json_end(&json, '}');
    if (http->tail_count) {
        char header[80];
        snprintf(header, sizeof header, "Inference-Header-Content-Length: %zu\r\n",
                 http->out.length);
        srv_http_reply(http, SRV_OK, "application/octet-stream", header);
    } else {
        srv_http_reply(http, SRV_OK, "application/json", NULL);
    }
}

static void infer_done_in_loop(srv_task *task) {
    infer *work = (infer *)task; /* its first member */
    srv_http *http = work->http;
    srv_request *request = work->request;
    if (http->conn.fd < 0) {
        free_infer(work);
        http->work = NULL;
    } else if (request->code != SRV_OK) {
        srv_http_error(http, request->code, "%s", request->message);
    } else {
        size_t count = request->output_count;
        http->tail = SNI_NEW_ARRAY(&request->arena, struct iovec, count + 1);
        work->packed = SNI_NEW_ARRAY(&request->arena, srv_text, count + 1);
        http->tail_count = 0;
        if (!http->tail || !work->packed) {
            srv_http_error(http, SRV_UNAVAILABLE, "out of memory");
        } else {
            write_answer(work);
        }
    }
    srv_conn_release(&http->conn);
}
