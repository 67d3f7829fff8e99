/* import.h - what the parts of the importer share. See import.c for how they fit together.
 *
 * Functions fill imp->err when they fail, once; the import as a whole then fails and frees the
 * store, so that nothing is undone on the way out. What they make is in the store's arena. */
#ifndef SNI_MODEL_IMPORT_H
#define SNI_MODEL_IMPORT_H

#include "model/model.h"
#include "model/names.h"
#include "model/tensor_view.h"
#include "model/wire.h"

enum {
    SNI_MAX_TYPE_NESTING = 8,      /* of sequences, maps and optionals in a type */
    SNI_MAX_TOLD = 4,              /* of nodes and functions around a failure: the innermost */
    SNI_MAX_NODES = 1000000,       /* in a file */
    SNI_MAX_EXPANDED = 1000000,    /* made by function calls ... */
    SNI_FREE_EXPANDED = 65536,     /* ... of them so many, and one for each byte of the file */
    SNI_EXPANDED_NODE_BYTES = 2048 /* of heap that each of those may take more than its file */
};

/* The newest opsets that this build knows. */
enum { SNI_NEWEST_OPSET = 28, SNI_NEWEST_ML_OPSET = 5 };

/* A message of the file that is read when it is needed. */
typedef struct sni_message {
    const unsigned char *bytes;
    size_t size;
} sni_message;

typedef struct sni_opsets {
    const sni_opset *v;
    size_t n;
} sni_opsets;

typedef struct sni_function {
    sni_str domain, name, overload;
    sni_message message; /* FunctionProto */
    sni_opsets opsets;
    bool active; /* a call of it is being expanded */
} sni_function;

/* An attribute of a call: a message of the file, or one that is already an attribute. */
typedef struct sni_argument {
    sni_str name;
    sni_message message;
    const sni_attr *attr;    /* NULL: `message` */
    struct sni_scope *scope; /* where graphs in `message` belong */
} sni_argument;

/* What attribute references in a function's body stand for. */
typedef struct sni_arguments {
    const sni_argument *v;
    size_t n;
} sni_arguments;

/* The names that one graph, or one expanded function body, defines. */
typedef struct sni_scope {
    sni_graph *graph;
    struct sni_scope *parent; /* names around it; NULL: none are visible */
    struct sni_scope *home;   /* scope of `graph` itself: another one in an expanded body */
    sni_node *owner;          /* of a subgraph: a node of parent->graph */
    sni_names names;          /* to value ids; SNI_NO_ID: an input that the call leaves out */
    sni_names taken;          /* home only: further value names in use in `graph` */
    const sni_names *results; /* of a body: its outputs, to the values that the caller has */
    sni_str prefix;           /* of value and node names; n 0: none */
    sni_opsets opsets;
    const sni_arguments *arguments; /* NULL: attribute references are not allowed here */
    int32_t position;               /* of the node that is being imported */
    int32_t before;                 /* node of `graph` that new ones are put before */
    uint32_t serial;                /* home only: for names that would else be taken */
    int nesting, calls;             /* subgraphs and function bodies around it */
} sni_scope;

typedef struct sni_file { /* external data */
    sni_str location;
    const unsigned char *bytes; /* kept alive by the store */
    size_t size;
    const sni_mapping *mapping; /* that the bytes are of; NULL: none */
} sni_file;

typedef struct sni_importer {
    sni_model *model;
    sni_store *store;
    sni_import_options options;
    sni_wire_limits limits;
    sni_function *functions;
    size_t n_functions;
    sni_names function_index; /* "domain\0name\0overload" to a position in `functions` */
    sni_file *files;
    size_t n_files, files_capacity;
    sni_names file_index;
    int32_t *ids; /* scratch for a node's inputs and outputs */
    size_t ids_capacity;
    int64_t nodes, expanded, most_expanded;
    sni_type *output_types;
    int told;         /* nodes and functions around a failure that its message names */
    bool takes_given; /* initialisers are the main graph's: options.given counts */
    bool skip_shapes; /* sni_import_info: kinds and element types only */
    bool zero_opset;  /* the file imports opset 0 of ai.onnx */
    bool grows;       /* the arena's limit rises with expanded nodes */
    sn_error *err;
} sni_importer;

/* SN_LIMIT or SN_NO_MEMORY, as the store's arena says. */
sn_status sni_import_no_memory(sni_importer *imp);
/* A reader of a message, with the limits of the whole file. */
sni_wire sni_import_open(sni_importer *imp, sni_message message);
sn_status sni_import_copy(sni_importer *imp, sni_str text, sni_str *out); /* into the arena */
/* Makes imp->ids large enough for `count` ids. */
sn_status sni_import_ids(sni_importer *imp, size_t count);
/* Reads an OperatorSetIdProto into a list that has space for one more; `n` is its length. */
sn_status sni_import_opset(sni_importer *imp, sni_wire *w, sni_opset *list, size_t *n);
/* "ai.onnx" is the empty domain. */
sni_str sni_import_domain(sni_str domain);

/* ---- scope.c ---- */

/* Frees the tables of names; the graph is the store's. */
void sni_scope_free(sni_scope *scope);
/* A value in the scope's graph named `name`, with the scope's prefix and made unique. */
sn_status sni_scope_new_value(sni_importer *imp, sni_scope *scope, sni_str name, sni_value **out);
/* `name` with the scope's prefix, in the arena. */
sn_status sni_scope_prefixed(sni_importer *imp, const sni_scope *scope, sni_str name, sni_str *out);
/* The same with contents. */
sn_status sni_scope_new_const(sni_importer *imp, sni_scope *scope, sni_str name, sni_const *c,
                              sni_value **out);
/* Binds a name. SN_INVALID_MODEL if the scope has it already. */
sn_status sni_scope_bind(sni_importer *imp, sni_scope *scope, sni_str name, int32_t value,
                         int32_t order);
/* A constant under a name of the scope. A further one of that name takes its place, as others take
 * it: the specification allows one. SN_INVALID_MODEL if the name is that of something else. */
sn_status sni_scope_define_const(sni_importer *imp, sni_scope *scope, sni_str name, sni_const *c,
                                 int32_t order);
/* SN_INVALID_MODEL if a node's output has a name that is visible around its graph. */
sn_status sni_scope_check_shadow(sni_importer *imp, const sni_scope *scope, sni_str name);
/* The value of a name, captured from around the scope where needed. *found tells whether there is
 * one; *out is SNI_NO_ID for an input that a call left out. */
sn_status sni_scope_find(sni_importer *imp, sni_scope *scope, sni_str name, bool *found,
                         int32_t *out);

/* ---- import_const.c ---- */

/* A constant that is decoded when first used. `name` may be NULL. */
sn_status sni_import_tensor(sni_importer *imp, sni_wire *w, sni_const **out, sni_str *name);
/* The same of a SparseTensorProto, which is dense from here on. */
sn_status sni_import_sparse(sni_importer *imp, sni_wire *w, sni_const **out, sni_str *name);
/* The contents of a Constant node with the given attributes. */
sn_status sni_import_constant(sni_importer *imp, const sni_attr *attrs, int32_t n, sni_const **out);

/* ---- import_type.c ---- */

/* A TypeProto; SN_LIMIT if it nests deeper than SNI_MAX_TYPE_NESTING. */
sn_status sni_import_type(sni_importer *imp, sni_wire *w, sni_type *out);
/* A ValueInfoProto. */
sn_status sni_import_info(sni_importer *imp, sni_wire *w, sni_str *name, sni_type *type);

/* ---- import_attr.c ---- */

/* Reads an AttributeProto. Subgraphs are attached to `n`, which may be NULL if none are allowed.
 * A reference whose argument is not given makes *present false. */
sn_status sni_import_attr(sni_importer *imp, sni_scope *scope, sni_node *n, sni_message message,
                          sni_attr *out, bool *present);
/* Name and reference (n 0: none) of an AttributeProto. */
sn_status sni_import_attr_names(sni_importer *imp, sni_message message, sni_str *name,
                                sni_str *reference);
/* The argument for an attribute name; NULL: not given. */
const sni_argument *sni_argument_find(const sni_arguments *arguments, sni_str name);

/* ---- import_node.c ---- */

/* A NodeProto without what needs a scope. */
typedef struct sni_node_view {
    sni_str name, type, domain, overload;
    size_t n_in, n_out; /* trailing ones that are left out do not count */
    size_t n_attrs;
    sni_message message;
    size_t offset;
} sni_node_view;

/* Its name, or its first output's, or its operator's. */
sni_str sni_node_view_label(sni_importer *imp, const sni_node_view *v);

/* The nodes of a GraphProto or FunctionProto, which have number `field` there: first all outputs
 * are defined, then the nodes are made. */
sn_status sni_import_nodes(sni_importer *imp, sni_scope *scope, sni_message message,
                           uint32_t field);

/* Puts the values of a node's inputs, then outputs, into imp->ids. */
sn_status sni_import_values(sni_importer *imp, sni_scope *scope, const sni_node_view *v);

/* The opset version of a domain. */
sn_status sni_import_version(sni_importer *imp, const sni_scope *scope, sni_str domain,
                             int64_t *out);

/* ---- import_graph.c ---- */

/* A GraphProto into scope->graph. */
sn_status sni_import_graph(sni_importer *imp, sni_scope *scope, sni_message message);
/* A GraphProto as a subgraph of node n of scope->graph. */
sn_status sni_import_subgraph(sni_importer *imp, sni_scope *scope, sni_node *n, sni_message message,
                              int32_t *index);

/* ---- import_function.c ---- */

/* Finds the functions of a ModelProto; their bodies are read when they are called. */
sn_status sni_import_functions(sni_importer *imp, sni_message model);
/* Reads name, domain and opsets of a FunctionProto. */
sn_status sni_function_read(sni_importer *imp, sni_message message, sni_function *out);
/* *out NULL: there is none. */
sn_status sni_function_find(sni_importer *imp, sni_str domain, sni_str name, sni_str overload,
                            sni_function **out);
/* Puts the body of a function in place of a node of the file. */
sn_status sni_import_call(sni_importer *imp, sni_scope *scope, const sni_node_view *node,
                          sni_function *function);
/* A call of a function: `in` and `out` are values of the caller's graph or SNI_NO_ID. Borrowed. */
typedef struct sni_function_call {
    sni_str label; /* of the calling node: goes before the names inside */
    const int32_t *in;
    size_t n_in;
    const int32_t *out;
    size_t n_out;
    const sni_arguments *given;
} sni_function_call;

/* Expands a body into caller->graph. */
sn_status sni_expand_function(sni_importer *imp, sni_scope *caller, sni_function *function,
                              const sni_function_call *call);

/* ---- finish.c ---- */

/* What comes last, once the graph stands with raw nodes: sorts it, resolves every node (operators
 * given by a function body in text are replaced by that), verifies it and infers types. */
sn_status sni_import_finish(sni_importer *imp);

#endif
