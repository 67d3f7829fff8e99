/* custom.h - operators of a caller's own, between sinter_op.h and the engine.
 *
 * Each one becomes an sni_op whose functions stand in custom_*.c. A node's kernel is made when a
 * session is, after optimising, and is the node's `params` from then on. */
#ifndef SNI_API_CUSTOM_H
#define SNI_API_CUSTOM_H

#include "api/value.h"
#include "ops/core/op.h"
#include "sinter_op.h"

typedef struct sni_custom {
    sni_op op;   /* first: what a graph's nodes point to */
    sn_op given; /* its functions and ctx; strings and ports are the set's own */
    int16_t versions[2];
} sni_custom;

struct sn_operators {
    atomic_int refs; /* the caller's and each model's */
    sni_arena arena; /* of the operators' descriptions */
    sni_custom **ops;
    size_t count, capacity;
};

/* What an operator is asked about: a node of a session's graph, or one that is being inferred. */
struct sn_op_node {
    const sni_graph *graph; /* NULL in inference */
    const sni_node *node;
    const sni_infer *infer; /* NULL otherwise */
    sni_arena *arena;       /* of what is handed out */
};

struct sn_op_infer {
    sni_infer *c;
    sn_op_node node;
};

/* A node's kernel. Owned by the session's store. */
typedef struct sni_custom_kernel {
    const sni_custom *custom;
    void *state;
    sn_dtype types[]; /* of the node's outputs, as far as inference knows them */
} sni_custom_kernel;

struct sn_op_call {
    sni_kernel *k;
    const sni_custom_kernel *kernel;
    sn_value *values; /* n_in + n_out views; kind NONE: not asked for yet */
};

extern const sn_op_api sni_op_api;

/* One more holder of a set; every one calls sn_operators_destroy(). Thread-safe, but sets are
 * filled by one thread before they are used. */
sn_operators *sni_operators_retain(const sn_operators *set);
/* For sni_import_options: the operator that a node of this opset version means; NULL: none. */
const sni_op *sni_operators_find(const void *set, sni_str domain, sni_str name, int64_t version);

/* Makes the kernels of every such node of a graph and its subgraphs, which the graph's store owns.
 * Once per session and variant, after optimising. */
sn_status sni_custom_prepare(sni_graph *graph, sn_error *err);

/* The functions of sni_op: inference and runs call the operator's own, and turn what it says into
 * the engine's errors. */
sn_status sni_custom_infer(sni_infer *c);
sn_status sni_custom_run(sni_kernel *k);

/* A value that shows a tensor without owning anything: for strings and whole-byte types. */
void sni_value_view(sn_value *v, const sni_tensor *t);

/* Entries of sni_op_api (custom_node.c), whose contracts are in sinter_op.h. All of them take NULL
 * for the node or call; what they hand out lives as long as the node's arena. */
const char *sni_node_name_text(const sn_op_node *n);
const char *sni_node_domain_text(const sn_op_node *n);
const char *sni_node_type_text(const sn_op_node *n);
int64_t sni_node_opset(const sn_op_node *n);
size_t sni_node_inputs(const sn_op_node *n);
size_t sni_node_outputs(const sn_op_node *n);
bool sni_node_input_info(const sn_op_node *n, size_t index, sn_value_info *out);
bool sni_node_output_info(const sn_op_node *n, size_t index, sn_value_info *out);
const sn_value *sni_node_constant_input(const sn_op_node *n, size_t index);
bool sni_node_get_int(const sn_op_node *n, const char *name, int64_t *out);
bool sni_node_get_float(const sn_op_node *n, const char *name, float *out);
bool sni_node_get_text(const sn_op_node *n, const char *name, const char **text, size_t *length);
bool sni_node_get_ints(const sn_op_node *n, const char *name, const int64_t **v, size_t *count);
bool sni_node_get_floats(const sn_op_node *n, const char *name, const float **v, size_t *count);
bool sni_node_get_texts(const sn_op_node *n, const char *name, size_t *count);
bool sni_node_get_text_at(const sn_op_node *n, const char *name, size_t index, const char **text,
                          size_t *length);
const sn_value *sni_node_get_tensor(const sn_op_node *n, const char *name);
const sn_op_node *sni_infer_node_of(const sn_op_infer *call);
bool sni_infer_input_info(const sn_op_infer *call, size_t index, sn_value_info *out);
sn_status sni_infer_set_output(sn_op_infer *call, size_t index, sn_dtype dtype, int rank,
                               const int64_t *dims, const char *const *symbols, sn_error *err);

#endif
