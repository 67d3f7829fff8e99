/* grpc_infer.c - ModelInfer and ModelStreamInfer: requests from protobuf, answers as protobuf.
 *
 * Raw tensors stay where they were received: a request's inputs lie in its message. Outputs go from
 * the library's memory into frames. */
#include "server/api/grpc.h"
#include "server/engine/repository.h"
#include "server/engine/scheduler.h"
#include "server/api/top.h"
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_UNANSWERED 1024 /* messages of one stream that wait at once */

/* One request of a call. A call has one of them, a stream any number, answered in their order. */
typedef struct work {
    srv_task task; /* brings the finished request back to the connection's loop */
    struct work *next;
    srv_call *call;
    srv_request *request;
    srv_message message; /* holds the raw inputs */
    bool submitted, done;
    srv_text *packed; /* strings in binary form, one for each output */
} work;

/* The call's requests that are not answered yet, oldest first. */
typedef struct queue {
    work *first, *last;
    size_t count;
} queue;

static queue *queue_of(srv_call *call) {
    if (!call->work) call->work = calloc(1, sizeof(queue));
    return call->work;
}

static void free_work(work *w) {
    for (size_t i = 0; w->packed && i < w->request->output_count; i++) {
        srv_text_free(&w->packed[i]);
    }
    srv_request_free(w->request);
    srv_message_free(&w->message);
    srv_call_release(w->call);
    free(w);
}

static void take_first(srv_call *call) {
    queue *q = call->work;
    q->first = q->first->next;
    if (!q->first) q->last = NULL;
    q->count--;
}

/* ---- Reading ------------------------------------------------------------------------------ */

/* Where an input's values are in the message. */
typedef struct source {
    const unsigned char *contents; /* an InferTensorContents, or NULL */
    size_t contents_size;
    sni_str raw; /* bytes of raw_input_contents; p NULL: none */
} source;

typedef struct parsing {
    srv_request *request;
    sni_str model, version;
    source *sources; /* one for each input */
    size_t source_capacity, raw_count;
    sni_str *raws;
    size_t raw_capacity;
} parsing;

/* Makes an array of the request's arena large enough for one more; false after the request has
 * failed. */
static bool grow(srv_request *request, void **list, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return true;
    size_t more = *capacity ? *capacity * 2 : 8;
    void *grown = more > 4096 ? NULL : sni_arena_array(&request->arena, more, size);
    if (!grown) {
        srv_request_fail(request, SRV_INVALID, "more than 2048 tensors");
        return false;
    }
    if (count) memcpy(grown, *list, count * size);
    *list = grown;
    *capacity = more;
    return true;
}

static bool read_shape(sni_wire *wire, const sni_field *field, srv_request *request,
                       srv_input *input) {
    sni_values values;
    uint64_t bits;
    if (sni_field_values(wire, field, SNI_WIRE_VARINT, &values) != SN_OK) return false;
    while (sni_values_next(&values, &bits)) {
        if (input->rank == SN_MAX_RANK || (int64_t)bits < 0) {
            srv_request_fail(request, SRV_INVALID,
                             "a shape has more than %d dimensions or one "
                             "below 0",
                             SN_MAX_RANK);
            return false;
        }
        input->dims[input->rank++] = (int64_t)bits;
    }
    if (values.wire.status != SN_OK) wire->status = values.wire.status;
    return values.wire.status == SN_OK;
}

static bool read_input(sni_wire *outer, const sni_field *at, parsing *p) {
    srv_request *request = p->request;
    void *list = p->sources;
    sni_wire wire;
    sni_field field;
    sni_str type = {"", 0};
    if (sni_field_message(outer, at, &wire) != SN_OK) return false;
    if (!grow(request, &list, request->input_count, &p->source_capacity, sizeof *p->sources)) {
        return false;
    }
    p->sources = list;
    source *from = &p->sources[request->input_count];
    *from = (source){0};
    srv_input *input = srv_request_add_input(request);
    if (!input) return false;
    while (sni_wire_next(&wire, &field)) {
        if (field.number == 1) sni_field_str(&wire, &field, &input->name);
        if (field.number == 2) sni_field_str(&wire, &field, &type);
        if (field.number == 3 && !read_shape(&wire, &field, request, input)) break;
        if (field.number == 5 && field.type == SNI_WIRE_LEN) {
            from->contents = field.bytes;
            from->contents_size = field.size;
        }
    }
    if (wire.status != SN_OK) outer->status = wire.status;
    if (wire.status != SN_OK || request->code != SRV_OK) return false;
    input->dtype = srv_type_find(type);
    if (input->dtype == SN_UNDEFINED) {
        srv_request_fail(request, SRV_INVALID, "input '%.*s' has the unknown datatype '%.*s'",
                         SNI_FMT(input->name), SNI_FMT(type));
        return false;
    }
    return true;
}

/* An InferParameter as a number; strings of digits count, too. */
static bool read_number(sni_wire *wire, uint64_t *out) {
    sni_field field;
    sni_str text;
    bool found = false;
    while (sni_wire_next(wire, &field)) {
        if (field.number == 3 && sni_field_str(wire, &field, &text) == SN_OK) {
            found = srv_parse_uint(text, UINT64_MAX / 4000, out);
        } else if (field.type == SNI_WIRE_VARINT && field.number != 3) {
            *out = field.value;
            found = (int64_t)field.value >= 0;
        }
    }
    return found;
}

static bool read_output(sni_wire *outer, const sni_field *at, parsing *p) {
    srv_wanted *wanted = srv_request_add_wanted(p->request);
    sni_wire wire, value;
    sni_field field;
    sni_str key;
    uint64_t number;
    if (!wanted || sni_field_message(outer, at, &wire) != SN_OK) return false;
    wanted->binary = true;
    while (sni_wire_next(&wire, &field)) {
        if (field.number == 1) sni_field_str(&wire, &field, &wanted->name);
        if (field.number == 2 && srv_read_entry(&wire, &field, &key, &value) &&
            sni_str_is(key, "classification") && read_number(&value, &number)) {
            wanted->top = number > 10000 ? 10000 : (uint32_t)number;
        }
    }
    if (wire.status != SN_OK) outer->status = wire.status;
    return wire.status == SN_OK;
}

static void read_parameter(sni_wire *wire, const sni_field *field, srv_request *request) {
    sni_wire value;
    sni_str key;
    uint64_t number;
    if (!srv_read_entry(wire, field, &key, &value)) return;
    if (sni_str_is(key, "priority") && read_number(&value, &number)) {
        request->priority = number;
    } else if (sni_str_is(key, "timeout") && read_number(&value, &number)) { /* microseconds */
        uint64_t ns = number < UINT64_MAX / 4000 ? number * 1000 : 0;
        if (ns && (!request->timeout_ns || ns < request->timeout_ns)) request->timeout_ns = ns;
    }
}

static bool read_field(sni_wire *wire, const sni_field *field, parsing *p) {
    void *list = p->raws;
    switch (field->number) {
    case 1:
        return sni_field_str(wire, field, &p->model) == SN_OK;
    case 2:
        return sni_field_str(wire, field, &p->version) == SN_OK;
    case 3:
        return sni_field_str(wire, field, &p->request->id) == SN_OK;
    case 4:
        read_parameter(wire, field, p->request);
        return true;
    case 5:
        return read_input(wire, field, p);
    case 6:
        return read_output(wire, field, p);
    case 7:
        if (!grow(p->request, &list, p->raw_count, &p->raw_capacity, sizeof *p->raws)) return false;
        p->raws = list;
        return sni_field_str(wire, field, &p->raws[p->raw_count++]) == SN_OK;
    default:
        return true;
    }
}

/* ---- Values ------------------------------------------------------------------------------- */

/* Which field of InferTensorContents holds a type; 0: none does. */
static uint32_t contents_field(sn_dtype dtype) {
    switch (dtype) {
    case SN_BOOL:
        return 1;
    case SN_INT8:
    case SN_INT16:
    case SN_INT32:
        return 2;
    case SN_INT64:
        return 3;
    case SN_UINT8:
    case SN_UINT16:
    case SN_UINT32:
        return 4;
    case SN_UINT64:
        return 5;
    case SN_FLOAT32:
        return 6;
    case SN_FLOAT64:
        return 7;
    case SN_STRING:
        return 8;
    default:
        return 0;
    }
}

/* Elements are the low bytes of what the wire has (this runs on little-endian machines alone). */
static size_t fill_numbers(sni_wire *wire, const sni_field *field, srv_input *input, size_t at) {
    sni_wire_type type = field->number == 6   ? SNI_WIRE_I32
                         : field->number == 7 ? SNI_WIRE_I64
                                              : SNI_WIRE_VARINT;
    size_t size = sn_dtype_bytes(input->dtype, 1);
    sni_values values;
    uint64_t bits;
    if (sni_field_values(wire, field, type, &values) != SN_OK) return at;
    while (sni_values_next(&values, &bits)) {
        if (field->number == 1) bits = bits != 0;
        if (at < input->count) memcpy((char *)input->memory + at * size, &bits, size);
        at++;
    }
    if (values.wire.status != SN_OK) wire->status = values.wire.status;
    return at;
}

static srv_code fill_contents(srv_request *request, srv_input *input, const source *from) {
    uint32_t wanted = contents_field(input->dtype);
    sni_wire_limits limits;
    sni_wire wire;
    sni_field field;
    sn_error err;
    sni_str text;
    size_t at = 0;
    if (!wanted || !from->contents) {
        return srv_request_fail(request, SRV_INVALID, "input '%.*s' has no %s",
                                SNI_FMT(input->name),
                                wanted ? "contents" : "raw contents, which its type needs");
    }
    if (srv_input_allocate(request, input) != SRV_OK) return request->code;
    sni_wire_init(&wire, from->contents, from->contents_size, &limits, &err);
    while (sni_wire_next(&wire, &field)) {
        if (field.number != wanted) {
            return srv_request_fail(request, SRV_INVALID,
                                    "input '%.*s' is %s, but its contents are of another type",
                                    SNI_FMT(input->name), srv_type_name(input->dtype));
        }
        if (wanted != 8) {
            at = fill_numbers(&wire, &field, input, at);
        } else if (sni_field_str(&wire, &field, &text) == SN_OK && at++ < input->count &&
                   sn_tensor_set_string(input->value, at - 1, text.p, text.n, &err) != SN_OK) {
            return srv_request_fail_error(request, &err);
        }
    }
    if (wire.status != SN_OK) return srv_request_fail_error(request, &err);
    if (at != input->count) {
        return srv_request_fail(request, SRV_INVALID,
                                "input '%.*s' has %zu elements, its shape asks for %zu",
                                SNI_FMT(input->name), at, input->count);
    }
    return srv_input_finish(request, input);
}

static srv_code fill_raw(srv_request *request, srv_input *input, sni_str raw) {
    if (input->dtype == SN_STRING) {
        if (srv_input_allocate(request, input) != SRV_OK) return request->code;
        return srv_input_strings(request, input, raw.p, raw.n);
    }
    if (srv_input_borrow(request, input, (void *)(uintptr_t)raw.p, raw.n) != SRV_OK) {
        return request->code;
    }
    return srv_input_finish(request, input);
}

static srv_code fill_inputs(parsing *p) {
    srv_request *request = p->request;
    if (request->input_count == 0) {
        return srv_request_fail(request, SRV_INVALID, "the request has no inputs");
    }
    if (p->raw_count && p->raw_count != request->input_count) {
        return srv_request_fail(request, SRV_INVALID, "%zu raw tensors for %zu inputs",
                                p->raw_count, request->input_count);
    }
    for (size_t i = 0; i < request->input_count; i++) {
        srv_input *input = &request->inputs[i];
        if (p->raw_count && p->sources[i].contents_size) {
            return srv_request_fail(request, SRV_INVALID,
                                    "input '%.*s' has contents and raw contents",
                                    SNI_FMT(input->name));
        }
        srv_code code = p->raw_count ? fill_raw(request, input, p->raws[i])
                                     : fill_contents(request, input, &p->sources[i]);
        if (code != SRV_OK) return code;
    }
    return SRV_OK;
}

/* From the message to a request that can be submitted; the outcome is in the request. */
static srv_code read_request(work *w) {
    srv_request *request = w->request;
    parsing p = {.request = request, .model = {"", 0}, .version = {"", 0}};
    srv_reader reader;
    sni_field field;
    int64_t version;
    char why[SRV_MESSAGE];
    srv_reader_open(&reader, &w->message);
    while (request->code == SRV_OK && sni_wire_next(&reader.wire, &field)) {
        if (!read_field(&reader.wire, &field, &p)) break;
    }
    if (request->code != SRV_OK) return request->code;
    if (reader.wire.status != SN_OK) {
        return srv_request_fail(request, SRV_INVALID, "%s", reader.err.message);
    }
    if (srv_version_parse(p.version, &version) != SRV_OK) {
        return srv_request_fail(request, SRV_INVALID, "a version is a positive number");
    }
    srv_code code = srv_repository_find(request->server->repository, p.model, version,
                                        &request->model, why, sizeof why);
    if (code != SRV_OK) return srv_request_fail(request, code, "%s", why);
    if (fill_inputs(&p) != SRV_OK) return request->code;
    return srv_request_check(request);
}

/* ---- Answers ------------------------------------------------------------------------------ */

static bool is_top(const srv_output *output) {
    return output->wanted && output->wanted->top > 0 && srv_top_possible(output);
}

static void emit_output(sni_out *out, const void *data) {
    const srv_output *output = data;
    bool top = is_top(output);
    int64_t dims[SN_MAX_RANK];
    memcpy(dims, output->dims, sizeof dims);
    if (top) srv_top_dims(output, dims);
    sni_put_str(out, 1, sni_str_of(output->name));
    sni_put_str(out, 2, sni_str_of(top ? "BYTES" : srv_type_name(output->dtype)));
    if (output->rank) sni_put_packed_ints(out, 3, dims, (size_t)output->rank);
}

static void emit_head(sni_out *out, const void *data) {
    const srv_request *request = data;
    char version[24];
    snprintf(version, sizeof version, "%lld", (long long)request->model->version);
    sni_put_str(out, 1, sni_str_of(request->model->name));
    sni_put_str(out, 2, sni_str_of(version));
    if (request->id.n) sni_put_str(out, 3, request->id);
    for (size_t i = 0; i < request->output_count; i++) {
        sni_put_message(out, 5, emit_output, &request->outputs[i]);
    }
}

/* The header of a field that holds bytes kept elsewhere. */
typedef struct span {
    uint32_t field;
    uint64_t size;
} span;

static void emit_span(sni_out *out, const void *data) {
    const span *s = data;
    sni_put_header(out, s->field, s->size);
}

/* What goes behind raw_output_contents: memory of the output, or strings packed into `packed`. */
static struct iovec raw_output(const srv_output *output, srv_text *packed) {
    if (!is_top(output) && output->dtype != SN_STRING) {
        return (struct iovec){(void *)(uintptr_t)output->data, output->bytes};
    }
    if (is_top(output)) {
        srv_top_binary(packed, output);
    } else {
        srv_output_strings(output, packed);
    }
    return (struct iovec){packed->data, packed->length};
}

static uint64_t varint_size(uint64_t number) {
    uint64_t size = 1;
    while (number >>= 7) size++;
    return size;
}

static void release_work(srv_reply *reply) {
    free_work(reply->owner);
}

/* Bytes of the ModelInferResponse: its head, and one field for each output. */
static uint64_t response_size(const srv_request *request, const struct iovec *raws) {
    sni_out out;
    sni_out_init(&out, NULL, NULL, NULL);
    emit_head(&out, request);
    uint64_t size = out.bytes;
    for (size_t i = 0; i < request->output_count; i++) {
        size += 1 + varint_size(raws[i].iov_len) + raws[i].iov_len;
    }
    return size;
}

/* The answer of a request that went well; in a stream it is field 2 of another message. */
static srv_reply *make_reply(work *w) {
    srv_request *request = w->request;
    size_t count = request->output_count;
    srv_reply *reply = srv_reply_new();
    struct iovec *raws = SNI_NEW_ARRAY(&request->arena, struct iovec, count + 1);
    w->packed = SNI_NEW_ARRAY(&request->arena, srv_text, count + 1);
    if (!reply || !raws || !w->packed) {
        srv_reply_free(reply);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        raws[i] = raw_output(&request->outputs[i], &w->packed[i]);
        if (w->packed[i].failed) reply->text.failed = true;
    }
    if (w->call->method->streams) {
        srv_reply_emit(reply, emit_span, &(span){2, response_size(request, raws)});
    }
    srv_reply_emit(reply, emit_head, request);
    for (size_t i = 0; i < count; i++) {
        srv_reply_emit(reply, emit_span, &(span){6, raws[i].iov_len});
        srv_reply_add(reply, raws[i].iov_base, raws[i].iov_len);
    }
    reply->release = release_work;
    reply->owner = w;
    return reply;
}

static void emit_stream_error(sni_out *out, const void *data) {
    const srv_request *request = data;
    sni_put_str(out, 1, sni_str_of(request->message));
}

/* Sends a request's answer; takes the work over. */
static void answer(work *w) {
    srv_call *call = w->call;
    srv_request *request = w->request;
    bool streams = call->method->streams;
    srv_reply *reply = NULL;
    if (request->code == SRV_OK) {
        reply = make_reply(w);
        if (!reply) srv_request_fail(request, SRV_UNAVAILABLE, "out of memory");
    } else if (streams && (reply = srv_reply_new())) {
        srv_reply_emit(reply, emit_stream_error, request);
        reply->release = release_work;
        reply->owner = w;
    }
    if (!reply) {
        srv_call_end(call, request->code, request->message);
        free_work(w);
        return;
    }
    srv_call_send(call, reply);
    if (!streams) srv_call_end(call, SRV_OK, "");
}

/* Answers what is finished, in order; ends a stream that the client has ended. */
static void answer_finished(srv_call *call) {
    queue *q = call->work;
    while (q->first && q->first->done) {
        work *w = q->first;
        take_first(call);
        if (call->closed) {
            free_work(w);
        } else {
            answer(w);
        }
    }
    if (call->closed && !q->first) {
        call->work = NULL;
        free(q);
    } else if (call->method->streams && call->last && !q->first) {
        srv_call_end(call, SRV_OK, "");
    }
}

/* ---- From the connection to the scheduler and back ---------------------------------------- */

static void done_in_loop(srv_task *task) {
    work *w = (work *)task; /* its first member */
    srv_call *call = w->call;
    srv_call_retain(call);
    w->done = true;
    answer_finished(call);
    if (!call->closed) srv_call_flush(call);
    srv_call_release(call);
}

static void done(srv_request *request) {
    work *w = request->ctx;
    w->task.fn = done_in_loop;
    srv_loop_post(srv_call_loop(w->call), &w->task);
}

static work *new_work(srv_call *call, srv_message *message) {
    queue *q = queue_of(call);
    work *w = q ? calloc(1, sizeof *w) : NULL;
    srv_request *request = w ? srv_request_new(srv_call_server(call)) : NULL;
    if (!request) {
        free(w);
        return NULL;
    }
    w->call = call;
    w->request = request;
    w->message = *message;
    *message = (srv_message){0};
    request->ctx = w;
    request->done = done;
    request->times.received = call->method->streams ? call->message_ns : call->started_ns;
    if (call->timeout_ns) { /* the call's, of which something may have passed */
        uint64_t passed = srv_now_ns() - call->started_ns;
        request->timeout_ns = call->timeout_ns > passed ? call->timeout_ns - passed : 1;
    }
    request->trace_id = sni_arena_str(&request->arena, sni_str_of(call->traceparent));
    srv_call_retain(call);
    if (q->last) {
        q->last->next = w;
    } else {
        q->first = w;
    }
    q->last = w;
    q->count++;
    return w;
}

void srv_grpc_infer(srv_call *call, srv_message *message) {
    queue *q = queue_of(call);
    bool fits = q && q->count < MAX_UNANSWERED;
    work *w = fits ? new_work(call, message) : NULL;
    if (!w) {
        srv_message_free(message);
        srv_call_end(call, SRV_UNAVAILABLE, fits ? "out of memory" : "too many messages wait");
        return;
    }
    if (read_request(w) == SRV_OK) {
        w->submitted = true;
        srv_submit(w->request);
    } else {
        w->done = true;
        answer_finished(call);
    }
}

void srv_grpc_stream_last(srv_call *call) {
    if (queue_of(call)) answer_finished(call);
}

void srv_grpc_infer_closed(srv_call *call) {
    queue *q = call->work;
    for (work *w = q ? q->first : NULL; w; w = w->next) {
        if (w->submitted && !w->done) srv_cancel(w->request);
    }
    if (q) answer_finished(call);
}
