/* custom_kernel.c - kernels of custom operators: making, running and destroying them. */
#include "ort/guard.h"
#include "ort/ort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sn_status ort_to_sn(OrtStatus *status, sn_error *err) {
    static const sn_status codes[] = {[ORT_INVALID_ARGUMENT] = SN_INVALID_ARGUMENT,
                                      [ORT_NO_SUCHFILE] = SN_NOT_FOUND,
                                      [ORT_INVALID_PROTOBUF] = SN_MALFORMED,
                                      [ORT_NOT_IMPLEMENTED] = SN_UNSUPPORTED,
                                      [ORT_INVALID_GRAPH] = SN_INVALID_MODEL};
    if (!status) return SN_OK;
    size_t code = (size_t)ort_GetErrorCode(status);
    sn_status made = code < sizeof codes / sizeof *codes && codes[code] ? codes[code] : SN_BAD_DATA;
    if (err) {
        err->status = made;
        snprintf(err->message, sizeof err->message, "%s", ort_GetErrorMessage(status));
    }
    ort_ReleaseStatus(status);
    return made;
}

/* ---- Choosing ---- */

static bool takes(const OrtCustomOp *op, const sn_op_node *node) {
    const sn_op_api *api = sn_operators_api();
    size_t formals = op->GetInputTypeCount(op);
    for (size_t i = 0; i < api->node_input_count(node); i++) {
        sn_value_info info;
        if (formals == 0 || !api->node_input(node, i, &info)) continue;
        sn_dtype wanted = ort_dtype_in(op->GetInputType(op, i < formals ? i : formals - 1));
        if (wanted && info.dtype && info.dtype != wanted) return false;
    }
    return true;
}

const OrtCustomOp *ort_custom_choose(const ort_custom *c, const sn_op_node *node) {
    for (size_t i = 0; i < c->count; i++)
        if (takes(c->ops[i], node)) return c->ops[i];
    return NULL;
}

/* ---- Making ---- */

typedef struct kernel {
    const OrtCustomOp *op;
    void *state; /* the operator's own */
} kernel;

/* One call of a function that makes a kernel. */
typedef struct making {
    const OrtCustomOp *op;
    const OrtKernelInfo *info;
    void *kernel;
    OrtStatus *status;
} making;

static void make_guarded(void *arg) {
    making *m = arg;
    const OrtApi *api = ort_api_base.GetApi(ORT_API_VERSION);
    if (m->op->version >= 16 && m->op->CreateKernelV2)
        m->status = m->op->CreateKernelV2(m->op, api, m->info, &m->kernel);
    else if (m->op->CreateKernel)
        m->kernel = m->op->CreateKernel(m->op, api, m->info);
    else
        m->status = ort_fail(ORT_FAIL, "the custom operator has no CreateKernel function");
}

static OrtStatus *make(const OrtCustomOp *op, const OrtKernelInfo *info, void **out) {
    making m = {.op = op, .info = info};
    if (!ort_guarded(make_guarded, &m))
        return ort_fail(ORT_RUNTIME_EXCEPTION, "CreateKernel of '%s' threw an exception",
                        op->GetName(op));
    *out = m.kernel;
    return m.status;
}

sn_status ort_custom_create(void *ctx, const sn_op_node *node, void **state, sn_error *err) {
    const ort_custom *c = ctx;
    const OrtCustomOp *op = ort_custom_choose(c, node);
    if (!op)
        return ort_to_sn(ort_fail(ORT_INVALID_GRAPH,
                                  "no custom operator of this name takes inputs of these types"),
                         err);
    kernel *k = calloc(1, sizeof *k);
    if (!k) return ort_to_sn(ort_fail_memory(), err);
    k->op = op;
    OrtKernelInfo info = {.node = node, .logger = &c->logger};
    sn_status status = ort_to_sn(make(op, &info, &k->state), err);
    if (status == SN_OK)
        *state = k;
    else
        free(k);
    return status;
}

void ort_custom_destroy(void *ctx, void *state) {
    (void)ctx;
    kernel *k = state;
    if (k->state && k->op->KernelDestroy) k->op->KernelDestroy(k->state);
    free(k);
}

/* One call of a kernel. */
typedef struct computing {
    const kernel *kernel;
    OrtKernelContext *context;
    OrtStatus *status;
} computing;

static void compute_guarded(void *arg) {
    computing *c = arg;
    const OrtCustomOp *op = c->kernel->op;
    if (op->version >= 16 && op->KernelComputeV2)
        c->status = op->KernelComputeV2(c->kernel->state, c->context);
    else if (op->KernelCompute)
        op->KernelCompute(c->kernel->state, c->context);
    else
        c->status = ort_fail(ORT_FAIL, "the custom operator has no KernelCompute function");
}

sn_status ort_custom_run(void *ctx, void *state, sn_op_call *call, sn_error *err) {
    const ort_custom *c = ctx;
    const kernel *k = state;
    OrtKernelContext context = {.call = call, .logger = &c->logger};
    computing run = {.kernel = k, .context = &context};
    if (!ort_guarded(compute_guarded, &run))
        run.status = ort_fail(ORT_RUNTIME_EXCEPTION, "KernelCompute of '%s' threw an exception",
                              k->op->GetName(k->op));
    return ort_to_sn(run.status, err);
}

/* ---- What a kernel asks its context ---- */

OrtStatusPtr ort_KernelContext_GetInputCount(const OrtKernelContext *context, size_t *out) {
    NEED(context);
    NEED(out);
    *out = context->part ? ort_part_ports(context->part, true)
                         : sn_operators_api()->input_count(context->call);
    return NULL;
}

OrtStatusPtr ort_KernelContext_GetOutputCount(const OrtKernelContext *context, size_t *out) {
    NEED(context);
    NEED(out);
    *out = context->part ? ort_part_ports(context->part, false)
                         : sn_operators_api()->output_count(context->call);
    return NULL;
}

/* An optional input that was left out gives NULL. */
OrtStatusPtr ort_KernelContext_GetInput(const OrtKernelContext *context, size_t index,
                                        const OrtValue **out) {
    NEED(context);
    NEED(out);
    const sn_op_api *api = sn_operators_api();
    size_t count = 0;
    ORT_TRY(ort_KernelContext_GetInputCount(context, &count));
    if (index >= count)
        return ort_fail(ORT_INVALID_ARGUMENT, "KernelContext_GetInput: input %zu of %zu", index,
                        count);
    if (context->part) return ort_part_input(context->part, index, out);
    sn_op_tensor t;
    *out = api->input(context->call, index, &t) ? ort_of_sn(t.value) : NULL;
    return NULL;
}

/* An optional output that nobody wants gives NULL. */
OrtStatusPtr ort_KernelContext_GetOutput(OrtKernelContext *context, size_t index,
                                         const int64_t *dim_values, size_t dim_count,
                                         OrtValue **out) {
    NEED(context);
    NEED(out);
    if (dim_count) NEED(dim_values);
    const sn_op_api *api = sn_operators_api();
    size_t count = 0;
    ORT_TRY(ort_KernelContext_GetOutputCount(context, &count));
    if (index >= count)
        return ort_fail(ORT_INVALID_ARGUMENT, "KernelContext_GetOutput: output %zu of %zu", index,
                        count);
    if (dim_count > SN_MAX_RANK)
        return ort_fail(ORT_INVALID_ARGUMENT, "a tensor of rank %zu: at most %d is supported",
                        dim_count, SN_MAX_RANK);
    if (context->part) return ort_part_output(context->part, index, dim_values, dim_count, out);
    sn_op_tensor t;
    sn_error err;
    if (api->output(context->call, index, SN_UNDEFINED, (int)dim_count, dim_values, &t, &err) !=
        SN_OK)
        return ort_fail_sn(&err);
    *out = ort_of_sn(t.value);
    return NULL;
}

typedef struct batch {
    void (*fn)(void *, size_t);
    void *data;
} batch;

/* An sn_op_range_fn over items of a ParallelFor. */
static void run_range(void *ctx, int64_t begin, int64_t end) {
    const batch *b = ctx;
    for (int64_t i = begin; i < end; i++) b->fn(b->data, (size_t)i);
}

OrtStatusPtr ort_KernelContext_ParallelFor(const OrtKernelContext *context,
                                           void (*fn)(void *, size_t), size_t total,
                                           size_t num_batch, void *usr_data) {
    NEED(context);
    NEED(fn);
    if (total > INT64_MAX) return ort_fail(ORT_INVALID_ARGUMENT, "%zu pieces of work", total);
    batch b = {fn, usr_data};
    size_t grain = num_batch ? (total + num_batch - 1) / num_batch : 1;
    sn_operators_api()->parallel(context->call, (int64_t)total, (int64_t)grain, run_range, &b);
    return NULL;
}

OrtStatusPtr ort_KernelContext_GetScratchBuffer(const OrtKernelContext *context,
                                                const OrtMemoryInfo *mem_info,
                                                size_t count_or_bytes, void **out) {
    (void)mem_info;
    NEED(context);
    NEED(out);
    *out = sn_operators_api()->scratch(context->call, count_or_bytes);
    return *out ? NULL : ort_fail_memory();
}

OrtStatusPtr ort_KernelContext_GetAllocator(const OrtKernelContext *context,
                                            const OrtMemoryInfo *mem_info, OrtAllocator **out) {
    NEED(context);
    NEED(mem_info);
    NEED(out);
    *out = context->part ? ort_part_allocator(context->part, mem_info) : NULL;
    if (*out) return NULL;
    if (mem_info->device != OrtMemoryInfoDeviceType_CPU)
        return ort_fail(ORT_INVALID_ARGUMENT, "there is no memory '%s' here, only 'Cpu'",
                        mem_info->name);
    *out = &ort_cpu_allocator;
    return NULL;
}

/* Kernels write into memory of the run, never into a caller's: NULL. */
OrtStatusPtr ort_KernelContext_GetUserProvidedOutput(const OrtKernelContext *context,
                                                     size_t output_index, OrtValue **output) {
    NEED(context);
    NEED(output);
    size_t count = 0;
    ORT_TRY(ort_KernelContext_GetOutputCount(context, &count));
    if (output_index >= count)
        return ort_fail(ORT_INVALID_ARGUMENT, "output %zu of a node that has %zu", output_index,
                        count);
    *output = NULL;
    return NULL;
}

/* NULL on the CPU, and where the provider has no streams. */
OrtStatusPtr ort_KernelContext_GetSyncStream(const OrtKernelContext *context, OrtSyncStream **out) {
    NEED(context);
    NEED(out);
    *out = context->part ? ort_part_stream(context->part) : NULL;
    return NULL;
}

OrtStatusPtr ort_KernelContext_GetGPUComputeStream(const OrtKernelContext *context, void **out) {
    NEED(context);
    NEED(out);
    *out = context->part ? ort_SyncStream_GetHandle(ort_part_stream(context->part)) : NULL;
    return NULL;
}

OrtStatusPtr ort_KernelContext_GetLogger(const OrtKernelContext *context,
                                         const OrtLogger **logger) {
    NEED(context);
    NEED(logger);
    *logger = context->logger;
    return NULL;
}

OrtStatusPtr ort_Logger_LogMessage(const OrtLogger *logger, OrtLoggingLevel log_severity_level,
                                   const char *message, const char *file_path, int line_number,
                                   const char *func_name) {
    NEED(logger);
    NEED(message);
    char where[256];
    snprintf(where, sizeof where, "%s:%d %s", file_path ? file_path : "", line_number,
             func_name ? func_name : "");
    ort_log_write(&logger->log, log_severity_level, where, message);
    return NULL;
}

OrtStatusPtr ort_Logger_GetLoggingSeverityLevel(const OrtLogger *logger, OrtLoggingLevel *out) {
    NEED(logger);
    NEED(out);
    *out = logger->log.level;
    return NULL;
}
