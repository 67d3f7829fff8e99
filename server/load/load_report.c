/* load_report.c - what the load generator measured: latencies, rates, and how they are shown. */
#include "server/load/load_report.h"
#include "server/api/json_out.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define GROWTH 1.02

void srv_latency_add(srv_latency *latency, uint64_t ns) {
    double above = log((double)ns / 1000.0 + 1e-9) / log(GROWTH);
    int bucket = above < 0 ? 0 : above >= SRV_LOAD_BUCKETS ? SRV_LOAD_BUCKETS - 1 : (int)above;
    latency->counts[bucket]++;
    if (!latency->count || ns < latency->least_ns) latency->least_ns = ns;
    if (ns > latency->most_ns) latency->most_ns = ns;
    latency->count++;
    latency->sum_ns += ns;
}

void srv_latency_merge(srv_latency *into, const srv_latency *from) {
    if (!from->count) return;
    if (!into->count || from->least_ns < into->least_ns) into->least_ns = from->least_ns;
    if (from->most_ns > into->most_ns) into->most_ns = from->most_ns;
    for (int i = 0; i < SRV_LOAD_BUCKETS; i++) into->counts[i] += from->counts[i];
    into->count += from->count;
    into->sum_ns += from->sum_ns;
}

uint64_t srv_latency_at(const srv_latency *latency, double share) {
    uint64_t wanted = (uint64_t)ceil(share * (double)latency->count), seen = 0;
    for (int i = 0; i < SRV_LOAD_BUCKETS; i++) {
        seen += latency->counts[i];
        if (seen < wanted || !latency->counts[i]) continue;
        uint64_t upper = (uint64_t)(1000.0 * pow(GROWTH, i + 1));
        return upper > latency->most_ns ? latency->most_ns : upper;
    }
    return latency->most_ns;
}

static const double shares[] = {0.5, 0.9, 0.95, 0.99, 0.999};
static const char *const share_names[] = {"p50", "p90", "p95", "p99", "p99.9"};
#define SHARES (sizeof shares / sizeof shares[0])

static void print_json(const srv_load_options *options, const srv_load_result *result) {
    srv_text text = {0};
    srv_json_out json = {.text = &text};
    const srv_latency *latency = &result->latency;
    srv_json_begin(&json, '{');
    srv_json_pair_string(&json, "url", options->url);
    srv_json_pair_string(&json, "model", options->model);
    srv_json_pair_uint(&json, "concurrency", (uint64_t)options->concurrency);
    srv_json_key(&json, "seconds");
    srv_json_put_double(&json, result->seconds);
    srv_json_pair_uint(&json, "requests", latency->count);
    srv_json_pair_uint(&json, "failed", result->failed);
    srv_json_pair_uint(&json, "broken_connections", result->broken);
    srv_json_key(&json, "requests_per_second");
    srv_json_put_double(&json, (double)latency->count / result->seconds);
    srv_json_key(&json, "latency_ns");
    srv_json_begin(&json, '{');
    srv_json_pair_uint(&json, "min", latency->least_ns);
    srv_json_pair_uint(&json, "mean", latency->count ? latency->sum_ns / latency->count : 0);
    for (size_t i = 0; i < SHARES; i++) {
        srv_json_pair_uint(&json, share_names[i], srv_latency_at(latency, shares[i]));
    }
    srv_json_pair_uint(&json, "max", latency->most_ns);
    srv_json_end(&json, '}');
    srv_json_end(&json, '}');
    if (!text.failed) puts(text.data);
    srv_text_free(&text);
}

static void print_time(const char *name, uint64_t ns) {
    if (ns < 10000000) {
        printf("  %-6s %10.1f us\n", name, (double)ns * 1e-3);
    } else {
        printf("  %-6s %10.2f ms\n", name, (double)ns * 1e-6);
    }
}

void srv_load_print(const srv_load_options *options, const srv_load_result *result) {
    const srv_latency *latency = &result->latency;
    if (options->report_json) {
        print_json(options, result);
        return;
    }
    printf("%s, model %s: ", options->url, options->model);
    if (options->rate > 0) {
        printf("%.0f requests/s begun, %d connections\n", options->rate, options->concurrency);
    } else {
        printf("%d at a time\n", options->concurrency);
    }
    printf("%llu requests in %.2f s: %.1f requests/s, %.1f MB/s out, %.1f MB/s in\n",
           (unsigned long long)latency->count, result->seconds,
           (double)latency->count / result->seconds,
           (double)result->bytes_out / result->seconds * 1e-6,
           (double)result->bytes_in / result->seconds * 1e-6);
    if (result->failed || result->broken) {
        printf("%llu failed, %llu connections broken; first: %s\n",
               (unsigned long long)result->failed, (unsigned long long)result->broken,
               result->error[0] ? result->error : "the connection was closed");
    }
    if (!latency->count) return;
    puts("latency");
    print_time("min", latency->least_ns);
    print_time("mean", latency->sum_ns / latency->count);
    for (size_t i = 0; i < SHARES; i++)
        print_time(share_names[i], srv_latency_at(latency, shares[i]));
    print_time("max", latency->most_ns);
}

void srv_live_line(srv_live *live, double at, const srv_load_result *second) {
    static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const size_t most = sizeof live->rates / sizeof live->rates[0];
    double highest = 1;
    char plot[60 * 3 + 1] = "";
    size_t length = 0;
    if (live->count == most) {
        memmove(live->rates, live->rates + 1, (most - 1) * sizeof live->rates[0]);
        live->count--;
    }
    live->rates[live->count++] = (double)second->latency.count / second->seconds;
    for (size_t i = 0; i < live->count; i++) highest = fmax(highest, live->rates[i]);
    for (size_t i = 0; i < live->count; i++) {
        const char *bar = bars[(int)(live->rates[i] / highest * 8)];
        memcpy(plot + length, bar, strlen(bar) + 1);
        length += strlen(bar);
    }
    fprintf(stderr, "%s%5.0f s  %9.1f/s  p50 %8.1f us  p99 %8.1f us  %llu failed  %s%s",
            isatty(2) ? "\r\033[K" : "", at, live->rates[live->count - 1],
            (double)srv_latency_at(&second->latency, 0.5) * 1e-3,
            (double)srv_latency_at(&second->latency, 0.99) * 1e-3,
            (unsigned long long)second->failed, plot, isatty(2) ? "" : "\n");
    fflush(stderr);
}
