/* trace.h - what requests spent their time on, as Chrome trace events in a file. */
#ifndef SRV_OPS_TRACE_H
#define SRV_OPS_TRACE_H

#include "server/engine/request.h"

typedef struct srv_trace_settings {
    bool on;
    uint64_t rate; /* one request in so many */
    int64_t count; /* requests still to trace; -1: no end */
} srv_trace_settings;

/* Opens the file that events go to; it is readable by chrome://tracing and Perfetto at any time. */
sn_status srv_trace_open(const char *path, sn_error *err);
void srv_trace_close(void);
bool srv_trace_possible(void); /* a file is open */
srv_trace_settings srv_trace_get(void);
void srv_trace_set(const srv_trace_settings *settings);

/* Writes the request's spans if it is one of those that are traced. */
void srv_trace_request(const srv_request *request);

#endif
