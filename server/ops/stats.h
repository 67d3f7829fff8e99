/* stats.h - what a model version has done: counts, times and histograms. */
#ifndef SRV_OPS_STATS_H
#define SRV_OPS_STATS_H

#include "server/engine/request.h"

#include <pthread.h>

#define SRV_BATCH_STATS 64 /* batch sizes counted one by one; larger ones share the last */
#define SRV_BUCKETS 24

typedef struct srv_duration {
    uint64_t count;
    uint64_t ns;
} srv_duration;

/* Upper bounds double from 50 us; the last bucket has none. */
typedef struct srv_histogram {
    uint64_t buckets[SRV_BUCKETS];
    uint64_t count;
    uint64_t sum_ns;
} srv_histogram;

typedef enum srv_failure {
    SRV_FAILURE_REJECTED, /* queue full, draining */
    SRV_FAILURE_CANCELED,
    SRV_FAILURE_TIMEOUT,
    SRV_FAILURE_BACKEND, /* the run failed */
    SRV_FAILURE_OTHER,
    SRV_FAILURE_COUNT
} srv_failure;

typedef struct srv_batch_stats {
    uint64_t count; /* runs of this size */
    uint64_t input_ns, infer_ns, output_ns;
} srv_batch_stats;

typedef struct srv_stats {
    uint64_t last_inference_ms; /* wall clock */
    uint64_t inference_count;   /* rows */
    uint64_t execution_count;   /* runs */
    srv_duration success, fail, queue, input, infer, output, cache_hit, cache_miss;
    uint64_t failures[SRV_FAILURE_COUNT];
    uint64_t pending;                             /* requests that wait */
    uint64_t running;                             /* runs under way */
    srv_batch_stats batches[SRV_BATCH_STATS + 1]; /* by size */
    srv_histogram request_latency, queue_latency, infer_latency;
} srv_stats;

/* The upper bound of a bucket in seconds; the last one's is infinite. */
double srv_bucket_bound(int bucket);
void srv_histogram_add(srv_histogram *histogram, uint64_t ns);
/* The latency in ns below which `share` (0 to 1) of the entries lie, interpolated. */
uint64_t srv_histogram_quantile(const srv_histogram *histogram, double share);

/* Counts a request that is over; the caller holds the lock of `stats`. */
void srv_stats_request(srv_stats *stats, const srv_request *request);
/* Counts a run of `rows` rows. */
void srv_stats_run(srv_stats *stats, const srv_times *times, int64_t rows);

#endif
