/* describe.c - a model's metadata, configuration and statistics as JSON. */
#include "server/api/describe.h"
#include "server/engine/scheduler.h"
#include "server/server.h"

#include <stdio.h>

const char *const srv_extensions[] = {"binary_tensor_data",
                                      "classification",
                                      "model_repository",
                                      "model_configuration",
                                      "schedule_policy",
                                      "statistics",
                                      "trace",
                                      "logging",
                                      NULL};

static void put_version(srv_json_out *out, const char *key, int64_t version) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)version);
    srv_json_pair_string(out, key, text);
}

static void put_dims(srv_json_out *out, const srv_io *io, int from) {
    srv_json_begin(out, '[');
    for (int i = from; i < io->rank; i++) srv_json_put_int(out, io->dims[i]);
    srv_json_end(out, ']');
}

static void put_ios(srv_json_out *out, const srv_io *list, size_t count) {
    srv_json_begin(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (list[i].dtype == SN_UNDEFINED) continue;
        srv_json_begin(out, '{');
        srv_json_pair_string(out, "name", list[i].name);
        srv_json_pair_string(out, "datatype", srv_type_name(list[i].dtype));
        srv_json_key(out, "shape");
        put_dims(out, &list[i], 0);
        if (list[i].optional) srv_json_pair_bool(out, "optional", true);
        srv_json_end(out, '}');
    }
    srv_json_end(out, ']');
}

void srv_describe_model(srv_json_out *out, const srv_model *model) {
    char text[24];
    srv_json_begin(out, '{');
    srv_json_pair_string(out, "name", model->name);
    srv_json_key(out, "versions");
    srv_json_begin(out, '[');
    snprintf(text, sizeof text, "%lld", (long long)model->version);
    srv_json_put_string(out, text);
    srv_json_end(out, ']');
    srv_json_pair_string(out, "platform", "onnx_sinter");
    srv_json_key(out, "inputs");
    put_ios(out, model->inputs, model->input_count);
    srv_json_key(out, "outputs");
    put_ios(out, model->outputs, model->output_count);
    srv_json_end(out, '}');
}

/* ---- Configuration ------------------------------------------------------------------------ */

static void put_config_ios(srv_json_out *out, const srv_io *list, size_t count, bool batched) {
    srv_json_begin(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (list[i].dtype == SN_UNDEFINED) continue;
        srv_json_begin(out, '{');
        srv_json_pair_string(out, "name", list[i].name);
        srv_json_pair_string(out, "data_type", srv_type_config_name(list[i].dtype));
        srv_json_key(out, "dims");
        put_dims(out, &list[i], batched && list[i].rank > 0 ? 1 : 0);
        if (list[i].optional) srv_json_pair_bool(out, "optional", true);
        srv_json_end(out, '}');
    }
    srv_json_end(out, ']');
}

static void put_batching(srv_json_out *out, const srv_config *config) {
    srv_json_key(out, "dynamic_batching");
    srv_json_begin(out, '{');
    srv_json_key(out, "preferred_batch_size");
    srv_json_begin(out, '[');
    for (int i = 0; i < config->preferred_count; i++) srv_json_put_int(out, config->preferred[i]);
    srv_json_end(out, ']');
    srv_json_pair_uint(out, "max_queue_delay_microseconds", config->queue_delay_ns / 1000);
    srv_json_pair_uint(out, "priority_levels", config->priority_levels);
    srv_json_pair_uint(out, "default_priority_level", config->default_priority);
    srv_json_key(out, "default_queue_policy");
    srv_json_begin(out, '{');
    srv_json_pair_string(out, "timeout_action", config->timeout_delays ? "DELAY" : "REJECT");
    srv_json_pair_uint(out, "default_timeout_microseconds", config->default_timeout_ns / 1000);
    srv_json_pair_bool(out, "allow_timeout_override", config->allow_timeout_override);
    srv_json_pair_uint(out, "max_queue_size", config->max_queue_size);
    srv_json_end(out, '}');
    srv_json_end(out, '}');
}

static void put_policy(srv_json_out *out, const srv_config *config) {
    srv_json_key(out, "version_policy");
    srv_json_begin(out, '{');
    bool latest = config->policy == SRV_VERSIONS_LATEST;
    srv_json_key(out, latest ? "latest" : config->policy == SRV_VERSIONS_ALL ? "all" : "specific");
    srv_json_begin(out, '{');
    if (latest) srv_json_pair_uint(out, "num_versions", (uint64_t)config->versions[0]);
    if (config->policy == SRV_VERSIONS_SPECIFIC) {
        srv_json_key(out, "versions");
        srv_json_begin(out, '[');
        for (int i = 0; i < config->version_count; i++) srv_json_put_int(out, config->versions[i]);
        srv_json_end(out, ']');
    }
    srv_json_end(out, '}');
    srv_json_end(out, '}');
}

void srv_describe_config(srv_json_out *out, const srv_model *model) {
    const srv_config *config = &model->config;
    srv_json_begin(out, '{');
    srv_json_pair_string(out, "name", model->name);
    srv_json_pair_string(out, "platform", "onnx_sinter");
    srv_json_pair_string(out, "backend", "sinter");
    put_policy(out, config);
    srv_json_pair_uint(out, "max_batch_size", (uint64_t)model->max_batch);
    srv_json_key(out, "input");
    put_config_ios(out, model->inputs, model->input_count, model->max_batch > 0);
    srv_json_key(out, "output");
    put_config_ios(out, model->outputs, model->output_count, model->max_batch > 0);
    if (model->max_batch > 0) put_batching(out, config);
    srv_json_key(out, "instance_group");
    srv_json_begin(out, '[');
    srv_json_begin(out, '{');
    srv_json_pair_string(out, "name", model->name);
    srv_json_pair_string(out, "kind", "KIND_CPU");
    srv_json_pair_uint(out, "count", (uint64_t)model->instances);
    srv_json_end(out, '}');
    srv_json_end(out, ']');
    srv_json_key(out, "parameters");
    srv_json_begin(out, '{');
    for (int i = 0; i < config->parameter_count; i++) {
        srv_json_key(out, config->parameters[i][0]);
        srv_json_begin(out, '{');
        srv_json_pair_string(out, "string_value", config->parameters[i][1]);
        srv_json_end(out, '}');
    }
    srv_json_end(out, '}');
    srv_json_key(out, "response_cache");
    srv_json_begin(out, '{');
    srv_json_pair_bool(out, "enable", config->cache);
    srv_json_end(out, '}');
    srv_json_end(out, '}');
}

/* ---- Statistics --------------------------------------------------------------------------- */

void srv_model_stats(srv_model *model, srv_stats *out) {
    pthread_mutex_lock(&model->stats_lock);
    *out = model->stats;
    pthread_mutex_unlock(&model->stats_lock);
    srv_scheduler_queue(model->server->scheduler, model, &out->pending, &out->running);
}

static void put_duration(srv_json_out *out, const char *key, srv_duration duration) {
    srv_json_key(out, key);
    srv_json_begin(out, '{');
    srv_json_pair_uint(out, "count", duration.count);
    srv_json_pair_uint(out, "ns", duration.ns);
    srv_json_end(out, '}');
}

static void put_batches(srv_json_out *out, const srv_stats *stats) {
    srv_json_key(out, "batch_stats");
    srv_json_begin(out, '[');
    for (size_t i = 0; i <= SRV_BATCH_STATS; i++) {
        const srv_batch_stats *batch = &stats->batches[i];
        if (!batch->count) continue;
        srv_json_begin(out, '{');
        srv_json_pair_uint(out, "batch_size", i);
        put_duration(out, "compute_input", (srv_duration){batch->count, batch->input_ns});
        put_duration(out, "compute_infer", (srv_duration){batch->count, batch->infer_ns});
        put_duration(out, "compute_output", (srv_duration){batch->count, batch->output_ns});
        srv_json_end(out, '}');
    }
    srv_json_end(out, ']');
}

void srv_describe_stats(srv_json_out *out, srv_model *model) {
    srv_stats stats;
    srv_model_stats(model, &stats);
    srv_json_begin(out, '{');
    srv_json_pair_string(out, "name", model->name);
    put_version(out, "version", model->version);
    srv_json_pair_uint(out, "last_inference", stats.last_inference_ms);
    srv_json_pair_uint(out, "inference_count", stats.inference_count);
    srv_json_pair_uint(out, "execution_count", stats.execution_count);
    srv_json_key(out, "inference_stats");
    srv_json_begin(out, '{');
    put_duration(out, "success", stats.success);
    put_duration(out, "fail", stats.fail);
    put_duration(out, "queue", stats.queue);
    put_duration(out, "compute_input", stats.input);
    put_duration(out, "compute_infer", stats.infer);
    put_duration(out, "compute_output", stats.output);
    put_duration(out, "cache_hit", stats.cache_hit);
    put_duration(out, "cache_miss", stats.cache_miss);
    srv_json_end(out, '}');
    put_batches(out, &stats);
    srv_json_pair_uint(out, "pending", stats.pending);
    srv_json_key(out, "latency");
    srv_json_begin(out, '{');
    srv_json_pair_uint(out, "p50_ns", srv_histogram_quantile(&stats.request_latency, 0.5));
    srv_json_pair_uint(out, "p90_ns", srv_histogram_quantile(&stats.request_latency, 0.9));
    srv_json_pair_uint(out, "p99_ns", srv_histogram_quantile(&stats.request_latency, 0.99));
    srv_json_pair_uint(out, "first_bound_ns", (uint64_t)(srv_bucket_bound(0) * 1e9));
    srv_json_key(out, "counts"); /* of requests up to each bound, which double */
    srv_json_begin(out, '[');
    for (int i = 0; i < SRV_BUCKETS; i++) {
        srv_json_put_int(out, (int64_t)stats.request_latency.buckets[i]);
    }
    srv_json_end(out, ']');
    srv_json_end(out, '}');
    srv_json_end(out, '}');
}

void srv_describe_entry(srv_json_out *out, const srv_index_entry *entry) {
    srv_json_begin(out, '{');
    srv_json_pair_string(out, "name", entry->name);
    if (entry->version) {
        char text[24];
        snprintf(text, sizeof text, "%lld", (long long)entry->version);
        srv_json_pair_string(out, "version", text);
    }
    srv_json_pair_string(out, "state", entry->state);
    srv_json_pair_string(out, "reason", entry->reason);
    srv_json_end(out, '}');
}
