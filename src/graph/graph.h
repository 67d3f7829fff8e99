/* graph.h - the intermediate representation: what a model means, between import and plan.
 *
 * A graph is a set of values and a list of nodes in topological order. Both have small integer ids
 * that stay valid until they are removed; the structs themselves do not move. Everything lives in
 * the graph's store. A subgraph is a graph whose `parent` is set; it sees nothing of its parent
 * but what comes in by its inputs and captures. Only edit.c changes how a graph is connected: the
 * lists of nodes, values, inputs, outputs, captures and uses, `in` and `out` of nodes, producers.
 * Import and passes fill in the rest of the structs: names, types, constants, op and params. A
 * graph is changed by one thread at a time, and does not change once a program has been made of it.
 */
#ifndef SNI_GRAPH_GRAPH_H
#define SNI_GRAPH_GRAPH_H

#include "base/tensor.h"
#include "graph/store.h"
#include "graph/symbol.h"

typedef struct sni_graph sni_graph;
typedef struct sni_node sni_node;
typedef struct sni_value sni_value;
struct sni_op;      /* ops/core/op.h */
struct sni_mapping; /* base/mapping.h */

#define SNI_NO_ID (-1)

/* ---- Types ---- */

typedef struct sni_type {
    sn_kind kind;   /* NONE: not known */
    sn_dtype dtype; /* tensor: element; map: key; UNDEFINED if not known */
    bool has_shape; /* tensor */
    int rank;
    const sni_dim *dims;          /* rank of them, in the same arena as the type */
    const struct sni_type *inner; /* sequence, optional: element; map: value */
} sni_type;

/* "tensor(float32[N,3])" into the arena; `p` NULL on failure. */
sni_str sni_type_text(const sni_type *type, const sni_symbols *symbols, sni_arena *arena);

/* A deep copy; false when memory runs out. */
bool sni_type_copy(sni_type *dst, const sni_type *src, sni_arena *arena);

/* True if kinds, element types and known dimensions agree, where both sides know them. */
bool sni_type_compatible(const sni_type *a, const sni_type *b);

/* ---- Constants ---- */

typedef struct sni_const sni_const;
/* Makes c->tensor.data valid, pointing into a mapping or to memory of sni_const_own_memory().
 * Called with the store locked, or on a copy of the constant that is borrowed from. */
typedef sn_status (*sni_decode_fn)(sni_const *c, sn_error *err);

/* A tensor whose contents are part of the model. They are decoded when first asked for. */
struct sni_const {
    sni_tensor tensor;    /* type and shape; data NULL until loaded */
    uint64_t file_bytes;  /* what it takes in its file */
    sni_store *store;     /* whose lock guards loading, and which owns the data */
    const void *source;   /* for decode */
    sni_decode_fn decode; /* NULL when data is there from the start */
    const void *raw;      /* its elements in the file as run-time memory has them, but at any
                             address; NULL: they are stored otherwise */
    const struct sni_mapping *mapping; /* that `raw` or data lie in; NULL: none */
    bool made; /* not in the file: who keeps its contents charges them to the session */
    /* The same numbers in float16 or bfloat16, element by element in the same order, of which these
     * in float32 are made; NULL: there are none. Who can use narrow numbers borrows them there. */
    struct sni_const *narrow;
    sni_buffer **borrowed; /* in the copy that a borrow is decoded from: where its memory goes */
};

/* The contents. Thread-safe; the result is valid as long as the store. */
sn_status sni_const_load(sni_const *c, const sni_tensor **out, sn_error *err);

/* Contents that are borrowed: `tensor` is valid until sni_borrow_end(), which gives back the memory
 * and the pages of the file that nobody else needs. */
typedef struct sni_borrow {
    sni_tensor tensor;
    const struct sni_mapping *mapping;
    sni_buffer *buffer; /* decoded for this borrow; NULL: the contents were there */
} sni_borrow;

/* Borrows the contents of a tensor of numbers. `unaligned` allows them to lie at any address: read
 * them with sni_unaligned_float(). On failure there is nothing to end. Thread-safe. */
sn_status sni_const_borrow(sni_const *c, bool unaligned, sni_borrow *out, sn_error *err);
/* Tells that a part of what is borrowed has been read and will not be again. */
void sni_borrow_done(const sni_borrow *borrow, const void *bytes, size_t size);
void sni_borrow_end(sni_borrow *borrow);

/* For decode functions: memory for the contents, not filled. The store owns it, or the borrow that
 * the constant is decoded for. */
sn_status sni_const_own_memory(sni_const *c, sn_error *err);

/* A constant in `store` with memory for its contents, to be filled by the caller; strings are NULL.
 */
sn_status sni_const_new(sni_store *store, sn_dtype dtype, int rank, const int64_t *dims,
                        sni_const **out, sn_error *err);

/* The contents of `c` in another shape of as many elements, a constant of its own. */
sn_status sni_const_reshaped(sni_const *c, int rank, const int64_t *dims, sni_const **out,
                             sn_error *err);

/* A constant of the element type and shape of `shape` whose contents `decode` works out from
 * `source` (which lives as long as the store) when they are asked for. */
sn_status sni_const_new_lazy(sni_store *store, const sni_tensor *shape, sni_decode_fn decode,
                             const void *source, sni_const **out, sn_error *err);

/* The numbers of a float16 or bfloat16 constant in float32, made when somebody asks for them: its
 * `narrow` is `c`. */
sn_status sni_const_widened(sni_const *c, sni_const **out, sn_error *err);

/* ---- Attributes ---- */

typedef enum sni_attr_kind {
    SNI_ATTR_NONE,
    SNI_ATTR_FLOAT,
    SNI_ATTR_INT,
    SNI_ATTR_STRING,
    SNI_ATTR_TENSOR,
    SNI_ATTR_GRAPH,
    SNI_ATTR_TYPE,
    SNI_ATTR_FLOATS,
    SNI_ATTR_INTS,
    SNI_ATTR_STRINGS,
    SNI_ATTR_TENSORS,
    SNI_ATTR_GRAPHS,
    SNI_ATTR_TYPES
} sni_attr_kind;

typedef struct sni_attr {
    sni_str name;
    sni_attr_kind kind;
    sni_str ref;  /* in a function body: the function's attribute it stands for; n 0 if none */
    size_t count; /* elements of the plural kinds */
    union {
        float f;
        int64_t i;
        sni_str s;
        sni_const *tensor;
        int32_t graph; /* index into the node's subgraphs */
        const sni_type *type;
        const float *floats;
        const int64_t *ints;
        const sni_str *strings;
        sni_const *const *tensors;
        const int32_t *graphs; /* indices into the node's subgraphs */
        const sni_type *types;
    } u;
} sni_attr;

/* ---- Nodes and values ---- */

typedef struct sni_use {
    int32_t node; /* SNI_NO_ID: the graph's output number `slot` */
    int32_t slot; /* index into the node's `in` */
} sni_use;

struct sni_value {
    int32_t id;
    sni_str name; /* unique in its graph; n 0: none */
    sni_type type;
    int32_t producer;      /* node id; SNI_NO_ID for inputs, captures and constants */
    int32_t producer_slot; /* index into the producer's `out` */
    bool is_input; /* of the graph; with `constant` set: a default the caller may override */
    bool is_capture;
    sni_const *constant; /* contents, if part of the model */
    /* Elements of a small integer tensor as dimensions, where inference knows them: shape_count
     * of them (1 for a scalar); NULL if not known. */
    const sni_dim *shape_value;
    int32_t shape_count;
    /* Of a value in blocked layout (ops/sinter/blocked.h): the name of the plain one that it stands
     * for, and the channels of that; n 0: none. */
    sni_str stands_for;
    int64_t channels;
    sni_use *uses;
    int32_t use_count, use_capacity;
};

struct sni_node {
    int32_t id;
    sni_str name;    /* may be empty */
    sni_str domain;  /* "" for ai.onnx */
    sni_str type;    /* operator name */
    int64_t version; /* opset version of its domain where it stood; after upgrade canonical */
    const struct sni_op *op; /* NULL: this build does not know it */
    const void *params;      /* the operator's parameter struct, parsed from attrs; NULL if none */
    int32_t n_in;            /* formal inputs */
    int32_t n_captures;      /* values of this graph that the subgraphs use: in[n_in ...] */
    int32_t n_out;
    int32_t *in;  /* value ids; SNI_NO_ID: an optional input left out */
    int32_t *out; /* value ids; SNI_NO_ID: an optional output left out */
    sni_attr *attrs;
    int32_t n_attrs;
    sni_graph **subgraphs;
    int32_t n_subgraphs;
    int32_t prev, next; /* neighbours in the list of nodes; SNI_NO_ID at the ends */
    bool removed;
};

/* A value of the parent that a subgraph uses: input in[n_in + slot] of the owner node. */
typedef struct sni_capture {
    int32_t value; /* id in the subgraph */
    int32_t slot;
} sni_capture;

struct sni_graph {
    sni_str name;
    sni_store *store;     /* borrowed: who made the graph holds it */
    sni_symbols *symbols; /* shared by a graph and its subgraphs; owned by the store */
    sni_graph *parent;    /* NULL: the main graph */
    sni_node **nodes;     /* by id; some are removed */
    int32_t node_count, node_capacity;
    sni_value **values; /* by id; some are removed (NULL) */
    int32_t value_count, value_capacity;
    int32_t first, last; /* list of nodes in topological order */
    int32_t *inputs;
    int32_t n_inputs, inputs_capacity;
    int32_t *outputs;      /* value ids; the same one may stand twice */
    sni_str *output_names; /* as callers know them, whatever the values are called */
    int32_t n_outputs, outputs_capacity;
    sni_capture *captures;
    int32_t n_captures, captures_capacity;
};

static inline sni_node *sni_graph_node(const sni_graph *g, int32_t id) {
    return id < 0 ? NULL : g->nodes[id];
}

static inline sni_value *sni_graph_value(const sni_graph *g, int32_t id) {
    return id < 0 ? NULL : g->values[id];
}

/* for (sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) */
static inline sni_node *sni_graph_first(const sni_graph *g) {
    return sni_graph_node(g, g->first);
}

static inline sni_node *sni_graph_next(const sni_graph *g, const sni_node *n) {
    return sni_graph_node(g, n->next);
}

/* The node that makes a value; NULL for inputs, captures and constants. */
static inline sni_node *sni_value_producer(const sni_graph *g, const sni_value *v) {
    return sni_graph_node(g, v->producer);
}

/* For messages: the node's name, or its first output's, or its operator's. */
sni_str sni_node_label(const sni_graph *g, const sni_node *n);

const sni_attr *sni_node_attr(const sni_node *n, const char *name); /* NULL: not there */

/* ---- edit.c ---- */

/* An empty graph. A NULL `symbols` makes a new table owned by the store. */
sn_status sni_graph_new(sni_store *store, sni_symbols *symbols, sni_graph *parent, sni_graph **out,
                        sn_error *err);

/* A new value; the name is copied into the store unless `name.n` is 0. */
sn_status sni_graph_add_value(sni_graph *g, sni_str name, sni_value **out, sn_error *err);

/* Lets a value of a constant hold another one. */
sn_status sni_graph_set_const(sni_graph *g, sni_value *v, sni_const *c, sn_error *err);

/* A value that holds a constant. */
sn_status sni_graph_add_const(sni_graph *g, sni_str name, sni_const *c, sni_value **out,
                              sn_error *err);

/* Makes a value an input, output or capture of the graph, after those it has. */
sn_status sni_graph_add_input(sni_graph *g, int32_t value, sn_error *err);
sn_status sni_graph_add_output(sni_graph *g, int32_t value, sni_str name, sn_error *err);
sn_status sni_graph_add_capture(sni_graph *g, int32_t value, int32_t slot, sn_error *err);

/* Inputs that have a default become constants and no inputs any more. */
void sni_graph_fold_input_defaults(sni_graph *g);

/* A node to be made: everything is copied. Ids may be SNI_NO_ID (left out). */
typedef struct sni_new_node {
    sni_str domain, type;
    const int32_t *in;
    int32_t n_in;
    const int32_t *out; /* values without a producer */
    int32_t n_out;
} sni_new_node;

/* A new node before node `before` (SNI_NO_ID: at the end of the list). Its op and params are not
 * set. */
sn_status sni_graph_add_node(sni_graph *g, int32_t before, const sni_new_node *wanted,
                             sni_node **result, sn_error *err);

/* Removes a node. Its outputs must have no uses; they are removed too. */
void sni_graph_remove_node(sni_graph *g, sni_node *n);

/* Puts a node before another one in the list. */
void sni_graph_move_node(sni_graph *g, sni_node *n, int32_t before);

/* Changes one input (formal or captured) of a node; the slot must exist. SNI_NO_ID leaves it out.
 */
sn_status sni_node_set_input(sni_graph *g, sni_node *n, int32_t slot, int32_t value, sn_error *err);
/* Sets the number of formal inputs; new ones are left out. */
sn_status sni_node_resize_inputs(sni_graph *g, sni_node *n, int32_t n_in, sn_error *err);
/* Adds a capture to a node with subgraphs; its slot is returned for the subgraph's list. */
sn_status sni_node_add_capture(sni_graph *g, sni_node *n, int32_t value, int32_t *slot,
                               sn_error *err);
/* Drops outputs from `n_out` on, which must have no uses, or adds ones that are left out. */
sn_status sni_node_resize_outputs(sni_graph *g, sni_node *n, int32_t n_out, sn_error *err);
/* Gives output `slot` (left out so far) a value without a producer. */
sn_status sni_node_set_output(sni_graph *g, sni_node *n, int32_t slot, int32_t value,
                              sn_error *err);

/* Lets output `slot` be a value without a producer instead of the one it is, which keeps its uses
 * and loses its producer. */
sn_status sni_node_replace_output(sni_graph *g, sni_node *n, int32_t slot, int32_t value,
                                  sn_error *err);

/* Sets or replaces an attribute (its parts must live in the graph's store); removes one by name. */
sn_status sni_node_set_attr(sni_graph *g, sni_node *n, const sni_attr *attr, sn_error *err);
void sni_node_remove_attr(sni_node *n, const char *name);

/* Attaches a subgraph and returns its index. */
sn_status sni_node_add_subgraph(sni_graph *g, sni_node *n, sni_graph *sub, int32_t *index,
                                sn_error *err);

/* Lets every use of `from`, graph outputs included, use `to` instead. */
sn_status sni_graph_replace_uses(sni_graph *g, int32_t from, int32_t to, sn_error *err);

/* Removes values that nothing makes and nothing uses, and constants without uses. */
void sni_graph_remove_dead_values(sni_graph *g);

/* Puts the nodes in topological order, stable. SN_INVALID_MODEL names a node on a cycle. */
sn_status sni_graph_sort(sni_graph *g, sn_error *err);

/* A copy in another store that shares constants (the store must keep theirs alive). */
sn_status sni_graph_clone(const sni_graph *g, sni_store *store, sni_graph **out, sn_error *err);

/* ---- verify.c ---- */

enum { SNI_MAX_NESTING = 64 }; /* of subgraphs, and of function calls */

/* SN_LIMIT if a subgraph `depth` levels below the main graph is deeper than allowed. */
sn_status sni_check_nesting(int depth, sn_error *err);

/* Checks every rule this header states; SN_INTERNAL names the first that does not hold. */
sn_status sni_graph_verify(const sni_graph *g, sn_error *err);

#endif
