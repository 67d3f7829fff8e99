/* ort_abi.h - the binary interface of libonnxruntime.so.1: numbers, structs and the function table.
 *
 * It stands alone, as C11 and as C++, and serves both sides: the library in this folder, and
 * programs that drive any library with this interface. A program asks the one exported function
 * OrtGetApiBase() for the table of the version it was written for:
 *
 *     const OrtApi *api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
 *
 * Tables only grow at their end, so that the table of a later version serves an earlier one.
 * Functions that can fail return a status: NULL when all is well, otherwise an object that the
 * caller gives to ReleaseStatus. */
#ifndef SNI_ORT_ORT_ABI_H
#define SNI_ORT_ORT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORT_API_VERSION 30 /* the newest version described here */
#define ORT_SLOT_COUNT 426 /* functions in OrtApi */

/* ---- Numbers ----------------------------------------------------------------------------- */

typedef enum OrtErrorCode {
    ORT_OK = 0,
    ORT_FAIL = 1,
    ORT_INVALID_ARGUMENT = 2,
    ORT_NO_SUCHFILE = 3,
    ORT_NO_MODEL = 4,
    ORT_ENGINE_ERROR = 5,
    ORT_RUNTIME_EXCEPTION = 6,
    ORT_INVALID_PROTOBUF = 7,
    ORT_MODEL_LOADED = 8,
    ORT_NOT_IMPLEMENTED = 9,
    ORT_INVALID_GRAPH = 10,
    ORT_EP_FAIL = 11,
    ORT_MODEL_LOAD_CANCELED = 12,
    ORT_MODEL_REQUIRES_COMPILATION = 13,
    ORT_NOT_FOUND = 14,
    ORT_DEVICE_RESET = 15
} OrtErrorCode;

/* Up to 23 these are the numbers of ONNX's TensorProto.DataType; after that they are not. */
typedef enum ONNXTensorElementDataType {
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 = 2,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 = 3,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16 = 4,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16 = 5,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 = 6,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 = 7,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING = 8,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL = 9,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 = 10,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE = 11,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32 = 12,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64 = 13,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64 = 14,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128 = 15,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 = 16,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN = 17,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ = 18,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2 = 19,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ = 20,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4 = 21,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4 = 22,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1 = 23,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2 = 24,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2 = 25,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0 = 26
} ONNXTensorElementDataType;

typedef enum ONNXType {
    ONNX_TYPE_UNKNOWN = 0,
    ONNX_TYPE_TENSOR = 1,
    ONNX_TYPE_SEQUENCE = 2,
    ONNX_TYPE_MAP = 3,
    ONNX_TYPE_OPAQUE = 4,
    ONNX_TYPE_SPARSETENSOR = 5,
    ONNX_TYPE_OPTIONAL = 6
} ONNXType;

typedef enum OrtSparseFormat {
    ORT_SPARSE_UNDEFINED = 0,
    ORT_SPARSE_COO = 1,
    ORT_SPARSE_CSRC = 2,
    ORT_SPARSE_BLOCK_SPARSE = 4
} OrtSparseFormat;

typedef enum OrtSparseIndicesFormat {
    ORT_SPARSE_COO_INDICES = 0,
    ORT_SPARSE_CSR_INNER_INDICES = 1,
    ORT_SPARSE_CSR_OUTER_INDICES = 2,
    ORT_SPARSE_BLOCK_SPARSE_INDICES = 3
} OrtSparseIndicesFormat;

typedef enum OrtLoggingLevel {
    ORT_LOGGING_LEVEL_VERBOSE = 0,
    ORT_LOGGING_LEVEL_INFO = 1,
    ORT_LOGGING_LEVEL_WARNING = 2,
    ORT_LOGGING_LEVEL_ERROR = 3,
    ORT_LOGGING_LEVEL_FATAL = 4
} OrtLoggingLevel;

typedef enum OrtOpAttrType {
    ORT_OP_ATTR_UNDEFINED = 0,
    ORT_OP_ATTR_INT = 1,
    ORT_OP_ATTR_INTS = 2,
    ORT_OP_ATTR_FLOAT = 3,
    ORT_OP_ATTR_FLOATS = 4,
    ORT_OP_ATTR_STRING = 5,
    ORT_OP_ATTR_STRINGS = 6,
    ORT_OP_ATTR_GRAPH = 7,
    ORT_OP_ATTR_TENSOR = 8
} OrtOpAttrType;

typedef enum GraphOptimizationLevel {
    ORT_DISABLE_ALL = 0,
    ORT_ENABLE_BASIC = 1,
    ORT_ENABLE_EXTENDED = 2,
    ORT_ENABLE_LAYOUT = 3,
    ORT_ENABLE_ALL = 99
} GraphOptimizationLevel;

typedef enum ExecutionMode { ORT_SEQUENTIAL = 0, ORT_PARALLEL = 1 } ExecutionMode;

typedef enum OrtLanguageProjection {
    ORT_PROJECTION_C = 0,
    ORT_PROJECTION_CPLUSPLUS = 1,
    ORT_PROJECTION_CSHARP = 2,
    ORT_PROJECTION_PYTHON = 3,
    ORT_PROJECTION_JAVA = 4,
    ORT_PROJECTION_WINML = 5,
    ORT_PROJECTION_NODEJS = 6
} OrtLanguageProjection;

typedef enum OrtAllocatorType {
    OrtInvalidAllocator = -1,
    OrtDeviceAllocator = 0,
    OrtArenaAllocator = 1,
    OrtReadOnlyAllocator = 2
} OrtAllocatorType;

typedef enum OrtMemType {
    OrtMemTypeCPUInput = -2,
    OrtMemTypeCPUOutput = -1,
    OrtMemTypeCPU = -1,
    OrtMemTypeDefault = 0
} OrtMemType;

typedef enum OrtDeviceMemoryType {
    OrtDeviceMemoryType_DEFAULT = 0,
    OrtDeviceMemoryType_HOST_ACCESSIBLE = 5
} OrtDeviceMemoryType;

typedef enum OrtMemoryInfoDeviceType {
    OrtMemoryInfoDeviceType_CPU = 0,
    OrtMemoryInfoDeviceType_GPU = 1,
    OrtMemoryInfoDeviceType_FPGA = 2,
    OrtMemoryInfoDeviceType_NPU = 3
} OrtMemoryInfoDeviceType;

typedef enum OrtHardwareDeviceType {
    OrtHardwareDeviceType_CPU = 0,
    OrtHardwareDeviceType_GPU = 1,
    OrtHardwareDeviceType_NPU = 2
} OrtHardwareDeviceType;

typedef enum OrtExecutionProviderDevicePolicy {
    OrtExecutionProviderDevicePolicy_DEFAULT = 0,
    OrtExecutionProviderDevicePolicy_PREFER_CPU = 1,
    OrtExecutionProviderDevicePolicy_PREFER_NPU = 2,
    OrtExecutionProviderDevicePolicy_PREFER_GPU = 3,
    OrtExecutionProviderDevicePolicy_MAX_PERFORMANCE = 4,
    OrtExecutionProviderDevicePolicy_MAX_EFFICIENCY = 5,
    OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER = 6
} OrtExecutionProviderDevicePolicy;

typedef enum OrtCompiledModelCompatibility {
    OrtCompiledModelCompatibility_EP_NOT_APPLICABLE = 0,
    OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL = 1,
    OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION = 2,
    OrtCompiledModelCompatibility_EP_UNSUPPORTED = 3
} OrtCompiledModelCompatibility;

typedef enum OrtCustomOpInputOutputCharacteristic {
    INPUT_OUTPUT_REQUIRED = 0,
    INPUT_OUTPUT_OPTIONAL = 1,
    INPUT_OUTPUT_VARIADIC = 2
} OrtCustomOpInputOutputCharacteristic;

/* ---- Objects that only the library sees into ---------------------------------------------- */

typedef struct OrtStatus OrtStatus;
typedef OrtStatus *OrtStatusPtr;
typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtThreadingOptions OrtThreadingOptions;
typedef struct OrtArenaCfg OrtArenaCfg;
typedef struct OrtEnvCreationOptions OrtEnvCreationOptions;
typedef struct OrtPrepackedWeightsContainer OrtPrepackedWeightsContainer;
typedef struct OrtLoraAdapter OrtLoraAdapter;
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtLogger OrtLogger;

typedef struct OrtValue OrtValue;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtIoBinding OrtIoBinding;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtMapTypeInfo OrtMapTypeInfo;
typedef struct OrtSequenceTypeInfo OrtSequenceTypeInfo;
typedef struct OrtOptionalTypeInfo OrtOptionalTypeInfo;
typedef struct OrtModelMetadata OrtModelMetadata;

typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtCustomOp OrtCustomOp;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtShapeInferContext OrtShapeInferContext;
typedef struct OrtOp OrtOp;
typedef struct OrtOpAttr OrtOpAttr;

typedef struct OrtModel OrtModel;
typedef struct OrtGraph OrtGraph;
typedef struct OrtNode OrtNode;
typedef struct OrtValueInfo OrtValueInfo;
typedef struct OrtModelCompilationOptions OrtModelCompilationOptions;
typedef struct OrtExternalInitializerInfo OrtExternalInitializerInfo;

typedef struct OrtHardwareDevice OrtHardwareDevice;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtSyncStream OrtSyncStream;
typedef struct OrtDeviceEpIncompatibilityDetails OrtDeviceEpIncompatibilityDetails;
typedef struct OrtEpAssignedSubgraph OrtEpAssignedSubgraph;
typedef struct OrtEpAssignedNode OrtEpAssignedNode;
typedef struct OrtThreadPoolCallbacksConfig OrtThreadPoolCallbacksConfig;
typedef struct OrtCUDAProviderOptions OrtCUDAProviderOptions;
typedef struct OrtCUDAProviderOptionsV2 OrtCUDAProviderOptionsV2;
typedef struct OrtROCMProviderOptions OrtROCMProviderOptions;
typedef struct OrtTensorRTProviderOptions OrtTensorRTProviderOptions;
typedef struct OrtTensorRTProviderOptionsV2 OrtTensorRTProviderOptionsV2;
typedef struct OrtMIGraphXProviderOptions OrtMIGraphXProviderOptions;
typedef struct OrtOpenVINOProviderOptions OrtOpenVINOProviderOptions;
typedef struct OrtCANNProviderOptions OrtCANNProviderOptions;
typedef struct OrtDnnlProviderOptions OrtDnnlProviderOptions;

typedef struct OrtApi OrtApi;
typedef struct OrtTrainingApi OrtTrainingApi;
typedef struct OrtModelEditorApi OrtModelEditorApi;
typedef struct OrtCompileApi OrtCompileApi;
typedef struct OrtInteropApi OrtInteropApi;
typedef struct OrtEpApi OrtEpApi;

/* ---- Functions that a program hands over -------------------------------------------------- */

typedef void (*OrtLoggingFunction)(void *param, OrtLoggingLevel severity, const char *category,
                                   const char *logid, const char *code_location,
                                   const char *message);
/* Owns `outputs`' values and `status` (NULL: success). Called once, in a thread of the library. */
typedef void (*RunAsyncCallbackFn)(void *user_data, OrtValue **outputs, size_t num_outputs,
                                   OrtStatusPtr status);
typedef void (*OrtThreadWorkerFn)(void *param);
typedef const struct OrtCustomHandleType *OrtCustomThreadHandle;
typedef OrtCustomThreadHandle (*OrtCustomCreateThreadFn)(void *options, OrtThreadWorkerFn worker,
                                                         void *worker_param);
typedef void (*OrtCustomJoinThreadFn)(OrtCustomThreadHandle handle);
typedef OrtStatus *(*EpSelectionDelegate)(const OrtEpDevice **devices, size_t device_count,
                                          const OrtKeyValuePairs *model_metadata,
                                          const OrtKeyValuePairs *runtime_metadata,
                                          const OrtEpDevice **selected, size_t most,
                                          size_t *selected_count, void *state);
typedef OrtStatus *(*OrtWriteBufferFunc)(void *state, const void *bytes, size_t size);
typedef OrtStatus *(*OrtGetInitializerLocationFunc)(void *state, const char *name,
                                                    const OrtValue *value,
                                                    const OrtExternalInitializerInfo *where,
                                                    OrtExternalInitializerInfo **new_where);
typedef void (*OrtExperimentalFnPtr)(void);
/* What a library of custom operators exports under the name RegisterCustomOps. */
typedef struct OrtApiBase OrtApiBase;
typedef OrtStatus *(*OrtRegisterCustomOpsFn)(OrtSessionOptions *options, const OrtApiBase *base);

/* ---- Structs that both sides see into ------------------------------------------------------ */

/* Callers call these directly. An allocator of version V has the members up to V's only: `version`
 * is to be looked at before Reserve (18), GetStats and AllocOnStream (23) and Shrink (after 23).
 * The last four may be NULL. */
typedef struct OrtAllocator {
    uint32_t version;
    void *(*Alloc)(struct OrtAllocator *self, size_t size);
    void (*Free)(struct OrtAllocator *self, void *p);
    const OrtMemoryInfo *(*Info)(const struct OrtAllocator *self);
    void *(*Reserve)(struct OrtAllocator *self, size_t size);
    OrtStatusPtr (*GetStats)(const struct OrtAllocator *self, OrtKeyValuePairs **out);
    void *(*AllocOnStream)(struct OrtAllocator *self, size_t size, OrtSyncStream *stream);
    OrtStatusPtr (*Shrink)(struct OrtAllocator *self);
} OrtAllocator;

/* A custom operator. One of version V ends with the last member whose version is V or less: GetName
 * and what follows it up to KernelDestroy have always been there, the two characteristics are of
 * version 8, the rest as noted. */
struct OrtCustomOp {
    uint32_t version;
    void *(*CreateKernel)(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info);
    const char *(*GetName)(const OrtCustomOp *op);
    const char *(*GetExecutionProviderType)(const OrtCustomOp *op); /* NULL: any */
    ONNXTensorElementDataType (*GetInputType)(const OrtCustomOp *op, size_t index);
    size_t (*GetInputTypeCount)(const OrtCustomOp *op);
    ONNXTensorElementDataType (*GetOutputType)(const OrtCustomOp *op, size_t index);
    size_t (*GetOutputTypeCount)(const OrtCustomOp *op);
    void (*KernelCompute)(void *kernel, OrtKernelContext *context);
    void (*KernelDestroy)(void *kernel);
    OrtCustomOpInputOutputCharacteristic (*GetInputCharacteristic)(const OrtCustomOp *op,
                                                                   size_t index);
    OrtCustomOpInputOutputCharacteristic (*GetOutputCharacteristic)(const OrtCustomOp *op,
                                                                    size_t index);
    OrtMemType (*GetInputMemoryType)(const OrtCustomOp *op, size_t index); /* 13 */
    int (*GetVariadicInputMinArity)(const OrtCustomOp *op);                /* 14, and the next 3 */
    int (*GetVariadicInputHomogeneity)(const OrtCustomOp *op);
    int (*GetVariadicOutputMinArity)(const OrtCustomOp *op);
    int (*GetVariadicOutputHomogeneity)(const OrtCustomOp *op);
    OrtStatusPtr (*CreateKernelV2)(const OrtCustomOp *op, const OrtApi *api,
                                   const OrtKernelInfo *info, void **kernel); /* 16 */
    OrtStatusPtr (*KernelComputeV2)(void *kernel, OrtKernelContext *context); /* 16 */
    OrtStatusPtr (*InferOutputShapeFn)(const OrtCustomOp *op,
                                       OrtShapeInferContext *context); /* 17 */
    int (*GetStartVersion)(const OrtCustomOp *op);                     /* 17 */
    int (*GetEndVersion)(const OrtCustomOp *op);                       /* 17 */
    size_t (*GetMayInplace)(int **input_index, int **output_index);    /* 18 */
    void (*ReleaseMayInplace)(int *input_index, int *output_index);    /* 18 */
    size_t (*GetAliasMap)(int **input_index, int **output_index);      /* 18 */
    void (*ReleaseAliasMap)(int *input_index, int *output_index);      /* 18 */
};

/* ---- Tables -------------------------------------------------------------------------------- */

struct OrtApi {
#define ORT_SLOT(since, ret, name, parameters, arguments) ret(*name) parameters;
#define ORT_STUB ORT_SLOT
#include "ort_slots.def"
#undef ORT_SLOT
#undef ORT_STUB
};

struct OrtCompileApi {
    void (*ReleaseModelCompilationOptions)(OrtModelCompilationOptions *options);
    OrtStatusPtr (*CreateModelCompilationOptionsFromSessionOptions)(
        const OrtEnv *env, const OrtSessionOptions *session_options,
        OrtModelCompilationOptions **out);
    OrtStatusPtr (*ModelCompilationOptions_SetInputModelPath)(OrtModelCompilationOptions *options,
                                                              const char *path);
    OrtStatusPtr (*ModelCompilationOptions_SetInputModelFromBuffer)(
        OrtModelCompilationOptions *options, const void *bytes, size_t size);
    OrtStatusPtr (*ModelCompilationOptions_SetOutputModelPath)(OrtModelCompilationOptions *options,
                                                               const char *path);
    OrtStatusPtr (*ModelCompilationOptions_SetOutputModelExternalInitializersFile)(
        OrtModelCompilationOptions *options, const char *path, size_t threshold);
    OrtStatusPtr (*ModelCompilationOptions_SetOutputModelBuffer)(
        OrtModelCompilationOptions *options, OrtAllocator *allocator, void **bytes, size_t *size);
    OrtStatusPtr (*ModelCompilationOptions_SetEpContextEmbedMode)(
        OrtModelCompilationOptions *options, bool embed);
    OrtStatusPtr (*CompileModel)(const OrtEnv *env, const OrtModelCompilationOptions *options);
    OrtStatusPtr (*ModelCompilationOptions_SetFlags)(OrtModelCompilationOptions *options,
                                                     uint32_t flags);
    OrtStatusPtr (*ModelCompilationOptions_SetEpContextBinaryInformation)(
        OrtModelCompilationOptions *options, const char *folder, const char *model_name);
    OrtStatusPtr (*ModelCompilationOptions_SetGraphOptimizationLevel)(
        OrtModelCompilationOptions *options, GraphOptimizationLevel level);
    OrtStatusPtr (*ModelCompilationOptions_SetOutputModelWriteFunc)(
        OrtModelCompilationOptions *options, OrtWriteBufferFunc write, void *state);
    OrtStatusPtr (*ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc)(
        OrtModelCompilationOptions *options, OrtGetInitializerLocationFunc locate, void *state);
    OrtStatusPtr (*ModelCompilationOptions_SetInputModel)(OrtModelCompilationOptions *options,
                                                          const OrtModel *model);
    OrtStatusPtr (*ModelCompilationOptions_SetWeightlessEnabled)(
        OrtModelCompilationOptions *options, bool weightless);
};

struct OrtModelEditorApi {
    OrtStatusPtr (*CreateTensorTypeInfo)(const OrtTensorTypeAndShapeInfo *tensor,
                                         OrtTypeInfo **out);
    OrtStatusPtr (*CreateSparseTensorTypeInfo)(const OrtTensorTypeAndShapeInfo *tensor,
                                               OrtTypeInfo **out);
    OrtStatusPtr (*CreateMapTypeInfo)(ONNXTensorElementDataType key, const OrtTypeInfo *value,
                                      OrtTypeInfo **out);
    OrtStatusPtr (*CreateSequenceTypeInfo)(const OrtTypeInfo *element, OrtTypeInfo **out);
    OrtStatusPtr (*CreateOptionalTypeInfo)(const OrtTypeInfo *contained, OrtTypeInfo **out);
    OrtStatusPtr (*CreateValueInfo)(const char *name, const OrtTypeInfo *type, OrtValueInfo **out);
    OrtStatusPtr (*CreateNode)(const char *op, const char *domain, const char *name,
                               const char *const *inputs, size_t input_count,
                               const char *const *outputs, size_t output_count,
                               OrtOpAttr **attributes, size_t attribute_count, OrtNode **out);
    OrtStatusPtr (*CreateGraph)(OrtGraph **out);
    OrtStatusPtr (*SetGraphInputs)(OrtGraph *graph, OrtValueInfo **inputs, size_t count);
    OrtStatusPtr (*SetGraphOutputs)(OrtGraph *graph, OrtValueInfo **outputs, size_t count);
    OrtStatusPtr (*AddInitializerToGraph)(OrtGraph *graph, const char *name, OrtValue *tensor,
                                          bool data_is_external);
    OrtStatusPtr (*AddNodeToGraph)(OrtGraph *graph, OrtNode *node);
    OrtStatusPtr (*CreateModel)(const char *const *domains, const int *versions, size_t count,
                                OrtModel **out);
    OrtStatusPtr (*AddGraphToModel)(OrtModel *model, OrtGraph *graph);
    OrtStatusPtr (*CreateSessionFromModel)(const OrtEnv *env, const OrtModel *model,
                                           const OrtSessionOptions *options, OrtSession **out);
    OrtStatusPtr (*CreateModelEditorSession)(const OrtEnv *env, const char *path,
                                             const OrtSessionOptions *options, OrtSession **out);
    OrtStatusPtr (*CreateModelEditorSessionFromArray)(const OrtEnv *env, const void *bytes,
                                                      size_t size, const OrtSessionOptions *options,
                                                      OrtSession **out);
    OrtStatusPtr (*SessionGetOpsetForDomain)(const OrtSession *session, const char *domain,
                                             int *out);
    OrtStatusPtr (*ApplyModelToModelEditorSession)(OrtSession *session, OrtModel *model);
    OrtStatusPtr (*FinalizeModelEditorSession)(OrtSession *session,
                                               const OrtSessionOptions *options,
                                               OrtPrepackedWeightsContainer *container);
};

struct OrtApiBase {
    const OrtApi *(*GetApi)(uint32_t version);
    const char *(*GetVersionString)(void);
};

/* ---- Exported functions ---------------------------------------------------------------------- */

#if defined(__GNUC__)
#define ORT_EXPORTED __attribute__((visibility("default")))
#else
#define ORT_EXPORTED
#endif

ORT_EXPORTED const OrtApiBase *OrtGetApiBase(void);
ORT_EXPORTED OrtStatus *OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions *options,
                                                                     int use_arena);

#ifdef __cplusplus
}
#endif

#endif
