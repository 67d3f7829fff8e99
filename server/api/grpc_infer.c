/* grpc_infer.c - ModelInfer and ModelStreamInfer: calls, their requests, and answers as protobuf.
 *
 * Outputs go from the library's memory into frames. */
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
    if (srv_grpc_read_request(w->request, &w->message) == SRV_OK) {
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
