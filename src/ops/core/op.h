/* op.h - what an operator is, and what its functions are given.
 *
 * Each operator is one `const sni_op` in its own file (or that of a tight family) and one line of
 * ops.def. Attributes are parsed into the operator's parameter struct, arity and types are checked,
 * and older opset versions are upgraded before any of its functions is called: they see one
 * canonical version and never parse or check any of that themselves. */
#ifndef SNI_OPS_CORE_OP_H
#define SNI_OPS_CORE_OP_H

#include "graph/graph.h"

typedef struct sni_op sni_op;
typedef struct sni_infer sni_infer;
typedef struct sni_kernel sni_kernel;
typedef struct sni_upgrade sni_upgrade;
typedef struct sni_kernel_hooks sni_kernel_hooks; /* ops/core/kernel_hooks.h */

/* ---- Types an operator takes: one bit per sn_dtype, and bits for the other kinds ---- */

typedef uint64_t sni_types;
#define SNI_T(dtype) ((sni_types)1 << (dtype))
#define SNI_T_SEQ ((sni_types)1 << 40)
#define SNI_T_OPTIONAL ((sni_types)1 << 41)
#define SNI_T_MAP ((sni_types)1 << 42)

#define SNI_T_UINTS (SNI_T(SN_UINT8) | SNI_T(SN_UINT16) | SNI_T(SN_UINT32) | SNI_T(SN_UINT64))
#define SNI_T_SINTS (SNI_T(SN_INT8) | SNI_T(SN_INT16) | SNI_T(SN_INT32) | SNI_T(SN_INT64))
#define SNI_T_INTS (SNI_T_UINTS | SNI_T_SINTS)
#define SNI_T_INDEX (SNI_T(SN_INT32) | SNI_T(SN_INT64))
#define SNI_T_HALVES (SNI_T(SN_FLOAT16) | SNI_T(SN_BFLOAT16))
#define SNI_T_FLOATS (SNI_T_HALVES | SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT64))
#define SNI_T_NUMBERS (SNI_T_INTS | SNI_T_FLOATS)
#define SNI_T_COMPLEX (SNI_T(SN_COMPLEX64) | SNI_T(SN_COMPLEX128))
#define SNI_T_FLOAT8                                                            \
    (SNI_T(SN_FLOAT8E4M3FN) | SNI_T(SN_FLOAT8E4M3FNUZ) | SNI_T(SN_FLOAT8E5M2) | \
     SNI_T(SN_FLOAT8E5M2FNUZ))
#define SNI_T_SUBBYTE \
    (SNI_T(SN_UINT4) | SNI_T(SN_INT4) | SNI_T(SN_FLOAT4E2M1) | SNI_T(SN_UINT2) | SNI_T(SN_INT2))
/* Every tensor element type. */
#define SNI_T_ANY                                                                          \
    (SNI_T_NUMBERS | SNI_T_COMPLEX | SNI_T_FLOAT8 | SNI_T(SN_FLOAT8E8M0) | SNI_T_SUBBYTE | \
     SNI_T(SN_BOOL) | SNI_T(SN_STRING))
/* Every value there is. */
#define SNI_T_ALL (SNI_T_ANY | SNI_T_SEQ | SNI_T_OPTIONAL | SNI_T_MAP)

/* ---- The description of an operator ---- */

enum {                       /* flags of a formal input or output */
       SNI_OPTIONAL = 1,     /* may be left out */
       SNI_VARIADIC = 2,     /* the last one; any number, at least `min` of the operator */
       SNI_HETEROGENEOUS = 4 /* variadic whose types may differ */
};

typedef struct sni_formal {
    const char *name;
    const char *type; /* a name in the operator's `types`, or an element type such as "int64" */
    unsigned flags;
} sni_formal;

typedef struct sni_type_var {
    const char *name;
    sni_types types;
} sni_type_var;

/* How one attribute becomes a field of the parameter struct. The kind fixes the field's C type:
 *   FLOAT float, INT int64_t, STRING sni_str, TENSOR const sni_tensor * (loaded; NULL if absent),
 *   GRAPH int32_t (index into the node's subgraphs; -1 if absent), TYPE const sni_type *,
 *   FLOATS sni_floats, INTS sni_ints, STRINGS sni_strings.
 * An enum is a STRING with `choices`: the field is int32_t, the index of the choice. */
typedef struct sni_param {
    const char *name;
    sni_attr_kind kind;
    size_t offset;
    bool required;
    double number;       /* default of FLOAT and INT (exact to 2^53) */
    const char *text;    /* default of STRING and enums; NULL: "" */
    const char *choices; /* enums: "constant|reflect|edge" */
    bool ignored;        /* files may have it: it has no field and no effect */
    size_t present;      /* offset + 1 of a bool that tells whether it was given; 0: none */
} sni_param;

typedef struct sni_floats {
    const float *v;
    size_t n;
    bool given;
} sni_floats;
typedef struct sni_ints {
    const int64_t *v;
    size_t n;
    bool given;
} sni_ints;
typedef struct sni_strings {
    const sni_str *v;
    size_t n;
    bool given;
} sni_strings;

/* True if no element is another number; so it is if there are none. */
static inline bool sni_ints_are(const sni_ints *v, int64_t what) {
    for (size_t i = 0; i < v->n; i++)
        if (v->v[i] != what) return false;
    return true;
}

/* Tables in a designated initialiser; each ends with a zero entry. */
#define SNI_FORMALS(...)   \
    (const sni_formal[]) { \
        __VA_ARGS__, {     \
            0              \
        }                  \
    }
#define SNI_TYPE_VARS(...)   \
    (const sni_type_var[]) { \
        __VA_ARGS__, {       \
            0                \
        }                    \
    }
#define SNI_PARAMS(...)   \
    (const sni_param[]) { \
        __VA_ARGS__, {    \
            0             \
        }                 \
    }
#define SNI_VERSIONS(...) \
    (const int16_t[]) {   \
        __VA_ARGS__, 0    \
    }

enum {                       /* flags of an operator */
       SNI_OP_VIEW = 1,      /* output 0 is input 0 with another shape: no copy is needed */
       SNI_OP_ALLOCATES = 2, /* sizes are known by the kernel only: it calls sni_out_alloc() for
                                every output (also for sequences, maps and optionals) */
       SNI_OP_RANDOM = 4,    /* not a function of its inputs: never folded or merged */
       SNI_OP_SUBGRAPHS = 8, /* If, Loop, Scan, ... */
       SNI_OP_REWRITES = 16, /* `upgrade` runs on nodes of the canonical version as well, with
                                params parsed, and may turn them into other operators */
       SNI_OP_JOINS = 64,    /* output 0 is all inputs one after the other along attribute `axis` */
       SNI_OP_DECLARES = 32, /* the shapes that its subgraphs' inputs are declared with count; those
                                of other subgraphs are found by inference alone */
       SNI_OP_SPELLED = 256, /* of ai.sinter, but model/spell.c can say it in ONNX */
       SNI_OP_CUSTOM = 128   /* not of this library: its attributes are its own business, and its
                                 kernel gives memory to outputs whose shape was not known */
};

/* An attribute that a later version turned into an input: done before `upgrade` is called. */
typedef struct sni_attr_move {
    const char *attr;
    int16_t since;   /* first version where it is an input */
    int16_t input;   /* which */
    sn_dtype scalar; /* FLOAT or INT attributes: element type of the scalar made of it; UNDEFINED:
                        that of input 0 */
} sni_attr_move;
#define SNI_ATTR_MOVES(...)   \
    (const sni_attr_move[]) { \
        __VA_ARGS__, {        \
            0                 \
        }                     \
    }

#define SNI_MIN_NONE (-1)

struct sni_op {
    const char *name;
    const char *domain;       /* NULL: ai.onnx */
    const int16_t *versions;  /* opset versions that changed it, rising; the last is canonical */
    const sni_formal *inputs; /* NULL: none */
    const sni_formal *outputs;
    int min_inputs; /* of a variadic last input; 0 stands for 1, SNI_MIN_NONE for none */
    const sni_type_var *types;
    const sni_param *params; /* NULL: no attributes */
    size_t params_size;      /* of the parameter struct */
    unsigned flags;
    uint32_t inplace; /* bit i: the kernel may be given output 0 in the memory of input i, when type
                         and shape are the same: element j is read before j is written, and never
                         after */
    const sni_attr_move *moves;
    /* Brings a node of an older version (u->from) to the canonical one. NULL: nothing but `moves`
     * changed. Runs before params are parsed. */
    sn_status (*upgrade)(sni_upgrade *u);
    /* Called once when the attributes have been parsed: checks them against each other, and
     * computes what else the parameter struct holds (an index, a decoded tree). Memory comes from
     * `arena`, which lives as long as the parameters. NULL: nothing to do. */
    sn_status (*prepare)(void *params, sni_arena *arena, sn_error *err);
    /* Checks what params and types cannot say, and sets the outputs' shapes (and element types
     * where the type variables do not fix them). Runs at import with symbols, at planning with the
     * sizes of a call, and at run time where values decide. NULL: outputs stay unknown. */
    sn_status (*infer)(sni_infer *c);
    /* The reference kernel: plain C, every type the description allows. */
    sn_status (*ref)(sni_kernel *k);
    const char *body; /* ONNX text of its function body, if it has no kernel (ref NULL) */
    /* True if output `out` is a run of input 0's elements from *at on, in their order: it then
     * needs no memory of its own. Called after `infer` with shapes and contents of a call. NULL:
     * never. */
    bool (*part)(sni_infer *c, int out, int64_t *at);
    int64_t (*macs)(const sni_infer *c); /* multiply-accumulates of a call with known shapes; -1
                                            if not known; NULL: none */
};

/* The table, in order of domain and name. */
size_t sni_op_count(void);
const sni_op *sni_op_at(size_t index);
const sni_op *sni_op_find(sni_str domain, sni_str name); /* NULL: none */

static inline int sni_op_version(const sni_op *op) { /* the canonical one */
    int last = 0;
    for (const int16_t *v = op->versions; *v; v++) last = *v;
    return last;
}

/* ---- Bringing a node to the table's form (ops/core/node.c) ---- */

/* Looks up the operator of an imported node, upgrades it from its opset version, and parses its
 * parameters. A node of an unknown operator is left with `op` NULL. Errors name attribute and
 * cause; the caller adds the node. Subgraphs are not entered. */
sn_status sni_node_resolve(sni_graph *g, sni_node *n, sn_error *err);

/* Parses `attrs` into `params` again after an edit, and checks arity. */
sn_status sni_node_bind(sni_graph *g, sni_node *n, sn_error *err);

/* ---- Upgrade ---- */

struct sni_upgrade {
    sni_graph *graph;
    sni_node *node; /* may be changed by the edit API; new nodes must be of canonical versions */
    int from;       /* the version in `versions` that was in force */
    sn_error *err;
};

/* Adds a node before the upgraded one, resolved, with one new output value, and returns that. */
sn_status sni_upgrade_insert(sni_upgrade *u, const char *type, const int32_t *in, int32_t n_in,
                             const sni_attr *attrs, int32_t n_attrs, int32_t *out);
/* A constant of rank 1, or of one scalar. */
sn_status sni_upgrade_ints(sni_upgrade *u, const int64_t *v, size_t n, int32_t *out);
sn_status sni_upgrade_floats(sni_upgrade *u, const float *v, size_t n, int32_t *out);
/* UNDEFINED: the element type of the node's input 0. */
sn_status sni_upgrade_scalar(sni_upgrade *u, sn_dtype dtype, double v, int32_t *out);
/* An INT attribute's value, or `otherwise` when it is not there. */
int64_t sni_upgrade_int(const sni_upgrade *u, const char *name, int64_t otherwise);
/* Attributes made in place. */
sni_attr sni_attr_of_int(const char *name, int64_t v);
sni_attr sni_attr_of_float(const char *name, float v);
sni_attr sni_attr_of_string(const char *name, const char *v); /* static text */
/* Turns the upgraded node itself into an operator of ai.onnx with these inputs and attributes; its
 * outputs stay. */
sn_status sni_upgrade_become(sni_upgrade *u, const char *type, const int32_t *in, int32_t n_in,
                             const sni_attr *attrs, int32_t n_attrs);
/* Turns it into Reshape(x, shape), sizes of 0 meant as such. */
sn_status sni_upgrade_to_reshape(sni_upgrade *u, int32_t x, int32_t shape);
/* Opsets 1 to 6: makes input 1 of a binary operator broadcast as `broadcast` and `axis` said. */
sn_status sni_upgrade_legacy_broadcast(sni_upgrade *u);

/* ---- Inference ---- */

struct sni_infer {
    const sni_op *op;
    const sni_node *node;
    const void *params;
    int n_in, n_out;
    const sni_type *const *in;      /* NULL: input left out */
    const sni_tensor *const *known; /* contents of inputs, where known; NULL entries elsewhere */
    sni_const *const *constants;    /* contents that can be loaded; the array may be NULL */
    const sni_dim *const *in_dims;  /* elements of integer inputs as dimensions, where known ... */
    const int32_t *in_dims_count;   /* ... and how many; both arrays may be NULL */
    sni_type *out; /* kind and element type are set where the description fixes them */
    /* Elements of integer outputs as dimensions, where the operator knows them (set with
     * sni_infer_set_dims); counts are -1 if not. */
    const sni_dim **out_dims;
    int32_t *out_dims_count;
    sni_symbols *symbols;
    sni_arena *arena;
    /* Infers a subgraph whose inputs have the given types, and gives its outputs' types. */
    sn_status (*subgraph)(sni_infer *c, int32_t index, const sni_type *const *inputs, int n_inputs,
                          const sni_type **outputs, int n_outputs);
    void *host;
    sn_error *err;
};

/* True if input i is a tensor of known rank. */
static inline bool sni_infer_shaped(const sni_infer *c, int i) {
    return i < c->n_in && c->in[i] && c->in[i]->kind == SN_KIND_TENSOR && c->in[i]->has_shape;
}
static inline int sni_infer_rank(const sni_infer *c, int i) {
    return c->in[i]->rank;
}
static inline sni_dim sni_infer_dim(const sni_infer *c, int i, int axis) {
    return c->in[i]->dims[axis];
}
static inline bool sni_infer_given(const sni_infer *c, int i) {
    return i < c->n_in && c->in[i];
}

/* Contents of input i if known: loads a constant when needed. *out NULL: not known. */
sn_status sni_infer_known(sni_infer *c, int i, const sni_tensor **out);

/* Elements of integer or bool input i (rank 0 or 1) as dimensions; *out NULL: not known. Elements
 * of a known list that are not known themselves are symbols (sni_dim_is_symbol); the others are the
 * plain integers, negative ones included (clamped to SNI_DIM_LOWEST). */
sn_status sni_infer_dims(sni_infer *c, int i, const sni_dim **out, int32_t *count);

/* Sets an output. Dims are copied. */
sn_status sni_infer_set_shape(sni_infer *c, int out, int rank, const sni_dim *dims);
sn_status sni_infer_set_type(sni_infer *c, int out, sn_dtype dtype); /* tensor of that type */
sn_status sni_infer_set_full_type(sni_infer *c, int out, const sni_type *type);
sn_status sni_infer_set_dims(sni_infer *c, int out, int32_t count, const sni_dim *dims);

/* Common answers; each leaves the shape unknown where an input's is. */
sn_status sni_infer_same(sni_infer *c); /* output 0 has input 0's shape; good as `.infer` */
sn_status
sni_infer_broadcast(sni_infer *c); /* output 0 is all inputs broadcast; good as `.infer` */
sn_status sni_infer_broadcast_of(sni_infer *c, int out, const int *inputs, int count);

/* An axis that may be negative, brought to [0, rank); SN_BAD_DATA if outside. */
sn_status sni_infer_axis(sni_infer *c, int64_t axis, int rank, int *out);

/* Runs an operator's inference on a context whose inputs are set: checks the inputs against the
 * description, presets the outputs' types, calls `infer`. */
sn_status sni_infer_call(sni_infer *c);

/* Fails the inference: sni_fail on c->err. Before a call the model is at fault; with the sizes and
 * contents of a call (`known` is set) it is what the call was given. */
#define SNI_INFER_FAIL(c, ...) \
    sni_fail((c)->err, (c)->known ? SN_BAD_DATA : SN_INVALID_MODEL, __VA_ARGS__)

/* Infers types and shapes of all values of a graph, subgraphs included, as far as its inputs'
 * types tell, and checks every node's inputs against its operator. Idempotent. */
sn_status sni_infer_graph(sni_graph *g, sn_error *err);

/* The same for one node, whose inputs' types are known as far as they can be. */
sn_status sni_infer_node(sni_graph *g, const sni_node *n, sn_error *err);

/* ---- Kernels ---- */

/* Constant data that a kernel reads once, from front to back. */
typedef struct sni_span {
    const void *data;
    size_t bytes;
} sni_span;
enum { SNI_MOST_SPANS = 2 };

/* What the engine offers a kernel; implemented by exec. */
typedef struct sni_host {
    sn_status (*alloc)(sni_kernel *k, int out, sn_dtype dtype, int rank, const int64_t *dims);
    void *(*scratch)(sni_kernel *k, size_t bytes);
    char *(*text)(sni_kernel *k, size_t bytes);
    sn_status (*poll)(const sni_kernel *k, sn_error *err); /* by any thread of the kernel */
    sn_status (*subgraph)(sni_kernel *k, int32_t index, const sni_datum *const *in, int n_in,
                          sni_datum *out, int n_out);
    int (*prefetch)(const sni_kernel *k, sni_span *spans);
} sni_host;

/* One call of a kernel. Inputs that were left out, and outputs that nobody wants, are NULL. */
struct sni_kernel {
    const sni_node *node;
    const void *params;
    int n_in, n_out;
    const sni_datum *const *in;
    sni_datum *const *out; /* shape, type and memory are ready unless the operator ALLOCATES */
    int threads;           /* for sni_parallel_for */
    const void *state;     /* what an implementation prepared (ep/ep.h); NULL for `ref` */
    const sni_kernel_hooks *hooks; /* lent by an implementation that calls `ref`; NULL: plain C */
    sni_budget *budget;
    const sni_host *host;
    void *host_ctx;
    sn_error *err;
};

static inline const sni_tensor *sni_in(const sni_kernel *k, int i) {
    return i < k->n_in && k->in[i] && k->in[i]->kind == SN_KIND_TENSOR ? &k->in[i]->tensor : NULL;
}
static inline sni_tensor *sni_out(const sni_kernel *k, int i) {
    return i < k->n_out && k->out[i] ? &k->out[i]->tensor : NULL;
}

/* SNI_OP_ALLOCATES: makes output i a tensor with memory of its own (strings empty). Call it for
 * every output that is wanted; sni_out(k, i) is NULL for the others. */
static inline sn_status sni_out_alloc(sni_kernel *k, int i, sn_dtype dtype, int rank,
                                      const int64_t *dims) {
    return k->host->alloc(k, i, dtype, rank, dims);
}

/* Memory until the kernel returns, aligned to SNI_ALIGN, not zero-filled; NULL with the error set
 * when the budget or memory is used up. */
static inline void *sni_scratch(sni_kernel *k, size_t bytes) {
    return k->host->scratch(k, bytes);
}

/* Memory for the text of string outputs, until the run ends; NULL with the error set. */
static inline char *sni_text(sni_kernel *k, size_t bytes) {
    return k->host->text(k, bytes);
}

/* What the step after this one will read of its weights, for kernels that have time to fetch it
 * into the cache; returns how many pieces, SNI_MOST_SPANS at most. */
static inline int sni_prefetch(const sni_kernel *k, sni_span *spans) {
    return k->host->prefetch ? k->host->prefetch(k, spans) : 0;
}

/* SN_CANCELLED or SN_TIMEOUT when the run should stop: for loops that may take long. */
static inline sn_status sni_poll(const sni_kernel *k) {
    return k->host->poll(k, k->err);
}
/* The same asked by a thread of the kernel, which leaves its work undone; the kernel then polls. */
static inline bool sni_stopping(const sni_kernel *k) {
    return k->host->poll(k, NULL) != SN_OK;
}

/* Runs one of the node's subgraphs on its inputs in order (captures are bound by the engine).
 * `out` must be NONE and receive values that the caller clears with sni_datum_clear(). */
static inline sn_status sni_run_subgraph(sni_kernel *k, int32_t index, const sni_datum *const *in,
                                         int n_in, sni_datum *out, int n_out) {
    return k->host->subgraph(k, index, in, n_in, out, n_out);
}

/* Fails the kernel: the values it was given are not acceptable. */
#define SNI_KERNEL_FAIL(k, ...) sni_fail((k)->err, SN_BAD_DATA, __VA_ARGS__)

#endif
