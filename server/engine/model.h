/* model.h - one loaded version of a model: its session, its inputs and outputs, its queue. */
#ifndef SRV_ENGINE_MODEL_H
#define SRV_ENGINE_MODEL_H

#include "server/engine/config.h"
#include "server/engine/request.h"
#include "server/ops/stats.h"
#include "server/engine/tune.h"

typedef struct srv_io {
    char *name;
    sn_dtype dtype; /* UNDEFINED: no tensor, cannot be served */
    bool has_shape;
    int rank;
    int64_t dims[SN_MAX_RANK];  /* -1 where any number will do */
    char *symbols[SN_MAX_RANK]; /* names of those, NULL where there is none */
    bool optional;
} srv_io;

/* Requests that wait for a model, by priority, and its runs; the scheduler's lock guards it. */
typedef struct srv_queue {
    srv_request *first[SRV_PRIORITIES], *last[SRV_PRIORITIES];
    size_t count;
    int running;     /* runs under way */
    bool rested;     /* its memory was given back, and no run has been since */
    uint64_t busy;   /* when a run last ended, or the model was loaded */
    srv_model *next; /* among models with waiting requests */
    bool listed;
    srv_tuning tuning;
} srv_queue;

struct srv_model {
    atomic_int refs;
    srv_server *server;
    char *name;
    int64_t version;
    sn_session *session;
    srv_io *inputs, *outputs;
    size_t input_count, output_count;
    srv_config config;
    int64_t max_batch;   /* rows of one run that batching may gather; 0: no batching */
    bool batch_declared; /* the configuration said so, and requests must not exceed it */
    int instances;
    uint64_t loaded_ns; /* how long loading took */
    uint64_t serial;    /* of the load in this server: a reloaded version has another */

    srv_queue queue;
    pthread_mutex_t stats_lock;
    srv_stats stats;
};

/* Loads a file, takes over the configuration on success, and runs the model once or more, so that
 * the first request finds it warm, within limits.load_ns. On failure the configuration is still the
 * caller's. The model must not outlive the server. */
sn_status srv_model_load(srv_server *server, const char *path, const char *name, int64_t version,
                         srv_config *config, srv_model **out, sn_error *err);
srv_model *srv_model_retain(srv_model *model);
void srv_model_release(srv_model *model); /* NULL is fine */

/* The index of the input or output of that name, or -1. */
int srv_io_find(const srv_io *list, size_t count, sni_str name);

/* "[-1,3,224,224]", cut where it is longer than `size` allows. */
void srv_dims_text(int rank, const int64_t *dims, char *out, size_t size);

/* model_warm.c: finds out whether rows are independent of each other (for a model whose
 * configuration does not say), and runs it so that plans and packed weights are there. Never fails
 * a load: what cannot be run with made-up inputs until `deadline` (0: none) is served without
 * batching. */
void srv_model_warm(srv_model *model, uint64_t deadline);

#endif
