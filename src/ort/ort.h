/* ort.h - what the files of libonnxruntime.so.1 share.
 *
 * The function of slot X is ort_X. An OrtValue is an sn_value under another name; the other objects
 * are the structs below. Nothing here is seen by clients but through ort_abi.h. */
#ifndef SNI_ORT_ORT_H
#define SNI_ORT_ORT_H

#include "ort/ort_abi.h"
#include "sinter.h"
#include "sinter_op.h"

#include <pthread.h>
#include <stdatomic.h>

#define ORT_SLOT(since, ret, name, parameters, arguments) ret ort_##name parameters;
#define ORT_STUB ORT_SLOT
#include "ort/ort_slots.def"
#undef ORT_SLOT
#undef ORT_STUB

extern const OrtApi ort_api;
extern const OrtApiBase ort_api_base;

/* ---- Status (status.c) ---- */

/* A status with a formatted message; never NULL. */
OrtStatus *ort_fail(OrtErrorCode code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* What a failed call of sinter.h says. */
OrtStatus *ort_fail_sn(const sn_error *err);
/* "Run: session is NULL"; `function` is a __func__ of ort_*. */
OrtStatus *ort_fail_null(const char *function, const char *argument);
/* One status for everybody, which takes no memory and is never freed. */
OrtStatus *ort_fail_memory(void);
/* "X is not implemented by this library"; `function` is a __func__ of ort_*. */
OrtStatus *ort_not_implemented(const char *function);

/* Returns from a slot when a required pointer is NULL. */
#define NEED(pointer)                                             \
    do {                                                          \
        if (!(pointer)) return ort_fail_null(__func__, #pointer); \
    } while (0)
/* Returns from a slot with the status that `expr` gives, unless it is NULL. */
#define ORT_TRY(expr)                                \
    do {                                             \
        OrtStatus *ort_try_status_ = (expr);         \
        if (ort_try_status_) return ort_try_status_; \
    } while (0)

/* ---- Texts and lists (text.c) ---- */

/* A copy of a text made with a caller's allocator. */
OrtStatus *ort_copy_text(OrtAllocator *allocator, const char *text, char **out);
/* Gives a text to a caller who says how much room there is and learns how much is needed: `out`
 * NULL asks for the size, NUL included; too little room is an error that still sets it. */
OrtStatus *ort_give_text(const char *text, size_t length, char *out, size_t *size);

struct OrtKeyValuePairs {
    char **keys, **values;
    size_t count, capacity;
};
const char *ort_pairs_get(const OrtKeyValuePairs *pairs, const char *key); /* NULL: not there */
/* Sets or replaces; false when memory runs out. */
bool ort_pairs_set(OrtKeyValuePairs *pairs, const char *key, const char *value);
bool ort_pairs_copy(OrtKeyValuePairs *to, const OrtKeyValuePairs *from); /* `to` is empty */
/* Frees keys and values; the list is empty then and can be used again. */
void ort_pairs_clear(OrtKeyValuePairs *pairs);
/* Replaces a text that is owned with a copy of another; NULL stays NULL. */
bool ort_replace_text(char **text, const char *by);

/* ---- Values (value.c) ---- */

static inline sn_value *ort_sn(const OrtValue *value) {
    return (sn_value *)value;
}
static inline OrtValue *ort_of_sn(const sn_value *value) {
    return (OrtValue *)value;
}
/* Element types have other numbers on the two sides from 24 on. */
sn_dtype ort_dtype_in(ONNXTensorElementDataType type);
ONNXTensorElementDataType ort_dtype_out(sn_dtype dtype);

/* ---- Types (type_info.c) ---- */

struct OrtTensorTypeAndShapeInfo {
    ONNXTensorElementDataType type;
    bool has_shape;
    int rank;
    int64_t dims[SN_MAX_RANK];  /* -1: not known */
    char *symbols[SN_MAX_RANK]; /* owned; NULL: none */
};

/* A type. What map, sequence and optional types are cast to is the same object. */
struct OrtTypeInfo {
    ONNXType kind;
    OrtTensorTypeAndShapeInfo tensor; /* TENSOR */
    ONNXTensorElementDataType key;    /* MAP */
    OrtTypeInfo *element;             /* of a sequence or optional, or a map's value; owned */
};

/* New types, which the caller releases (ort_ReleaseTypeInfo). Dimensions that a model leaves open
 * are -1, with their names where they have one. */
OrtStatus *ort_type_of_info(const sn_value_info *info, OrtTypeInfo **out);
OrtStatus *ort_type_of_value(const sn_value *value, OrtTypeInfo **out);
OrtStatus *ort_type_copy(const OrtTypeInfo *type, OrtTypeInfo **out);
/* `to` is overwritten without being freed; a failure leaves it as it was. */
OrtStatus *ort_shape_copy(const OrtTensorTypeAndShapeInfo *from, OrtTensorTypeAndShapeInfo *to);
/* Frees the names, not the struct, which is all zeros then. */
void ort_shape_clear(OrtTensorTypeAndShapeInfo *shape);

/* ---- Memory (memory.c) ---- */

struct OrtMemoryInfo {
    char name[32];
    OrtAllocatorType allocator;
    int id;
    OrtMemType type;
    OrtMemoryInfoDeviceType device;
    OrtDeviceMemoryType device_memory;
    uint32_t vendor;
    size_t alignment;
};

extern const OrtMemoryInfo ort_cpu_memory;

/* Puts `entry` into all of an array of `room` pointers, which must be `count`. */
OrtStatus *ort_fill_all(size_t count, const void *entry, void *out, size_t room);
/* The only allocator: 64-byte aligned memory, from any thread. */
extern OrtAllocator ort_cpu_allocator;

/* ---- The environment (env.c): one for the process, never destroyed ---- */

typedef struct ort_log {
    OrtLoggingFunction function; /* NULL: standard error */
    void *param;
    OrtLoggingLevel level;
    const char *id; /* owned by whoever owns the log */
} ort_log;

struct OrtLogger {
    ort_log log;
};

/* Writes a line where the level is high enough. `where` says which part speaks. Any thread may
 * call. */
void ort_log_write(const ort_log *log, OrtLoggingLevel level, const char *where, const char *text);
ort_log ort_env_log(void); /* of the environment, as it is set now */
/* Settings of the environment, copied. */
OrtStatus *ort_env_config(OrtKeyValuePairs **out);
int ort_env_threads(void); /* of its thread pool; 0: all that the process may use */

/* ---- Options (session_options.c, run_options.c) ---- */

typedef struct ort_dimension { /* a free dimension that is fixed */
    char *name;
    bool by_denotation;
    int64_t size;
} ort_dimension;

typedef struct ort_weight { /* contents for an initialiser */
    char *name;
    sn_value *value; /* retained */
} ort_weight;

typedef struct ort_file { /* external data that is in memory */
    char *name;
    const void *bytes; /* borrowed */
    size_t size;
} ort_file;

struct OrtCustomOpDomain {
    atomic_int refs; /* the caller's, and each session options' */
    char *name;
    const OrtCustomOp **ops; /* the caller's; they outlive the sessions */
    size_t count;
};

/* ---- Threads that the program makes (threads.c) ---- */

typedef struct ort_thread_fns {
    OrtCustomCreateThreadFn create; /* NULL: the engine's own threads */
    OrtCustomJoinThreadFn join;
    void *options;
} ort_thread_fns;

/* Functions that somebody holds; the last release joins what they made. NULL without any. */
typedef struct ort_maker ort_maker;
OrtStatus *ort_threads_hold(const ort_thread_fns *fns, ort_maker **out);
void ort_threads_release(ort_maker *maker);

struct OrtThreadingOptions {
    int threads; /* 0: all */
    ort_thread_fns fns;
};

typedef OrtStatus *(*OrtWriteNamedBufferFunc)(void *state, const char *name, const void *bytes,
                                              size_t size);
typedef OrtStatus *(*OrtReadNamedBufferFunc)(void *state, const char *name, OrtAllocator *allocator,
                                             void **bytes, size_t *size);

/* Where providers put the data of compiled parts, if not into files; NULL: files. */
typedef struct ort_context_data {
    OrtReadNamedBufferFunc read;
    void *read_state;
    OrtWriteNamedBufferFunc write;
    void *write_state;
} ort_context_data;

struct OrtSessionOptions {
    int threads;               /* 0: all */
    bool shared_threads;       /* the environment's instead, of which the next are no part */
    ort_thread_fns thread_fns; /* borrowed until the last session made with them is released */
    GraphOptimizationLevel optimization;
    ExecutionMode mode;
    bool mem_pattern, arena, deterministic;
    char *optimized_path; /* NULL: none */
    char *profile_prefix; /* NULL: no profiling */
    char *log_id;
    int log_level, verbosity; /* log_level -1: the environment's */
    OrtLoggingFunction log_function;
    void *log_param;
    bool cancelled; /* loading is refused */
    OrtKeyValuePairs config;
    ort_dimension *dimensions;
    size_t dimension_count;
    ort_weight *weights;
    size_t weight_count;
    ort_file *files;
    size_t file_count;
    OrtCustomOpDomain **domains; /* retained */
    size_t domain_count;
    const OrtEpDevice **ep_devices; /* in order of preference */
    size_t ep_device_count;
    bool has_policy; /* devices are chosen by it when none were named */
    OrtExecutionProviderDevicePolicy policy;
    EpSelectionDelegate delegate; /* NULL: the policy */
    void *delegate_state;
    const void *weightless_source; /* borrowed; NULL: none */
    size_t weightless_size;
    ort_context_data context_data;
    bool compiles; /* the compiled model is taken from the session's host */
};

/* Room for one more zeroed entry of `size` bytes at the end of a list; NULL when memory runs out.
 */
void *ort_append(void **list, size_t *count, size_t size);
bool ort_add_device(OrtSessionOptions *options, const OrtEpDevice *device);
/* Names the devices that the policy of the options chooses. */
OrtStatus *ort_apply_policy(OrtSessionOptions *options);
/* Holds a domain for the options; false when memory runs out. */
bool ort_add_domain(OrtSessionOptions *options, OrtCustomOpDomain *domain);

/* A tensor of its own with the same contents. */
OrtStatus *ort_copy_tensor(const sn_value *from, OrtAllocator *allocator, OrtValue **out);

/* Refuses entries of configurations that are empty or too long. */
OrtStatus *ort_check_entry(const char *key, const char *value);

struct OrtRunOptions {
    sn_cancel *cancel;
    char *tag;
    int log_level, verbosity;
    OrtKeyValuePairs config;
    char *profile_prefix; /* NULL: no profiling */
};

/* ---- Custom operators (custom_*.c, kernel_*.c) ---- */

/* One or more OrtCustomOp of one name that differ in their types: one operator of the engine. */
typedef struct ort_custom {
    OrtLogger logger;
    size_t count;
    const OrtCustomOp *ops[];
} ort_custom;

typedef struct ort_part_call ort_part_call; /* a run of a plug-in provider (ep_part.c) */
struct ort_provider;

struct OrtKernelInfo {
    const sn_op_node *node;
    const OrtLogger *logger;
    const OrtNode *ep_node; /* of a plug-in's kernel, which has no `node`; NULL: none */
    const struct ort_provider *provider;
    const OrtKeyValuePairs *config;
};

struct OrtKernelContext {
    sn_op_call *call;
    const OrtLogger *logger;
    const ort_part_call *part; /* NULL: a custom operator's */
};

/* What the context of a plug-in's kernel answers (ep_part.c). */
size_t ort_part_ports(const ort_part_call *call, bool input);
OrtStatus *ort_part_input(const ort_part_call *call, size_t index, const OrtValue **out);
OrtStatus *ort_part_output(const ort_part_call *call, size_t index, const int64_t *dims,
                           size_t rank, OrtValue **out);
OrtAllocator *ort_part_allocator(const ort_part_call *call, const OrtMemoryInfo *info);
OrtSyncStream *ort_part_stream(const ort_part_call *call); /* NULL: none */

struct OrtOpAttr {
    OrtOpAttrType type;
    char *name;
    size_t size; /* of `data` as ReadOpAttr gives it */
    char data[];
};

/* The operators of a session's options as a set that a model can be loaded with; NULL: none. */
OrtStatus *ort_custom_set(const OrtSessionOptions *options, const ort_log *log, sn_operators **out);
/* The attribute of a node in the form of ReadOpAttr; NULL: it has none of that name. */
OrtOpAttr *ort_attr_of_node(const sn_op_node *node, const char *name);

/* Functions of sn_op for an ort_custom (custom_infer.c, custom_kernel.c). */
sn_status ort_custom_infer(void *ctx, sn_op_infer *call, sn_error *err);
sn_status ort_custom_create(void *ctx, const sn_op_node *node, void **state, sn_error *err);
sn_status ort_custom_run(void *ctx, void *state, sn_op_call *call, sn_error *err);
void ort_custom_destroy(void *ctx, void *state);
/* The one whose types a node's inputs have; NULL: none. `inputs` are ports as sn_op_api tells. */
const OrtCustomOp *ort_custom_choose(const ort_custom *c, const sn_op_node *node);
/* Fills `err` from a status, which is released. */
sn_status ort_to_sn(OrtStatus *status, sn_error *err);

/* ---- Sessions (session.c, run.c, profile.c) ---- */

typedef struct ort_profile ort_profile;

typedef struct ort_assignment ort_assignment; /* assigned.c */
typedef struct ort_host ort_host;             /* plug-in providers of a session (ep_host.h) */

struct OrtSession {
    sn_model *model;
    sn_session *session;        /* NULL: not finished yet */
    OrtModel *draft;            /* of a session that is not finished; NULL: none */
    char *draft_bytes;          /* that the draft refers to */
    char *folder;               /* of external data, for models that were changed; NULL: none */
    ort_host *host;             /* NULL: no plug-in takes part */
    ort_assignment *assignment; /* NULL: nobody asked for it */
    size_t input_count;         /* that must be given; those with a default come after them */
    size_t initializer_count;   /* inputs with a default */
    size_t output_count;
    int threads;          /* of one run; 0: all that there are */
    ort_maker *maker;     /* NULL: the engine's own threads */
    ort_profile *profile; /* NULL: none */
    uint64_t profile_start;
    char *log_id;
    ort_log log;
    pthread_mutex_t lock; /* guards `running` */
    pthread_cond_t idle;  /* no asynchronous run is under way */
    size_t running;
};

/* Where a model comes from: a file, or bytes that may be freed afterwards. */
typedef struct ort_source {
    const char *path; /* NULL: the bytes */
    const void *bytes;
    size_t size;
    const char *origin; /* the file that the bytes are of; NULL: none */
} ort_source;

OrtStatus *ort_session_make(const ort_source *source, const OrtSessionOptions *options,
                            OrtSession **out);
/* A session that can tell about its model but not run: its draft may be changed first. */
OrtStatus *ort_session_draft(const ort_source *source, const OrtSessionOptions *options,
                             OrtSession **out);
OrtStatus *ort_session_finish(OrtSession *session, const OrtSessionOptions *options);

OrtStatus *ort_assignment_make(OrtSession *session);
void ort_assignment_free(ort_assignment *assignment);

/* Runs with values by name; results replace NULL entries of `outputs`. */
OrtStatus *ort_run(OrtSession *session, const OrtRunOptions *options,
                   const char *const *input_names, const OrtValue *const *inputs,
                   size_t input_count, const char *const *output_names, size_t output_count,
                   OrtValue **outputs);

/* A file for events of runs, named after a prefix and the time. Any thread may add events;
 * ort_profile_free() closes it and takes NULL. */
OrtStatus *ort_profile_open(const char *prefix, ort_profile **out);
void ort_profile_step(void *profile, const sn_step_event *event); /* an sn_step_fn */
/* An event of a session: `what` from start to end, by ort_now_ns(). */
void ort_profile_run(ort_profile *profile, const char *what, uint64_t start_ns, uint64_t end_ns);
/* Ends the file; the name is valid until ort_profile_free. */
const char *ort_profile_close(ort_profile *profile);
void ort_profile_free(ort_profile *profile);
/* A clock that only goes forward. */
uint64_t ort_now_ns(void);
/* The time since 1970 of an earlier ort_now_ns(): what clients compare with their own clocks. */
uint64_t ort_wall_clock(uint64_t at_ns);

#endif
