/* serve.h - the server as the program starts it. */
#ifndef SRV_SERVE_H
#define SRV_SERVE_H

#include "server/ops/limits.h"

#define SRV_RULES 32

typedef struct srv_options {
    const char *repository; /* a folder of models, or one .onnx file */
    const char *host;       /* numeric address to listen on */
    int http_port;          /* -1: no such listener; 0: any free port */
    int grpc_port;
    int metrics_port;
    int http_fd; /* a socket that listens already, instead of host and port; -1: none */
    int grpc_fd;
    int metrics_fd;
    int threads;    /* of all runs together; 0: as many as CPUs */
    int io_threads; /* event loops; 0: a few */
    bool admin;     /* repository, trace and logging endpoints are open */
    bool explicit_only;
    const char *models[SRV_RULES]; /* to load at the start; none: all */
    size_t model_count;
    double poll_seconds; /* how often the folder is looked at again; 0: never */
    double trim_seconds; /* a model without work for so long gives memory back; 0: never */
    const char *providers[SRV_RULES]; /* of models whose configuration names none */
    size_t provider_count;
    const char *tls_certificate, *tls_key, *tls_client_ca;
    const char *auth[SRV_RULES];
    size_t auth_count;
    const char *hosts[SRV_RULES]; /* names by which clients may call the server */
    size_t host_count;
    const char *trace_file;
    uint64_t trace_rate;
    bool log_json;
    int log_verbose;
    bool quiet;           /* errors and warnings only */
    double drain_seconds; /* most time that a graceful stop may take */
    srv_limits_table limits;
} srv_options;

void srv_options_init(srv_options *options); /* the defaults */

/* Serves until SIGTERM or SIGINT; SIGHUP looks at models and certificates again. Prints where it
 * listens on stdout. Sockets that the process inherited take the place of `*_fd`. For a program
 * that does nothing else: it changes signal masks and settings of malloc. */
sn_status srv_serve(const srv_options *options, sn_error *err);

#endif
