/* sinter_ep.h - providers: what a library offers that runs parts of models on a device.
 *
 * A provider is one sn_ep_api: functions that list devices, open one for a session, claim nodes,
 * compile parts of a graph and run them. A library exports sinter_ep_entry and links against
 * nothing: what it may call is in the sn_ep_host that it is given. A program that links with
 * libsinter can register a provider of its own. docs/PROVIDERS.md and examples/provider show how.
 *
 * The conventions are those of sinter.h, and these:
 *   - A structure starts with its size. Members beyond the size that the other side wrote count as
 *     0 and NULL: it may be older or newer. SN_EP_VERSION changes only when that is not enough.
 *   - No exception, signal handler or longjmp crosses. A function that fails fills the error and
 *     leaves its out-parameters alone.
 *   - sn_ep, sn_ep_program, sn_ep_ready, sn_ep_memory and sn_ep_queue are the provider's to define.
 *     A session opens an sn_ep of its own. Any number of threads may run a program at once; a queue
 *     belongs to one thread at a time. Whatever was made of an sn_ep goes before it is closed.
 */
#ifndef SINTER_EP_H
#define SINTER_EP_H

#include "sinter_op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SN_EP_VERSION 1

typedef struct sn_ep_api sn_ep_api;
typedef struct sn_ep_host sn_ep_host;
/* The provider's: */
typedef struct sn_ep sn_ep;                 /* a device, opened for one session */
typedef struct sn_ep_program sn_ep_program; /* a part of a graph, compiled; shared by threads */
typedef struct sn_ep_ready sn_ep_ready;     /* a program for given shapes; shared by threads */
typedef struct sn_ep_memory sn_ep_memory;   /* a range of device memory */
typedef struct sn_ep_queue sn_ep_queue;     /* work in order */
/* The host's: */
typedef struct sn_ep_graph sn_ep_graph;   /* a graph whose nodes are on offer */
typedef struct sn_ep_claims sn_ep_claims; /* where the answer to it goes */

/* ---- Devices and settings ------------------------------------------------------------------ */

typedef enum sn_device_kind {
    SN_DEVICE_CPU = 0,
    SN_DEVICE_GPU = 1,
    SN_DEVICE_NPU = 2,
    SN_DEVICE_OTHER = 3
} sn_device_kind;

/* The provider fills it; strings live as long as the library is loaded. */
typedef struct sn_ep_device {
    size_t size;
    sn_device_kind kind;
    const char *name;
    const char *vendor;
    const char *driver;    /* version of what drives it; "" */
    uint64_t memory_bytes; /* 0: the host's */
    uint32_t types;        /* element types that it computes in: SN_OP_TYPE(...) */
    const char *unusable;  /* why it cannot be opened; NULL: it can */
} sn_ep_device;

typedef struct sn_ep_setting {
    const char *key, *value;
} sn_ep_setting;

/* ---- Claims -------------------------------------------------------------------------------- */

typedef enum sn_ep_claim_kind {
    SN_EP_NODES =
        0,         /* each node alone or with neighbours: the host makes parts as large as it can */
    SN_EP_PART = 1 /* these nodes are one part, all of them or none */
} sn_ep_claim_kind;

/* ---- Parts --------------------------------------------------------------------------------- */

/* A part of a graph to be compiled; all of it lives until `compile` returns. Its inputs and outputs
 * are tensors of numbers, one byte or more an element, in the order of the ONNX graph's. Weights
 * are in the bytes. */
typedef struct sn_ep_part {
    size_t size;
    const char *name; /* for messages: "part 2 of 'main'" */
    const void *onnx; /* a ModelProto, its graph's nodes in topological order */
    size_t onnx_bytes;
    const char *key; /* a digest of the bytes, the provider, its version, device and settings */
    size_t input_count;
    size_t output_count;
    const sn_value_info *inputs; /* sizes that are not known yet are -1 */
    const sn_value_info *outputs;
    size_t node_count;
    const sn_op_node *const *nodes; /* the same as nodes of the graph that was claimed from */
    const void *cache;              /* the host's: for cache_get and cache_put */
} sn_ep_part;

/* ---- Runs ---------------------------------------------------------------------------------- */

/* A tensor: dense, row-major. */
typedef struct sn_ep_tensor {
    size_t size;
    sn_dtype dtype;
    int rank; /* of an output: -1 as long as its shape is not known */
    int64_t dims[SN_MAX_RANK];
    size_t bytes;
    void *host;           /* its elements; NULL: they are in device memory, or not there yet */
    sn_ep_memory *memory; /* where they are otherwise */
    uint64_t offset;      /* in bytes, a multiple of 64 */
} sn_ep_tensor;

/* One run of a part. A provider with `alloc` gets its inputs and outputs in device memory, one
 * without gets them in the host's. */
typedef struct sn_ep_call {
    size_t size;
    const char *part; /* sn_ep_part.name */
    size_t input_count;
    size_t output_count;
    const sn_ep_tensor *inputs;
    sn_ep_tensor
        *outputs;         /* those whose shape was not known are asked for with sn_ep_host.output */
    sn_ep_tensor scratch; /* as many bytes as `prepare` asked for */
    int threads;          /* most that a provider should use on the host's CPU */
    void *host;           /* the host's */
} sn_ep_call;

/* ---- What a provider may call -------------------------------------------------------------- */

/* Lives as long as the process. Any thread may call it. */
struct sn_ep_host {
    size_t size;
    uint32_t version;      /* SN_EP_VERSION of the host */
    const char *library;   /* the host's name and version */
    const sn_op_api *node; /* its node_... functions answer what there is to ask of a node */

    /* Fills `err` with a message as printf would, and returns `status`. */
    sn_status (*fail)(sn_error *err, sn_status status, const char *format, ...);
    void (*log)(const sn_ep_host *host, sn_log_level level, const char *text);

    /* The graph on offer: its nodes in topological order; NULL past the end. Inputs and outputs
     * that sn_op_api describes have names that are unique in the graph. */
    size_t (*node_count)(const sn_ep_graph *graph);
    const sn_op_node *(*node_at)(const sn_ep_graph *graph, size_t index);
    /* Subgraphs of If, Loop and Scan are offered on their own, with the depth that they stand at.
     */
    int (*depth)(const sn_ep_graph *graph);
    /* All of it as an ONNX ModelProto: node i of its graph is node i above. Weights of more than
     * `inline_bytes` are left out: they are external data of the location "sinter" (SIZE_MAX: none
     * is). Lives until `claim` returns. */
    sn_status (*graph_onnx)(const sn_ep_graph *graph, size_t inline_bytes, const void **bytes,
                            size_t *count, sn_error *err);

    /* The answer, in order of preference: nodes claimed before stay with the claim that came first.
     * Refusals are reasons for people to read; the text is copied. */
    sn_status (*claim)(sn_ep_claims *claims, sn_ep_claim_kind kind, const size_t *nodes,
                       size_t count, sn_error *err);
    void (*refuse)(sn_ep_claims *claims, size_t node, const char *reason);

    /* Finished blobs, kept in the session's cache folder from process to process. `name` tells
     * several of one part from each other. get: false when there is none; the bytes live until
     * `compile` returns. put: a failure to write is logged only. Called in `compile`. */
    bool (*cache_get)(const sn_ep_part *part, const char *name, const void **bytes, size_t *count);
    void (*cache_put)(const sn_ep_part *part, const char *name, const void *bytes, size_t count);

    /* In a run. An output whose shape was not known gets memory: call->outputs[index] is filled.
     * For one whose shape was known it checks that it is this one. */
    sn_status (*output)(sn_ep_call *call, size_t index, int rank, const int64_t *dims,
                        sn_error *err);
    /* Whether the run was cancelled or is past its time: return SN_CANCELLED. */
    bool (*stopping)(const sn_ep_call *call);
    /* What a constant holds that `node` has given; false: it is no tensor. */
    bool (*tensor)(const sn_value *value, sn_op_tensor *out);
};

/* ---- A provider ---------------------------------------------------------------------------- */

struct sn_ep_api {
    size_t size;
    uint32_t version;     /* SN_EP_VERSION that it was written for */
    const char *name;     /* what users call it: letters, digits, '-', '_' and '.' */
    const char *vendor;   /* "" */
    const char *revision; /* of the provider: part of the key of what is cached */
    void *ctx;            /* the provider's own */

    /* Devices by index; false past the end. Called with the size set. */
    bool (*device)(const sn_ep_api *api, size_t index, sn_ep_device *out);
    /* A device for a session. An unknown key of a setting is an error. */
    sn_status (*open)(const sn_ep_api *api, size_t device, const sn_ep_setting *settings,
                      size_t count, sn_ep **out, sn_error *err);
    void (*close)(sn_ep *ep);

    /* Says by host->claim which nodes it can run. */
    sn_status (*claim)(sn_ep *ep, const sn_ep_graph *graph, sn_ep_claims *claims, sn_error *err);
    /* SN_UNSUPPORTED, or any other failure: the host runs the nodes of this part itself. */
    sn_status (*compile)(sn_ep *ep, const sn_ep_part *part, sn_ep_program **out, sn_error *err);
    void (*program_free)(sn_ep_program *program);

    /* Once for each set of input shapes: a program for them, and the bytes of working memory that a
     * run wants. `shapes` has no memory. NULL: a program runs in any shape. */
    sn_status (*prepare)(sn_ep_program *program, const sn_ep_call *shapes, uint64_t *scratch,
                         sn_ep_ready **out, sn_error *err);
    void (*ready_free)(sn_ep_ready *ready);

    /* Runs it. `ready` is NULL without `prepare`, `queue` without queue_new; with a queue it may
     * return before the work is done, and failures of the work come from `wait`. */
    sn_status (*run)(sn_ep_program *program, sn_ep_ready *ready, sn_ep_queue *queue,
                     sn_ep_call *call, sn_error *err);

    /* Memory and queues, all of them or none; none: it works in the host's memory. */
    sn_status (*alloc)(sn_ep *ep, uint64_t bytes, sn_ep_memory **out, sn_error *err);
    void (*free)(sn_ep_memory *memory);
    sn_status (*queue_new)(sn_ep *ep, sn_ep_queue **out, sn_error *err);
    void (*queue_free)(sn_ep_queue *queue);
    /* Copies between host and device, or within the device: as many bytes and of the same type. May
     * return before it is done: both ends stay until `wait`. */
    sn_status (*copy)(sn_ep_queue *queue, const sn_ep_tensor *from, const sn_ep_tensor *to,
                      sn_error *err);
    /* Returns when everything in the queue is done or has failed; nothing of it is in use then,
     * also after a failure. A queue that failed is freed. */
    sn_status (*wait)(sn_ep_queue *queue, sn_error *err);
};

#if defined(_WIN32)
#define SN_EP_EXPORT
#else
#define SN_EP_EXPORT __attribute__((visibility("default")))
#endif

/* What a library exports. `*out` and all it points to live as long as the library is loaded. */
typedef sn_status (*sn_ep_entry_fn)(const sn_ep_host *host, const sn_ep_api **out, sn_error *err);
SN_EP_EXPORT sn_status sinter_ep_entry(const sn_ep_host *host, const sn_ep_api **out,
                                       sn_error *err);

/* ---- For programs that link with libsinter -------------------------------------------------- */

/* Registers a provider of the program's own, which is then found by `api->name`; `api` and all it
 * points to live until sn_provider_unload(). SN_INVALID_ARGUMENT if there is one of that name. */
SN_API sn_status sn_provider_register(const sn_ep_api *api, sn_error *err);
SN_API const sn_ep_host *sn_provider_host(void);

#ifdef __cplusplus
}
#endif

#endif
