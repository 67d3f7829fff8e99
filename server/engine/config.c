/* config.c - how a model is served: what its config.json or config.pbtxt says. */
#include "server/engine/config.h"
#include "server/api/codes.h"
#include "server/api/json_in.h"

#include <stdlib.h>

void srv_config_init(srv_config *config) {
    *config = (srv_config){.max_batch_size = -1,
                           .priority_levels = 1,
                           .default_priority = 1,
                           .allow_timeout_override = true,
                           .policy = SRV_VERSIONS_LATEST,
                           .versions = {1},
                           .version_count = 1,
                           .optimize = -1};
}

static void free_io(srv_config_io *io, size_t count) {
    for (size_t i = 0; i < count; i++) free(io[i].name);
    free(io);
}

void srv_config_free(srv_config *config) {
    free_io(config->inputs, config->input_count);
    free_io(config->outputs, config->output_count);
    free(config->providers);
    for (int i = 0; i < config->parameter_count; i++) {
        free(config->parameters[i][0]);
        free(config->parameters[i][1]);
    }
    *config = (srv_config){0};
}

/* ---- Values ------------------------------------------------------------------------------- */

/* Protobuf's JSON writes 64-bit numbers as strings: both forms are taken. */
static bool read_int(srv_json_in *in, int64_t low, int64_t high, int64_t *out) {
    int64_t number = 0;
    if (srv_json_peek(in) == SRV_JSON_STRING) {
        sni_str text;
        uint64_t magnitude;
        if (!srv_json_string(in, &text)) return false;
        bool negative = text.n > 0 && text.p[0] == '-';
        sni_str digits = negative ? (sni_str){text.p + 1, text.n - 1} : text;
        if (!srv_parse_uint(digits, INT64_MAX, &magnitude)) {
            srv_json_fail(in, "a whole number is expected");
            return false;
        }
        number = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    } else if (!srv_json_int(in, &number)) {
        return false;
    }
    if (number < low || number > high) {
        srv_json_fail(in, "%lld is not from %lld to %lld", (long long)number, (long long)low,
                      (long long)high);
        return false;
    }
    *out = number;
    return true;
}

static void read_int_to(srv_json_in *in, int64_t low, int64_t high, int *out) {
    int64_t number;
    if (read_int(in, low, high, &number)) *out = (int)number;
}

static void read_micros(srv_json_in *in, uint64_t *ns) {
    int64_t number;
    if (read_int(in, 0, INT64_MAX / 1000, &number)) *ns = (uint64_t)number * 1000;
}

static int read_list(srv_json_in *in, int64_t low, int64_t high, int64_t *list, int most) {
    int count = 0;
    if (!srv_json_array(in)) return 0;
    while (srv_json_element(in)) {
        if (count == most) {
            srv_json_fail(in, "more than %d numbers", most);
            return 0;
        }
        if (!read_int(in, low, high, &list[count++])) return 0;
    }
    return count;
}

static bool copy(srv_json_in *in, sni_str text, char **out) {
    *out = srv_strndup(text.p, text.n);
    if (!*out) in->status = sni_fail_memory(in->err);
    return *out != NULL;
}

/* ---- Sections ----------------------------------------------------------------------------- */

static void read_queue_policy(srv_json_in *in, srv_config *config) {
    sni_str key, text;
    if (!srv_json_object(in)) return;
    while (srv_json_member(in, &key)) {
        int64_t number;
        if (sni_str_is(key, "max_queue_size")) {
            if (read_int(in, 0, 1 << 24, &number)) config->max_queue_size = (uint64_t)number;
        } else if (sni_str_is(key, "default_timeout_microseconds")) {
            read_micros(in, &config->default_timeout_ns);
        } else if (sni_str_is(key, "allow_timeout_override")) {
            srv_json_bool(in, &config->allow_timeout_override);
        } else if (sni_str_is(key, "timeout_action")) {
            if (srv_json_string(in, &text)) config->timeout_delays = sni_str_is(text, "DELAY");
        } else {
            srv_json_skip(in);
        }
    }
}

static void read_batching(srv_json_in *in, srv_config *config) {
    sni_str key;
    if (!srv_json_object(in)) return;
    while (srv_json_member(in, &key)) {
        int levels;
        if (sni_str_is(key, "preferred_batch_size")) {
            config->preferred_count = read_list(in, 1, 1 << 20, config->preferred, SRV_PREFERRED);
        } else if (sni_str_is(key, "max_queue_delay_microseconds")) {
            read_micros(in, &config->queue_delay_ns);
        } else if (sni_str_is(key, "priority_levels")) {
            levels = 1;
            read_int_to(in, 0, SRV_PRIORITIES, &levels);
            config->priority_levels = levels > 0 ? (uint32_t)levels : 1;
        } else if (sni_str_is(key, "default_priority_level")) {
            levels = 1;
            read_int_to(in, 0, SRV_PRIORITIES, &levels);
            config->default_priority = levels > 0 ? (uint32_t)levels : 1;
        } else if (sni_str_is(key, "default_queue_policy")) {
            read_queue_policy(in, config);
        } else {
            srv_json_skip(in);
        }
    }
}

static void read_instances(srv_json_in *in, srv_config *config) {
    if (!srv_json_array(in)) return;
    int total = 0;
    while (srv_json_element(in)) {
        sni_str key;
        int count = 1;
        if (!srv_json_object(in)) return;
        while (srv_json_member(in, &key)) {
            if (sni_str_is(key, "count")) {
                read_int_to(in, 0, 1024, &count);
            } else {
                srv_json_skip(in);
            }
        }
        if (total < 1024) total += count > 0 ? count : 1;
    }
    config->instances = total;
}

static void read_versions(srv_json_in *in, srv_config *config) {
    sni_str kind, key;
    if (!srv_json_object(in)) return;
    while (srv_json_member(in, &kind)) {
        bool specific = sni_str_is(kind, "specific");
        config->policy = specific                  ? SRV_VERSIONS_SPECIFIC
                         : sni_str_is(kind, "all") ? SRV_VERSIONS_ALL
                                                   : SRV_VERSIONS_LATEST;
        if (!srv_json_object(in)) return;
        while (srv_json_member(in, &key)) {
            if (specific && sni_str_is(key, "versions")) {
                config->version_count = read_list(in, 1, INT64_MAX, config->versions, SRV_VERSIONS);
            } else if (sni_str_is(key, "num_versions")) {
                read_int(in, 1, INT64_MAX, &config->versions[0]);
            } else {
                srv_json_skip(in);
            }
        }
    }
}

static void read_io(srv_json_in *in, srv_config_io **list, size_t *count) {
    if (!srv_json_array(in)) return;
    while (srv_json_element(in)) {
        sni_str key, text;
        srv_config_io io = {0};
        if (*count == SRV_CONFIG_IO) {
            srv_json_fail(in, "more than %d inputs or outputs", SRV_CONFIG_IO);
            return;
        }
        srv_config_io *grown = realloc(*list, (*count + 1) * sizeof *grown);
        if (!grown) {
            in->status = sni_fail_memory(in->err);
            return;
        }
        *list = grown;
        if (!srv_json_object(in)) return;
        while (srv_json_member(in, &key)) {
            if (sni_str_is(key, "name") && !io.name) {
                if (srv_json_string(in, &text)) copy(in, text, &io.name);
            } else if (sni_str_is(key, "data_type")) {
                if (srv_json_string(in, &text)) io.dtype = srv_type_config_find(text);
            } else {
                srv_json_skip(in);
            }
        }
        if (!io.name) {
            srv_json_fail(in, "an input or output has no name");
            return;
        }
        grown[(*count)++] = io;
    }
}

/* ---- Parameters --------------------------------------------------------------------------- */

/* Those that begin with "sinter_" are this server's own. */
static void apply_parameter(srv_json_in *in, srv_config *config, const char *name,
                            const char *value) {
    static const char *const names[] = {"sinter_memory_limit", "sinter_time_limit_ms",
                                        "sinter_threads",      "sinter_optimize",
                                        "sinter_batching",     "sinter_warmup"};
    if (strncmp(name, "sinter_", 7) != 0) return;
    if (strcmp(name, "sinter_providers") == 0) {
        free(config->providers);
        copy(in, sni_str_of(value), &config->providers);
        return;
    }
    uint64_t number = 0;
    size_t which = 0, count = sizeof names / sizeof names[0];
    while (which < count && strcmp(name, names[which]) != 0) which++;
    if (which == count || !srv_parse_uint(sni_str_of(value), INT64_MAX / 1000000, &number)) {
        srv_json_fail(in, "parameter %.40s=%.40s is not understood", name, value);
        return;
    }
    if (which == 0) config->memory_limit = number;
    if (which == 1) config->time_limit_ns = number * 1000000;
    if (which == 2) config->threads = number > 1024 ? 1024 : (int)number;
    if (which == 3) config->optimize = number > 3 ? 3 : (int)number;
    if (which == 4) config->batching_off = number == 0;
    if (which == 5) config->no_warmup = number == 0;
}

static void read_parameters(srv_json_in *in, srv_config *config) {
    sni_str name, key, text;
    if (!srv_json_object(in)) return;
    while (srv_json_member(in, &name)) {
        text = (sni_str){"", 0};
        if (srv_json_peek(in) == SRV_JSON_STRING) {
            srv_json_string(in, &text);
        } else if (srv_json_object(in)) {
            while (srv_json_member(in, &key)) {
                if (sni_str_is(key, "string_value")) {
                    srv_json_string(in, &text);
                } else {
                    srv_json_skip(in);
                }
            }
        }
        if (in->status != SN_OK) return;
        int at = config->parameter_count;
        if (at == SRV_CONFIG_PARAMETERS) {
            srv_json_fail(in, "more than %d parameters", SRV_CONFIG_PARAMETERS);
            return;
        }
        char **pair = config->parameters[at];
        config->parameter_count++;
        if (copy(in, name, &pair[0]) && copy(in, text, &pair[1])) {
            apply_parameter(in, config, pair[0], pair[1]);
        }
    }
}

static void read_cache(srv_json_in *in, srv_config *config) {
    sni_str key;
    if (!srv_json_object(in)) return;
    while (srv_json_member(in, &key)) {
        if (sni_str_is(key, "enable")) {
            srv_json_bool(in, &config->cache);
        } else {
            srv_json_skip(in);
        }
    }
}

static void read_section(srv_json_in *in, srv_config *config, sni_str key) {
    if (sni_str_is(key, "max_batch_size")) {
        read_int(in, 0, 1 << 20, &config->max_batch_size);
    } else if (sni_str_is(key, "dynamic_batching")) {
        read_batching(in, config);
    } else if (sni_str_is(key, "instance_group")) {
        read_instances(in, config);
    } else if (sni_str_is(key, "version_policy")) {
        read_versions(in, config);
    } else if (sni_str_is(key, "input")) {
        read_io(in, &config->inputs, &config->input_count);
    } else if (sni_str_is(key, "output")) {
        read_io(in, &config->outputs, &config->output_count);
    } else if (sni_str_is(key, "parameters")) {
        read_parameters(in, config);
    } else if (sni_str_is(key, "response_cache")) {
        read_cache(in, config);
    } else {
        srv_json_skip(in);
    }
}

sn_status srv_config_json(srv_config *config, const char *text, size_t size, sn_error *err) {
    sni_arena arena;
    srv_json_in in;
    sni_str key;
    sni_arena_init(&arena, 1 << 20);
    srv_json_open(&in, text, size, &arena, err);
    if (srv_json_object(&in)) {
        while (srv_json_member(&in, &key)) read_section(&in, config, key);
    }
    sn_status status = srv_json_close(&in);
    sni_arena_free(&arena);
    if (status == SN_OK && config->default_priority > config->priority_levels) {
        config->default_priority = config->priority_levels;
    }
    return status;
}

sn_status srv_config_pbtxt(srv_config *config, const char *text, size_t size, sn_error *err) {
    srv_text json = {0};
    sn_status status = srv_pbtxt_to_json(text, size, &json, err);
    if (status == SN_OK) status = srv_config_json(config, json.data, json.length, err);
    srv_text_free(&json);
    return status;
}
