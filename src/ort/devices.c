/* devices.c - the one device there is, the CPU, and what this library does not have: other
 * providers, training, plug-ins. */
#include "ort/ort.h"

#include <stdlib.h>

struct OrtHardwareDevice {
    OrtHardwareDeviceType type;
};

struct OrtEpDevice {
    const char *name, *vendor;
    const OrtHardwareDevice *hardware;
};

static const OrtKeyValuePairs no_pairs;
static const OrtHardwareDevice cpu = {.type = OrtHardwareDeviceType_CPU};
static const OrtEpDevice cpu_provider = {
    .name = "CPUExecutionProvider", .vendor = "Sinter", .hardware = &cpu};
static const OrtEpDevice *const providers[] = {&cpu_provider};

OrtStatusPtr ort_GetEpDevices(const OrtEnv *env, const OrtEpDevice *const **ep_devices,
                              size_t *num_ep_devices) {
    NEED(env);
    NEED(ep_devices);
    NEED(num_ep_devices);
    *ep_devices = providers;
    *num_ep_devices = 1;
    return NULL;
}

OrtStatusPtr ort_GetNumHardwareDevices(const OrtEnv *env, size_t *num_devices) {
    NEED(env);
    NEED(num_devices);
    *num_devices = 1;
    return NULL;
}

OrtStatusPtr ort_GetHardwareDevices(const OrtEnv *env, const OrtHardwareDevice **devices,
                                    size_t num_devices) {
    NEED(env);
    if (num_devices) NEED(devices);
    if (num_devices) devices[0] = &cpu;
    return NULL;
}

OrtHardwareDeviceType ort_HardwareDevice_Type(const OrtHardwareDevice *device) {
    return device ? device->type : OrtHardwareDeviceType_CPU;
}

uint32_t ort_HardwareDevice_VendorId(const OrtHardwareDevice *device) {
    (void)device;
    return 0;
}

const char *ort_HardwareDevice_Vendor(const OrtHardwareDevice *device) {
    (void)device;
    return "";
}

uint32_t ort_HardwareDevice_DeviceId(const OrtHardwareDevice *device) {
    (void)device;
    return 0;
}

const OrtKeyValuePairs *ort_HardwareDevice_Metadata(const OrtHardwareDevice *device) {
    (void)device;
    return &no_pairs;
}

const char *ort_EpDevice_EpName(const OrtEpDevice *ep_device) {
    return ep_device ? ep_device->name : "";
}

const char *ort_EpDevice_EpVendor(const OrtEpDevice *ep_device) {
    return ep_device ? ep_device->vendor : "";
}

const OrtKeyValuePairs *ort_EpDevice_EpMetadata(const OrtEpDevice *ep_device) {
    (void)ep_device;
    return &no_pairs;
}

const OrtKeyValuePairs *ort_EpDevice_EpOptions(const OrtEpDevice *ep_device) {
    (void)ep_device;
    return &no_pairs;
}

const OrtHardwareDevice *ort_EpDevice_Device(const OrtEpDevice *ep_device) {
    return ep_device ? ep_device->hardware : NULL;
}

const OrtMemoryInfo *ort_EpDevice_MemoryInfo(const OrtEpDevice *ep_device,
                                             OrtDeviceMemoryType memory_type) {
    return ep_device && memory_type == OrtDeviceMemoryType_DEFAULT ? &ort_cpu_memory : NULL;
}

OrtStatusPtr ort_SessionGetEpDeviceForInputs(const OrtSession *session,
                                             const OrtEpDevice **inputs_ep_devices,
                                             size_t num_inputs) {
    NEED(session);
    NEED(inputs_ep_devices);
    return ort_fill_all(session->input_count, &cpu_provider, inputs_ep_devices, num_inputs);
}

OrtStatusPtr ort_SessionGetEpDeviceForOutputs(const OrtSession *session,
                                              const OrtEpDevice **outputs_ep_devices,
                                              size_t num_outputs) {
    NEED(session);
    NEED(outputs_ep_devices);
    return ort_fill_all(session->output_count, &cpu_provider, outputs_ep_devices, num_outputs);
}

OrtStatusPtr ort_SessionOptionsAppendExecutionProvider_V2(
    OrtSessionOptions *session_options, OrtEnv *env, const OrtEpDevice *const *ep_devices,
    size_t num_ep_devices, const char *const *ep_option_keys, const char *const *ep_option_vals,
    size_t num_ep_options) {
    (void)ep_option_keys, (void)ep_option_vals, (void)num_ep_options;
    NEED(session_options);
    NEED(env);
    NEED(ep_devices);
    for (size_t i = 0; i < num_ep_devices; i++)
        if (ep_devices[i] != &cpu_provider)
            return ort_fail(ORT_INVALID_ARGUMENT, "device %zu is none of this library's", i);
    return NULL;
}

/* ---- What is not here ---- */

const OrtTrainingApi *ort_GetTrainingApi(uint32_t version) {
    (void)version;
    return NULL;
}

const OrtEpApi *ort_GetEpApi(void) {
    return NULL;
}

const OrtInteropApi *ort_GetInteropApi(void) {
    return NULL;
}

OrtExperimentalFnPtr ort_GetExperimentalFunction(const char *name) {
    (void)name;
    return NULL;
}

void *ort_SyncStream_GetHandle(OrtSyncStream *stream) {
    (void)stream;
    return NULL;
}

/* Nothing of these kinds is ever made. */
#define NEVER_MADE(type)                       \
    void ort_Release##type(Ort##type *input) { \
        (void)input;                           \
    }
NEVER_MADE(SyncStream)
NEVER_MADE(LoraAdapter)
NEVER_MADE(DeviceEpIncompatibilityDetails)
NEVER_MADE(CANNProviderOptions)
NEVER_MADE(DnnlProviderOptions)
NEVER_MADE(ROCMProviderOptions)

void ort_ReleaseTensorRTProviderOptions(OrtTensorRTProviderOptionsV2 *input) {
    (void)input;
}

void ort_ReleaseCUDAProviderOptions(OrtCUDAProviderOptionsV2 *input) {
    (void)input;
}

void ort_ReleaseOp(OrtOp *input) {
    (void)input;
}
