/* op.h - what an operator is, and what its functions are given. Start here to add an operator.
 *
 * Each operator is one `const sni_op` and one line of ops.def, which names its file. Similar
 * operators share a file. The engine calls an operator's functions in this order:
 *
 *   upgrade   at import, for nodes of an older opset version
 *   prepare   at import, once the attributes have been parsed into the parameter struct
 *   infer     at import with symbolic sizes, at planning with the sizes of a call, and at run time
 *             where shapes depend on contents
 *   ref       once per run
 *
 * What the description says is done before a function is called: attributes are parsed, defaults
 * are filled in, the number of inputs and outputs and their types are checked, and older versions
 * are upgraded. Functions see one canonical version and repeat none of these checks.
 *
 * Threads: a description is constant. `upgrade` and `prepare` run on one thread at import. `infer`
 * and `ref` may run on several threads at once for different calls; all state of a call is in the
 * struct that they are given. Failure: a function fails with sni_fail() or a macro below and frees
 * what it owns; outputs may then hold anything. Nothing that a model or a caller supplies may end
 * in an assertion, an overflow or a read outside an array. */
#ifndef SNI_OPS_CORE_OP_H
#define SNI_OPS_CORE_OP_H

#include "graph/graph.h"

typedef struct sni_op sni_op;
typedef struct sni_infer sni_infer;
typedef struct sni_kernel sni_kernel;
typedef struct sni_upgrade sni_upgrade;
typedef struct sni_kernel_hooks sni_kernel_hooks; /* ops/core/kernel_hooks.h */

/* ---- Sets of types that an operator accepts: one bit per sn_dtype, and bits for the other kinds
 * ---- */

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
/* Every kind of value. */
#define SNI_T_ALL (SNI_T_ANY | SNI_T_SEQ | SNI_T_OPTIONAL | SNI_T_MAP)

/* ---- The description of an operator ---- */

enum {                       /* flags of a formal input or output */
       SNI_OPTIONAL = 1,     /* may be left out */
       SNI_VARIADIC = 2,     /* only the last one: any number from sni_op.min_inputs on */
       SNI_HETEROGENEOUS = 4 /* variadic, and its values may differ in type */
};

/* A formal input or output. Inputs with the same type variable must have the same type; an output
 * with a type variable gets the type that the inputs gave it. */
typedef struct sni_formal {
    const char *name;
    const char *type; /* a type variable of the operator's `types`, or an element type: "int64" */
    unsigned flags;
} sni_formal;

/* A type variable and what it may stand for. */
typedef struct sni_type_var {
    const char *name;
    sni_types types;
} sni_type_var;

/* How one attribute becomes a field of the parameter struct. The kind fixes the field's C type:
 *   FLOAT     float                  INT      int64_t
 *   STRING    sni_str                TENSOR   const sni_tensor *: loaded; NULL if absent
 *   FLOATS    sni_floats             GRAPH    int32_t: index of the node's subgraph; -1 if absent
 *   INTS      sni_ints               TYPE     const sni_type *
 *   STRINGS   sni_strings
 * An enumeration is a STRING with `choices`: the field is an int32_t, the index of the choice. An
 * attribute that is not listed is an error at import. Arrays and strings live as long as the node.
 */
typedef struct sni_param {
    const char *name;
    sni_attr_kind kind;
    size_t offset;
    bool required;
    double number;       /* default of FLOAT and INT (exact to 2^53) */
    const char *text;    /* default of STRING and enums; NULL: "" */
    const char *choices; /* enums: "constant|reflect|edge" */
    bool ignored;        /* files may have it: it has no field and no effect */
    size_t present;      /* offset + 1 of a bool field: whether it was given; 0: no such field */
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

/* True if all elements are `what`; also if there are none. */
static inline bool sni_ints_are(const sni_ints *v, int64_t what) {
    for (size_t i = 0; i < v->n; i++)
        if (v->v[i] != what) return false;
    return true;
}

/* Tables for the designated initialiser of an operator; each ends with a zero entry. */
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
       SNI_OP_VIEW = 1,      /* output 0 is input 0 with another shape: the planner may let both
                                share memory; the kernel's copy must then do nothing */
       SNI_OP_ALLOCATES = 2, /* only the kernel knows the sizes: it calls sni_out_alloc() for every
                                output, or fills sequences, maps and optionals itself */
       SNI_OP_RANDOM = 4,    /* the result is no function of the inputs: never folded or merged */
       SNI_OP_SUBGRAPHS = 8, /* has subgraphs: If, Loop, Scan, ... */
       SNI_OP_REWRITES = 16, /* `upgrade` also runs on nodes of the canonical version, with
                                parameters parsed, and may turn them into other operators */
       SNI_OP_JOINS = 64,    /* output 0 is the inputs one after the other along attribute `axis`:
                                the planner may let producers write into it */
       SNI_OP_DECLARES = 32, /* the shapes that its subgraphs' inputs are declared with are binding;
                                for other operators inference alone decides */
       SNI_OP_SPELLED = 256, /* of ai.sinter; model/spell.c can write it as standard ONNX */
       SNI_OP_PART = 2048,   /* nodes that a provider runs (ops/sinter/part.h) */
       SNI_OP_LENIENT = 512, /* attributes that it does not have are let pass with a warning */
       SNI_OP_COUNTS = 1024, /* its subgraphs take an iteration's number and the condition first */
       SNI_OP_CUSTOM = 128   /* registered by the application: its attributes are not checked, and
                                its kernel allocates outputs whose shape was not known */
};

/* An attribute that a later opset version turned into an input. The engine makes the input of it
 * before `upgrade` is called. */
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
    const int16_t *versions;  /* opset versions that changed it, rising, as ONNX's changelog lists
                                 them; the last is canonical: the one that functions see */
    const sni_formal *inputs; /* NULL: none */
    const sni_formal *outputs;
    int min_inputs; /* the least number of values of a variadic last input; 0 means 1; SNI_MIN_NONE:
                       none are needed; see also ops/core/arity.h */
    const sni_type_var *types;
    const sni_param *params; /* NULL: no attributes */
    size_t params_size;      /* of the parameter struct */
    unsigned flags;
    uint32_t inplace; /* bit i: output 0 may have the memory of input i when type and shape are the
                         same. The kernel promises to read element j before it writes element j,
                         and never afterwards */
    const sni_attr_move *moves;
    /* Brings a node of an older version (u->from) to the canonical one by editing it. Runs before
     * parameters are parsed. NULL: older versions differ in `moves` and in accepted types only. */
    sn_status (*upgrade)(sni_upgrade *u);
    /* Called once, when the attributes have been parsed. Checks them against each other, and
     * computes what else the parameter struct holds (an index, a decoded tree). Memory comes from
     * `arena`, which lives as long as the parameters; nothing is ever freed singly. NULL: nothing
     * to do. */
    sn_status (*prepare)(void *params, sni_arena *arena, sn_error *err);
    /* Checks what parameters and types cannot say, and sets the outputs' shapes, and their element
     * types where type variables do not fix them. Called again and again as more becomes known:
     * with symbols at import, with the sizes of a call at planning, with contents at run time. It
     * must leave unknown what is unknown, and fail with SNI_INFER_FAIL only for what can never
     * become right. NULL: outputs stay unknown. */
    sn_status (*infer)(sni_infer *c);
    /* The reference kernel: plain C for every type that the description allows. Faster
     * implementations (src/cpu) replace it for some types and shapes, are compared with it in
     * tests, and call it for what they do not cover. */
    sn_status (*ref)(sni_kernel *k);
    const char *body; /* if it has no kernel (ref NULL): its function body as ONNX text, into which
                         nodes are expanded at import */
    /* True if output `out` is a contiguous run of input 0's elements that begins at element *at:
     * the planner may then let it share the input's memory. Called after `infer` with the shapes
     * and contents of a call. NULL: never. */
    bool (*part)(sni_infer *c, int out, int64_t *at);
    /* Multiply-accumulates of a call, for statistics; -1 if the shapes are not known. NULL: none
     * worth counting. */
    int64_t (*macs)(const sni_infer *c);
};

/* The table of built-in operators, in order of domain and name. Any thread may read it. */
size_t sni_op_count(void);
const sni_op *sni_op_at(size_t index);
const sni_op *sni_op_find(sni_str domain, sni_str name); /* NULL: none */

/* The canonical opset version. */
static inline int sni_op_version(const sni_op *op) {
    int last = 0;
    for (const int16_t *v = op->versions; *v; v++) last = *v;
    return last;
}

/* ---- Bringing a node to the canonical version (ops/core/node.c) ---- */

/* Looks up the operator of an imported node, upgrades it from its opset version, and parses its
 * parameters. A node of an unknown operator is left with `op` NULL, which is no failure. Error
 * messages name the attribute and the cause; the caller adds the node. Subgraphs are not entered.
 */
sn_status sni_node_resolve(sni_graph *g, sni_node *n, sn_error *err);

/* Checks the number of inputs and outputs and parses the attributes into `params`: for a node that
 * was made or edited. */
sn_status sni_node_bind(sni_graph *g, sni_node *n, sn_error *err);

/* ---- Upgrade ---- */

struct sni_upgrade {
    sni_graph *graph;
    sni_node *node; /* to be changed with the edit API; new nodes must be of canonical versions */
    int from;       /* the version in `versions` that applies to the node */
    sn_error *err;
};

/* Adds a resolved node of ai.onnx before the upgraded one. It has one output, a new value: *out. */
sn_status sni_upgrade_insert(sni_upgrade *u, const char *type, const int32_t *in, int32_t n_in,
                             const sni_attr *attrs, int32_t n_attrs, int32_t *out);
/* New constants: of rank 1 with n elements (also a scalar, below). *out is the value. */
sn_status sni_upgrade_ints(sni_upgrade *u, const int64_t *v, size_t n, int32_t *out);
sn_status sni_upgrade_floats(sni_upgrade *u, const float *v, size_t n, int32_t *out);
/* A scalar of a type; SN_UNDEFINED: the element type of the node's input 0. */
sn_status sni_upgrade_scalar(sni_upgrade *u, sn_dtype dtype, double v, int32_t *out);
/* An INT attribute's value, or `otherwise` when it is not there. */
int64_t sni_upgrade_int(const sni_upgrade *u, const char *name, int64_t otherwise);
/* Attributes for the functions above and below. The text is borrowed and must be static. */
sni_attr sni_attr_of_int(const char *name, int64_t v);
sni_attr sni_attr_of_float(const char *name, float v);
sni_attr sni_attr_of_string(const char *name, const char *v); /* static text */
/* Turns the upgraded node itself into another operator of ai.onnx with these inputs and attributes.
 * Its outputs stay. */
sn_status sni_upgrade_become(sni_upgrade *u, const char *type, const int32_t *in, int32_t n_in,
                             const sni_attr *attrs, int32_t n_attrs);
/* Turns it into Reshape(x, shape) with allowzero: a size of 0 means 0. */
sn_status sni_upgrade_to_reshape(sni_upgrade *u, int32_t x, int32_t shape);
/* Opsets 1 to 6: reshapes input 1 of a binary operator so that it broadcasts as the attributes
 * `broadcast` and `axis` said. */
sn_status sni_upgrade_legacy_broadcast(sni_upgrade *u);

/* ---- Inference ---- */

/* One call of `infer`. Inputs are read through the functions below, which know what is known. */
struct sni_infer {
    const sni_op *op;
    const sni_node *node;
    const void *params;
    int n_in, n_out;
    const sni_type *const *in;      /* NULL: input left out */
    const sni_tensor *const *known; /* contents of inputs, NULL where not known; the array is NULL
                                       before a call: see SNI_INFER_FAIL */
    sni_const *const *constants;    /* contents that can be loaded; the array may be NULL */
    const sni_dim *const *in_dims;  /* elements of integer inputs as dimensions, where known, ... */
    const int32_t *in_dims_count;   /* ... and how many; both arrays may be NULL */
    sni_type
        *out; /* to be filled; kind and element type are set where the description fixes them */
    /* Elements of integer outputs as dimensions, set with sni_infer_set_dims(); counts are -1 where
     * they are not known. */
    const sni_dim **out_dims;
    int32_t *out_dims_count;
    sni_symbols *symbols;
    sni_arena *arena;
    /* Infers subgraph `index` of the node for inputs of the given types; outputs[i] becomes the
     * type of its output i. */
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

/* *out = the contents of input i; NULL if they are not known. Loads a constant when needed. Fails
 * only if that does. */
sn_status sni_infer_known(sni_infer *c, int i, const sni_tensor **out);

/* *out = the *count elements of integer or bool input i (rank 0 or 1) as dimensions; NULL if
 * nothing is known. An element that is not known is a symbol (sni_dim_is_symbol); the others are
 * plain integers, negative ones included (clamped to SNI_DIM_LOWEST). This is how shapes that a
 * model computes (Shape, Gather, Concat, Reshape) stay known. */
sn_status sni_infer_dims(sni_infer *c, int i, const sni_dim **out, int32_t *count);

/* Set an output: its shape, element type (a tensor), whole type, or elements as dimensions.
 * Dimensions
 * and types are copied. Outputs beyond n_out are ignored. */
sn_status sni_infer_set_shape(sni_infer *c, int out, int rank, const sni_dim *dims);
sn_status sni_infer_set_type(sni_infer *c, int out, sn_dtype dtype); /* tensor of that type */
sn_status sni_infer_set_full_type(sni_infer *c, int out, const sni_type *type);
sn_status sni_infer_set_dims(sni_infer *c, int out, int32_t count, const sni_dim *dims);

/* Common inferences. Each leaves the shape unknown where an input's is. */
/* Output 0 has the shape of input 0. May be an operator's `infer`. */
sn_status sni_infer_same(sni_infer *c);
/* Output 0 has the shape of all inputs broadcast. May be an operator's `infer`. */
sn_status sni_infer_broadcast(sni_infer *c);
/* Output `out` has the shape of these inputs broadcast. */
sn_status sni_infer_broadcast_of(sni_infer *c, int out, const int *inputs, int count);

/* *out = an axis in [0, rank) for one that may be negative. Fails if it is out of range. */
sn_status sni_infer_axis(sni_infer *c, int64_t axis, int rank, int *out);

/* For engines: runs an operator's inference on a context whose inputs are set. Checks the inputs
 * against the description, sets the outputs' types as far as it fixes them, and calls `infer`. */
sn_status sni_infer_call(sni_infer *c);

/* Fails the inference with a message. Before a call the model is to blame (SN_INVALID_MODEL); with
 * the sizes and contents of a call, its inputs are (SN_BAD_DATA). */
#define SNI_INFER_FAIL(c, ...) \
    sni_fail((c)->err, (c)->known ? SN_BAD_DATA : SN_INVALID_MODEL, __VA_ARGS__)

/* Infers types and shapes of all values of a graph, subgraphs included, as far as its inputs' types
 * determine them, and checks every node's inputs against its operator. Calling it again is
 * harmless. */
sn_status sni_infer_graph(sni_graph *g, sn_error *err);

/* The same for one node, whose inputs' types are known as far as they can be. */
sn_status sni_infer_node(sni_graph *g, const sni_node *n, sn_error *err);

/* ---- Kernels ---- */

/* Constant data that a kernel will read once, from front to back. */
typedef struct sni_span {
    const void *data;
    size_t bytes;
} sni_span;
enum { SNI_MOST_SPANS = 2 };

/* What lives as long as a run, whoever puts it there. */
typedef struct sni_run_extra {
    void *state;               /* NULL: nothing yet */
    void (*free)(void *state); /* called when the run is over */
} sni_run_extra;

/* Bytes on their way between the host and a device. */
typedef struct sni_transfer {
    const char *what;     /* an operator's name, for profiles: "CopyToDevice" */
    const char *provider; /* whose device */
    uint64_t start_ns, bytes;
} sni_transfer;

enum {
    SNI_WATCHES_STEPS = 1, /* somebody is told of steps, transfers among them */
    SNI_WATCHES_VALUES = 2 /* somebody is shown every value: it must be on the host */
};

/* What the engine does for a kernel; exec implements it. Kernels use the functions below instead.
 */
typedef struct sni_host {
    sn_status (*alloc)(sni_kernel *k, int out, sn_dtype dtype, int rank, const int64_t *dims);
    void *(*scratch)(sni_kernel *k, size_t bytes);
    char *(*text)(sni_kernel *k, size_t bytes);
    sn_status (*poll)(const sni_kernel *k, sn_error *err); /* by any thread of the kernel */
    sn_status (*subgraph)(sni_kernel *k, int32_t index, const sni_datum *const *in, int n_in,
                          sni_datum *out, int n_out);
    int (*prefetch)(const sni_kernel *k, sni_span *spans);
    sni_run_extra *(*extra)(const sni_kernel *k); /* of the run; NULL: there is no run */
    unsigned (*watched)(const sni_kernel *k);     /* who looks on: SNI_WATCHES_... */
    void (*transfer)(const sni_kernel *k, const sni_transfer *t); /* one is over */
} sni_host;

/* One call of a kernel. Inputs that were left out, and outputs that nothing reads, are NULL. Inputs
 * are never written. */
struct sni_kernel {
    const sni_node *node;
    const void *params;
    int n_in, n_out;
    const sni_datum *const *in;
    sni_datum *const *out; /* shape, type and memory are ready unless the operator ALLOCATES */
    int threads;           /* for sni_parallel_for() */
    const void *state;     /* what an implementation prepared (ep/ep.h); NULL for `ref` */
    const sni_kernel_hooks *hooks; /* set by an implementation that calls `ref`; NULL: plain C */
    sni_budget *budget;
    const sni_host *host;
    void *host_ctx;
    sn_error *err;
};

/* Input i as a tensor; NULL if it was left out or is no tensor. */
static inline const sni_tensor *sni_in(const sni_kernel *k, int i) {
    return i < k->n_in && k->in[i] && k->in[i]->kind == SN_KIND_TENSOR ? &k->in[i]->tensor : NULL;
}
/* Output i as a tensor whose shape, type and memory are ready; NULL if nothing reads it. */
static inline sni_tensor *sni_out(const sni_kernel *k, int i) {
    return i < k->n_out && k->out[i] ? &k->out[i]->tensor : NULL;
}

/* SNI_OP_ALLOCATES: makes output i a tensor of this type and shape with new memory; strings are
 * empty, other elements uninitialised. To be called for every output. If nothing reads output i, it
 * does nothing, and sni_out(k, i) stays NULL. */
static inline sn_status sni_out_alloc(sni_kernel *k, int i, sn_dtype dtype, int rank,
                                      const int64_t *dims) {
    return k->host->alloc(k, i, dtype, rank, dims);
}

/* Uninitialised memory, aligned to SNI_ALIGN, that is freed when the kernel returns. NULL with the
 * error set when the memory limit is reached or there is no memory. Only from the kernel's own
 * thread. */
static inline void *sni_scratch(sni_kernel *k, size_t bytes) {
    return k->host->scratch(k, bytes);
}

/* Memory for the text of string outputs, which lives until the run ends; NULL with
 * the error set. */
static inline char *sni_text(sni_kernel *k, size_t bytes) {
    return k->host->text(k, bytes);
}

/* The weights that the next step will read, for kernels that can prefetch them into the cache.
 * Fills up to SNI_MOST_SPANS spans and returns their number. */
static inline int sni_prefetch(const sni_kernel *k, sni_span *spans) {
    return k->host->prefetch ? k->host->prefetch(k, spans) : 0;
}

/* SN_CANCELLED or SN_TIMEOUT, with the error set, when the run should stop; otherwise SN_OK.
 * Kernels that may run longer than some 10 ms call it now and then, and return what it returns. */
static inline sn_status sni_poll(const sni_kernel *k) {
    return k->host->poll(k, k->err);
}
/* The same for worker threads of the kernel: true tells them to leave their work undone. The kernel
 * then calls sni_poll(), which fails. */
static inline bool sni_stopping(const sni_kernel *k) {
    return k->host->poll(k, NULL) != SN_OK;
}

/* Runs subgraph `index` of the node on its inputs in order; the engine binds captured values. The
 * entries of `out` must be NONE; they receive values that the caller clears with
 * sni_datum_clear(), also after a failure. */
static inline sn_status sni_run_subgraph(sni_kernel *k, int32_t index, const sni_datum *const *in,
                                         int n_in, sni_datum *out, int n_out) {
    return k->host->subgraph(k, index, in, n_in, out, n_out);
}

/* Fails the kernel with a message: its inputs' values are not acceptable (SN_BAD_DATA). */
#define SNI_KERNEL_FAIL(k, ...) sni_fail((k)->err, SN_BAD_DATA, __VA_ARGS__)

#endif
