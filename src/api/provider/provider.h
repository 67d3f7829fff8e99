/* provider.h - providers of sinter_ep.h behind one door: the registry of them, a device that a
 * session has opened, and the parts of a graph that it runs.
 *
 *     registry.c   which providers there are, and loading them
 *     engine.c     opening devices for a session; its settings
 *     node.c       the graph that a provider is asked about, and its answer
 *     partition.c  answers become parts, parts become nodes
 *     compile.c    a part as an ONNX model, compiled or not
 *     memory.c     device memory and queues, kept from run to run
 *     run.c        a run of a part
 *     resident.c   tensors that stay on a device from part to part
 *
 * The CPU engine stands at the end of every list: it takes what is left, node by node, in
 * plan/partition.c, and costs nothing here. */
#ifndef SNI_API_PROVIDER_PROVIDER_H
#define SNI_API_PROVIDER_PROVIDER_H

#include "api/custom.h"
#include "ops/sinter/part.h"
#include "sinter_ep.h"

#include <pthread.h>

/* ---- The registry ---- */

typedef struct sni_provider {
    const sn_ep_api *given; /* what its functions are called with */
    sn_ep_api api;          /* a copy in which members that it does not know are NULL */
    char *name, *path;      /* path: "" for one of the program itself */
    void *library;          /* of dlopen(); NULL: none */
    int users;              /* engines; guarded by the registry's lock, like the rest */
    bool forgotten;
    struct sni_provider *next;
} sni_provider;

/* The provider that users call so: in any case, with or without "ExecutionProvider" at the end. It
 * is searched for in the folders if it is not known. Counted: sni_provider_release(). NULL: none,
 * and `known` (`size` bytes) lists those that there are. */
sni_provider *sni_provider_find(const char *name, char *known, size_t size);
void sni_provider_release(sni_provider *p);
/* True if a name means the engine itself. */
bool sni_provider_is_cpu(const char *name);

extern const sn_ep_host sni_ep_host;

/* What a provider's function told with its status, made safe to print: `status` if it is one, else
 * SN_INTERNAL. */
sn_status sni_provider_failed(sn_error *err, sn_status status, sn_error *told);

/* ---- A device of a session ---- */

typedef struct sni_device_block { /* memory of a device */
    sn_ep_memory *memory;
    size_t bytes;
    struct sni_device_block *next;
} sni_device_block;

typedef struct sni_idle_queue {
    sn_ep_queue *queue;
    struct sni_idle_queue *next;
} sni_idle_queue;

typedef struct sni_engine {
    atomic_int refs; /* the session's and its parts' */
    sni_provider *provider;
    sn_ep *ep;
    char *device; /* "gpu0 Fast Chip" */
    char *digest; /* of what a compiled part depends on besides its bytes */
    char *cache_folder;
    int min_nodes;
    bool fallback;
    int max_shapes;
    sn_log_fn log;
    void *log_ctx;
    pthread_mutex_t lock; /* of the lists */
    sni_device_block *idle;
    size_t idle_bytes;
    sni_idle_queue *queues;
    atomic_bool told; /* that a part ran on the CPU */
} sni_engine;

/* Whether it has memory of its own. */
static inline bool sni_engine_has_memory(const sni_engine *e) {
    return e->provider->api.alloc != NULL;
}
sni_engine *sni_engine_retain(sni_engine *e);
void sni_engine_release(sni_engine *e);
void sni_engine_log(const sni_engine *e, sn_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* memory.c. A block of at least `bytes`; idle ones are freed and the provider asked again before it
 * fails. Thread-safe, like the rest of these. */
sn_status sni_engine_alloc(sni_engine *e, size_t bytes, sni_device_block **out, sn_error *err);
void sni_engine_free(sni_engine *e, sni_device_block *block); /* kept for later; NULL is fine */
size_t sni_engine_trim(sni_engine *e);                        /* frees idle blocks */
sn_status sni_engine_queue(sni_engine *e, sn_ep_queue **out, sn_error *err);
/* Takes a queue back when nothing is in it. */
void sni_engine_queue_done(sni_engine *e, sn_ep_queue *queue, bool failed);

/* ---- A session's engines ---- */

typedef struct sni_share {
    size_t nodes, parts, refused;
} sni_share;

typedef struct sni_engines {
    sni_engine **of;
    size_t count;
    sni_share *shares; /* by engine, then of the CPU */
    sn_provider_refusal *refusals;
    size_t n_refusals, refusal_capacity;
    sni_arena texts; /* of refusals */
    bool reported;   /* the above is of the first graph that was partitioned */
} sni_engines;

/* What session options say of providers. sni_engines_close() in any case. */
sn_status sni_engines_open(sni_engines *e, const sn_session_options *o, sn_error *err);
void sni_engines_close(sni_engines *e);
size_t sni_engines_trim(sni_engines *e);

/* Lets the engines take parts of a graph and its subgraphs: for sni_opt_options.partition. */
sn_status sni_engines_partition(void *engines, sni_graph *g, sn_error *err);
/* When the graph is final: which tensors parts hand to each other on a device. */
void sni_engines_connect(sni_graph *g);

sn_status sni_engines_refuse(sni_engines *e, const sni_engine *engine, const sni_graph *g,
                             const sni_node *n, const char *reason);

/* ---- Claims ---- */

enum { SNI_UNCLAIMED = -1 };

/* A graph on offer. Everything is in `arena`. */
struct sn_ep_graph {
    sni_graph *g;
    sni_node **nodes; /* in topological order */
    sn_op_node *views;
    const char **vetoes; /* why a node is not to be had; NULL: it is */
    size_t count;
    int depth;
    sni_arena *arena;
};

struct sn_ep_claims {
    const sn_ep_graph *graph;
    const sni_engine *engine;
    int32_t *claim; /* by node: number of the claim; SNI_UNCLAIMED */
    bool *exact;    /* by claim: SN_EP_PART */
    int32_t count, capacity;
    const char **reasons; /* by node; NULL: none was given */
};

sn_status sni_offer(sni_graph *g, int depth, sni_arena *arena, sn_ep_graph *out, sn_error *err);
/* Asks an engine. Claims of nodes that are not to be had are taken out. */
sn_status sni_ask(sni_engine *e, const sn_ep_graph *graph, sn_ep_claims *out, sn_error *err);

/* ---- Parts ---- */

typedef struct sni_part_shapes { /* a program made ready for sets of input shapes */
    int64_t *dims;               /* rank and sizes of each input, one after the other */
    sn_ep_ready *ready;
    uint64_t scratch;
    int users;
    bool dropped;
    struct sni_part_shapes *next; /* by time of use */
} sni_part_shapes;

typedef struct sni_provider_part {
    sni_part_params params; /* first: what the node's `params` are */
    sni_engine *engine;     /* retained */
    sn_ep_program *program;
    char *name; /* for messages and profiles */
    int32_t n_in, n_out;
    sn_dtype *types;      /* of the outputs */
    int32_t *readers;     /* by output: parts of the same engine that read it */
    bool *on_host;        /* by output: somebody else reads it */
    pthread_mutex_t lock; /* of the list */
    sni_part_shapes *shapes;
} sni_provider_part;

/* Compiles a body; SN_OK and *out NULL: the provider would not, which was logged. The part is owned
 * by the graph's store. `members` are the nodes as the provider knows them. */
typedef struct sni_compile {
    sni_engine *engine;
    const sni_graph *body;
    const sn_op_node *const *members;
    size_t count;
    const char *name;
    sni_arena *arena; /* of working memory */
} sni_compile;
sn_status sni_compile_part(const sni_compile *c, sni_provider_part **out, sn_error *err);

/* A tensor of the run under way that is on a device (resident.c). */
typedef struct sni_resident {
    const void *address; /* on the host */
    size_t bytes;
    sni_engine *engine;
    sni_device_block *block;
    int32_t left; /* parts that have not read it yet */
    struct sni_resident *next;
} sni_resident;

sni_resident *sni_resident_find(const sni_kernel *k, const sni_engine *engine, const sni_tensor *t);
/* Keeps a copy of *wanted, and its block, until the last part has read it or the run is over. */
sn_status sni_resident_add(const sni_kernel *k, const sni_resident *wanted);
/* A part has read it: the last one frees it. */
void sni_resident_leave(const sni_kernel *k, sni_resident *x);

/* sni_part_params.run */
sn_status sni_part_run(sni_kernel *k);

/* The functions of sn_ep_host that files beside registry.c have. */
size_t sni_ep_node_count(const sn_ep_graph *graph);
const sn_op_node *sni_ep_node_at(const sn_ep_graph *graph, size_t index);
int sni_ep_depth(const sn_ep_graph *graph);
sn_status sni_ep_graph_onnx(const sn_ep_graph *graph, size_t inline_bytes, const void **bytes,
                            size_t *count, sn_error *err);
sn_status sni_ep_claim(sn_ep_claims *claims, sn_ep_claim_kind kind, const size_t *nodes,
                       size_t count, sn_error *err);
void sni_ep_refuse(sn_ep_claims *claims, size_t node, const char *reason);
bool sni_ep_cache_get(const sn_ep_part *part, const char *name, const void **bytes, size_t *count);
void sni_ep_cache_put(const sn_ep_part *part, const char *name, const void *bytes, size_t count);
sn_status sni_ep_output(sn_ep_call *call, size_t index, int rank, const int64_t *dims,
                        sn_error *err);
bool sni_ep_stopping(const sn_ep_call *call);

/* A graph's bytes as ONNX, from malloc(); constants of more than `inline_bytes` are left out. */
sn_status sni_onnx_bytes(const sni_graph *g, size_t inline_bytes, unsigned char **bytes,
                         size_t *count, sn_error *err);

#endif
