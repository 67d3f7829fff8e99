/* sinter.h - the public interface of libsinter, an ONNX inference runtime.
 *
 * Conventions, true for every function below unless its comment says otherwise:
 *   - A function that can fail returns sn_status and takes an `sn_error *err` last. The slot
 * belongs to the caller and may be NULL. On failure every other out-parameter is left untouched.
 *   - Destroy functions return nothing and accept NULL.
 *   - Strings are UTF-8 and NUL-terminated; names inside a model may hold any byte but NUL.
 *   - "borrowed" pointers live as long as the object they came from; "owned" ones are the caller's
 *     to destroy; "copied" arguments may be freed as soon as the call returns.
 *   - A structure of options starts with its size, and its `_init` function fills as many bytes as
 *     `size` says, always sizeof of the structure: a program and a library that know a different
 *     number of options work together. Setting one that the library does not know is an error.
 *   - Different objects may be used from different threads at once. sn_model and sn_session are
 *     immutable after creation and may be shared by any number of threads. sn_value is not
 *     synchronised: several runs may read one value, nobody may write it meanwhile.
 */
#ifndef SINTER_H
#define SINTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define SN_API
#else
#define SN_API __attribute__((visibility("default")))
#endif

#define SN_VERSION_MAJOR 0
#define SN_VERSION_MINOR 2
#define SN_VERSION_PATCH 0

/* The version of the library that is loaded, "MAJOR.MINOR.PATCH". Static storage. */
SN_API const char *sn_version(void);

/* ---- Errors ------------------------------------------------------------------------------ */

typedef enum sn_status {
    SN_OK = 0,
    SN_INVALID_ARGUMENT = 1, /* the caller passed something this function does not take */
    SN_NOT_FOUND = 2,        /* a file or a name does not exist */
    SN_IO = 3,               /* reading or writing failed */
    SN_MALFORMED = 4,        /* the bytes are not a well-formed file of their format */
    SN_INVALID_MODEL = 5,    /* well-formed, but not a valid graph */
    SN_UNSUPPORTED = 6,      /* valid, but this build cannot run it */
    SN_NO_MEMORY = 7,        /* the system has no memory left */
    SN_LIMIT = 8,            /* a configured limit was reached */
    SN_CANCELLED = 9,        /* the run was cancelled */
    SN_TIMEOUT = 10,         /* the run reached its deadline */
    SN_BAD_DATA = 11,        /* an operator refused the values it was given */
    SN_INTERNAL = 12         /* a defect of this library */
} sn_status;

#define SN_ERROR_MESSAGE_SIZE 512

/* Filled when a function fails: what happened, where, and what to do about it. */
typedef struct sn_error {
    sn_status status;
    char message[SN_ERROR_MESSAGE_SIZE];
} sn_error;

/* The name of a status, such as "invalid argument". Static storage. */
SN_API const char *sn_status_name(sn_status status);

/* ---- Types ------------------------------------------------------------------------------- */

/* Element types; the numbers are those of ONNX's TensorProto.DataType. */
typedef enum sn_dtype {
    SN_UNDEFINED = 0,
    SN_FLOAT32 = 1,
    SN_UINT8 = 2,
    SN_INT8 = 3,
    SN_UINT16 = 4,
    SN_INT16 = 5,
    SN_INT32 = 6,
    SN_INT64 = 7,
    SN_STRING = 8,
    SN_BOOL = 9,
    SN_FLOAT16 = 10,
    SN_FLOAT64 = 11,
    SN_UINT32 = 12,
    SN_UINT64 = 13,
    SN_COMPLEX64 = 14,
    SN_COMPLEX128 = 15,
    SN_BFLOAT16 = 16,
    SN_FLOAT8E4M3FN = 17,
    SN_FLOAT8E4M3FNUZ = 18,
    SN_FLOAT8E5M2 = 19,
    SN_FLOAT8E5M2FNUZ = 20,
    SN_UINT4 = 21,
    SN_INT4 = 22,
    SN_FLOAT4E2M1 = 23,
    SN_FLOAT8E8M0 = 24,
    SN_UINT2 = 25,
    SN_INT2 = 26
} sn_dtype;

/* "float32", "int4", ... Static storage; "undefined" for a number that is no type. */
SN_API const char *sn_dtype_name(sn_dtype dtype);

/* Bytes that `count` elements take in a tensor's data: types under 8 bits are packed, low bits
 * first, as in ONNX. 0 for strings and unknown types; SIZE_MAX when the size does not fit. */
SN_API size_t sn_dtype_bytes(sn_dtype dtype, size_t count);

typedef enum sn_kind {
    SN_KIND_NONE = 0, /* an optional that holds nothing */
    SN_KIND_TENSOR = 1,
    SN_KIND_SEQUENCE = 2,
    SN_KIND_MAP = 3,
    SN_KIND_OPTIONAL = 4, /* only in type descriptions: a value is what it holds, or NONE */
    SN_KIND_SPARSE_TENSOR = 5
} sn_kind;

#define SN_MAX_RANK 16

/* What a model says of one of its inputs, outputs or weights. Pointers are borrowed. */
typedef struct sn_value_info {
    const char *name;
    sn_kind kind;
    sn_dtype dtype; /* of the tensor, or of the innermost tensor of a sequence or optional */
    bool has_shape; /* false: even the rank is unknown */
    int rank;
    int64_t dims[SN_MAX_RANK];        /* -1 where not known before the run */
    const char *symbols[SN_MAX_RANK]; /* name or expression of an unknown dimension, "" if none */
    const char *type_text;            /* the whole type, such as "seq(tensor(float32[N,3]))" */
    sn_dtype key;                     /* MAP: the keys' type */
    /* What a sequence, a map's values or an optional holds; it has no name. NULL: not such. */
    const struct sn_value_info *element;
} sn_value_info;

/* ---- Values ------------------------------------------------------------------------------ */

/* A tensor, a sequence, a map, or an optional that holds nothing. */
typedef struct sn_value sn_value;

/* A new tensor in library memory, zero-filled (strings empty). `dims` is copied. Owned. */
SN_API sn_status sn_tensor_create(sn_dtype dtype, int rank, const int64_t *dims, sn_value **out,
                                  sn_error *err);

/* A tensor over the caller's memory, which must outlive the value and hold at least
 * sn_dtype_bytes() bytes (`bytes` says how many there are). Any alignment. Not for strings. */
SN_API sn_status sn_tensor_wrap(sn_dtype dtype, int rank, const int64_t *dims, void *data,
                                size_t bytes, sn_value **out, sn_error *err);

/* The same, with a function that is called with `ctx` and `data` when the last holder has destroyed
 * the value; it may be called in any thread. NULL: none. On failure it is not called. */
typedef void (*sn_release_fn)(void *ctx, void *data);
SN_API sn_status sn_tensor_adopt(sn_dtype dtype, int rank, const int64_t *dims, void *data,
                                 size_t bytes, sn_release_fn release, void *ctx, sn_value **out,
                                 sn_error *err);

/* A sequence of `count` values, which it takes over on success. Owned. */
SN_API sn_status sn_sequence_create(sn_value *const *items, size_t count, sn_value **out,
                                    sn_error *err);

/* A map from a 1-D int64 or string tensor to a 1-D tensor or sequence of equal length; takes both
 * over on success. Owned. */
SN_API sn_status sn_map_create(sn_value *keys, sn_value *values, sn_value **out, sn_error *err);

/* An optional that holds nothing. Owned. */
SN_API sn_status sn_none_create(sn_value **out, sn_error *err);

/* One more holder of a value, which is gone when each holder has destroyed it. Returns `value`.
 * Safe from any thread. */
SN_API sn_value *sn_value_retain(sn_value *value);
SN_API void sn_value_destroy(sn_value *value);

SN_API sn_kind sn_value_kind(const sn_value *value);

/* The following are for tensors; on another kind they return SN_UNDEFINED, 0 or NULL. */
SN_API sn_dtype sn_tensor_dtype(const sn_value *value);
SN_API int sn_tensor_rank(const sn_value *value);
SN_API const int64_t *sn_tensor_dims(const sn_value *value); /* borrowed */
SN_API size_t sn_tensor_count(const sn_value *value);        /* elements */
SN_API size_t sn_tensor_bytes(const sn_value *value);
SN_API void *sn_tensor_data(sn_value *value); /* borrowed; NULL for strings */
SN_API const void *sn_tensor_const_data(const sn_value *value);

/* String tensors by element. The text is borrowed until the element is set again, and is followed
 * by a NUL that `length` does not count. */
SN_API sn_status sn_tensor_get_string(const sn_value *value, size_t index, const char **text,
                                      size_t *length, sn_error *err);
SN_API sn_status sn_tensor_set_string(sn_value *value, size_t index, const char *text,
                                      size_t length, sn_error *err);

/* Makes room for `length` bytes of text in an element, followed by a NUL, and gives its memory, not
 * filled yet. Borrowed until the element is set again. */
SN_API sn_status sn_tensor_resize_string(sn_value *value, size_t index, size_t length, char **text,
                                         sn_error *err);

/* Sequences: length (0 for another kind) and borrowed elements (NULL if out of range). */
SN_API size_t sn_sequence_length(const sn_value *value);
SN_API const sn_value *sn_sequence_at(const sn_value *value, size_t index);

/* Maps: the borrowed key and value collections; NULL for another kind. */
SN_API const sn_value *sn_map_keys(const sn_value *value);
SN_API const sn_value *sn_map_values(const sn_value *value);

/* A value from the bytes of an ONNX TensorProto, SequenceProto or OptionalProto, as `kind` says
 * (TENSOR, SEQUENCE or OPTIONAL). The bytes are copied. Owned. */
SN_API sn_status sn_value_decode(sn_kind kind, const void *bytes, size_t size, sn_value **out,
                                 sn_error *err);

/* Receives pieces of output in order; returns 0 to go on, anything else to stop with SN_IO. */
typedef int (*sn_write_fn)(void *ctx, const void *bytes, size_t size);

/* The inverse of sn_value_decode: a tensor becomes a TensorProto, a sequence a SequenceProto, NONE
 * an OptionalProto. `name` may be NULL. */
SN_API sn_status sn_value_encode(const sn_value *value, const char *name, sn_write_fn write,
                                 void *ctx, sn_error *err);

/* ---- Operators of the caller's own (see sinter_op.h) --------------------------------------- */

/* A set of operators that models may be loaded with. A model keeps what it was loaded with: the set
 * may be destroyed before it. It must not be added to while a model is being loaded with it. */
typedef struct sn_operators sn_operators;
SN_API sn_status sn_operators_create(sn_operators **out, sn_error *err);
/* Adds the operators of a library, which stays loaded. A name without '/' is searched for in the
 * system's folders. */
SN_API sn_status sn_operators_load(sn_operators *set, const char *path, sn_error *err);
SN_API void sn_operators_destroy(sn_operators *set);

/* ---- Models ------------------------------------------------------------------------------ */

/* An imported model. Sessions keep what they need of it: it may be destroyed before them. */
typedef struct sn_model sn_model;

/* A value by name, or by position when the name is NULL. */
typedef struct sn_binding {
    const char *name;
    sn_value *value;
} sn_binding;

/* The size of a dimension that a model leaves open. */
typedef struct sn_dimension {
    const char *name;   /* as the model has it, or ... */
    bool by_denotation; /* ... what the dimension stands for, such as "DATA_BATCH" */
    int64_t size;
} sn_dimension;

/* A file of external data that is in memory. */
typedef struct sn_file {
    const char *name; /* as the model has it */
    const void *bytes;
    size_t size;
} sn_file;

typedef struct sn_load_options {
    size_t size;           /* sizeof(sn_load_options); set by sn_load_options_init */
    bool copy;             /* read the file into memory instead of mapping it */
    bool borrow;           /* sn_model_load_memory: use the caller's bytes, which must outlive the
                              model and every session made from it, instead of a copy */
    bool allow_links;      /* follow symbolic and hard links to external data (cache layouts) */
    const char *base_path; /* sn_model_load_memory: the folder of external data; NULL: none */
    uint64_t memory_limit; /* bytes of heap that importing may take; 0: in proportion to the file */
    const sn_dimension *dimensions; /* sizes of dimensions, wherever the model uses them; copied */
    size_t dimension_count;
    const sn_binding *weights; /* tensors to be used for weights of the main graph by name, in place
                                  of the model's own; of the same type and shape. The model keeps
                                  hold of the values; nobody may write them */
    size_t weight_count;
    const sn_file *files; /* looked at before the folder of external data; copied */
    size_t file_count;
    const sn_operators *operators; /* looked at after the build's own; NULL: none */
    bool verify; /* of a compiled model: verify all of its checksums, not header and graph alone */
    bool repack; /* of a compiled model that was made by another version or for another CPU: use it
                    without its packed weights instead of refusing it */
    bool strict; /* refuse what the specification forbids, also where other engines accept it:
                    otherwise that is told by sn_model_warning() */
    bool allow_hard_links; /* accept external data that has several names in its file system; a
                              warning tells. Symbolic links stay refused */
} sn_load_options;

SN_API void sn_load_options_init(sn_load_options *options, size_t size);

/* Reads a model. `options` may be NULL and is copied. A mapped file must not be changed while it
 * is in use; if it is, loads and runs fail cleanly. Operators that this build does not know are
 * reported by sn_model_operator() and refused by sn_session_create(). Owned. */
SN_API sn_status sn_model_load(const char *path, const sn_load_options *options, sn_model **out,
                               sn_error *err);
SN_API sn_status sn_model_load_memory(const void *bytes, size_t size,
                                      const sn_load_options *options, sn_model **out,
                                      sn_error *err);
/* A model in ONNX text syntax (docs/TEXT.md); for tests and experiments. */
SN_API sn_status sn_model_load_text(const char *text, size_t size, sn_model **out, sn_error *err);
SN_API void sn_model_destroy(sn_model *model);

/* What a model has that the specification forbids, or that is worth knowing of its files, one line
 * each; NULL: there is no such warning. Sessions write them to their log. Borrowed. */
SN_API const char *sn_model_warning(const sn_model *model, size_t index);

/* Inputs that a caller must or may give, and outputs. Inputs with a default (weights that a model
 * of IR version 4 or later also lists as inputs) are optional and come last. */
SN_API size_t sn_model_input_count(const sn_model *model);
SN_API size_t sn_model_output_count(const sn_model *model);
SN_API sn_status sn_model_input(const sn_model *model, size_t index, sn_value_info *out,
                                sn_error *err);
SN_API sn_status sn_model_output(const sn_model *model, size_t index, sn_value_info *out,
                                 sn_error *err);
SN_API bool sn_model_input_is_optional(const sn_model *model, size_t index);

/* Facts about a whole model. Strings are borrowed, "" when absent. */
typedef struct sn_model_info {
    int64_t ir_version;
    int64_t model_version;
    const char *producer_name;
    const char *producer_version;
    const char *domain;
    const char *doc;
    const char *graph_name;
    size_t opset_count;
    size_t metadata_count;
    size_t operator_count; /* distinct operators */
    size_t weight_count;
    size_t node_count;        /* of the graph and its subgraphs, functions expanded */
    uint64_t parameter_count; /* elements of all floating-point and quantised weights */
    uint64_t weight_bytes;
    uint64_t macs;          /* multiply-accumulates of one run, of nodes with known shapes */
    size_t macs_unknown;    /* nodes whose cost depends on dimensions not known yet */
    bool has_model_version; /* false: the file does not tell */
    const char *graph_doc;
} sn_model_info;

SN_API void sn_model_get_info(const sn_model *model, sn_model_info *out);

/* By index below the counts above; false when out of range. Borrowed. */
SN_API bool sn_model_opset(const sn_model *model, size_t index, const char **domain,
                           int64_t *version);
SN_API bool sn_model_metadata(const sn_model *model, size_t index, const char **key,
                              const char **value);
typedef struct sn_operator_use {
    const char *domain;
    const char *name;
    size_t count;
    bool supported;
} sn_operator_use;
SN_API bool sn_model_operator(const sn_model *model, size_t index, sn_operator_use *out);
/* Largest first. `bytes` is what the weight takes in the file. */
SN_API bool sn_model_weight(const sn_model *model, size_t index, sn_value_info *out,
                            uint64_t *bytes);

/* ---- Sessions ---------------------------------------------------------------------------- */

typedef struct sn_session sn_session;

typedef enum sn_log_level { SN_LOG_ERROR = 0, SN_LOG_WARNING = 1, SN_LOG_INFO = 2 } sn_log_level;

/* Called from any thread that uses the session. `text` is one line without its end. */
typedef void (*sn_log_fn)(void *ctx, sn_log_level level, const char *text);

/* How closely products with constant float32 weights are computed. All but the first round the
 * weights to 16 bits, which halves their memory; sums are always of float32. `sinter diff
 * --precision` measures what it costs a model. */
typedef enum sn_precision {
    SN_PRECISION_EXACT = 0,     /* as float32 */
    SN_PRECISION_TF32_LIKE = 1, /* weights with the 11 bits of TF32, where float16 can hold them */
    SN_PRECISION_BF16 = 2, /* weights and what they are multiplied with as bfloat16, 8 bits, where
                              the processor has products of them; else weights alone */
    SN_PRECISION_FP16 = 3  /* weights as float16, 11 bits and less below 6e-5 */
} sn_precision;

typedef struct sn_session_options {
    size_t size;            /* sizeof(sn_session_options); set by sn_session_options_init */
    int threads;            /* most threads one run may use; 0: all that this process may use */
    int optimize;           /* 0 none, 1 safe clean-ups, 2 fusions, 3 all (default) */
    uint64_t memory_limit;  /* bytes for the tensors of one run and the packed weights; 0: none */
    uint64_t time_limit_ns; /* for one run; 0: none */
    sn_log_fn log;          /* NULL: silent */
    void *log_ctx;
    const char *const *disabled_rules; /* names of optimiser rules to leave out; copied */
    size_t disabled_rule_count;
    uint64_t plan_cache_bytes; /* plans of shapes seen before to keep, in bytes of their tables,
                                  besides the one in use; 0: weights / 8, from 8 to 64 MB */
    bool portable; /* use operators of ONNX and com.microsoft only, so that other tools can read the
                      optimised graph (sn_session_write) */
    uint64_t prepare_limit_ns; /* for making the session; SN_TIMEOUT after it; 0: none */
    /* Where compiled forms of models are kept from process to process; copied; NULL: nowhere. The
     * first session of a model with these options, this CPU and library writes its file after its
     * first run; later ones map it instead of optimising and packing. A model counts as the same
     * while its files are (device, inode, size, time of change), one from memory while its bytes
     * are. Files that do not fit are made anew, and what cannot be written is not; the log tells.
     * The folder may be emptied at any time. Models with custom operators, or with weights or files
     * given by the caller, are not kept. */
    const char *cache_folder;
    uint64_t cache_limit; /* most bytes of such files in the folder: those unused for longest go
                             before one is put there, and one that is larger is not kept; 0: none */
    const struct sn_provider_use *providers; /* who may run nodes, in order of preference; the CPU
                                                takes what they leave. Copied */
    size_t provider_count;
    sn_precision precision; /* SN_PRECISION_EXACT (default) or less */
} sn_session_options;

SN_API void sn_session_options_init(sn_session_options *options, size_t size);

/* Optimises and plans a model for running. `options` may be NULL and is copied. Owned. */
SN_API sn_status sn_session_create(const sn_model *model, const sn_session_options *options,
                                   sn_session **out, sn_error *err);
SN_API void sn_session_destroy(sn_session *session); /* after its last run has returned */

/* Lets another thread stop a run. One token may serve many runs, one after the other or at once. */
typedef struct sn_cancel sn_cancel;
SN_API sn_status sn_cancel_create(sn_cancel **out, sn_error *err);
SN_API void sn_cancel_trigger(sn_cancel *cancel); /* safe from any thread and signal handler */
SN_API void sn_cancel_reset(sn_cancel *cancel);
SN_API void sn_cancel_destroy(sn_cancel *cancel); /* after the runs that use it have returned */

/* One step of a run, told when it is over. Strings are borrowed for the call. */
typedef struct sn_step_event {
    const char *node;  /* the node's name, or its first output's */
    const char *op;    /* its operator */
    int depth;         /* 0 in the main graph, more inside If, Loop and Scan bodies */
    uint64_t start_ns; /* CLOCK_MONOTONIC */
    uint64_t end_ns;
    uint64_t output_bytes;
    uint64_t input_bytes; /* of all tensors it is given, weights included */
    uint64_t macs;        /* multiply-accumulates by the operator's definition; 0 where none */
    const char *impl;     /* who ran it: the name of an implementation, or "reference" */
    const char *shapes;   /* of its tensors, "1x3x224x224 64x3x7x7 -> 1x64x112x112" */
} sn_step_event;
typedef void (*sn_step_fn)(void *ctx, const sn_step_event *event);
typedef void (*sn_value_fn)(void *ctx, const char *name, const char *op, const sn_value *value);

typedef struct sn_run_options {
    size_t size; /* sizeof(sn_run_options); set by sn_run_options_init */
    sn_cancel *cancel;
    uint64_t time_limit_ns; /* overrides the session's; 0: the session's */
    sn_step_fn on_step;     /* called in the running thread; NULL: none */
    void *on_step_ctx;
    int threads;          /* overrides the session's; 0: the session's */
    sn_value_fn on_value; /* told of every value of the main graph that is made, with its name and
                             operator, in the running thread; the value is borrowed until it
                             returns. For debugging: each value is copied. NULL: none */
    void *on_value_ctx;
} sn_run_options;

SN_API void sn_run_options_init(sn_run_options *options, size_t size);

/* Runs the model once. Every required input is bound; `inputs` are only read. Each output whose
 * `value` is NULL receives a new value, owned by the caller; one that is not NULL is a tensor that
 * is filled in place and must have the output's type and shape. An input that is declared as a
 * scalar takes a tensor of any shape, as it does in ONNX Runtime; a compiled model takes a scalar.
 * `options` may be NULL. Safe from many threads. A tensor may be past and present of a cache. */
SN_API sn_status sn_session_run(sn_session *session, const sn_run_options *options,
                                const sn_binding *inputs, size_t input_count, sn_binding *outputs,
                                size_t output_count, sn_error *err);

/* Writes the session as a compiled model: its optimised graph, the weights, and the weights packed
 * for this CPU by the runs so far (run it once before). sn_model_load() reads the file like any
 * other model; sessions of it are ready at once, and processes that map it share its pages. A
 * compiled model is for the version of the library and the kind of CPU that made it; inputs with a
 * default are constants in it. */
SN_API sn_status sn_session_compile(sn_session *session, sn_write_fn write, void *ctx,
                                    sn_error *err);

/* Measures, with these inputs, the ways to compute each convolution between which a session chooses
 * by estimates, and keeps those that are quicker for all runs to come: some tens of runs. A
 * compiled model made of the session, or its file in `cache_folder`, keeps them, too. Results may
 * change in their last digits, as they may between shapes. No run may be under way, and none begin
 * meanwhile. *changed, unless NULL: how many are computed in another way than estimated; the log
 * tells which. Inputs are checked as for a run, even if there is nothing to choose. If it fails the
 * session is as it was before. */
SN_API sn_status sn_session_tune(sn_session *session, const sn_binding *inputs, size_t input_count,
                                 size_t *changed, sn_error *err);

/* Frees memory that no run needs at the moment: the arenas and scratch of runs that are over and
 * the plans of shapes seen before. Later runs take it anew. Packed weights stay. Safe while others
 * run; returns the bytes of arenas and scratch that were freed. */
SN_API uint64_t sn_session_trim(sn_session *session);

/* What the optimiser did: rules by index with the number of times each one fired, false past the
 * end. The nodes before and after. Borrowed. */
SN_API bool sn_session_rule(const sn_session *session, size_t index, const char **name,
                            size_t *count);
/* Where rules fired, in order of time; false past the end. Borrowed. */
SN_API bool sn_session_rewrite(const sn_session *session, size_t index, const char **rule,
                               const char **node);
SN_API void sn_session_node_counts(const sn_session *session, size_t *before, size_t *after);
/* Operators of the optimised graph and its subgraphs, in the order of their first nodes; false past
 * the end. Borrowed. */
SN_API bool sn_session_operator(const sn_session *session, size_t index, sn_operator_use *out);

/* Memory of the plan that ran last: bytes of its arena, and the least that its tensors' lifetimes
 * allow. 0 before the first run. */
SN_API void sn_session_plan_bytes(const sn_session *session, uint64_t *arena,
                                  uint64_t *lower_bound);

typedef enum sn_stage { SN_STAGE_IMPORT = 0, SN_STAGE_OPT = 1, SN_STAGE_PLAN = 2 } sn_stage;
typedef enum sn_format {
    SN_FORMAT_TEXT = 0,
    SN_FORMAT_ONNX = 1,
    SN_FORMAT_DOT = 2 /* Graphviz's language */
} sn_format;

/* Writes a model as it was imported, in ONNX text, as an ONNX file or as a drawing. */
SN_API sn_status sn_model_write(const sn_model *model, sn_format format, sn_write_fn write,
                                void *ctx, sn_error *err);
/* Writes what a session made of it; a plan (text or drawing) is of the shapes that ran last. */
SN_API sn_status sn_session_write(const sn_session *session, sn_stage stage, sn_format format,
                                  sn_write_fn write, void *ctx, sn_error *err);

/* ---- Providers (see sinter_ep.h) ----------------------------------------------------------- */

/* A device that a session shall use. */
typedef struct sn_provider_use {
    const char *name; /* of a provider; "cpu" means nothing more than the end of the list */
    int device;       /* which of its devices, from 0 */
    bool optional;    /* if it is not usable, a warning says so and the session does without */
    /* What the provider takes, and keys that the library itself takes: "sinter.min_nodes" (fewer
     * nodes make no part), "sinter.fallback" (0: a failure to get memory is not mended by running
     * the part on the CPU), "sinter.shapes" (sets of shapes a part is kept ready for). */
    const struct sn_provider_setting *settings;
    size_t setting_count;
} sn_provider_use;

typedef struct sn_provider_setting {
    const char *key, *value;
} sn_provider_setting;

/* Loads a provider's library, which is never searched for: a path as it is. `name` calls it
 * otherwise than it does itself; NULL: its own. Loading one again under the name that it has does
 * nothing. A model can never name one. */
SN_API sn_status sn_provider_load(const char *path, const char *name, sn_error *err);
/* Forgets a provider; its library is closed when no session uses it any more. */
SN_API sn_status sn_provider_unload(const char *name, sn_error *err);
/* Loads all libraries (lib*.so) of a folder that can be loaded; NULL: of the folders in
 * SINTER_PROVIDER_PATH, with ':' between, and then of the installation. `log` (may be NULL) is told
 * of those that cannot. Sessions do that themselves for names that they do not know. */
SN_API void sn_provider_search(const char *folder, sn_log_fn log, void *log_ctx);

/* A device that some provider has. Strings live until the provider is unloaded. */
typedef struct sn_device_info {
    const char *provider;
    int index;        /* sn_provider_use.device */
    const char *kind; /* "cpu", "gpu", "npu" or "other" */
    const char *name, *vendor, *driver;
    const char *revision;  /* of the provider */
    const char *library;   /* its file; "" for those of the program itself */
    uint64_t memory_bytes; /* 0: the host's */
    uint32_t types;        /* bit t: it computes in element type t */
    const char *unusable;  /* why it cannot be used; NULL: it can */
} sn_device_info;

/* By index, the CPU first; false past the end. */
SN_API bool sn_device(size_t index, sn_device_info *out);

/* What a session's providers took, by index, the CPU last; false past the end. Borrowed. */
typedef struct sn_provider_share {
    const char *provider;
    const char *device;
    size_t nodes; /* that it runs; of the model after clean-ups, bodies of If, Loop and Scan too */
    size_t parts; /* that these make up; 0 for the CPU */
    size_t refused; /* nodes that it left to others */
} sn_provider_share;
SN_API bool sn_session_provider(const sn_session *session, size_t index, sn_provider_share *out);
/* Why a provider did not get a node, by index, in order of the graph; false past the end. Borrowed.
 */
typedef struct sn_provider_refusal {
    const char *provider, *node, *op, *reason;
} sn_provider_refusal;
SN_API bool sn_session_refusal(const sn_session *session, size_t index, sn_provider_refusal *out);

/* ---- The machine -------------------------------------------------------------------------- */

/* What this machine does at best, to hold steps of a run against. */
typedef struct sn_machine {
    const char *isa;         /* the instruction set in use, such as "avx2"; static storage */
    int cpus;                /* that this process may use */
    int threads;             /* that were measured */
    double flops_per_second; /* float32 operations in registers, a multiply-add being two */
    double bytes_per_second; /* read from main memory */
} sn_machine;

/* Measures for some tenths of a second with `threads` threads (0: all CPUs; never more). Other work
 * on the machine makes the figures lower. */
SN_API sn_status sn_machine_measure(int threads, sn_machine *out, sn_error *err);

/* ---- Threads of the pool ----------------------------------------------------------------- */

/* All sessions of a process share one pool of worker threads, which are made when a run first needs
 * them. A program that must make threads itself (affinity, priority, names, accounting) hands over
 * how. */
typedef struct sn_thread_functions {
    /* Makes a thread that calls work(arg) and ends when that returns. Returns what `join` shall be
     * given; NULL: no thread could be made, and the run goes on with fewer. Called in a thread that
     * runs a session, with its signals blocked. */
    void *(*create)(void *ctx, void (*work)(void *arg), void *arg);
    /* Waits for the end of a thread and frees what belongs to it. */
    void (*join)(void *ctx, void *thread);
    void *ctx;
} sn_thread_functions;

/* From now on workers are made with these functions (copied); NULL: by the library, as at first.
 * Workers made so far finish what they are doing and end, those of earlier functions joined before
 * this returns: then those functions are not called again. Without another call workers live as
 * long as the process and are never joined. After fork a child has the functions and no workers.
 * Runs may be under way; the functions must not call this one, nor run sessions.
 * SN_INVALID_ARGUMENT if a function is missing; SN_UNSUPPORTED from inside the work of a worker. */
SN_API sn_status sn_use_thread_functions(const sn_thread_functions *functions, sn_error *err);

/* ---- Operators of this build ------------------------------------------------------------- */

typedef struct sn_operator_info {
    const char *domain; /* "" for ai.onnx */
    const char *name;
    const char *versions; /* opset versions whose definition is understood, such as "1,6,13" */
    const char *inputs;   /* "X: T, W: T, [B]: T" */
    const char *outputs;
    const char *types; /* "T: float16 float32; I: int64" */
} sn_operator_info;

/* By index, in order of domain and name; false past the end. Static storage. */
SN_API bool sn_operator(size_t index, sn_operator_info *out);

#ifdef __cplusplus
}
#endif

#endif
