/* stats.c - what a model version has done: counts, times and histograms. */
#include "server/ops/stats.h"

#include <math.h>

#define FIRST_BOUND_NS 50000u

double srv_bucket_bound(int bucket) {
    if (bucket >= SRV_BUCKETS - 1) return INFINITY;
    return (double)((uint64_t)FIRST_BOUND_NS << bucket) / 1e9;
}

void srv_histogram_add(srv_histogram *histogram, uint64_t ns) {
    int bucket = 0;
    while (bucket < SRV_BUCKETS - 1 && ns > (uint64_t)FIRST_BOUND_NS << bucket) bucket++;
    histogram->buckets[bucket]++;
    histogram->count++;
    histogram->sum_ns += ns;
}

uint64_t srv_histogram_quantile(const srv_histogram *histogram, double share) {
    double rank = share * (double)histogram->count, below = 0;
    for (int i = 0; i < SRV_BUCKETS; i++) {
        double inside = (double)histogram->buckets[i];
        if (inside > 0 && below + inside >= rank) {
            double low = i ? (double)((uint64_t)FIRST_BOUND_NS << (i - 1)) : 0;
            double high = (double)((uint64_t)FIRST_BOUND_NS << i);
            double part = (rank - below) / inside;
            return (uint64_t)(low + (high - low) * (part < 0 ? 0 : part));
        }
        below += inside;
    }
    return 0;
}

static uint64_t span(uint64_t from, uint64_t to) {
    return to > from && from ? to - from : 0;
}

static void add(srv_duration *duration, uint64_t ns) {
    duration->count++;
    duration->ns += ns;
}

static srv_failure failure_of(srv_code code) {
    switch (code) {
    case SRV_UNAVAILABLE:
        return SRV_FAILURE_REJECTED;
    case SRV_CANCELLED:
        return SRV_FAILURE_CANCELED;
    case SRV_DEADLINE:
        return SRV_FAILURE_TIMEOUT;
    case SRV_INTERNAL:
        return SRV_FAILURE_BACKEND;
    default:
        return SRV_FAILURE_OTHER;
    }
}

void srv_stats_request(srv_stats *stats, const srv_request *request) {
    const srv_times *t = &request->times;
    uint64_t total = span(t->received, t->finished);
    if (request->code != SRV_OK) {
        add(&stats->fail, total);
        stats->failures[failure_of(request->code)]++;
        return;
    }
    add(&stats->success, total);
    srv_histogram_add(&stats->request_latency, total);
    stats->inference_count += (uint64_t)request->rows;
    stats->last_inference_ms = srv_wall_ns() / 1000000u;
    if (request->cache_hit) {
        add(&stats->cache_hit, span(t->queued, t->finished));
        return;
    }
    add(&stats->queue, span(t->queued, t->started));
    add(&stats->input, span(t->started, t->input));
    add(&stats->infer, span(t->input, t->computed));
    add(&stats->output, span(t->computed, t->finished));
    srv_histogram_add(&stats->queue_latency, span(t->queued, t->started));
    srv_histogram_add(&stats->infer_latency, span(t->input, t->computed));
}

void srv_stats_run(srv_stats *stats, const srv_times *times, int64_t rows) {
    int64_t size = rows > SRV_BATCH_STATS ? SRV_BATCH_STATS : rows < 0 ? 0 : rows;
    srv_batch_stats *batch = &stats->batches[size];
    stats->execution_count++;
    batch->count++;
    batch->input_ns += span(times->started, times->input);
    batch->infer_ns += span(times->input, times->computed);
    batch->output_ns += span(times->computed, times->finished);
}
