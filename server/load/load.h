/* load.h - the load generator as the program starts it (`sinter load`). */
#ifndef SRV_LOAD_LOAD_H
#define SRV_LOAD_LOAD_H

#include "sinter.h"

#define SRV_LOAD_SHAPES 32

typedef struct srv_load_options {
    const char *url;     /* http://HOST:PORT or grpc://HOST:PORT, HOST numeric or localhost */
    const char *model;   /* its name */
    const char *version; /* NULL: the newest */
    int concurrency;     /* requests under way at once, each on a connection of its own */
    double rate;    /* requests begun a second, however long they take; 0: as fast as answered */
    double seconds; /* measured */
    double warm_up; /* seconds before that */
    double ramp;    /* seconds over which concurrency or rate grows to its value */
    int64_t open;   /* size of dimensions that the model leaves open */
    const char *shapes[SRV_LOAD_SHAPES]; /* "NAME=1x3x224x224" */
    size_t shape_count;
    const char *token; /* bearer token, or NULL */
    bool json_tensors; /* tensors as JSON instead of binary (HTTP) */
    bool report_json;  /* the report as one JSON object */
    bool quiet;        /* no live lines */
} srv_load_options;

void srv_load_options_init(srv_load_options *options);

/* Runs the load and prints the report on stdout, live lines on stderr. SN_BAD_DATA when a request
 * failed. */
sn_status srv_load(const srv_load_options *options, sn_error *err);

#endif
