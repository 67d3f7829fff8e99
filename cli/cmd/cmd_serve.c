/* cmd_serve.c - sinter serve: options of the server. */
#include "cli/cmd/commands.h"

#include "server/serve.h"

#include <string.h>

static const struct {
    int id;
    size_t offset; /* of a size_t or uint64_t in the limits */
    int64_t low, high;
    uint64_t unit;
} limit_options[] = {
    {OPT_MAX_BODY, offsetof(srv_limits_table, body), 1, INT64_MAX >> 22, 1 << 20},
    {OPT_MAX_HEADER, offsetof(srv_limits_table, header), 1024, 1 << 20, 1},
    {OPT_MAX_DEPTH, offsetof(srv_limits_table, depth), 4, 1000, 1},
    {OPT_MAX_MEMORY, offsetof(srv_limits_table, memory), 1, INT64_MAX >> 22, 1 << 20},
    {OPT_MAX_QUEUE, offsetof(srv_limits_table, max_queue), 1, 1 << 24, 1},
    {OPT_HEAD_SECONDS, offsetof(srv_limits_table, head_ns), 1, 86400, 1000000000},
    {OPT_BODY_SECONDS, offsetof(srv_limits_table, body_ns), 1, 86400, 1000000000},
    {OPT_IDLE_SECONDS, offsetof(srv_limits_table, idle_ns), 1, 86400, 1000000000},
    {OPT_BODY_RATE, offsetof(srv_limits_table, body_rate), 0, 1 << 30, 1},
    {OPT_RUN_MEMORY, offsetof(srv_limits_table, run_memory), 0, INT64_MAX >> 22, 1 << 20},
    {OPT_RUN_SECONDS, offsetof(srv_limits_table, time_ns), 0, 86400, 1000000000},
    {OPT_LOAD_SECONDS, offsetof(srv_limits_table, load_ns), 0, 86400, 1000000000},
    {OPT_CACHE, offsetof(srv_limits_table, cache), 0, INT64_MAX >> 22, 1 << 20},
};

static bool take_limit(cli_args *args, int id, const char *value, srv_options *options) {
    for (size_t i = 0; i < sizeof limit_options / sizeof limit_options[0]; i++) {
        if (limit_options[i].id != id) continue;
        int64_t number;
        if (!cli_args_int(args, value, limit_options[i].low, limit_options[i].high, &number)) {
            return false;
        }
        uint64_t scaled = (uint64_t)number * limit_options[i].unit;
        memcpy((char *)&options->limits + limit_options[i].offset, &scaled, sizeof scaled);
        return true;
    }
    return false;
}

static bool take_int(cli_args *args, const char *value, int64_t low, int64_t high, int *out) {
    int64_t number;
    if (!cli_args_int(args, value, low, high, &number)) return false;
    *out = (int)number;
    return true;
}

static bool take_item(const char *value, const char **list, size_t *count) {
    if (*count == SRV_RULES) {
        cli_complain("an option is given more than %d times", SRV_RULES);
        return false;
    }
    list[(*count)++] = value;
    return true;
}

/* Ports; "off" leaves out a listener that is there by default. */
static bool take_port(cli_args *args, const char *value, int *out) {
    if (strcmp(value, "off") == 0) {
        *out = -1;
        return true;
    }
    return take_int(args, value, 0, 65535, out);
}

static bool take_text(int id, const char *value, srv_options *o) {
    const char **slot = id == OPT_HOST            ? &o->host
                        : id == OPT_TLS_CERT      ? &o->tls_certificate
                        : id == OPT_TLS_KEY       ? &o->tls_key
                        : id == OPT_TLS_CLIENT_CA ? &o->tls_client_ca
                                                  : &o->trace_file;
    *slot = value;
    return true;
}

static bool take_switch(int id, srv_options *o) {
    bool *slot = id == OPT_ADMIN      ? &o->admin
                 : id == OPT_EXPLICIT ? &o->explicit_only
                 : id == OPT_LOG_JSON ? &o->log_json
                                      : &o->quiet;
    *slot = true;
    return true;
}

static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    srv_options *o = ctx;
    co_providers checked = {0};
    int64_t number;
    switch (id) {
    case CLI_ARG_OPERAND:
        if (o->repository) return cli_args_surplus(args, value) == CLI_OK;
        o->repository = value;
        return true;
    case OPT_HTTP:
        return take_port(args, value, &o->http_port);
    case OPT_GRPC:
        return take_port(args, value, &o->grpc_port);
    case OPT_METRICS:
        return take_port(args, value, &o->metrics_port);
    case OPT_THREADS:
        return take_int(args, value, 0, 1024, &o->threads);
    case OPT_IO_THREADS:
        return take_int(args, value, 0, 64, &o->io_threads);
    case OPT_VERBOSE:
        o->log_verbose++;
        return true;
    case OPT_MODEL:
        return take_item(value, o->models, &o->model_count);
    case OPT_PROVIDER:
        if (cli_provider_take(&checked, args, id, value) <= 0) return false;
        co_providers_free(&checked); /* each model reads it again */
        return take_item(value, o->providers, &o->provider_count);
    case OPT_PROVIDER_LIBRARY:
        return cli_provider_take(&checked, args, id, value) > 0;
    case OPT_AUTH:
        return take_item(value, o->auth, &o->auth_count);
    case OPT_ALLOW_HOST:
        return take_item(value, o->hosts, &o->host_count);
    case OPT_POLL:
        return cli_args_real(args, value, 0, 86400, &o->poll_seconds);
    case OPT_TRIM:
        return cli_args_real(args, value, 0, 86400, &o->trim_seconds);
    case OPT_DRAIN:
        return cli_args_real(args, value, 0, 86400, &o->drain_seconds);
    case OPT_TRACE_RATE:
        if (!cli_args_int(args, value, 1, INT64_MAX, &number)) return false;
        o->trace_rate = (uint64_t)number;
        return true;
    case OPT_MAX_CONNECTIONS:
        return take_int(args, value, 1, 1 << 20, &o->limits.connections);
    case OPT_MAX_PER_ADDRESS:
        return take_int(args, value, 1, 1 << 20, &o->limits.connections_per_address);
    case OPT_ADMIN:
    case OPT_EXPLICIT:
    case OPT_LOG_JSON:
    case OPT_QUIET:
        return take_switch(id, o);
    case OPT_HOST:
    case OPT_TLS_CERT:
    case OPT_TLS_KEY:
    case OPT_TLS_CLIENT_CA:
    case OPT_TRACE:
        return take_text(id, value, o);
    default:
        return take_limit(args, id, value, o);
    }
}

int cli_cmd_serve(cli_args *args) {
    srv_options options;
    sn_error err = {0};
    srv_options_init(&options);
    int code = cli_args_read(args, take_option, &options);
    if (code >= 0) return code;
    if (!options.repository) return cli_args_missing(args, "DIR");
    if (!options.tls_certificate != !options.tls_key) {
        cli_complain("--tls-cert and --tls-key go together");
        return CLI_USAGE;
    }
    sn_status status = srv_serve(&options, &err);
    if (status == SN_OK) return CLI_OK;
    bool unreadable = status == SN_NOT_FOUND || status == SN_IO || status == SN_INVALID_ARGUMENT;
    return cli_complain_error(NULL, &err, unreadable ? CLI_UNREADABLE : CLI_RUN_FAILED);
}
