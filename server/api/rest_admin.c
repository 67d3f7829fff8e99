/* rest_admin.c - the model repository, trace and logging settings over HTTP. */
#include "server/api/describe.h"
#include "server/api/json_in.h"
#include "server/api/json_out.h"
#include "server/engine/loader.h"
#include "server/engine/repository.h"
#include "server/api/routes.h"
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>

#define JSON "application/json"

/* ---- Index -------------------------------------------------------------------------------- */

typedef struct listing {
    srv_json_out json;
    bool only_ready;
} listing;

static void put_entry(void *ctx, const srv_index_entry *entry) {
    listing *list = ctx;
    if (list->only_ready && !entry->model) return;
    srv_describe_entry(&list->json, entry);
}

/* Reads the body's object, if there is a body, giving each member to `take`. False: answered. */
static bool read_body(srv_http *http, bool (*take)(srv_json_in *in, sni_str key, void *ctx),
                      void *ctx) {
    if (http->text.length == 0) return true;
    sn_error err = {0};
    sni_arena arena;
    srv_json_in in;
    sni_str key;
    sni_arena_init(&arena, 1 << 20);
    srv_json_open(&in, http->text.data, http->text.length, &arena, &err);
    srv_json_limit_depth(&in, srv_http_server(http)->limits.depth);
    if (srv_json_object(&in)) {
        while (srv_json_member(&in, &key)) {
            if (!take(&in, key, ctx)) break;
        }
    }
    bool ok = srv_json_close(&in) == SN_OK;
    sni_arena_free(&arena);
    if (!ok) srv_http_error(http, SRV_INVALID, "%s", err.message);
    return ok;
}

static bool take_ready(srv_json_in *in, sni_str key, void *ctx) {
    if (sni_str_is(key, "ready")) return srv_json_bool(in, ctx);
    return srv_json_skip(in);
}

void srv_rest_index(srv_http *http) {
    listing list = {.json = {.text = &http->out}};
    if (!read_body(http, take_ready, &list.only_ready)) return;
    srv_json_begin(&list.json, '[');
    srv_repository_each(srv_http_server(http)->repository, put_entry, &list);
    srv_json_end(&list.json, ']');
    srv_http_reply(http, SRV_OK, JSON, NULL);
}

/* ---- Load and unload ---------------------------------------------------------------------- */

static void change_done(const srv_change *change) {
    srv_http *http = change->ctx;
    if (http->conn.fd >= 0) {
        if (change->code == SRV_OK) {
            srv_text_clear(&http->out);
            srv_http_reply(http, SRV_OK, NULL, NULL);
        } else {
            srv_http_error(http, change->code, "%s", change->why);
        }
    }
    srv_conn_release(&http->conn);
}

/* {"parameters": {"config": "{...}"}}; files that come with the request are refused. */
static bool take_config(srv_json_in *in, sni_str key, void *ctx) {
    char **config = ctx;
    sni_str inner, text;
    if (!sni_str_is(key, "parameters")) return srv_json_skip(in);
    if (!srv_json_object(in)) return false;
    while (srv_json_member(in, &inner)) {
        if (sni_str_is(inner, "config") && !*config) {
            if (!srv_json_string(in, &text)) return false;
            *config = srv_strndup(text.p, text.n);
        } else if (inner.n >= 5 && memcmp(inner.p, "file:", 5) == 0) {
            srv_json_fail(in, "%s", SRV_NO_FILES);
            return false;
        } else if (!srv_json_skip(in)) {
            return false;
        }
    }
    return in->status == SN_OK;
}

static void begin_change(srv_http *http, bool load) {
    srv_change change = {.server = srv_http_server(http),
                         .loop = http->conn.loop,
                         .done = change_done,
                         .ctx = http,
                         .load = load};
    if (!read_body(http, take_config, &change.config)) {
        free(change.config);
        return;
    }
    srv_code code = srv_change_begin(&change, http->model);
    if (code != SRV_OK) {
        srv_http_error(http, code, "%s",
                       code == SRV_NOT_FOUND ? "there is no such model" : "out of memory");
        return;
    }
    srv_conn_hold(&http->conn);
    /* nothing can be stopped: the loader ends what it has begun and the answer goes nowhere */
    srv_http_wait(http, NULL, NULL);
}

void srv_rest_load(srv_http *http) {
    begin_change(http, true);
}

void srv_rest_unload(srv_http *http) {
    begin_change(http, false);
}

/* ---- Logging ------------------------------------------------------------------------------ */

void srv_rest_logging_get(srv_http *http) {
    srv_log_settings settings = srv_log_get(&srv_http_server(http)->log);
    srv_json_out json = {.text = &http->out};
    srv_json_begin(&json, '{');
    srv_json_pair_string(&json, "log_file", "");
    srv_json_pair_bool(&json, "log_info", settings.info);
    srv_json_pair_bool(&json, "log_warning", settings.warning);
    srv_json_pair_bool(&json, "log_error", settings.error);
    srv_json_pair_uint(&json, "log_verbose_level", (uint64_t)settings.verbose);
    srv_json_pair_string(&json, "log_format", settings.json ? "json" : "default");
    srv_json_end(&json, '}');
    srv_http_reply(http, SRV_OK, JSON, NULL);
}

static bool take_logging(srv_json_in *in, sni_str key, void *ctx) {
    srv_log_settings *settings = ctx;
    sni_str text;
    uint64_t level;
    if (sni_str_is(key, "log_info")) return srv_json_bool(in, &settings->info);
    if (sni_str_is(key, "log_warning")) return srv_json_bool(in, &settings->warning);
    if (sni_str_is(key, "log_error")) return srv_json_bool(in, &settings->error);
    if (sni_str_is(key, "log_verbose_level")) {
        if (!srv_json_uint(in, &level)) return false;
        settings->verbose = level > 9 ? 9 : (int)level;
        return true;
    }
    if (sni_str_is(key, "log_format")) {
        if (!srv_json_string(in, &text)) return false;
        settings->json = sni_str_is(text, "json");
        return true;
    }
    srv_json_fail(in, "'%.*s' cannot be set", SNI_FMT(key));
    return false;
}

void srv_rest_logging_set(srv_http *http) {
    srv_log_settings settings = srv_log_get(&srv_http_server(http)->log);
    if (!read_body(http, take_logging, &settings)) return;
    srv_log_set(&srv_http_server(http)->log, &settings);
    srv_rest_logging_get(http);
}

/* ---- Trace -------------------------------------------------------------------------------- */

void srv_rest_trace_get(srv_http *http) {
    srv_trace_settings settings = srv_trace_get(&srv_http_server(http)->trace);
    srv_json_out json = {.text = &http->out};
    char text[24];
    srv_json_begin(&json, '{');
    srv_json_key(&json, "trace_level");
    srv_json_begin(&json, '[');
    srv_json_put_string(&json, settings.on ? "TIMESTAMPS" : "OFF");
    srv_json_end(&json, ']');
    snprintf(text, sizeof text, "%llu", (unsigned long long)settings.rate);
    srv_json_pair_string(&json, "trace_rate", text);
    snprintf(text, sizeof text, "%lld", (long long)settings.count);
    srv_json_pair_string(&json, "trace_count", text);
    srv_json_pair_string(&json, "trace_mode", "chrome");
    srv_json_end(&json, '}');
    srv_http_reply(http, SRV_OK, JSON, NULL);
}

/* Settings come as numbers or as strings of digits. */
static bool take_number(srv_json_in *in, bool negative, int64_t *out) {
    if (srv_json_peek(in) != SRV_JSON_STRING) return srv_json_int(in, out);
    sni_str text;
    uint64_t number;
    if (!srv_json_string(in, &text)) return false;
    if (negative && sni_str_is(text, "-1")) {
        *out = -1;
        return true;
    }
    if (!srv_parse_uint(text, INT64_MAX, &number)) {
        srv_json_fail(in, "a number is expected");
        return false;
    }
    *out = (int64_t)number;
    return true;
}

static bool take_levels(srv_json_in *in, srv_trace_settings *settings) {
    sni_str text;
    if (srv_json_peek(in) == SRV_JSON_STRING) {
        if (!srv_json_string(in, &text)) return false;
        settings->on = !sni_str_is(text, "OFF");
        return true;
    }
    settings->on = false;
    if (!srv_json_array(in)) return false;
    while (srv_json_element(in)) {
        if (!srv_json_string(in, &text)) return false;
        if (sni_str_is(text, "TIMESTAMPS") || sni_str_is(text, "TENSORS")) settings->on = true;
    }
    return in->status == SN_OK;
}

static bool take_trace(srv_json_in *in, sni_str key, void *ctx) {
    srv_trace_settings *settings = ctx;
    int64_t number;
    if (sni_str_is(key, "trace_level")) return take_levels(in, settings);
    if (sni_str_is(key, "trace_rate")) {
        if (!take_number(in, false, &number) || number < 1) {
            srv_json_fail(in, "trace_rate must be 1 or more");
            return false;
        }
        settings->rate = (uint64_t)number;
        return true;
    }
    if (sni_str_is(key, "trace_count")) return take_number(in, true, &settings->count);
    srv_json_fail(in, "'%.*s' cannot be set", SNI_FMT(key));
    return false;
}

void srv_rest_trace_set(srv_http *http) {
    srv_trace *trace = &srv_http_server(http)->trace;
    srv_trace_settings settings = srv_trace_get(trace);
    if (!read_body(http, take_trace, &settings)) return;
    if (settings.on && !srv_trace_possible(trace)) {
        srv_http_error(http, SRV_INVALID, "start the server with --trace FILE to trace");
        return;
    }
    srv_trace_set(trace, &settings);
    srv_rest_trace_get(http);
}
