/* trace.h - what requests spent their time on, as Chrome trace events in a file. */
#ifndef SRV_OPS_TRACE_H
#define SRV_OPS_TRACE_H

#include "server/engine/request.h"

#include <stdio.h>

typedef struct srv_trace_settings {
    bool on;
    uint64_t rate; /* one request in so many */
    int64_t count; /* requests still to trace; -1: no end */
} srv_trace_settings;

/* One server's trace file. Any thread, but for init, open and close. */
typedef struct srv_trace {
    pthread_mutex_t lock;
    FILE *file;     /* NULL: none */
    atomic_bool on; /* settings.on, read without the lock */
    srv_trace_settings settings;
    uint64_t seen; /* requests */
} srv_trace;

void srv_trace_init(srv_trace *trace); /* off, without a file */
/* Opens the file that events go to; it is readable by chrome://tracing and Perfetto at any time. */
sn_status srv_trace_open(srv_trace *trace, const char *path, sn_error *err);
void srv_trace_close(srv_trace *trace); /* without a file, too; the last call for this struct */
bool srv_trace_possible(const srv_trace *trace); /* a file is open */
srv_trace_settings srv_trace_get(srv_trace *trace);
void srv_trace_set(srv_trace *trace, const srv_trace_settings *settings);

/* Writes the spans of a request that is over if it is one of those that are traced. */
void srv_trace_request(srv_trace *trace, const srv_request *request);

#endif
