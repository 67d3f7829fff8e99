/* loader.h - one thread for what takes long and must not happen twice at once: loading models; and
 * for what is done from time to time. */
#ifndef SRV_ENGINE_LOADER_H
#define SRV_ENGINE_LOADER_H

#include "server/api/codes.h"
#include "server/net/net.h"

typedef struct srv_job {
    void (*run)(struct srv_job *job); /* in the loader's thread; the job is the caller's again */
    struct srv_job *next;
} srv_job;

/* `poll_ns`: how often the folder is looked at again; 0: only when asked to. `idle_ns`: after so
 * long without a run a model's memory but for its weights is given back; 0: never. */
sn_status srv_loader_start(uint64_t poll_ns, uint64_t idle_ns, sn_error *err);
void srv_loader_stop(void); /* after the job under way; those that wait are run, too */
void srv_loader_post(srv_job *job);

/* A model that a client wants loaded or unloaded: to the loader's thread, and back to the loop that
 * it came from. */
typedef struct srv_change srv_change;
struct srv_change {
    srv_job job;
    srv_task task;
    srv_loop *loop;
    void (*done)(const srv_change *change); /* in the loop; the change lives that long */
    void *ctx;
    bool load;
    char name[160];
    char *config; /* JSON, or NULL */
    srv_code code;
    char why[600];
};
/* Takes `config` over. False, and nothing done, if no model can have that name or memory is out. */
bool srv_change_begin(bool load, sni_str name, char *config, srv_loop *loop,
                      void (*done)(const srv_change *change), void *ctx);

/* Looks at the model folder again soon. Safe in a signal's handling thread. */
void srv_loader_rescan(void);

#endif
