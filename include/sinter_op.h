/* sinter_op.h - operators of your own: what a library of operators is written against.
 *
 * An operator is one sn_op: its name, what it takes and makes, and functions that run it. A library
 * of them exports one function, sn_register_operators, and links against nothing: everything it may
 * call is in the table that it is given. docs/CUSTOM_OPERATORS.md has a complete example.
 *
 *     sn_status sn_register_operators(sn_operators *set, const sn_op_api *api, sn_error *err) {
 *         sn_op op = {.size = sizeof op, .domain = "my.domain", .name = "Scale", ...};
 *         return api->add(set, &op, err);
 *     }
 *
 * Load it with sn_operators_load(), or `sinter run --op-library FILE.so`. */
#ifndef SINTER_OP_H
#define SINTER_OP_H

#include "sinter.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sn_op_node sn_op_node;   /* a node of a model: attributes, inputs, outputs */
typedef struct sn_op_infer sn_op_infer; /* one question for the shapes of a node's outputs */
typedef struct sn_op_call sn_op_call;   /* one run of a node */

/* ---- The description of an operator ------------------------------------------------------- */

enum sn_op_flag {
    SN_OP_OPTIONAL = 1,      /* may be left out */
    SN_OP_VARIADIC = 2,      /* the last one: any number of them, at least one */
    SN_OP_HETEROGENEOUS = 4, /* variadic, and their types may differ */
    SN_OP_NONE_ALLOWED = 8   /* variadic, and there may be none of them */
};

#define SN_OP_TYPE(dtype) (1u << (dtype))

/* A formal input or output. */
typedef struct sn_op_port {
    const char *name;
    uint32_t types; /* SN_OP_TYPE(...) of every element type; 0: all. An output with more than one
                       has the type of input 0 unless `infer` says otherwise */
    unsigned flags;
} sn_op_port;

/* Strings and arrays are copied when the operator is added. */
typedef struct sn_op {
    size_t size; /* sizeof(sn_op) */
    const char *domain;
    const char *name;
    int since,
        until; /* opset versions of the domain that have it; 0: from the first, to the last */
    const sn_op_port *inputs;
    size_t input_count;
    const sn_op_port *outputs;
    size_t output_count;
    /* Bit i: output 0 may be given in the memory of input i, when type and shape are the same and
     * nobody else needs that input. */
    uint32_t inplace;
    void *ctx; /* handed to the functions below */
    /* Sets types and shapes of outputs as far as the inputs' tell. It may be called at any time,
     * from any thread, with more or less known. NULL: shapes are known when the node has run. */
    sn_status (*infer)(void *ctx, sn_op_infer *call, sn_error *err);
    /* Once per node and session: `*state` is handed to `run` and `destroy`. NULL: none. */
    sn_status (*create)(void *ctx, const sn_op_node *node, void **state, sn_error *err);
    /* Runs a node, in any number of threads at once. It asks for every output that is wanted. */
    sn_status (*run)(void *ctx, void *state, sn_op_call *call, sn_error *err);
    void (*destroy)(void *ctx, void *state); /* NULL: nothing to do */
    void (*release)(void *ctx);              /* when nobody can call the operator any more; may be
                                                NULL */
} sn_op;

/* ---- What an operator may call -------------------------------------------------------------- */

/* A tensor at hand. Strings have no data: use get_string and set_string with `value`. */
typedef struct sn_op_tensor {
    sn_dtype dtype;
    int rank;
    const int64_t *dims;
    size_t count; /* elements */
    size_t bytes;
    void *data; /* of an input: only to be read */
    sn_value *value;
} sn_op_tensor;

typedef void (*sn_op_range_fn)(void *ctx, int64_t begin, int64_t end);

typedef struct sn_op_api {
    size_t size; /* sizeof(sn_op_api) */

    sn_status (*add)(sn_operators *set, const sn_op *op, sn_error *err);
    /* Fills `err` with a message as printf would, and returns `status`. */
    sn_status (*fail)(sn_error *err, sn_status status, const char *format, ...);

    /* Nodes. Pointers are borrowed from the node: in `create` they live as long as its state, in
     * `infer` as long as the call. Attributes: false when the node has none of that name and kind.
     */
    const char *(*node_name)(const sn_op_node *node);
    const char *(*node_domain)(const sn_op_node *node);
    const char *(*node_type)(const sn_op_node *node);
    int64_t (*node_version)(const sn_op_node *node);
    size_t (*node_input_count)(const sn_op_node *node);
    size_t (*node_output_count)(const sn_op_node *node);
    bool (*node_input)(const sn_op_node *node, size_t index,
                       sn_value_info *out); /* left out: false */
    bool (*node_output)(const sn_op_node *node, size_t index, sn_value_info *out);
    const sn_value *(*node_constant)(const sn_op_node *node, size_t index); /* NULL: no constant */
    bool (*node_int)(const sn_op_node *node, const char *name, int64_t *out);
    bool (*node_float)(const sn_op_node *node, const char *name, float *out);
    bool (*node_text)(const sn_op_node *node, const char *name, const char **text, size_t *length);
    bool (*node_ints)(const sn_op_node *node, const char *name, const int64_t **v, size_t *count);
    bool (*node_floats)(const sn_op_node *node, const char *name, const float **v, size_t *count);
    /* Number of texts of an attribute, and one of them. */
    bool (*node_texts)(const sn_op_node *node, const char *name, size_t *count);
    bool (*node_text_at)(const sn_op_node *node, const char *name, size_t index, const char **text,
                         size_t *length);
    const sn_value *(*node_tensor)(const sn_op_node *node, const char *name); /* NULL: none */

    /* Inference. Sizes that are not known are -1 and have a symbol; an output's size that is given
     * as -1 with the symbol of an input's is the same size, without a symbol it is a new one. A
     * rank of -1 sets the element type alone. */
    const sn_op_node *(*infer_node)(const sn_op_infer *call);
    bool (*infer_input)(const sn_op_infer *call, size_t index, sn_value_info *out);
    sn_status (*infer_output)(sn_op_infer *call, size_t index, sn_dtype dtype, int rank,
                              const int64_t *dims, const char *const *symbols, sn_error *err);

    /* Runs. */
    size_t (*input_count)(const sn_op_call *call);
    size_t (*output_count)(const sn_op_call *call);
    bool (*input)(sn_op_call *call, size_t index, sn_op_tensor *out); /* false: left out */
    /* The memory of an output, not filled. UNDEFINED: the type that is known of it. An optional
     * output that nobody wants gives an empty tensor without a `value`. */
    sn_status (*output)(sn_op_call *call, size_t index, sn_dtype dtype, int rank,
                        const int64_t *dims, sn_op_tensor *out, sn_error *err);
    /* Calls fn over disjoint pieces of [0, n) of at least `grain` elements, in several threads. */
    void (*parallel)(sn_op_call *call, int64_t n, int64_t grain, sn_op_range_fn fn, void *ctx);
    /* Memory until `run` returns, aligned to 64 bytes; NULL when there is none. */
    void *(*scratch)(sn_op_call *call, size_t bytes);
    bool (*cancelled)(sn_op_call *call); /* the run should stop: return SN_CANCELLED */
    sn_status (*get_string)(const sn_value *value, size_t index, const char **text, size_t *length,
                            sn_error *err);
    sn_status (*set_string)(sn_value *value, size_t index, const char *text, size_t length,
                            sn_error *err);
} sn_op_api;

/* What a library exports. */
typedef sn_status (*sn_register_operators_fn)(sn_operators *set, const sn_op_api *api,
                                              sn_error *err);

#if defined(_WIN32)
#define SN_OP_EXPORT
#else
#define SN_OP_EXPORT __attribute__((visibility("default")))
#endif
SN_OP_EXPORT sn_status sn_register_operators(sn_operators *set, const sn_op_api *api,
                                             sn_error *err);

/* For programs that link with libsinter: adds an operator to a set, and the table. */
SN_API sn_status sn_operators_add(sn_operators *set, const sn_op *op, sn_error *err);
SN_API const sn_op_api *sn_operators_api(void);

#ifdef __cplusplus
}
#endif

#endif
