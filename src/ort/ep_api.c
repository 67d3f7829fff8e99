/* ep_api.c - the table that plug-in providers call, and what in it belongs nowhere else. */
#include "ort/ep_host.h"

#include <stdlib.h>
#include <string.h>

const OrtEpApi ort_ep_api = {
#define ORT_EP_SLOT(since, ret, name, parameters, arguments) .name = ort_ep_##name,
#define ORT_EP_STUB ORT_EP_SLOT
#include "ort/ort_ep_slots.def"
#undef ORT_EP_SLOT
#undef ORT_EP_STUB
};

const char *ort_ep_NodeComputeContext_NodeName(const OrtNodeComputeContext *context) {
    return context ? context->name : "";
}

OrtStatusPtr ort_ep_KernelInfo_GetEp(const OrtKernelInfo *info, const OrtEp **out) {
    NEED(info);
    NEED(out);
    if (!info->provider) return ort_fail(ORT_INVALID_ARGUMENT, "the kernel is not a provider's");
    *out = info->provider->ep;
    return NULL;
}

/* ---- Why a device cannot be used ---- */

struct OrtDeviceEpIncompatibilityDetails {
    uint32_t reasons;
    int32_t code;
    char *notes;
};

OrtStatusPtr ort_ep_DeviceEpIncompatibilityDetails_SetDetails(
    OrtDeviceEpIncompatibilityDetails *details, uint32_t reasons, int32_t code, const char *notes) {
    NEED(details);
    details->reasons = reasons;
    details->code = code;
    return ort_replace_text(&details->notes, notes) ? NULL : ort_fail_memory();
}

static OrtEpFactory *factory_of(const OrtEnv *env, const char *ep_name) {
    const OrtEpDevice *const *all = NULL;
    size_t count = 0;
    OrtStatus *failed = ort_GetEpDevices(env, &all, &count);
    for (size_t i = 0; !failed && i < count; i++)
        if (strcmp(all[i]->name, ep_name) == 0) return all[i]->factory;
    ort_ReleaseStatus(failed);
    return NULL;
}

OrtStatusPtr
ort_GetHardwareDeviceEpIncompatibilityDetails(const OrtEnv *env, const char *ep_name,
                                              const OrtHardwareDevice *hw,
                                              OrtDeviceEpIncompatibilityDetails **details) {
    NEED(env);
    NEED(ep_name);
    NEED(hw);
    NEED(details);
    OrtEpFactory *f = factory_of(env, ep_name);
    bool cpu = strcmp(ep_name, "CPUExecutionProvider") == 0;
    if (!f && !cpu)
        return ort_fail(ORT_INVALID_ARGUMENT, "no provider '%s' is registered", ep_name);
    OrtDeviceEpIncompatibilityDetails *d = calloc(1, sizeof *d);
    if (!d) return ort_fail_memory();
    OrtStatus *status = NULL;
    if (f && ORT_EP_HAS(f, GetHardwareDeviceIncompatibilityDetails, 24))
        status = f->GetHardwareDeviceIncompatibilityDetails(f, hw, d);
    if (status)
        ort_ReleaseDeviceEpIncompatibilityDetails(d);
    else
        *details = d;
    return status;
}

void ort_ReleaseDeviceEpIncompatibilityDetails(OrtDeviceEpIncompatibilityDetails *input) {
    if (!input) return;
    free(input->notes);
    free(input);
}

#define TELL(name, member, type)                                       \
    OrtStatusPtr ort_DeviceEpIncompatibilityDetails_##name(            \
        const OrtDeviceEpIncompatibilityDetails *details, type *out) { \
        NEED(details);                                                 \
        NEED(out);                                                     \
        *out = details->member;                                        \
        return NULL;                                                   \
    }
TELL(GetReasonsBitmask, reasons, uint32_t)
TELL(GetNotes, notes, const char *)
TELL(GetErrorCode, code, int32_t)

/* ---- Compiled models ---- */

OrtStatusPtr ort_GetModelCompatibilityForEpDevices(const OrtEpDevice *const *ep_devices,
                                                   size_t num_ep_devices,
                                                   const char *compatibility_info,
                                                   OrtCompiledModelCompatibility *out_status) {
    NEED(ep_devices);
    NEED(compatibility_info);
    NEED(out_status);
    if (!num_ep_devices) return ort_fail(ORT_INVALID_ARGUMENT, "there are no devices");
    const OrtHardwareDevice **hardware = calloc(num_ep_devices, sizeof *hardware);
    if (!hardware) return ort_fail_memory();
    OrtEpFactory *f = ep_devices[0] ? ep_devices[0]->factory : NULL;
    OrtStatus *status = NULL;
    for (size_t i = 0; i < num_ep_devices && !status; i++) {
        if (!ep_devices[i] || ep_devices[i]->factory != f)
            status = ort_fail(ORT_INVALID_ARGUMENT, "all devices must be of one provider");
        else
            hardware[i] = ep_devices[i]->hardware;
    }
    *out_status = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
    if (!status && f && ORT_EP_HAS(f, ValidateCompiledModelCompatibilityInfo, 23))
        status = f->ValidateCompiledModelCompatibilityInfo(f, hardware, num_ep_devices,
                                                           compatibility_info, out_status);
    free(hardware);
    return status;
}

OrtStatusPtr ort_GetCompatibilityInfoFromModelBytes(const void *model_data,
                                                    size_t model_data_length, const char *ep_type,
                                                    OrtAllocator *allocator,
                                                    char **compatibility_info) {
    NEED(model_data);
    NEED(ep_type);
    NEED(allocator);
    NEED(compatibility_info);
    static const char prefix[] = "ep_compatibility_info.";
    if (!*ep_type) return ort_fail(ORT_INVALID_ARGUMENT, "the provider's name is empty");
    OrtModel *m = NULL;
    ORT_TRY(ort_model_read(model_data, model_data_length, "", &m));
    const char *found = NULL;
    for (size_t i = 0; i < m->metadata.count; i++)
        if (strncmp(m->metadata.keys[i], prefix, sizeof prefix - 1) == 0 &&
            strcmp(m->metadata.keys[i] + sizeof prefix - 1, ep_type) == 0)
            found = m->metadata.values[i];
    *compatibility_info = NULL;
    OrtStatus *status = found ? ort_copy_text(allocator, found, compatibility_info) : NULL;
    ort_model_free(m);
    return status;
}

OrtStatusPtr ort_GetCompatibilityInfoFromModel(const char *model_path, const char *ep_type,
                                               OrtAllocator *allocator, char **compatibility_info) {
    NEED(model_path);
    ort_file_bytes file;
    ORT_TRY(ort_file_read(model_path, &file));
    OrtStatus *status = ort_GetCompatibilityInfoFromModelBytes(file.p, file.size, ep_type,
                                                               allocator, compatibility_info);
    ort_file_free(&file);
    return status;
}

/* ---- Packed weights that kernels share: every session has its own here ---- */

OrtStatusPtr ort_ep_SharedPrePackedWeightCache_StoreWeightData(OrtSharedPrePackedWeightCache *cache,
                                                               void **buffers, size_t *sizes,
                                                               size_t count) {
    (void)buffers, (void)sizes, (void)count;
    NEED(cache);
    return ort_not_implemented(__func__);
}

/* ---- Control flow: the engine runs If, Loop and Scan and never asks a provider for their kernels.
 */

OrtStatusPtr ort_ep_CreateIfKernel(const OrtKernelInfo *info, OrtKernelImpl **out) {
    (void)info, (void)out;
    return ort_not_implemented(__func__);
}

OrtStatusPtr ort_ep_CreateLoopKernel(const OrtKernelInfo *info, OrtLoopKernelHelper *helper,
                                     OrtKernelImpl **out) {
    (void)info, (void)helper, (void)out;
    return ort_not_implemented(__func__);
}

OrtStatusPtr ort_ep_CreateScanKernel(const OrtKernelInfo *info, OrtScanKernelHelper *helper,
                                     OrtKernelImpl **out) {
    (void)info, (void)helper, (void)out;
    return ort_not_implemented(__func__);
}

void ort_ep_ReleaseKernelImpl(OrtKernelImpl *kernel) {
    if (kernel && kernel->Release) kernel->Release(kernel);
}

/* ---- Events that profilers report ---- */

struct OrtProfilingEvent {
    OrtProfilingEventCategory category;
    char *name;
    int64_t start_us, duration_us;
    OrtKeyValuePairs args;
};

struct OrtProfilingEventsContainer {
    size_t count;
};

OrtStatusPtr ort_ep_CreateProfilingEvent(OrtProfilingEventCategory category, int32_t process,
                                         int32_t thread, const char *name, int64_t start_us,
                                         int64_t duration_us, const char *const *keys,
                                         const char *const *values, size_t count,
                                         OrtProfilingEvent **out) {
    (void)process, (void)thread;
    NEED(name);
    NEED(out);
    if (count) NEED(keys);
    if (count) NEED(values);
    OrtProfilingEvent *e = calloc(1, sizeof *e);
    bool good = e && ort_replace_text(&e->name, name);
    for (size_t i = 0; i < count && good; i++)
        good = keys[i] && values[i] && ort_pairs_set(&e->args, keys[i], values[i]);
    if (!good) {
        ort_ep_ReleaseProfilingEvent(e);
        return ort_fail_memory();
    }
    e->category = category;
    e->start_us = start_us;
    e->duration_us = duration_us;
    *out = e;
    return NULL;
}

void ort_ep_ReleaseProfilingEvent(OrtProfilingEvent *event) {
    if (!event) return;
    free(event->name);
    ort_pairs_clear(&event->args);
    free(event);
}

#define EVENT(slot, member, type)                                                          \
    OrtStatusPtr ort_ep_ProfilingEvent_##slot(const OrtProfilingEvent *event, type *out) { \
        NEED(event);                                                                       \
        NEED(out);                                                                         \
        *out = event->member;                                                              \
        return NULL;                                                                       \
    }
EVENT(GetCategory, category, OrtProfilingEventCategory)
EVENT(GetName, name, const char *)
EVENT(GetTimestampUs, start_us, int64_t)
EVENT(GetDurationUs, duration_us, int64_t)

OrtStatusPtr ort_ep_ProfilingEvent_GetArgValue(const OrtProfilingEvent *event, const char *key,
                                               const char **out) {
    NEED(event);
    NEED(key);
    NEED(out);
    *out = ort_pairs_get(&event->args, key);
    return NULL;
}

OrtStatusPtr ort_ep_ProfilingEventsContainer_AddEvents(OrtProfilingEventsContainer *container,
                                                       const OrtProfilingEvent *const *events,
                                                       size_t count) {
    NEED(container);
    if (count) NEED(events);
    container->count += count;
    return NULL;
}

/* ---- Models without their weights: none are made here ---- */

OrtStatusPtr ort_ep_SessionOptionsGetWeightlessSourceModelBuffer(const OrtSessionOptions *options,
                                                                 const void **out, size_t *size) {
    NEED(options);
    NEED(out);
    NEED(size);
    *out = options->weightless_source;
    *size = options->weightless_size;
    return NULL;
}

OrtStatusPtr ort_SessionOptionsSetWeightlessSourceModelBuffer(OrtSessionOptions *options,
                                                              const void *source_model_data,
                                                              size_t source_model_data_length) {
    NEED(options);
    if (source_model_data_length) NEED(source_model_data);
    options->weightless_source = source_model_data;
    options->weightless_size = source_model_data_length;
    return NULL;
}
