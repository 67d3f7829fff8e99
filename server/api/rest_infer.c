/* rest_infer.c - POST .../infer: from the connection to the scheduler and back, and the answer as
 * JSON and binary tensors. rest_infer_read.c reads the request. */
#include "server/api/rest_infer.h"
#include "server/api/json_out.h"
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
    bool binary_default; /* outputs are binary unless they say otherwise */
    srv_segment *segments;
    size_t segment_count;
    struct iovec *tail;
    srv_text *packed; /* strings in binary form, one for each output */
} infer;

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
    request->times.received = http->started_ns;
    http->work = work;
    http->finished = infer_finished;
    char why[SRV_MESSAGE];
    srv_code code = srv_repository_find(request->server->repository, http->model, http->version,
                                        &request->model, why, sizeof why);
    if (code == SRV_OK) {
        srv_infer_text text = {.request = request, .binary = binary};
        code = srv_rest_read_request(&text, &http->text);
        work->binary_default = text.binary_default;
        if (code == SRV_OK) return work;
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
