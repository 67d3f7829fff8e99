/* devices.c - what models can run on: the engine on the CPU, and the devices of plug-in providers;
 * and what this library does not have. */
#include "ort/ep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const OrtKeyValuePairs no_pairs;
static OrtEpDevice cpu_provider;

/* All devices, the CPU's first. The list that a caller was given stays valid when another one is
 * added: older ones are kept. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const OrtEpDevice **list;
static size_t list_count;
static void **old_lists;
static size_t old_count;

static const OrtEpDevice *ort_cpu_device(void) {
    size_t count;
    pthread_mutex_lock(&lock);
    if (!cpu_provider.name) {
        cpu_provider.name = "CPUExecutionProvider";
        cpu_provider.vendor = "Sinter";
        cpu_provider.hardware = ort_hardware(&count)[0];
    }
    pthread_mutex_unlock(&lock);
    return &cpu_provider;
}

bool ort_is_cpu_device(const OrtEpDevice *device) {
    return device == &cpu_provider;
}

/* A new list takes the place of the old one, which callers may still read. */
static bool replace_list(OrtEpDevice *const *added, size_t count, const ort_library *removed) {
    const OrtEpDevice *cpu = ort_cpu_device();
    pthread_mutex_lock(&lock);
    const OrtEpDevice **made = calloc(list_count + count + 1, sizeof *made);
    size_t n = 0;
    if (made) made[n++] = cpu;
    for (size_t i = 1; made && i < list_count; i++)
        if (list[i]->library != removed) made[n++] = list[i];
    for (size_t i = 0; made && i < count; i++) made[n++] = added[i];
    if (made && list && !ort_list_add(&old_lists, &old_count, list)) {
        free(made);
        made = NULL;
    }
    if (made) {
        list = made;
        list_count = n;
    }
    pthread_mutex_unlock(&lock);
    return made != NULL;
}

bool ort_devices_add(OrtEpDevice *const *devices, size_t count) {
    return replace_list(devices, count, NULL);
}

void ort_devices_remove(const ort_library *library) {
    replace_list(NULL, 0, library);
}

OrtStatusPtr ort_GetEpDevices(const OrtEnv *env, const OrtEpDevice *const **ep_devices,
                              size_t *num_ep_devices) {
    NEED(env);
    NEED(ep_devices);
    NEED(num_ep_devices);
    if (!list && !replace_list(NULL, 0, NULL)) return ort_fail_memory();
    pthread_mutex_lock(&lock);
    *ep_devices = list;
    *num_ep_devices = list_count;
    pthread_mutex_unlock(&lock);
    return NULL;
}

const char *ort_EpDevice_EpName(const OrtEpDevice *ep_device) {
    return ep_device ? ep_device->name : "";
}

const char *ort_EpDevice_EpVendor(const OrtEpDevice *ep_device) {
    return ep_device ? ep_device->vendor : "";
}

const OrtKeyValuePairs *ort_EpDevice_EpMetadata(const OrtEpDevice *ep_device) {
    return ep_device ? &ep_device->metadata : &no_pairs;
}

const OrtKeyValuePairs *ort_EpDevice_EpOptions(const OrtEpDevice *ep_device) {
    return ep_device ? &ep_device->options : &no_pairs;
}

const OrtHardwareDevice *ort_EpDevice_Device(const OrtEpDevice *ep_device) {
    return ep_device ? ep_device->hardware : NULL;
}

const OrtMemoryInfo *ort_EpDevice_MemoryInfo(const OrtEpDevice *ep_device,
                                             OrtDeviceMemoryType memory_type) {
    if (!ep_device) return NULL;
    if (memory_type == OrtDeviceMemoryType_HOST_ACCESSIBLE) return ep_device->host_memory;
    return ep_device->memory || ep_device->factory ? ep_device->memory : &ort_cpu_memory;
}

OrtStatusPtr ort_SessionGetEpDeviceForInputs(const OrtSession *session,
                                             const OrtEpDevice **inputs_ep_devices,
                                             size_t num_inputs) {
    NEED(session);
    NEED(inputs_ep_devices);
    return ort_fill_all(session->input_count, ort_cpu_device(), inputs_ep_devices, num_inputs);
}

OrtStatusPtr ort_SessionGetEpDeviceForOutputs(const OrtSession *session,
                                              const OrtEpDevice **outputs_ep_devices,
                                              size_t num_outputs) {
    NEED(session);
    NEED(outputs_ep_devices);
    return ort_fill_all(session->output_count, ort_cpu_device(), outputs_ep_devices, num_outputs);
}

/* ---- Choosing ---- */

/* Settings of a provider are the session's under "ep.<name in small letters>.". */
static OrtStatus *add_setting(OrtSessionOptions *o, const char *ep, const char *key,
                              const char *value) {
    size_t size = strlen(ep) + strlen(key) + 5;
    char *full = malloc(size);
    if (!full) return ort_fail_memory();
    snprintf(full, size, "ep.%s.%s", ep, key);
    for (size_t i = 3; i < 3 + strlen(ep); i++)
        if (full[i] >= 'A' && full[i] <= 'Z') full[i] = (char)(full[i] - 'A' + 'a');
    bool good = ort_pairs_set(&o->config, full, value);
    free(full);
    return good ? NULL : ort_fail_memory();
}

bool ort_add_device(OrtSessionOptions *o, const OrtEpDevice *device) {
    return ort_list_add(&o->ep_devices, &o->ep_device_count, (void *)device);
}

OrtStatusPtr ort_SessionOptionsAppendExecutionProvider_V2(
    OrtSessionOptions *session_options, OrtEnv *env, const OrtEpDevice *const *ep_devices,
    size_t num_ep_devices, const char *const *ep_option_keys, const char *const *ep_option_vals,
    size_t num_ep_options) {
    NEED(session_options);
    NEED(env);
    NEED(ep_devices);
    if (!num_ep_devices) return ort_fail(ORT_INVALID_ARGUMENT, "Empty ep_devices was provided.");
    if (num_ep_options) NEED(ep_option_keys);
    if (num_ep_options) NEED(ep_option_vals);
    const OrtEpDevice *first = ep_devices[0];
    for (size_t i = 0; i < num_ep_devices; i++) {
        if (!ep_devices[i]) return ort_fail(ORT_INVALID_ARGUMENT, "device %zu is NULL", i);
        if (strcmp(ep_devices[i]->name, first->name) != 0 ||
            ep_devices[i]->factory != first->factory)
            return ort_fail(ORT_INVALID_ARGUMENT,
                            "All OrtEpDevice values in ep_devices must have the same execution "
                            "provider.");
    }
    for (size_t k = 0; k < first->options.count; k++)
        ORT_TRY(add_setting(session_options, first->name, first->options.keys[k],
                            first->options.values[k]));
    for (size_t k = 0; k < num_ep_options; k++)
        if (ep_option_keys[k] && ep_option_vals[k])
            ORT_TRY(
                add_setting(session_options, first->name, ep_option_keys[k], ep_option_vals[k]));
    for (size_t i = 0; i < num_ep_devices; i++)
        if (!ort_add_device(session_options, ep_devices[i])) return ort_fail_memory();
    return NULL;
}

OrtStatusPtr ort_SessionOptionsSetEpSelectionPolicy(OrtSessionOptions *session_options,
                                                    OrtExecutionProviderDevicePolicy policy) {
    NEED(session_options);
    if (policy < OrtExecutionProviderDevicePolicy_DEFAULT ||
        policy > OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER)
        return ort_fail(ORT_INVALID_ARGUMENT, "selection policy %d is not known", (int)policy);
    session_options->has_policy = true;
    session_options->policy = policy;
    session_options->delegate = NULL;
    return NULL;
}

OrtStatusPtr ort_SessionOptionsSetEpSelectionPolicyDelegate(OrtSessionOptions *session_options,
                                                            EpSelectionDelegate delegate,
                                                            void *delegate_state) {
    NEED(session_options);
    NEED(delegate);
    session_options->has_policy = true;
    session_options->delegate = delegate;
    session_options->delegate_state = delegate_state;
    return NULL;
}

/* The kind of hardware that a policy wants. */
static OrtHardwareDeviceType wanted_type(OrtExecutionProviderDevicePolicy policy) {
    switch (policy) {
    case OrtExecutionProviderDevicePolicy_PREFER_NPU:
    case OrtExecutionProviderDevicePolicy_MAX_EFFICIENCY:
    case OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER:
        return OrtHardwareDeviceType_NPU;
    case OrtExecutionProviderDevicePolicy_PREFER_GPU:
    case OrtExecutionProviderDevicePolicy_MAX_PERFORMANCE:
        return OrtHardwareDeviceType_GPU;
    default:
        return OrtHardwareDeviceType_CPU;
    }
}

enum { MOST_CHOSEN = 8 };

static OrtStatus *ask_delegate(OrtSessionOptions *o, const OrtEpDevice *const *all, size_t count) {
    const OrtEpDevice *chosen[MOST_CHOSEN] = {0};
    const OrtEpDevice **copy = calloc(count + 1, sizeof *copy);
    size_t chosen_count = 0;
    if (!copy) return ort_fail_memory();
    memcpy(copy, all, count * sizeof *copy);
    OrtStatus *status = o->delegate(copy, count, &no_pairs, &no_pairs, chosen, MOST_CHOSEN,
                                    &chosen_count, o->delegate_state);
    free(copy);
    if (status) return status;
    if (!chosen_count || chosen_count > MOST_CHOSEN)
        return ort_fail(ORT_FAIL, "the selection delegate chose %zu devices", chosen_count);
    for (size_t i = 0; i < chosen_count; i++)
        if (chosen[i] && !ort_add_device(o, chosen[i])) return ort_fail_memory();
    return NULL;
}

OrtStatus *ort_apply_policy(OrtSessionOptions *o) {
    const OrtEpDevice *const *all = NULL;
    size_t count = 0;
    if (!o->has_policy || o->ep_device_count) return NULL;
    ORT_TRY(ort_GetEpDevices((const OrtEnv *)&no_pairs, &all, &count));
    if (o->delegate) return ask_delegate(o, all, count);
    for (size_t i = 1; i < count; i++) {
        if (all[i]->hardware->type != wanted_type(o->policy)) continue;
        for (size_t k = 0; k < all[i]->options.count; k++)
            ORT_TRY(
                add_setting(o, all[i]->name, all[i]->options.keys[k], all[i]->options.values[k]));
        return ort_add_device(o, all[i]) ? NULL : ort_fail_memory();
    }
    return NULL; /* the CPU */
}

/* ---- What is not here ---- */

const OrtTrainingApi *ort_GetTrainingApi(uint32_t version) {
    (void)version;
    return NULL;
}

/* Nothing of these kinds is ever made. */
#define NEVER_MADE(type)                       \
    void ort_Release##type(Ort##type *input) { \
        (void)input;                           \
    }
NEVER_MADE(LoraAdapter)
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
