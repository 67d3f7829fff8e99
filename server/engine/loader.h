/* loader.h - threads for what takes long: loading models, several at once; and for what is done
 * from time to time.
 *
 * A load has a deadline (limits.load_ns), which it keeps by itself where it can. One that is still
 * under way seconds later hangs: it is told so, what waits for the same model is dropped, and
 * another thread takes its place, so that the others load. */
#ifndef SRV_ENGINE_LOADER_H
#define SRV_ENGINE_LOADER_H

#include "server/api/codes.h"
#include "server/net/net.h"

/* Work for a model. `done` or `drop` is called once, as the last of all; the job is the caller's
 * again in it. */
typedef struct srv_job {
    const char *key;                  /* the model's name: jobs of one name never run at once */
    void (*run)(struct srv_job *job); /* in one of the loader's threads */
    void (*done)(struct srv_job *job);
    void (*drop)(struct srv_job *job); /* it is not run: the server stops, or the model hangs */
    /* It hangs: called while it runs, once at most. Must not call the loader. */
    void (*overdue)(struct srv_job *job);
    struct srv_job *next;
} srv_job;

typedef struct srv_loader srv_loader;

/* A loader of the server's models whose threads do not run yet. NULL without memory. */
srv_loader *srv_loader_create(srv_server *server);
/* Looks at the folder for the first time, in a thread of its own. `poll_ns`: how often it is looked
 * at again; 0: only when asked to. `idle_ns`: after so long without a run a model's memory but for
 * its weights is given back; 0: never. To be called once. */
sn_status srv_loader_start(srv_loader *loader, uint64_t poll_ns, uint64_t idle_ns, sn_error *err);
/* Drops the jobs that wait and ends the threads after the jobs under way, whatever those take. One
 * that does not run is fine. Jobs that are posted afterwards are dropped. */
void srv_loader_stop(srv_loader *loader);
void srv_loader_destroy(srv_loader *loader); /* once stopped; NULL is fine */
/* Runs the job, after those of its key that wait already. Any thread. */
void srv_loader_post(srv_loader *loader, srv_job *job);

/* A model that a client wants loaded or unloaded: the request goes to a thread of the loader, and
 * its outcome back to the loop that it came from. */
typedef struct srv_change srv_change;
struct srv_change {
    srv_job job;
    srv_task task;
    srv_server *server;
    srv_loop *loop;
    void (*done)(const srv_change *change); /* in the loop; the change lives that long */
    void *ctx;
    bool load;
    char name[160];
    char *config;  /* JSON, or NULL */
    bool answered; /* before it was done, because it hangs */
    srv_code code;
    char why[600];
};
/* What a request to load is told that brings a model's files as `file:` parameters. */
#define SRV_NO_FILES "files in a request to load ('file:' parameters) are not supported"

/* Copies `wanted`, of which the caller has set server, loop, done, ctx, load and config, and takes
 * `config` over. `done` is called once. Not SRV_OK, and nothing done but `config` freed, if no
 * model can have that name or memory is out. */
srv_code srv_change_begin(const srv_change *wanted, sni_str name);

/* Looks at the model folder again soon. Any thread. */
void srv_loader_rescan(srv_loader *loader);

#endif
