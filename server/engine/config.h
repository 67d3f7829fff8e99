/* config.h - how a model is served: what its config.json or config.pbtxt says. */
#ifndef SRV_ENGINE_CONFIG_H
#define SRV_ENGINE_CONFIG_H

#include "server/util.h"

#define SRV_PREFERRED 16 /* preferred batch sizes that a configuration may list */
#define SRV_VERSIONS 64  /* versions that a policy may list */
#define SRV_CONFIG_IO 256
#define SRV_PRIORITIES 16
#define SRV_CONFIG_PARAMETERS 64

typedef enum srv_version_policy {
    SRV_VERSIONS_LATEST,
    SRV_VERSIONS_ALL,
    SRV_VERSIONS_SPECIFIC
} srv_version_policy;

/* What a configuration says of an input or output, checked against the model. */
typedef struct srv_config_io {
    char *name;
    sn_dtype dtype;
} srv_config_io;

typedef struct srv_config {
    int64_t max_batch_size; /* 0: no batching; -1: not said, find out from the model */
    bool batching_off;      /* dynamic batching was switched off */
    int64_t preferred[SRV_PREFERRED];
    int preferred_count;
    uint64_t queue_delay_ns;
    int instances;           /* 0: not said */
    uint64_t max_queue_size; /* 0: not said */
    uint32_t priority_levels;
    uint32_t default_priority; /* 1 is the highest */
    uint64_t default_timeout_ns;
    bool timeout_delays;         /* requests past their time are kept and run last */
    bool allow_timeout_override; /* a request may give its own timeout */
    srv_version_policy policy;
    int64_t versions[SRV_VERSIONS]; /* SPECIFIC; for LATEST versions[0] is how many */
    int version_count;
    bool cache;
    bool no_warmup;
    uint64_t memory_limit;  /* of one run, bytes; 0: the server's */
    uint64_t time_limit_ns; /* of one run; 0: the server's */
    int threads;            /* of one run; 0: as many as are free */
    int optimize;           /* -1: default */
    char *providers;        /* "name:device,key=value;..."; NULL: the server's */
    srv_config_io *inputs, *outputs;
    size_t input_count, output_count;
    char *parameters[SRV_CONFIG_PARAMETERS][2]; /* names and values, as they were given */
    int parameter_count;
} srv_config;

void srv_config_init(srv_config *config);
void srv_config_free(srv_config *config);

/* Reads config.json text (with a NUL behind it) into an initialised configuration. */
sn_status srv_config_json(srv_config *config, const char *text, size_t size, sn_error *err);
/* The same of protobuf text format. */
sn_status srv_config_pbtxt(srv_config *config, const char *text, size_t size, sn_error *err);

/* config.pbtxt as the config.json that means the same. */
sn_status srv_pbtxt_to_json(const char *text, size_t size, srv_text *out, sn_error *err);

#endif
