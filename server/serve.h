/* serve.h - the server as the program starts it. */
#ifndef SRV_SERVE_H
#define SRV_SERVE_H

#include "server/ops/limits.h"

#define SRV_RULES 32

typedef struct srv_options {
    const char *repository; /* a folder of models, or one .onnx file */
    const char *host;       /* numeric address to listen on */
    int http_port;          /* -1: no such door; 0: any free port */
    int grpc_port;
    int metrics_port;
    int threads;    /* of all runs together; 0: as many as CPUs */
    int io_threads; /* event loops; 0: a few */
    bool admin;     /* repository, trace and logging endpoints are open */
    bool explicit_only;
    const char *models[SRV_RULES]; /* to load at the start; none: all */
    size_t model_count;
    double poll_seconds; /* how often the folder is looked at again; 0: never */
    double trim_seconds; /* a model without work for so long gives memory back; 0: never */
    const char *tls_certificate, *tls_key, *tls_client_ca;
    const char *auth[SRV_RULES];
    size_t auth_count;
    const char *trace_file;
    uint64_t trace_rate;
    bool log_json;
    int log_verbose;
    bool quiet;           /* errors and warnings only */
    double drain_seconds; /* most time that a graceful stop may take */
    srv_limits_table limits;
} srv_options;

void srv_options_init(srv_options *options);

/* Serves until SIGTERM or SIGINT. Prints where it listens on stdout. */
sn_status srv_serve(const srv_options *options, sn_error *err);

#endif
