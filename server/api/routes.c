/* routes.c - which path is whose business, and what it takes. */
#include "server/api/routes.h"

#define MAX_SEGMENTS 8
#define MODEL "v2/models/:m"
#define VERSION MODEL "/versions/:v"

static const srv_route routes[] = {
    {"GET", "v2/health/live", SRV_GROUP_HEALTH, SRV_BODY_NONE, SRV_ROUTES_MAIN | SRV_ROUTES_METRICS,
     srv_rest_live, NULL},
    {"GET", "v2/health/ready", SRV_GROUP_HEALTH, SRV_BODY_NONE,
     SRV_ROUTES_MAIN | SRV_ROUTES_METRICS, srv_rest_ready, NULL},
    {"POST", MODEL "/infer", SRV_GROUP_INFER, SRV_BODY_INFER, SRV_ROUTES_MAIN, srv_rest_infer,
     srv_rest_infer_text},
    {"POST", VERSION "/infer", SRV_GROUP_INFER, SRV_BODY_INFER, SRV_ROUTES_MAIN, srv_rest_infer,
     srv_rest_infer_text},
    {"GET", "", SRV_GROUP_HEALTH, SRV_BODY_NONE, SRV_ROUTES_MAIN, srv_rest_page, NULL},
    {"GET", "v2", SRV_GROUP_METADATA, SRV_BODY_NONE, SRV_ROUTES_MAIN, srv_rest_server, NULL},
    {"GET", "v2/models/stats", SRV_GROUP_METADATA, SRV_BODY_NONE, SRV_ROUTES_MAIN, srv_rest_stats,
     NULL},
    {"GET", MODEL, SRV_GROUP_METADATA, SRV_BODY_NONE, SRV_ROUTES_MAIN, srv_rest_model, NULL},
    {"GET", VERSION, SRV_GROUP_METADATA, SRV_BODY_NONE, SRV_ROUTES_MAIN, srv_rest_model, NULL},
    {"GET", MODEL "/ready", SRV_GROUP_HEALTH, SRV_BODY_NONE, SRV_ROUTES_MAIN, srv_rest_model_ready,
     NULL},
    {"GET", VERSION "/ready", SRV_GROUP_HEALTH, SRV_BODY_NONE, SRV_ROUTES_MAIN,
     srv_rest_model_ready, NULL},
    {"GET", MODEL "/config", SRV_GROUP_METADATA, SRV_BODY_NONE, SRV_ROUTES_MAIN, srv_rest_config,
     NULL},
    {"GET", VERSION "/config", SRV_GROUP_METADATA, SRV_BODY_NONE, SRV_ROUTES_MAIN, srv_rest_config,
     NULL},
    {"GET", MODEL "/stats", SRV_GROUP_METADATA, SRV_BODY_NONE, SRV_ROUTES_MAIN, srv_rest_stats,
     NULL},
    {"GET", VERSION "/stats", SRV_GROUP_METADATA, SRV_BODY_NONE, SRV_ROUTES_MAIN, srv_rest_stats,
     NULL},
    {"POST", "v2/repository/index", SRV_GROUP_ADMIN, SRV_BODY_TEXT, SRV_ROUTES_MAIN, srv_rest_index,
     NULL},
    {"POST", "v2/repository/models/:m/load", SRV_GROUP_ADMIN, SRV_BODY_TEXT, SRV_ROUTES_MAIN,
     srv_rest_load, NULL},
    {"POST", "v2/repository/models/:m/unload", SRV_GROUP_ADMIN, SRV_BODY_TEXT, SRV_ROUTES_MAIN,
     srv_rest_unload, NULL},
    {"GET", "v2/trace/setting", SRV_GROUP_ADMIN, SRV_BODY_NONE, SRV_ROUTES_MAIN, srv_rest_trace_get,
     NULL},
    {"POST", "v2/trace/setting", SRV_GROUP_ADMIN, SRV_BODY_TEXT, SRV_ROUTES_MAIN,
     srv_rest_trace_set, NULL},
    {"GET", MODEL "/trace/setting", SRV_GROUP_ADMIN, SRV_BODY_NONE, SRV_ROUTES_MAIN,
     srv_rest_trace_get, NULL},
    {"POST", MODEL "/trace/setting", SRV_GROUP_ADMIN, SRV_BODY_TEXT, SRV_ROUTES_MAIN,
     srv_rest_trace_set, NULL},
    {"GET", "v2/logging", SRV_GROUP_ADMIN, SRV_BODY_NONE, SRV_ROUTES_MAIN, srv_rest_logging_get,
     NULL},
    {"POST", "v2/logging", SRV_GROUP_ADMIN, SRV_BODY_TEXT, SRV_ROUTES_MAIN, srv_rest_logging_set,
     NULL},
    {"GET", "metrics", SRV_GROUP_METRICS, SRV_BODY_NONE, SRV_ROUTES_METRICS, srv_rest_metrics,
     NULL},
};
#define ROUTES (sizeof routes / sizeof routes[0])

/* Cuts a path into segments; -1 when there are too many, "" for an empty path. */
static int cut(sni_str path, sni_str *out) {
    int count = 0;
    size_t at = 1;
    if (path.n > 1 && path.p[path.n - 1] == '/') path.n--;
    while (at < path.n) {
        const char *slash = memchr(path.p + at, '/', path.n - at);
        size_t length = slash ? (size_t)(slash - path.p) - at : path.n - at;
        if (count == MAX_SEGMENTS) return -1;
        out[count++] = (sni_str){path.p + at, length};
        at += length + 1;
    }
    return count;
}

static bool match(const char *pattern, const sni_str *segments, int count, int *model,
                  int *version) {
    *model = *version = -1;
    for (int i = 0; i < count; i++) {
        size_t length = strcspn(pattern, "/");
        if (length == 0) return false;
        if (pattern[0] == ':') {
            *(pattern[1] == 'm' ? model : version) = i;
        } else if (segments[i].n != length || memcmp(segments[i].p, pattern, length) != 0) {
            return false;
        }
        pattern += length;
        if (*pattern == '/') pattern++;
    }
    return *pattern == 0;
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f') return (c | 32) - 'a' + 10;
    return -1;
}

/* Decodes %XX once. Whether the result can be a model's name is for the repository to say. */
static bool decode(sni_str text, char *out, size_t size, sni_str *result) {
    size_t length = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (length + 1 >= size) return false;
        char c = text.p[i];
        if (c == '%') {
            int high = i + 2 < text.n ? hex_value(text.p[i + 1]) : -1;
            if (high < 0 || hex_value(text.p[i + 2]) < 0) return false;
            c = (char)(high * 16 + hex_value(text.p[i + 2]));
            i += 2;
        }
        out[length++] = c;
    }
    out[length] = 0;
    *result = (sni_str){out, length};
    return true;
}

static srv_code take_variables(srv_http *http, const sni_str *segments, int model, int version) {
    http->model = SNI_STR("");
    http->version = 0;
    if (model >= 0 &&
        !decode(segments[model], http->name_buffer, sizeof http->name_buffer, &http->model)) {
        return SRV_NOT_FOUND;
    }
    uint64_t number;
    if (version < 0) return SRV_OK;
    if (!srv_parse_uint(segments[version], INT64_MAX, &number) || number == 0) {
        return SRV_INVALID;
    }
    http->version = (int64_t)number;
    return SRV_OK;
}

srv_code srv_route_find(srv_http *http, int offered, const char **allow) {
    sni_str segments[MAX_SEGMENTS];
    int count = cut(http->head.path, segments);
    bool head = sni_str_is(http->head.method, "HEAD");
    *allow = NULL;
    for (size_t i = 0; i < ROUTES && count >= 0; i++) {
        int model, version;
        if (!(routes[i].sets & offered)) continue;
        if (!match(routes[i].pattern, segments, count, &model, &version)) continue;
        bool method = sni_str_is(http->head.method, routes[i].method) ||
                      (head && strcmp(routes[i].method, "GET") == 0);
        if (method) {
            http->route = &routes[i];
            return take_variables(http, segments, model, version);
        }
        if (!*allow) *allow = routes[i].method;
    }
    return *allow ? SRV_BAD_METHOD : SRV_NOT_FOUND;
}
