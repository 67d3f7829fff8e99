/* rest.c - health, metadata, configuration and statistics over HTTP. */
#include "server/api/describe.h"
#include "server/engine/repository.h"
#include "server/api/routes.h"
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>

#define JSON "application/json"

void srv_rest_live(srv_http *http) {
    srv_http_reply(http, SRV_OK, NULL, NULL);
}

/* Reasons tell of models: they are for clients that may ask about models. */
static bool may_know(const srv_http *http) {
    const char *why;
    return srv_auth_check(&srv_http_server(http)->auth, SRV_GROUP_METADATA,
                          http->head.authorization, http->head.api_key, &why) == SRV_OK;
}

void srv_rest_ready(srv_http *http) {
    srv_server *server = srv_http_server(http);
    char reasons[900] = "";
    if (srv_server_ready(server)) {
        srv_http_reply(http, SRV_OK, NULL, NULL);
        return;
    }
    if (srv_state_stopping(&server->state)) {
        snprintf(reasons, sizeof reasons, "it is stopping");
    } else if (may_know(http)) {
        srv_repository_unready(server->repository, reasons, sizeof reasons);
    }
    srv_http_error(http, SRV_UNAVAILABLE, "the server is not ready%s%s", reasons[0] ? ": " : "",
                   reasons);
}

void srv_rest_server(srv_http *http) {
    srv_json_out json = {.text = &http->out};
    srv_json_begin(&json, '{');
    srv_json_pair_string(&json, "name", "sinter");
    srv_json_pair_string(&json, "version", sn_version());
    srv_json_key(&json, "extensions");
    srv_json_begin(&json, '[');
    for (size_t i = 0; srv_extensions[i]; i++) srv_json_put_string(&json, srv_extensions[i]);
    srv_json_end(&json, ']');
    srv_json_end(&json, '}');
    srv_http_reply(http, SRV_OK, JSON, NULL);
}

/* The model that the path names, retained, or NULL after an answer. */
static srv_model *model_of(srv_http *http) {
    char why[300];
    srv_model *model = NULL;
    srv_code code = srv_repository_find(srv_http_server(http)->repository, http->model,
                                        http->version, &model, why, sizeof why);
    if (code != SRV_OK) srv_http_error(http, code, "%s", why);
    return model;
}

void srv_rest_model(srv_http *http) {
    srv_model *model = model_of(http);
    if (!model) return;
    srv_json_out json = {.text = &http->out};
    srv_describe_model(&json, model);
    srv_model_release(model);
    srv_http_reply(http, SRV_OK, JSON, NULL);
}

void srv_rest_model_ready(srv_http *http) {
    srv_model *model = model_of(http);
    if (!model) return;
    srv_model_release(model);
    srv_http_reply(http, SRV_OK, NULL, NULL);
}

void srv_rest_config(srv_http *http) {
    srv_model *model = model_of(http);
    if (!model) return;
    srv_json_out json = {.text = &http->out};
    srv_describe_config(&json, model);
    srv_model_release(model);
    srv_http_reply(http, SRV_OK, JSON, NULL);
}

static void put_stats(void *ctx, const srv_index_entry *entry) {
    if (entry->model) srv_describe_stats(ctx, entry->model);
}

static void put_unavailable(void *ctx, const srv_index_entry *entry) {
    if (!entry->model && entry->wanted) srv_describe_entry(ctx, entry);
}

void srv_rest_stats(srv_http *http) {
    srv_model *model = NULL;
    if (http->model.n && !(model = model_of(http))) return;
    srv_json_out json = {.text = &http->out};
    srv_json_begin(&json, '{');
    srv_json_key(&json, "model_stats");
    srv_json_begin(&json, '[');
    if (model) {
        srv_describe_stats(&json, model);
    } else {
        srv_repository_each(srv_http_server(http)->repository, put_stats, &json);
    }
    srv_json_end(&json, ']');
    if (!model) {
        srv_json_key(&json, "unavailable");
        srv_json_begin(&json, '[');
        srv_repository_each(srv_http_server(http)->repository, put_unavailable, &json);
        srv_json_end(&json, ']');
    }
    srv_json_end(&json, '}');
    srv_model_release(model);
    srv_http_reply(http, SRV_OK, JSON, NULL);
}
