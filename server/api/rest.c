/* rest.c - health, metadata, configuration and statistics over HTTP. */
#include "server/api/describe.h"
#include "server/engine/repository.h"
#include "server/api/routes.h"
#include "server/server.h"

#include <stdlib.h>

#define JSON "application/json"

void srv_rest_live(srv_http *http) {
    srv_http_reply(http, SRV_OK, NULL, NULL);
}

void srv_rest_ready(srv_http *http) {
    if (srv_server_ready(srv_http_server(http))) {
        srv_http_reply(http, SRV_OK, NULL, NULL);
    } else {
        srv_http_error(http, SRV_UNAVAILABLE, "the server is not ready");
    }
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
    srv_json_end(&json, '}');
    srv_model_release(model);
    srv_http_reply(http, SRV_OK, JSON, NULL);
}
