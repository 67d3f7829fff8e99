/* request.h - one inference request in no protocol's terms: what every front end fills in, the
 * scheduler runs and the front end answers.
 *
 * Life: srv_request_new -> the front end resolves the model, adds inputs and wanted outputs ->
 * srv_request_check -> srv_submit -> `done` is called once, in any thread -> the front end writes
 * the answer from `outputs` or from `code` and `message` -> srv_request_free. */
#ifndef SRV_ENGINE_REQUEST_H
#define SRV_ENGINE_REQUEST_H

#include "base/arena.h"
#include "server/api/codes.h"

#include <stdatomic.h>

#define SRV_MESSAGE 512

typedef struct srv_model srv_model;
typedef struct srv_request srv_request;
typedef struct srv_batch srv_batch;

/* A value that several holders share: a batch's output, or a cached one. */
typedef struct srv_shared {
    atomic_int refs;
    sn_value *value;
} srv_shared;

srv_shared *srv_shared_new(sn_value *value); /* takes it over; NULL (value kept) without memory */
srv_shared *srv_shared_retain(srv_shared *shared);
void srv_shared_release(srv_shared *shared);

typedef struct srv_input {
    sni_str name;
    int index; /* of the model's input, once srv_request_check has been */
    sn_dtype dtype;
    int rank;
    int64_t dims[SN_MAX_RANK];
    size_t count;    /* elements */
    void *memory;    /* the elements: from srv_buffer_take, or NULL (strings, or in `value`) */
    bool borrowed;   /* `memory` is the front end's, which keeps it as long as the request */
    size_t bytes;    /* of `memory` */
    sn_value *value; /* the tensor over `memory`, or with memory of its own */
    bool awaited;    /* its bytes follow the request's text */
} srv_input;

/* An output that the client asked for. */
typedef struct srv_wanted {
    sni_str name;
    int index;    /* of the model's output, once checked */
    bool binary;  /* HTTP: in the binary part of the answer ... */
    bool chosen;  /* ... because the request said so or not so of this output */
    uint32_t top; /* classification: the `top` largest with their index; 0: the tensor */
} srv_wanted;

/* A produced output: rows of a shared value. */
typedef struct srv_output {
    const char *name; /* the model's */
    sn_dtype dtype;
    int rank;
    int64_t dims[SN_MAX_RANK];
    size_t count;
    const void *data; /* NULL for strings */
    size_t bytes;
    srv_shared *owner;
    size_t first;       /* strings: index of the first element in the owner's value */
    srv_wanted *wanted; /* NULL: the client asked for none in particular */
} srv_output;

typedef struct srv_times {
    uint64_t received; /* when its first byte was there */
    uint64_t queued;   /* when it was submitted */
    uint64_t started;  /* when an instance took it */
    uint64_t input;    /* when its inputs were in place */
    uint64_t computed; /* when the run was over */
    uint64_t finished; /* when its outputs were in place */
} srv_times;

struct srv_request {
    srv_server *server;
    sni_arena arena;  /* names and small things; lives as long as the request */
    srv_model *model; /* retained */
    sni_str id;
    srv_input *inputs;
    size_t input_count, input_capacity;
    srv_wanted *wanted;
    size_t wanted_count, wanted_capacity;
    uint64_t priority;   /* 0: the model's default */
    uint64_t timeout_ns; /* 0: the model's default */
    sni_str trace_id;    /* of a W3C traceparent, or empty */
    size_t charged;      /* bytes taken of the server's budget */

    srv_times times;
    srv_code code;
    char message[SRV_MESSAGE]; /* without paths */
    srv_output *outputs;
    size_t output_count;
    bool cache_hit;

    void (*done)(srv_request *request); /* any thread; the request is the front end's again */
    void *ctx;                          /* the front end's */

    /* The scheduler's. */
    srv_request *next;
    int64_t rows;       /* of the batch dimension; 1 for a model without one */
    uint64_t signature; /* see batch.h */
    uint64_t deadline;  /* on the monotonic clock; 0: none */
    srv_batch *batch;
    uint32_t level;
    bool queued, cancelled;
};

srv_request *srv_request_new(srv_server *server); /* NULL without memory */
void srv_request_free(srv_request *request);      /* NULL is fine */

/* Ends the request with an error text; returns `code`. Only the first one counts. */
srv_code srv_request_fail(srv_request *request, srv_code code, const char *fmt, ...)
    SNI_PRINTF(3, 4);
/* The same from a library error, whose text is made free of paths. */
srv_code srv_request_fail_error(srv_request *request, const sn_error *err);

/* New entries; NULL without memory or past 1024 of them. */
srv_input *srv_request_add_input(srv_request *request);
srv_wanted *srv_request_add_wanted(srv_request *request);

/* Takes bytes of the server's memory for requests; given back with the request. */
srv_code srv_request_charge(srv_request *request, size_t bytes);

/* Type and shape of an input, and memory for its elements (not for strings). The memory is charged
 * to the server's budget. */
srv_code srv_input_allocate(srv_request *request, srv_input *input);
/* The same over memory that the front end keeps, of any alignment; its size must be right. */
srv_code srv_input_borrow(srv_request *request, srv_input *input, void *memory, size_t size);
/* Makes `value` from `memory`; strings have theirs already. */
srv_code srv_input_finish(srv_request *request, srv_input *input);
/* Fills a string tensor from its elements in the protocol's binary form: 4 bytes of length, little
 * end first, before each. `bytes` must hold exactly the elements. */
srv_code srv_input_strings(srv_request *request, srv_input *input, const void *bytes, size_t size);

/* The elements of a string output in that form. */
void srv_output_strings(const srv_output *output, srv_text *out);

/* Checks names, types and shapes against the model, and orders what is asked for. */
srv_code srv_request_check(srv_request *request);

#endif
