/* server.h - one server as an object: its parts, and how it starts and stops.
 *
 *     srv_server_create -> srv_server_listen -> srv_server_load -> srv_server_drain
 *                       -> srv_server_destroy (at any point)
 *
 * A process can have several: nothing of a server is in static memory. What belongs to the process
 * (signals, stdout, settings of malloc) is the business of serve.c. */
#ifndef SRV_SERVER_H
#define SRV_SERVER_H

#include "server/engine/state.h"
#include "server/ops/auth.h"
#include "server/ops/log.h"
#include "server/ops/sites.h"
#include "server/ops/trace.h"
#include "server/serve.h"

typedef struct srv_cache srv_cache;           /* engine/cache.h */
typedef struct srv_loader srv_loader;         /* engine/loader.h */
typedef struct srv_repository srv_repository; /* engine/repository.h */
typedef struct srv_scheduler srv_scheduler;   /* engine/scheduler.h */

enum { SRV_LISTENERS = 3 }; /* HTTP, metrics and gRPC */

/* Parts reach each other through this struct. Its members are set by server.c alone; each part
 * guards what is inside of it. Limits do not change after srv_server_create. */
struct srv_server {
    srv_limits_table limits;
    srv_budget budget;
    srv_buffers buffers;
    srv_logger log;
    srv_auth auth;
    srv_sites sites;
    srv_trace trace;
    srv_state state;
    srv_scheduler *scheduler;
    srv_cache *cache;
    srv_repository *repository;
    srv_loader *loader;
    srv_net *net; /* NULL before srv_server_listen */
    srv_tls *tls; /* NULL: connections are plain */
    srv_listener listeners[SRV_LISTENERS];
    size_t listener_count;
    srv_options options;         /* its strings are the caller's */
    atomic_uint_least64_t loads; /* of models so far: each has its number (srv_model.serial) */
};

/* Opens the sockets and makes every part; no thread runs yet. `options` is copied, but what it
 * points to must live as long as the server. */
sn_status srv_server_create(const srv_options *options, srv_server **out, sn_error *err);

/* Starts the threads and takes connections: the server is alive, but not ready. Its threads have
 * the caller's signal mask. To be called once. */
sn_status srv_server_listen(srv_server *server, sn_error *err);

/* Opens the repository and begins to load the models, in threads of the loader. To be called once,
 * after srv_server_listen. */
sn_status srv_server_load(srv_server *server, sn_error *err);
/* Waits until every model has been tried, or has had its time. After srv_server_load. */
void srv_server_wait(const srv_server *server);

/* Whether models are loaded and it is not stopping. Any thread. */
bool srv_server_ready(const srv_server *server);

/* Looks at the model folder again soon, and reads the certificate again. Any thread. */
void srv_server_reload(srv_server *server);

/* Takes nothing new and waits until every connection has been answered, for `seconds` at most. */
void srv_server_drain(srv_server *server, double seconds);

/* Cuts the connections that are left, ends every thread and frees everything, whatever the server
 * has come to. It waits for runs and loads under way, which are told to end but may not hear. NULL
 * is fine. */
void srv_server_destroy(srv_server *server);

#endif
