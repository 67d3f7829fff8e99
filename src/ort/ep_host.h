/* ep_host.h - the plug-in providers of one session: which nodes they take, and how those run. */
#ifndef SNI_ORT_EP_HOST_H
#define SNI_ORT_EP_HOST_H

#include "ort/ep.h"

#define ORT_PART_DOMAIN "ai.sinter.provider"

typedef struct ort_provider { /* one OrtEp */
    OrtEp *ep;
    const OrtEpDevice *device; /* the first of those that it was made for */
    const char *name;
    OrtLogger logger;
    const OrtKernelRegistry *registry; /* NULL: it compiles */
    OrtAllocator *allocator;           /* of device memory; NULL: it works in the host's */
    bool own_allocator;                /* to be given back to the factory */
    bool streams;                      /* it takes streams */
    bool serial;                       /* one run at a time: */
    pthread_mutex_t lock;
} ort_provider;

typedef struct ort_step { /* a kernel of a part */
    const OrtNode *node;
    const ort_kernel_entry *entry;
    OrtKernelImpl *impl;
    OrtKernelInfo info;
} ort_step;

typedef struct ort_part {
    ort_host *host;
    ort_provider *provider;
    char *op;        /* name of the operator that stands for it */
    OrtGraph *graph; /* of its nodes */
    OrtNode *fused;  /* what stands for it, with inputs and outputs in their order */
    bool compiled;
    OrtNodeComputeInfo *info; /* compiled */
    void *state;
    OrtNode *context; /* EPContext node that stands for it in a compiled model; NULL: none */
    ort_step *steps;  /* kernels */
    size_t step_count;
    OrtValue **device_weights; /* by number of the value in `graph`; NULL: not on the device */
    OrtValueInfo **inputs, **outputs; /* of `graph`, as the fused node has them */
    size_t input_count, output_count;
} ort_part;

struct ort_host {
    sn_model *original; /* types and weights */
    sn_model *folded;   /* constants that follow from others; NULL: not known */
    OrtModel *model;    /* as the providers see it */
    ort_file_bytes file;
    OrtSessionOptions *options; /* a copy */
    OrtLogger logger;
    ort_provider **providers;
    size_t provider_count;
    ort_part **parts;
    size_t part_count;
    bool wants_context; /* a compiled model is asked for: */
    ort_sink context;
};

/* True if options name plug-in providers or a policy that may choose some. */
bool ort_host_wanted(const OrtSessionOptions *options);

/* Makes the session's host and lets providers take nodes. `changed` becomes the model with parts in
 * their place, or stays empty if nobody took anything. */
OrtStatus *ort_host_open(OrtSession *session, const OrtSessionOptions *options,
                         const ort_file_bytes *file, const char *path, ort_sink *changed);
void ort_host_close(ort_host *host);

/* Adds the operators that stand for parts; makes the set if it is NULL. */
OrtStatus *ort_host_operators(ort_host *host, sn_operators **set);

/* Around a run of the session. */
OrtStatus *ort_host_run_start(const ort_host *host, const OrtRunOptions *options);
OrtStatus *ort_host_run_end(const ort_host *host, const OrtRunOptions *options);

/* ---- Pieces (ep_open.c, ep_claim.c, ep_build.c, ep_part.c) ---- */

/* The providers of the host's options, in order of preference. */
OrtStatus *ort_host_providers(ort_host *host);
void ort_provider_free(ort_provider *provider);

/* Asks all providers; *parts are made, not built. */
OrtStatus *ort_host_claim(ort_host *host);
/* The part of some nodes of the model. */
OrtStatus *ort_part_make(ort_host *host, ort_provider *provider, const OrtNode *const *nodes,
                         const ort_claim *claim);
void ort_part_free(ort_part *part);

/* Compiles parts and makes kernels. */
OrtStatus *ort_host_build(ort_host *host);

/* Runs of sn_op. */
sn_status ort_part_infer(void *ctx, sn_op_infer *call, sn_error *err);
sn_status ort_part_run(void *ctx, void *state, sn_op_call *call, sn_error *err);

#endif
