/* commands_serve.c - options and help of sinter serve. */
#include "cli/cmd/options.h"

const cli_option cli_serve_options[] = {
    {OPT_HTTP, 0, "http", "PORT", "HTTP port (default: 8000; 0: any free one; off: none)"},
    {OPT_GRPC, 0, "grpc", "PORT", "gRPC port (default: none; 0: any free one)"},
    {OPT_METRICS, 0, "metrics", "PORT", "port of /metrics (default: 8002; off: none)"},
    {OPT_HOST, 0, "host", "ADDRESS", "numeric address to listen on (default: 127.0.0.1)"},
    {OPT_MODEL, 0, "model", "NAME", "load only this model at the start; may be repeated"},
    OPTIONS_PROVIDER,
    {OPT_EXPLICIT, 0, "explicit", NULL, "load nothing but what --model or a request names"},
    {OPT_POLL, 0, "poll", "S",
     "look at the folder again every S seconds (default: on SIGHUP only)"},
    {OPT_TRIM, 0, "trim", "S",
     "give memory of runs back after S seconds without one (default: 60; 0: never)"},
    {OPT_ADMIN, 0, "admin", NULL, "open the repository, trace and logging endpoints"},
    {OPT_AUTH, 0, "auth", "RULE", "tokens that open endpoints: [GROUP,...=]FILE; may be repeated"},
    {OPT_ALLOW_HOST, 0, "allow-host", "NAME",
     "a name of this server; may be repeated (default: any; on a loopback address localhost "
     "alone)"},
    {OPT_TLS_CERT, 0, "tls-cert", "FILE", "certificate chain, PEM"},
    {OPT_TLS_KEY, 0, "tls-key", "FILE", "its private key, PEM"},
    {OPT_TLS_CLIENT_CA, 0, "tls-client-ca", "FILE", "demand client certificates of these CAs"},
    OPTION_THREADS("all CPUs; for all models together"),
    {OPT_IO_THREADS, 0, "io-threads", "N", "event loops (default: as many as CPUs, 4 at most)"},
    {OPT_DRAIN, 0, "drain", "S", "seconds that a graceful stop may take (default: 30)"},
    {OPT_TRACE, 0, "trace", "FILE", "write Chrome trace events of requests"},
    {OPT_TRACE_RATE, 0, "trace-rate", "N", "trace one request in N (default: 1)"},
    {OPT_LOG_JSON, 0, "log-json", NULL, "log lines as JSON objects"},
    {OPT_VERBOSE, 'v', "verbose", NULL, "log every request"},
    {OPT_QUIET, 'q', "quiet", NULL, "log errors and warnings only"},
    {OPT_CACHE, 0, "cache", "MIB", "size of the response cache (default: 64)"},
    {OPT_MAX_BODY, 0, "max-body", "MIB", "largest request body, unpacked (default: 128)"},
    {OPT_MAX_HEADER, 0, "max-header", "BYTES", "largest request head (default: 16384)"},
    {OPT_MAX_DEPTH, 0, "max-depth", "N", "JSON arrays and objects in each other (default: 32)"},
    {OPT_MAX_MEMORY, 0, "max-memory", "MIB", "bodies and tensors of all requests (default: 1024)"},
    {OPT_MAX_QUEUE, 0, "max-queue", "N", "requests waiting for one model (default: 1024)"},
    {OPT_MAX_CONNECTIONS, 0, "max-connections", "N", "connections at once (default: 4096)"},
    {OPT_MAX_PER_ADDRESS, 0, "max-per-address", "N", "of one address (default: 1024)"},
    {OPT_HEAD_SECONDS, 0, "head-timeout", "S", "time for a request's head (default: 10)"},
    {OPT_BODY_SECONDS, 0, "body-timeout", "S", "between two pieces of a body (default: 30)"},
    {OPT_BODY_RATE, 0, "body-rate", "BYTES",
     "bytes a second that a body must bring (default: 1024)"},
    {OPT_IDLE_SECONDS, 0, "idle-timeout", "S", "between two requests (default: 75)"},
    {OPT_RUN_MEMORY, 0, "run-memory", "MIB",
     "tensors of one run and packed weights (default: 3/4 of memory; 0: no limit)"},
    {OPT_RUN_SECONDS, 0, "run-timeout", "S", "time of one run (default: 60; 0: no limit)"},
    {OPT_LOAD_SECONDS, 0, "load-timeout", "S",
     "time of loading a version of a model (default: 300; 0: no limit)"},
    END_OF_OPTIONS,
};

const char cli_serve_notes[] =
    "DIR holds models as DIR/resnet/1/model.onnx (a folder for each version), "
    "DIR/resnet/model.onnx\n"
    "or DIR/resnet.onnx. A config.json or config.pbtxt in a model's folder is optional. DIR may "
    "also\n"
    "be one .onnx file.\n"
    "The server speaks the Open Inference Protocol (v2). SIGHUP loads what has changed, SIGTERM\n"
    "finishes what is under way and ends. docs/SERVING.md tells the rest.";
