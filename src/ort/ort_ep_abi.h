/* ort_ep_abi.h - the binary interface between libonnxruntime.so.1 and plug-in execution providers:
 * what a plug-in exports, the structs of functions that it fills, and the table that it calls.
 *
 * A plug-in is a library that exports CreateEpFactories and ReleaseEpFactory. Structs start with
 * the version of the interface that whoever filled them was written for: later members are not
 * there. Numbers behind members tell the version that brought them, where it is above 23. */
#ifndef SNI_ORT_ORT_EP_ABI_H
#define SNI_ORT_ORT_EP_ABI_H

#include "ort/ort_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Objects that only the library sees into ---- */

typedef struct OrtEpGraphSupportInfo OrtEpGraphSupportInfo;
typedef struct OrtNodeComputeContext OrtNodeComputeContext;
typedef struct OrtMemoryDevice OrtMemoryDevice;
typedef struct OrtKernelRegistry OrtKernelRegistry;
typedef struct OrtKernelDef OrtKernelDef;
typedef struct OrtKernelDefBuilder OrtKernelDefBuilder;
typedef struct OrtDataType OrtDataType;
typedef struct OrtSharedPrePackedWeightCache OrtSharedPrePackedWeightCache;
typedef struct OrtOpSchema OrtOpSchema;
typedef struct OrtOpSchemaTypeConstraint OrtOpSchemaTypeConstraint;
typedef struct OrtProfilingEvent OrtProfilingEvent;
typedef struct OrtProfilingEventsContainer OrtProfilingEventsContainer;
typedef struct OrtExternalResourceImporter OrtExternalResourceImporter;

/* ---- Structs that both sides see into ---- */

typedef struct OrtEp OrtEp;
typedef struct OrtEpFactory OrtEpFactory;
typedef struct OrtNodeFusionOptions OrtNodeFusionOptions;
typedef struct OrtNodeComputeInfo OrtNodeComputeInfo;
typedef struct OrtKernelImpl OrtKernelImpl;
typedef struct OrtLoopKernelHelper OrtLoopKernelHelper;
typedef struct OrtScanKernelHelper OrtScanKernelHelper;
typedef struct OrtDataTransferImpl OrtDataTransferImpl;
typedef struct OrtSyncNotificationImpl OrtSyncNotificationImpl;
typedef struct OrtSyncStreamImpl OrtSyncStreamImpl;
typedef struct OrtExternalResourceImporterImpl OrtExternalResourceImporterImpl;
typedef struct OrtEpProfilerImpl OrtEpProfilerImpl;
typedef struct OrtResourceCount OrtResourceCount;
typedef struct OrtExternalMemoryDescriptor OrtExternalMemoryDescriptor;
typedef struct OrtExternalSemaphoreDescriptor OrtExternalSemaphoreDescriptor;
typedef struct OrtExternalTensorDescriptor OrtExternalTensorDescriptor;
typedef struct OrtGraphicsInteropConfig OrtGraphicsInteropConfig;
typedef struct OrtExternalMemoryHandle OrtExternalMemoryHandle;
typedef struct OrtExternalSemaphoreHandle OrtExternalSemaphoreHandle;

typedef enum OrtEpDataLayout { OrtEpDataLayout_NCHW = 0, OrtEpDataLayout_NHWC = 1 } OrtEpDataLayout;
typedef enum OrtGraphCaptureNodeAssignmentPolicy {
    OrtGraphCaptureNodeAssignmentPolicy_ALL_NODES_ON_EP = 0,
    OrtGraphCaptureNodeAssignmentPolicy_ALLOW_CPU_FOR_SHAPES = 1
} OrtGraphCaptureNodeAssignmentPolicy;
typedef enum OrtWeightlessSupport {
    OrtWeightlessSupport_NONE = 0,
    OrtWeightlessSupport_EXTERNAL_ONLY = 1,
    OrtWeightlessSupport_ALL = 2
} OrtWeightlessSupport;
typedef enum OrtProfilingEventCategory {
    OrtProfilingEventCategory_SESSION = 0,
    OrtProfilingEventCategory_NODE = 1,
    OrtProfilingEventCategory_KERNEL = 2,
    OrtProfilingEventCategory_API = 3
} OrtProfilingEventCategory;
typedef enum OrtExternalMemoryHandleType {
    ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE = 0,
    ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP = 1,
    ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_WIN32 = 2,
    ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_OPAQUE_FD = 3
} OrtExternalMemoryHandleType;
typedef enum OrtExternalSemaphoreType {
    ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE = 0,
    ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_WIN32 = 1,
    ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD = 2
} OrtExternalSemaphoreType;
typedef enum OrtGraphicsApi {
    ORT_GRAPHICS_API_NONE = 0,
    ORT_GRAPHICS_API_D3D12 = 1,
    ORT_GRAPHICS_API_VULKAN = 2
} OrtGraphicsApi;

typedef OrtStatus *(*OrtKernelCreateFunc)(void *state, const OrtKernelInfo *info,
                                          OrtKernelImpl **out);

/* How nodes are made one. */
struct OrtNodeFusionOptions {
    uint32_t ort_version_supported;
    bool drop_constant_initializers;
};

/* A compiled part: its state is made once a session. */
struct OrtNodeComputeInfo {
    uint32_t ort_version_supported;
    OrtStatus *(*CreateState)(OrtNodeComputeInfo *self, OrtNodeComputeContext *compute_context,
                              void **compute_state);
    OrtStatus *(*Compute)(OrtNodeComputeInfo *self, void *compute_state,
                          OrtKernelContext *kernel_context);
    void (*ReleaseState)(OrtNodeComputeInfo *self, void *compute_state);
};

/* The kernel of one node. */
struct OrtKernelImpl {
    uint32_t ort_version_supported;
    uint32_t flags;
    OrtStatusPtr (*Compute)(OrtKernelImpl *self, OrtKernelContext *context);
    void (*Release)(OrtKernelImpl *self);
    OrtStatusPtr (*PrePackWeight)(OrtKernelImpl *self, const OrtValue *tensor, int input_index,
                                  OrtAllocator *allocator,
                                  OrtSharedPrePackedWeightCache *prepacked_weight_cache,
                                  bool *is_packed);
    OrtStatusPtr (*SetSharedPrePackedWeight)(OrtKernelImpl *self,
                                             const void *const *buffer_data_ptrs,
                                             const size_t *buffer_data_sizes, size_t num_buffers,
                                             int input_index);
};

/* What a Loop on a device cannot do without its provider. */
struct OrtLoopKernelHelper {
    uint32_t ort_version_supported;
    void (*Release)(OrtLoopKernelHelper *self);
    OrtStatusPtr (*ConcatOutput)(OrtLoopKernelHelper *self, void *stream_handle,
                                 const OrtValue *const *per_iteration_outputs,
                                 size_t num_per_iteration_outputs, void *output,
                                 size_t output_size_in_bytes);
};

/* The same for Scan. */
struct OrtScanKernelHelper {
    uint32_t ort_version_supported;
    void (*Release)(OrtScanKernelHelper *self);
    OrtStatusPtr (*Transpose)(OrtScanKernelHelper *self, const size_t *permutation,
                              size_t num_permutation_elems, const OrtValue *input,
                              OrtSyncStream *stream, OrtValue *output);
};

/* Copies between memories. */
struct OrtDataTransferImpl {
    uint32_t ort_version_supported;
    void (*Release)(OrtDataTransferImpl *self);
    bool (*CanCopy)(const OrtDataTransferImpl *self, const OrtMemoryDevice *src_memory_device,
                    const OrtMemoryDevice *dst_memory_device);
    OrtStatusPtr (*CopyTensors)(OrtDataTransferImpl *self, const OrtValue **src_tensors,
                                OrtValue **dst_tensors, OrtSyncStream **streams,
                                size_t num_tensors);
};

/* An event of a stream. */
struct OrtSyncNotificationImpl {
    uint32_t ort_version_supported;
    void (*Release)(OrtSyncNotificationImpl *self);
    OrtStatusPtr (*Activate)(OrtSyncNotificationImpl *self);
    OrtStatusPtr (*WaitOnDevice)(OrtSyncNotificationImpl *self, OrtSyncStream *consumer_stream);
    OrtStatusPtr (*WaitOnHost)(OrtSyncNotificationImpl *self);
};

/* Work in order. */
struct OrtSyncStreamImpl {
    uint32_t ort_version_supported;
    void (*Release)(OrtSyncStreamImpl *self);
    void *(*GetHandle)(OrtSyncStreamImpl *self);
    OrtStatusPtr (*CreateNotification)(OrtSyncStreamImpl *self,
                                       OrtSyncNotificationImpl **notification);
    OrtStatusPtr (*Flush)(OrtSyncStreamImpl *self);
    OrtStatusPtr (*OnSessionRunEnd)(OrtSyncStreamImpl *self);
};

/* A provider's own events. */
struct OrtEpProfilerImpl {
    uint32_t ort_version_supported;
    void (*Release)(OrtEpProfilerImpl *self);
    OrtStatusPtr (*StartProfiling)(OrtEpProfilerImpl *self, int64_t ep_profiling_start_offset_ns);
    OrtStatusPtr (*StartEvent)(OrtEpProfilerImpl *self, uint64_t ort_event_correlation_id);
    OrtStatusPtr (*StopEvent)(OrtEpProfilerImpl *self, uint64_t ort_event_correlation_id,
                              const OrtProfilingEvent *ort_event);
    OrtStatusPtr (*EndProfiling)(OrtEpProfilerImpl *self,
                                 OrtProfilingEventsContainer *events_container);
};

/* An amount of something. */
struct OrtResourceCount {
    uint32_t kind;
    uint32_t reserved;
    union {
        int64_t total_bytes;
    } value;
};

/* Memory of another interface. */
struct OrtExternalMemoryDescriptor {
    uint32_t version;
    OrtExternalMemoryHandleType handle_type;
    void *native_handle;
    size_t size_bytes;
    size_t offset_bytes;
};

/* A semaphore of another interface. */
struct OrtExternalSemaphoreDescriptor {
    uint32_t version;
    OrtExternalSemaphoreType type;
    void *native_handle;
};

/* A tensor in such memory. */
struct OrtExternalTensorDescriptor {
    uint32_t version;
    ONNXTensorElementDataType element_type;
    const int64_t *shape;
    size_t rank;
    size_t offset_bytes;
};

/* A queue that is shared with a graphics interface. */
struct OrtGraphicsInteropConfig {
    uint32_t version;
    OrtGraphicsApi graphics_api;
    void *command_queue;
    const OrtKeyValuePairs *additional_options;
};

/* Memory that was imported. */
struct OrtExternalMemoryHandle {
    uint32_t version;
    const OrtEpDevice *ep_device;
    OrtExternalMemoryDescriptor descriptor;
    void (*Release)(OrtExternalMemoryHandle *handle);
};

/* A semaphore that was imported. */
struct OrtExternalSemaphoreHandle {
    uint32_t version;
    const OrtEpDevice *ep_device;
    OrtExternalSemaphoreDescriptor descriptor;
    void (*Release)(OrtExternalSemaphoreHandle *handle);
};

/* Imports memory and semaphores. */
struct OrtExternalResourceImporterImpl {
    uint32_t ort_version_supported;
    bool (*CanImportMemory)(const OrtExternalResourceImporterImpl *self,
                            OrtExternalMemoryHandleType handle_type);
    OrtStatusPtr (*ImportMemory)(OrtExternalResourceImporterImpl *self,
                                 const OrtExternalMemoryDescriptor *desc,
                                 OrtExternalMemoryHandle **out_handle);
    void (*ReleaseMemory)(OrtExternalResourceImporterImpl *self, OrtExternalMemoryHandle *handle);
    OrtStatusPtr (*CreateTensorFromMemory)(OrtExternalResourceImporterImpl *self,
                                           const OrtExternalMemoryHandle *mem_handle,
                                           const OrtExternalTensorDescriptor *tensor_desc,
                                           OrtValue **out_tensor);
    bool (*CanImportSemaphore)(const OrtExternalResourceImporterImpl *self,
                               OrtExternalSemaphoreType type);
    OrtStatusPtr (*ImportSemaphore)(OrtExternalResourceImporterImpl *self,
                                    const OrtExternalSemaphoreDescriptor *desc,
                                    OrtExternalSemaphoreHandle **out_handle);
    void (*ReleaseSemaphore)(OrtExternalResourceImporterImpl *self,
                             OrtExternalSemaphoreHandle *handle);
    OrtStatusPtr (*WaitSemaphore)(OrtExternalResourceImporterImpl *self,
                                  OrtExternalSemaphoreHandle *handle, OrtSyncStream *stream,
                                  uint64_t value);
    OrtStatusPtr (*SignalSemaphore)(OrtExternalResourceImporterImpl *self,
                                    OrtExternalSemaphoreHandle *handle, OrtSyncStream *stream,
                                    uint64_t value);
    void (*Release)(OrtExternalResourceImporterImpl *self);
};

/* One provider in one session. */
struct OrtEp {
    uint32_t ort_version_supported;
    const char *(*GetName)(const OrtEp *self);
    OrtStatusPtr (*GetCapability)(OrtEp *self, const OrtGraph *graph,
                                  OrtEpGraphSupportInfo *graph_support_info);
    OrtStatusPtr (*Compile)(OrtEp *self, const OrtGraph **graphs, const OrtNode **fused_nodes,
                            size_t count, OrtNodeComputeInfo **node_compute_infos,
                            OrtNode **ep_context_nodes);
    void (*ReleaseNodeComputeInfos)(OrtEp *self, OrtNodeComputeInfo **node_compute_infos,
                                    size_t num_node_compute_infos);
    OrtStatusPtr (*GetPreferredDataLayout)(OrtEp *self, OrtEpDataLayout *preferred_data_layout);
    OrtStatusPtr (*ShouldConvertDataLayoutForOp)(OrtEp *self, const char *domain,
                                                 const char *op_type,
                                                 OrtEpDataLayout target_data_layout,
                                                 int *should_convert);
    OrtStatusPtr (*SetDynamicOptions)(OrtEp *self, const char *const *option_keys,
                                      const char *const *option_values, size_t num_options);
    OrtStatusPtr (*OnRunStart)(OrtEp *self, const OrtRunOptions *run_options);
    OrtStatusPtr (*OnRunEnd)(OrtEp *self, const OrtRunOptions *run_options, bool sync_stream);
    OrtStatusPtr (*CreateAllocator)(OrtEp *self, const OrtMemoryInfo *memory_info,
                                    OrtAllocator **allocator);
    OrtStatusPtr (*CreateSyncStreamForDevice)(OrtEp *self, const OrtMemoryDevice *memory_device,
                                              OrtSyncStreamImpl **stream);
    const char *(*GetCompiledModelCompatibilityInfo)(OrtEp *self, const OrtGraph *graph);
    OrtStatusPtr (*GetKernelRegistry)(OrtEp *self,
                                      const OrtKernelRegistry **kernel_registry); /* 24 */
    OrtStatusPtr (*IsConcurrentRunSupported)(OrtEp *self, bool *is_supported);    /* 24 */
    OrtStatusPtr (*Sync)(OrtEp *self);                                            /* 25 */
    OrtStatusPtr (*CreateProfiler)(OrtEp *self, OrtEpProfilerImpl **profiler);    /* 25 */
    bool (*IsGraphCaptureEnabled)(const OrtEp *self);                             /* 26 */
    bool (*IsGraphCaptured)(const OrtEp *self, int graph_annotation_id);          /* 26 */
    OrtStatusPtr (*ReplayGraph)(OrtEp *self, int graph_annotation_id);            /* 26 */
    OrtGraphCaptureNodeAssignmentPolicy (*GetGraphCaptureNodeAssignmentPolicy)(
        const OrtEp *self);                                                               /* 26 */
    OrtStatusPtr (*GetAvailableResource)(const OrtEp *self, OrtResourceCount *available); /* 26 */
    OrtStatusPtr (*OnSessionInitializationEnd)(OrtEp *self);                              /* 27 */
    OrtStatusPtr (*GetDefaultMemoryDevice)(const OrtEp *self,
                                           const OrtMemoryDevice **device);                 /* 27 */
    OrtStatusPtr (*ReleaseCapturedGraph)(OrtEp *self, int graph_annotation_id);             /* 27 */
    OrtStatusPtr (*GetWeightlessSupport)(const OrtEp *self, OrtWeightlessSupport *support); /* 29 */
};

/* What makes providers; one for each name. */
struct OrtEpFactory {
    uint32_t ort_version_supported;
    const char *(*GetName)(const OrtEpFactory *self);
    const char *(*GetVendor)(const OrtEpFactory *self);
    OrtStatusPtr (*GetSupportedDevices)(OrtEpFactory *self, const OrtHardwareDevice *const *devices,
                                        size_t num_devices, OrtEpDevice **ep_devices,
                                        size_t max_ep_devices, size_t *num_ep_devices);
    OrtStatusPtr (*CreateEp)(OrtEpFactory *self, const OrtHardwareDevice *const *devices,
                             const OrtKeyValuePairs *const *ep_metadata_pairs, size_t num_devices,
                             const OrtSessionOptions *session_options, const OrtLogger *logger,
                             OrtEp **ep);
    void (*ReleaseEp)(OrtEpFactory *self, OrtEp *ep);
    uint32_t (*GetVendorId)(const OrtEpFactory *self);
    const char *(*GetVersion)(const OrtEpFactory *self);
    OrtStatusPtr (*ValidateCompiledModelCompatibilityInfo)(
        OrtEpFactory *self, const OrtHardwareDevice *const *devices, size_t num_devices,
        const char *compatibility_info, OrtCompiledModelCompatibility *model_compatibility);
    OrtStatusPtr (*CreateAllocator)(OrtEpFactory *self, const OrtMemoryInfo *memory_info,
                                    const OrtKeyValuePairs *allocator_options,
                                    OrtAllocator **allocator);
    void (*ReleaseAllocator)(OrtEpFactory *self, OrtAllocator *allocator);
    OrtStatusPtr (*CreateDataTransfer)(OrtEpFactory *self, OrtDataTransferImpl **data_transfer);
    bool (*IsStreamAware)(const OrtEpFactory *self);
    OrtStatusPtr (*CreateSyncStreamForDevice)(OrtEpFactory *self,
                                              const OrtMemoryDevice *memory_device,
                                              const OrtKeyValuePairs *stream_options,
                                              OrtSyncStreamImpl **stream);
    OrtStatusPtr (*GetHardwareDeviceIncompatibilityDetails)(
        OrtEpFactory *self, const OrtHardwareDevice *hw,
        OrtDeviceEpIncompatibilityDetails *details);
    OrtStatusPtr (*CreateExternalResourceImporterForDevice)(
        OrtEpFactory *self, const OrtEpDevice *ep_device,
        OrtExternalResourceImporterImpl **out_importer);                            /* 24 */
    OrtStatusPtr (*GetNumCustomOpDomains)(OrtEpFactory *self, size_t *num_domains); /* 24 */
    OrtStatusPtr (*GetCustomOpDomains)(OrtEpFactory *self, OrtCustomOpDomain **domains,
                                       size_t num_domains); /* 24 */
    OrtStatusPtr (*InitGraphicsInterop)(OrtEpFactory *self, const OrtEpDevice *ep_device,
                                        const OrtGraphicsInteropConfig *config); /* 24 */
    OrtStatusPtr (*DeinitGraphicsInterop)(OrtEpFactory *self,
                                          const OrtEpDevice *ep_device); /* 25 */
    OrtStatusPtr (*SelectBestModelCandidate)(OrtEpFactory *self, const OrtHardwareDevice *device,
                                             const OrtKeyValuePairs *const *candidates,
                                             size_t num_candidates,
                                             const OrtSessionOptions *session_options,
                                             size_t *selected_index); /* 25 */
};

/* Memory and semaphores of other interfaces. */
struct OrtInteropApi {
    OrtStatusPtr (*CreateExternalResourceImporterForDevice)(
        const OrtEpDevice *ep_device, OrtExternalResourceImporter **out_importer);
    void (*ReleaseExternalResourceImporter)(OrtExternalResourceImporter *input);
    OrtStatusPtr (*CanImportMemory)(const OrtExternalResourceImporter *importer,
                                    OrtExternalMemoryHandleType handle_type, bool *out_supported);
    OrtStatusPtr (*ImportMemory)(OrtExternalResourceImporter *importer,
                                 const OrtExternalMemoryDescriptor *desc,
                                 OrtExternalMemoryHandle **out_handle);
    void (*ReleaseExternalMemoryHandle)(OrtExternalMemoryHandle *input);
    OrtStatusPtr (*CreateTensorFromMemory)(OrtExternalResourceImporter *importer,
                                           const OrtExternalMemoryHandle *mem_handle,
                                           const OrtExternalTensorDescriptor *tensor_desc,
                                           OrtValue **out_tensor);
    OrtStatusPtr (*CanImportSemaphore)(const OrtExternalResourceImporter *importer,
                                       OrtExternalSemaphoreType type, bool *out_supported);
    OrtStatusPtr (*ImportSemaphore)(OrtExternalResourceImporter *importer,
                                    const OrtExternalSemaphoreDescriptor *desc,
                                    OrtExternalSemaphoreHandle **out_handle);
    void (*ReleaseExternalSemaphoreHandle)(OrtExternalSemaphoreHandle *input);
    OrtStatusPtr (*WaitSemaphore)(OrtExternalResourceImporter *importer,
                                  OrtExternalSemaphoreHandle *semaphore_handle,
                                  OrtSyncStream *stream, uint64_t value);
    OrtStatusPtr (*SignalSemaphore)(OrtExternalResourceImporter *importer,
                                    OrtExternalSemaphoreHandle *semaphore_handle,
                                    OrtSyncStream *stream, uint64_t value);
    OrtStatusPtr (*InitGraphicsInteropForEpDevice)(const OrtEpDevice *ep_device,
                                                   const OrtGraphicsInteropConfig *config);
    OrtStatusPtr (*DeinitGraphicsInteropForEpDevice)(const OrtEpDevice *ep_device);
};

/* What an environment is made of. */
struct OrtEnvCreationOptions {
    uint32_t version;
    int32_t logging_severity_level;
    const char *log_id;
    OrtLoggingFunction custom_logging_function;
    void *custom_logging_param;
    const OrtThreadingOptions *threading_options;
    const OrtKeyValuePairs *config_entries;
};

/* What to call around the work of threads. */
struct OrtThreadPoolCallbacksConfig {
    uint32_t version;
    void *(*on_enqueue)(void *user_context);
    void (*on_start_work)(void *user_context, void *enqueue_data);
    void (*on_stop_work)(void *user_context, void *enqueue_data);
    void (*on_abandon)(void *user_context, void *enqueue_data);
    void *user_context;
};

/* ---- The table that plug-ins call ---- */

struct OrtEpApi {
#define ORT_EP_SLOT(since, ret, name, parameters, arguments) ret(*name) parameters;
#define ORT_EP_STUB ORT_EP_SLOT
#include "ort/ort_ep_slots.def"
#undef ORT_EP_SLOT
#undef ORT_EP_STUB
};

/* ---- What a plug-in exports ---- */

typedef OrtStatus *(*OrtCreateEpFactoriesFn)(const char *name, const OrtApiBase *base,
                                             const OrtLogger *logger, OrtEpFactory **factories,
                                             size_t room, size_t *count);
typedef OrtStatus *(*OrtReleaseEpFactoryFn)(OrtEpFactory *factory);

#ifdef __cplusplus
}
#endif

#endif
