/* ep.h - plug-in execution providers: devices, libraries, kernels, streams and parts of models. */
#ifndef SNI_ORT_EP_H
#define SNI_ORT_EP_H

#include "ort/graph.h"
#include "ort/ort_ep_abi.h"

#define ORT_EP_SLOT(since, ret, name, parameters, arguments) ret ort_ep_##name parameters;
#define ORT_EP_STUB ORT_EP_SLOT
#include "ort/ort_ep_slots.def"
#undef ORT_EP_SLOT
#undef ORT_EP_STUB

extern const OrtEpApi ort_ep_api;

/* True if a plug-in's object has a function that version `since` of the interface brought. */
#define ORT_EP_HAS(object, member, since) \
    ((object)->ort_version_supported >= (since) && (object)->member)

/* ---- Devices (hardware.c, devices.c) ---- */

struct OrtHardwareDevice {
    OrtHardwareDeviceType type;
    uint32_t vendor_id, device_id;
    char *vendor;
    OrtKeyValuePairs metadata;
};

/* What this machine has, the CPU first. They are never freed. */
const OrtHardwareDevice *const *ort_hardware(size_t *count);

typedef struct ort_library ort_library;

struct OrtEpDevice {
    char *name, *vendor;
    const OrtHardwareDevice *hardware;
    OrtKeyValuePairs metadata, options;
    const OrtMemoryInfo *memory, *host_memory; /* the plug-in's; NULL: the CPU's */
    OrtEpFactory *factory;                     /* NULL: the engine itself */
    ort_library *library;
    OrtAllocator *shared[2]; /* device and host-accessible allocators of the environment */
};

bool ort_is_cpu_device(const OrtEpDevice *device);

/* All devices of registered libraries behind the CPU's; false when memory runs out. */
bool ort_devices_add(OrtEpDevice *const *devices, size_t count);
void ort_devices_remove(const ort_library *library);

/* ---- Libraries (ep_library.c) ---- */

struct ort_library {
    char *name;
    void *handle;
    OrtReleaseEpFactoryFn release;
    OrtEpFactory *factories[4];
    size_t factory_count;
    OrtDataTransferImpl *transfers[4]; /* of the factories; NULL: none */
    OrtEpDevice **devices;
    size_t device_count;
    atomic_int users; /* sessions and the environment */
};

void ort_library_hold(ort_library *library);
void ort_library_drop(ort_library *library);

/* ---- Memory of devices (ep_memory.c) ---- */

struct OrtMemoryDevice {
    OrtMemoryInfo info;
};

static inline const OrtMemoryDevice *ort_memory_device(const OrtMemoryInfo *info) {
    return (const OrtMemoryDevice *)info;
}
bool ort_on_host(const OrtMemoryInfo *info);

/* Where a value's elements are. Values on devices are known by their addresses. */
const OrtMemoryInfo *ort_value_memory(const OrtValue *value);
/* Remembers it for a value until ort_value_forget(). `info` outlives that. */
OrtStatus *ort_value_place(OrtValue *value, const OrtMemoryInfo *info);

typedef struct ort_tensor_shape {
    sn_dtype dtype;
    int rank;
    const int64_t *dims;
} ort_tensor_shape;

/* A tensor over memory of a device, which goes back to the allocator if there is one. */
OrtStatus *ort_tensor_over(OrtAllocator *allocator, const OrtMemoryInfo *info, void *data,
                           size_t bytes, const ort_tensor_shape *shape, OrtValue **out);
/* A tensor in memory of an allocator, which outlives it. */
OrtStatus *ort_tensor_on(OrtAllocator *allocator, sn_dtype dtype, int rank, const int64_t *dims,
                         OrtValue **out);
/* Copies contents between memories by whichever provider can. Streams may be NULL. */
OrtStatus *ort_copy_values(const OrtValue *const *from, OrtValue *const *to, OrtSyncStream *stream,
                           size_t count);

/* ---- Streams (ep_stream.c) ---- */

struct OrtSyncStream {
    OrtSyncStreamImpl *impl;
    const OrtMemoryInfo *memory;
    atomic_ullong sync_id;
};

/* Takes the plug-in's stream over, also on failure. */
OrtStatus *ort_stream_new(OrtSyncStreamImpl *impl, const OrtMemoryInfo *memory,
                          OrtSyncStream **out);
/* Waits until all of its work is done, at the end of a run. */
OrtStatus *ort_stream_finish(OrtSyncStream *stream);

/* ---- Kernels (ep_kernel.c) ---- */

typedef struct ort_type_rule { /* what a type variable of an operator may be */
    char *name;
    uint32_t types; /* bits by sn_dtype */
} ort_type_rule;

enum { ORT_KERNEL_PORTS = 64 };

struct OrtKernelDef {
    char *op, *domain, *ep;
    int first, last;
    ort_type_rule *rules;
    size_t rule_count;
    OrtMemType inputs[ORT_KERNEL_PORTS], outputs[ORT_KERNEL_PORTS];
};

typedef struct ort_kernel_entry {
    OrtKernelDef *def;
    OrtKernelCreateFunc create;
    void *state;
} ort_kernel_entry;

struct OrtKernelRegistry {
    ort_kernel_entry *entries;
    size_t count;
};

/* The kernel for a node; NULL: none. */
const ort_kernel_entry *ort_kernel_find(const OrtKernelRegistry *registry, const OrtNode *node);

/* ---- Schemas (ep_schema.c) ---- */

/* The type variables that a node's port may have: the name of the one of input or output `index`,
 * copied to `out`; false: it has none, or the operator is not known. */
bool ort_port_variable(const char *domain, const char *op, bool input, size_t index, char out[32]);

/* ---- Parts (ep_claim.c, ep_part.c) ---- */

typedef struct ort_claim { /* nodes of a graph that a provider takes */
    size_t *nodes;         /* positions, rising */
    size_t count;
    bool fused;        /* compiled as one */
    bool drop_weights; /* constants are no inputs of the fused node */
} ort_claim;

struct OrtEpGraphSupportInfo {
    const OrtGraph *graph;
    OrtEp *ep;
    const OrtKernelRegistry *registry; /* NULL: none */
    ort_claim *claims;
    size_t count;
};

struct OrtNodeComputeContext {
    const char *name;
};

#endif
