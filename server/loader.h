/* loader.h - one thread for what takes long and must not happen twice at once: loading models. */
#ifndef SERVER_LOADER_H
#define SERVER_LOADER_H

#include "util.h"

typedef struct srv_job {
    void (*run)(struct srv_job *job); /* in the loader's thread; the job is the caller's again */
    struct srv_job *next;
} srv_job;

/* `poll_ns`: how often the folder is looked at again; 0: only when asked to. */
sn_status srv_loader_start(uint64_t poll_ns, sn_error *err);
void srv_loader_stop(void); /* after the job under way; those that wait are run, too */
void srv_loader_post(srv_job *job);
/* Looks at the model folder again soon. Safe in a signal's handling thread. */
void srv_loader_rescan(void);

#endif
