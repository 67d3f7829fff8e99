/* metrics.c - everything counted, as Prometheus text. Labels are names of models that exist and
 * their versions: requests cannot make new ones. */
#include "server/ops/metrics.h"
#include "server/api/describe.h"
#include "server/server.h"
#include "server/engine/repository.h"
#include "server/api/routes.h"
#include "server/engine/scheduler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct row {
    const srv_model *model;
    srv_stats stats;
} row;

typedef struct table {
    row *rows;
    size_t count, capacity;
} table;

static void add_row(void *ctx, const srv_index_entry *entry) {
    table *t = ctx;
    if (!entry->model) return;
    if (t->count == t->capacity) {
        size_t capacity = t->capacity ? t->capacity * 2 : 8;
        row *rows = realloc(t->rows, capacity * sizeof *rows);
        if (!rows) return;
        t->rows = rows;
        t->capacity = capacity;
    }
    row *r = &t->rows[t->count++];
    r->model = srv_model_retain(entry->model);
    srv_model_stats(entry->model, &r->stats);
}

static void head(srv_text *out, const char *name, const char *type, const char *help) {
    srv_text_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void label(srv_text *out, const row *r) {
    /* names are made of letters, digits, '-', '_' and '.': nothing to escape */
    srv_text_addf(out, "model=\"%s\",version=\"%lld\"", r->model->name,
                  (long long)r->model->version);
}

static void line(srv_text *out, const char *name, const row *r, uint64_t value) {
    srv_text_addf(out, "%s{", name);
    label(out, r);
    srv_text_addf(out, "} %llu\n", (unsigned long long)value);
}

/* The counters that are one number of the statistics, by offset; times are shown in microseconds.
 */
static const struct {
    const char *name, *type, *help;
    size_t offset;
    bool micros;
} simple[] = {
    {"nv_inference_request_success", "counter", "Requests that went well",
     offsetof(srv_stats, success.count), false},
    {"nv_inference_count", "counter", "Rows that were inferred",
     offsetof(srv_stats, inference_count), false},
    {"nv_inference_exec_count", "counter", "Runs of the model",
     offsetof(srv_stats, execution_count), false},
    {"nv_inference_request_duration_us", "counter", "Time of requests, from first byte to answer",
     offsetof(srv_stats, success.ns), true},
    {"nv_inference_queue_duration_us", "counter", "Time that requests waited",
     offsetof(srv_stats, queue.ns), true},
    {"nv_inference_compute_input_duration_us", "counter", "Time spent on putting inputs together",
     offsetof(srv_stats, input.ns), true},
    {"nv_inference_compute_infer_duration_us", "counter", "Time spent in runs",
     offsetof(srv_stats, infer.ns), true},
    {"nv_inference_compute_output_duration_us", "counter", "Time spent on taking outputs apart",
     offsetof(srv_stats, output.ns), true},
    {"nv_cache_num_hits_per_model", "counter", "Answers from the cache",
     offsetof(srv_stats, cache_hit.count), false},
    {"nv_cache_num_misses_per_model", "counter", "Requests that the cache had no answer for",
     offsetof(srv_stats, cache_miss.count), false},
    {"nv_inference_pending_request_count", "gauge", "Requests that wait now",
     offsetof(srv_stats, pending), false},
    {"sinter_running_count", "gauge", "Runs under way now", offsetof(srv_stats, running), false},
};

static void write_simple(srv_text *out, const table *t) {
    for (size_t i = 0; i < sizeof simple / sizeof simple[0]; i++) {
        head(out, simple[i].name, simple[i].type, simple[i].help);
        for (size_t j = 0; j < t->count; j++) {
            uint64_t value;
            memcpy(&value, (const char *)&t->rows[j].stats + simple[i].offset, sizeof value);
            line(out, simple[i].name, &t->rows[j], simple[i].micros ? value / 1000 : value);
        }
    }
}

static void write_failures(srv_text *out, const table *t) {
    static const char *const reasons[] = {"REJECTED", "CANCELED", "TIMEOUT", "BACKEND", "OTHER"};
    head(out, "nv_inference_request_failure", "counter", "Requests that failed");
    for (size_t j = 0; j < t->count; j++) {
        for (int i = 0; i < SRV_FAILURE_COUNT; i++) {
            srv_text_adds(out, "nv_inference_request_failure{");
            label(out, &t->rows[j]);
            srv_text_addf(out, ",reason=\"%s\"} %llu\n", reasons[i],
                          (unsigned long long)t->rows[j].stats.failures[i]);
        }
    }
}

static void write_histogram(srv_text *out, const table *t, const char *name, const char *help,
                            size_t offset) {
    head(out, name, "histogram", help);
    for (size_t j = 0; j < t->count; j++) {
        const srv_histogram *h = (const srv_histogram *)((const char *)&t->rows[j].stats + offset);
        uint64_t below = 0;
        for (int i = 0; i < SRV_BUCKETS; i++) {
            char bound[32] = "+Inf";
            below += h->buckets[i];
            if (!isinf(srv_bucket_bound(i))) {
                snprintf(bound, sizeof bound, "%g", srv_bucket_bound(i));
            }
            srv_text_addf(out, "%s_bucket{", name);
            label(out, &t->rows[j]);
            srv_text_addf(out, ",le=\"%s\"} %llu\n", bound, (unsigned long long)below);
        }
        srv_text_addf(out, "%s_sum{", name);
        label(out, &t->rows[j]);
        srv_text_addf(out, "} %.9g\n%s_count{", (double)h->sum_ns / 1e9, name);
        label(out, &t->rows[j]);
        srv_text_addf(out, "} %llu\n", (unsigned long long)h->count);
    }
}

static uint64_t resident_bytes(void) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%*u %llu", &pages) != 1) pages = 0;
        fclose(file);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void single(srv_text *out, const char *name, const char *help, uint64_t value) {
    head(out, name, "gauge", help);
    srv_text_addf(out, "%s %llu\n", name, (unsigned long long)value);
}

void srv_metrics_write(srv_server *server, srv_text *out) {
    table t = {0};
    srv_repository_each(server->repository, add_row, &t);
    write_simple(out, &t);
    write_failures(out, &t);
    write_histogram(out, &t, "sinter_request_duration_seconds", "Time of requests",
                    offsetof(srv_stats, request_latency));
    write_histogram(out, &t, "sinter_queue_duration_seconds", "Time that requests waited",
                    offsetof(srv_stats, queue_latency));
    write_histogram(out, &t, "sinter_infer_duration_seconds", "Time of runs",
                    offsetof(srv_stats, infer_latency));
    for (size_t i = 0; i < t.count; i++) srv_model_release((srv_model *)(uintptr_t)t.rows[i].model);
    free(t.rows);
    single(out, "sinter_connections", "Connections that are open",
           (uint64_t)srv_net_connections(server->net));
    single(out, "sinter_requests", "Requests that wait or run",
           srv_scheduler_load(server->scheduler));
    single(out, "sinter_request_memory_bytes", "Bytes of bodies and tensors of requests",
           srv_budget_used(&server->budget));
    single(out, "process_resident_memory_bytes", "Memory of the process", resident_bytes());
}

void srv_rest_metrics(srv_http *http) {
    srv_metrics_write(srv_http_server(http), &http->out);
    srv_http_reply(http, SRV_OK, "text/plain; version=0.0.4", NULL);
}
