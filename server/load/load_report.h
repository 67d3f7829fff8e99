/* load_report.h - what the load generator measured: latencies, rates, and how they are shown. */
#ifndef SRV_LOAD_LOAD_REPORT_H
#define SRV_LOAD_LOAD_REPORT_H

#include "server/load/load.h"
#include "server/util.h"

#define SRV_LOAD_BUCKETS 1024

/* Latencies in buckets that grow by about 2 %, from 1 us on. */
typedef struct srv_latency {
    uint64_t counts[SRV_LOAD_BUCKETS];
    uint64_t count, sum_ns, least_ns, most_ns;
} srv_latency;

void srv_latency_add(srv_latency *latency, uint64_t ns);
void srv_latency_merge(srv_latency *into, const srv_latency *from);
/* The latency below which `share` (0 to 1) of the requests lie. */
uint64_t srv_latency_at(const srv_latency *latency, double share);

typedef struct srv_load_result {
    srv_latency latency; /* of good answers */
    uint64_t failed;
    uint64_t broken; /* connections that ended */
    uint64_t bytes_in, bytes_out;
    double seconds;
    char error[200]; /* the first one's text */
} srv_load_result;

void srv_load_print(const srv_load_options *options, const srv_load_result *result);

/* A line for one second on stderr, with a plot of the seconds so far. */
typedef struct srv_live {
    double rates[60];
    size_t count;
} srv_live;
void srv_live_line(srv_live *live, double at, const srv_load_result *second);

#endif
