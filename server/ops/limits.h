/* limits.h - what clients may ask of a server, and the bytes that all its requests may use. */
#ifndef SRV_OPS_LIMITS_H
#define SRV_OPS_LIMITS_H

#include "server/util.h"

#include <stdatomic.h>

typedef struct srv_limits_table {
    size_t body;     /* bytes of a request body, unpacked */
    size_t header;   /* bytes of a request's head */
    uint64_t depth;  /* of arrays and objects in JSON; 1000 at most */
    size_t memory;   /* bytes of bodies and tensors of all requests under way */
    int connections; /* at once, of all listeners */
    int connections_per_address;
    uint64_t head_ns;    /* from the first byte of a head to its last */
    uint64_t body_ns;    /* between two pieces of a body, or of an answer being taken */
    uint64_t idle_ns;    /* between two requests of a connection */
    uint64_t body_rate;  /* bytes a second that a body must bring after the first body_ns */
    uint64_t max_queue;  /* requests waiting for one model */
    uint64_t time_ns;    /* of one run; 0: none */
    uint64_t run_memory; /* bytes of one run's tensors; 0: none */
    uint64_t load_ns;    /* of loading one version of a model; 0: none */
    size_t cache;        /* bytes of the response cache */
    int models;          /* models that may be loaded */
} srv_limits_table;

/* The defaults. */
void srv_limits_init(srv_limits_table *limits);

/* Bytes of bodies and tensors that requests hold at the moment, bounded by the limit `memory`. Any
 * thread. */
typedef struct srv_budget {
    size_t limit;
    atomic_size_t used;
} srv_budget;

void srv_budget_init(srv_budget *budget, size_t limit);
/* False, and nothing taken, when so many bytes are not left. What is taken must be given back. */
bool srv_budget_take(srv_budget *budget, size_t bytes);
void srv_budget_give(srv_budget *budget, size_t bytes);
size_t srv_budget_used(const srv_budget *budget);

#endif
