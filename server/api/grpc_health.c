/* grpc_health.c - grpc.health.v1: how the server or a model is, and whenever that changes. */
#include "server/api/grpc.h"
#include "server/engine/repository.h"
#include "server/server.h"

#include <stdlib.h>

enum { SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3 };

/* A call of Watch: told of changes until its stream is closed. */
typedef struct watch {
    srv_watcher watcher;
    srv_call *call;    /* retained */
    int state;         /* as sent last */
    char service[160]; /* "" is the server */
} watch;

static void emit_state(sni_out *out, const void *state) {
    sni_put_int(out, 1, *(const int *)state);
}

static int state_of(srv_server *server, sni_str service) {
    char why[SRV_MESSAGE];
    srv_model *model = NULL;
    if (service.n == 0 || sni_str_is(service, "inference.GRPCInferenceService")) {
        return srv_server_ready(server) ? SERVING : NOT_SERVING;
    }
    bool known =
        srv_repository_find(server->repository, service, 0, &model, why, sizeof why) == SRV_OK;
    srv_model_release(model);
    return !known ? SERVICE_UNKNOWN : srv_state_stopping(&server->state) ? NOT_SERVING : SERVING;
}

void srv_grpc_health_check(srv_call *call, srv_message *message) {
    srv_named named;
    int state = 0;
    if (srv_named_of(call, message, &named)) {
        state = state_of(srv_call_server(call), named.name);
        if (state == SERVICE_UNKNOWN) {
            srv_call_end(call, SRV_NOT_FOUND, "there is no such service");
        }
    }
    srv_message_free(message);
    srv_call_answer(call, emit_state, &state);
}

/* Sends the state if it is another one; a server that stops ends the call. */
static void tell(watch *w) {
    srv_server *server = srv_call_server(w->call);
    int state = state_of(server, sni_str_of(w->service));
    srv_reply *reply = state != w->state ? srv_reply_new() : NULL;
    if (reply) {
        w->state = state;
        srv_reply_emit(reply, emit_state, &state);
        srv_call_send(w->call, reply);
    }
    if (srv_state_stopping(&server->state))
        srv_call_end(w->call, SRV_UNAVAILABLE, "the server is stopping");
}

static void free_watch(watch *w) {
    srv_call_release(w->call);
    free(w);
}

static void changed(srv_task *task) {
    watch *w = (watch *)task; /* its first member */
    if (!srv_state_told(&srv_call_server(w->call)->state, &w->watcher)) {
        free_watch(w);
        return;
    }
    srv_call *call = w->call;
    srv_call_retain(call); /* sending may close it, and with it goes the watch */
    tell(w);
    if (!call->closed) srv_call_flush(call);
    srv_call_release(call);
}

void srv_grpc_health_watch(srv_call *call, srv_message *message) {
    srv_named named;
    bool one = !call->work, ok = srv_named_of(call, message, &named);
    bool fits = ok && named.name.n < sizeof((watch *)0)->service;
    watch *w = one && fits ? calloc(1, sizeof *w) : NULL;
    if (w && named.name.n) memcpy(w->service, named.name.p, named.name.n);
    srv_message_free(message);
    if (!w) { /* where a call has ended already this changes nothing */
        srv_call_end(call, one && fits ? SRV_UNAVAILABLE : SRV_INVALID,
                     !one    ? "the call takes one message"
                     : !fits ? "the name is too long"
                             : "out of memory");
        return;
    }
    srv_call_retain(call);
    call->work = w;
    w->call = call;
    w->watcher.loop = srv_call_loop(call);
    w->watcher.task.fn = changed;
    srv_state_watch(&srv_call_server(call)->state, &w->watcher);
    tell(w);
}

void srv_grpc_watch_last(srv_call *call) {
    if (!call->messages) srv_call_end(call, SRV_INVALID, "the call has no message");
}

void srv_grpc_watch_closed(srv_call *call) {
    watch *w = call->work;
    call->work = NULL;
    if (w && srv_state_unwatch(&srv_call_server(call)->state, &w->watcher)) free_watch(w);
}
