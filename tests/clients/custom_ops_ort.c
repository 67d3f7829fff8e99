/* custom_ops_ort.c - a library of custom operators for ONNX Runtime's interface, written against
 * ort_abi.h: loaded by the real ONNX Runtime and by Sinter, it must give the same answers.
 *
 *   Blend(a, b)            alpha*a + (1-alpha)*b; attributes alpha, bias (floats), label; infers
 * its shape; version 17 with CreateKernelV2 and KernelComputeV2 CountAbove(x)          how many
 * elements are above attribute `limit`: int64[1]; version 8, no inference, an output of which only
 * the kernel knows the shape Keep(x)                the elements above 0, one after the other: a
 * shape that values decide Join(texts...)         string tensors joined element by element;
 * variadic Twice(x)               2*x of float or int64: two operators of one name Refuse(x) fails
 * with a message */
#include "ort_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const OrtApi *ort;

#define TRY(expr)                    \
    do {                             \
        OrtStatus *status_ = (expr); \
        if (status_) return status_; \
    } while (0)

static const char *cpu(const OrtCustomOp *op) {
    (void)op;
    return "CPUExecutionProvider";
}

static ONNXTensorElementDataType is_float(const OrtCustomOp *op, size_t i) {
    (void)op, (void)i;
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
}

static ONNXTensorElementDataType is_int64(const OrtCustomOp *op, size_t i) {
    (void)op, (void)i;
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
}

static ONNXTensorElementDataType is_string(const OrtCustomOp *op, size_t i) {
    (void)op, (void)i;
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
}

static size_t one(const OrtCustomOp *op) {
    (void)op;
    return 1;
}

static size_t two(const OrtCustomOp *op) {
    (void)op;
    return 2;
}

static OrtCustomOpInputOutputCharacteristic required(const OrtCustomOp *op, size_t i) {
    (void)op, (void)i;
    return INPUT_OUTPUT_REQUIRED;
}

static OrtCustomOpInputOutputCharacteristic variadic(const OrtCustomOp *op, size_t i) {
    (void)op, (void)i;
    return INPUT_OUTPUT_VARIADIC;
}

static OrtMemType on_cpu(const OrtCustomOp *op, size_t i) {
    (void)op, (void)i;
    return OrtMemTypeDefault;
}

static int yes(const OrtCustomOp *op) {
    (void)op;
    return 1;
}

static int first_version(const OrtCustomOp *op) {
    (void)op;
    return 1;
}

static int last_version(const OrtCustomOp *op) {
    (void)op;
    return 2147483647;
}

static void free_kernel(void *kernel) {
    free(kernel);
}

/* Data, shape and count of an input. */
static OrtStatus *read_input(OrtKernelContext *context, size_t index, const void **data,
                             int64_t *dims, size_t *rank, size_t *count) {
    const OrtValue *value = NULL;
    OrtTensorTypeAndShapeInfo *info = NULL;
    TRY(ort->KernelContext_GetInput(context, index, &value));
    if (data) TRY(ort->GetTensorMutableData((OrtValue *)value, (void **)data));
    TRY(ort->GetTensorTypeAndShape(value, &info));
    OrtStatus *status = ort->GetDimensionsCount(info, rank);
    if (!status) status = ort->GetDimensions(info, dims, *rank);
    if (!status) status = ort->GetTensorShapeElementCount(info, count);
    ort->ReleaseTensorTypeAndShapeInfo(info);
    return status;
}

static OrtStatus *make_output(OrtKernelContext *context, const int64_t *dims, size_t rank,
                              void **data) {
    OrtValue *value = NULL;
    TRY(ort->KernelContext_GetOutput(context, 0, dims, rank, &value));
    return ort->GetTensorMutableData(value, data);
}

/* ---- Blend ---- */

typedef struct blend {
    float alpha, bias;
} blend;

static OrtStatus *blend_create(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info,
                               void **kernel) {
    (void)op;
    float biases[4];
    size_t count = 4, inputs = 0, length = 0;
    char label[16] = "";
    blend made = {0};
    TRY(api->KernelInfoGetAttribute_float(info, "alpha", &made.alpha));
    TRY(api->KernelInfoGetAttributeArray_float(info, "biases", biases, &count));
    for (size_t i = 0; i < count; i++) made.bias += biases[i];
    TRY(api->KernelInfo_GetInputCount(info, &inputs));
    length = sizeof label;
    TRY(api->KernelInfoGetAttribute_string(info, "label", label, &length));
    if (inputs != 2 || strcmp(label, "blend") != 0 || length != 6)
        return api->CreateStatus(ORT_FAIL, "Blend has a wrong node");
    blend *b = malloc(sizeof *b);
    *b = made;
    *kernel = b;
    return NULL;
}

static OrtStatus *blend_run(void *kernel, OrtKernelContext *context) {
    const blend *k = kernel;
    const void *a = NULL, *b = NULL;
    void *out = NULL;
    int64_t dims[16], other[16];
    size_t rank, count, rank_b, count_b;
    TRY(read_input(context, 0, &a, dims, &rank, &count));
    TRY(read_input(context, 1, &b, other, &rank_b, &count_b));
    if (count != count_b) return ort->CreateStatus(ORT_INVALID_ARGUMENT, "Blend: sizes differ");
    TRY(make_output(context, dims, rank, &out));
    for (size_t i = 0; i < count; i++)
        ((float *)out)[i] =
            k->alpha * ((const float *)a)[i] + (1 - k->alpha) * ((const float *)b)[i] + k->bias;
    return NULL;
}

static OrtStatus *blend_infer(const OrtCustomOp *op, OrtShapeInferContext *context) {
    (void)op;
    OrtTensorTypeAndShapeInfo *info = NULL;
    TRY(ort->ShapeInferContext_GetInputTypeShape(context, 0, &info));
    return ort->ShapeInferContext_SetOutputTypeShape(context, 0, info);
}

static const char *blend_name(const OrtCustomOp *op) {
    (void)op;
    return "Blend";
}

static const OrtCustomOp blend_op = {.version = 17,
                                     .GetName = blend_name,
                                     .GetExecutionProviderType = cpu,
                                     .GetInputType = is_float,
                                     .GetInputTypeCount = two,
                                     .GetOutputType = is_float,
                                     .GetOutputTypeCount = one,
                                     .KernelDestroy = free_kernel,
                                     .GetInputCharacteristic = required,
                                     .GetOutputCharacteristic = required,
                                     .GetInputMemoryType = on_cpu,
                                     .CreateKernelV2 = blend_create,
                                     .KernelComputeV2 = blend_run,
                                     .InferOutputShapeFn = blend_infer,
                                     .GetStartVersion = first_version,
                                     .GetEndVersion = last_version};

/* ---- CountAbove: an old operator ---- */

static void *count_create(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info) {
    (void)op;
    int64_t *limit = calloc(1, sizeof *limit);
    OrtStatus *status = api->KernelInfoGetAttribute_int64(info, "limit", limit);
    if (status) api->ReleaseStatus(status);
    return limit;
}

static void count_run(void *kernel, OrtKernelContext *context) {
    const int64_t *limit = kernel, shape[1] = {1};
    const void *x = NULL;
    void *out = NULL;
    int64_t dims[16];
    size_t rank, count;
    OrtStatus *status = read_input(context, 0, &x, dims, &rank, &count);
    if (!status) status = make_output(context, shape, 1, &out);
    if (status) {
        ort->ReleaseStatus(status);
        return;
    }
    int64_t n = 0;
    for (size_t i = 0; i < count; i++) n += ((const float *)x)[i] > (float)*limit;
    *(int64_t *)out = n;
}

static const char *count_name(const OrtCustomOp *op) {
    (void)op;
    return "CountAbove";
}

static const OrtCustomOp count_op = {.version = 8,
                                     .CreateKernel = count_create,
                                     .GetName = count_name,
                                     .GetExecutionProviderType = cpu,
                                     .GetInputType = is_float,
                                     .GetInputTypeCount = one,
                                     .GetOutputType = is_int64,
                                     .GetOutputTypeCount = one,
                                     .KernelCompute = count_run,
                                     .KernelDestroy = free_kernel,
                                     .GetInputCharacteristic = required,
                                     .GetOutputCharacteristic = required};

/* ---- Keep ---- */

static OrtStatus *no_state(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info,
                           void **kernel) {
    (void)op, (void)api, (void)info;
    *kernel = malloc(1);
    return NULL;
}

/* What all operators but the old one have in common: one input and one output of a type, no state.
 */
#define PLAIN_OP(SINCE, NAME, TYPE, RUN)                                                           \
    .version = (SINCE), .GetName = (NAME), .GetExecutionProviderType = cpu,                        \
    .GetInputType = (TYPE), .GetInputTypeCount = one, .GetOutputType = (TYPE),                     \
    .GetOutputTypeCount = one, .KernelDestroy = free_kernel, .GetInputCharacteristic = required,   \
    .GetOutputCharacteristic = required, .GetInputMemoryType = on_cpu, .CreateKernelV2 = no_state, \
    .KernelComputeV2 = (RUN)

static OrtStatus *keep_run(void *kernel, OrtKernelContext *context) {
    (void)kernel;
    const void *x = NULL;
    void *out = NULL;
    int64_t dims[16];
    size_t rank, count, kept = 0;
    TRY(read_input(context, 0, &x, dims, &rank, &count));
    const float *v = x;
    for (size_t i = 0; i < count; i++) kept += v[i] > 0;
    int64_t shape[1] = {(int64_t)kept};
    TRY(make_output(context, shape, 1, &out));
    for (size_t i = 0, at = 0; i < count; i++)
        if (v[i] > 0) ((float *)out)[at++] = v[i];
    return NULL;
}

static const char *keep_name(const OrtCustomOp *op) {
    (void)op;
    return "Keep";
}

static const OrtCustomOp keep_op = {PLAIN_OP(16, keep_name, is_float, keep_run)};

/* ---- Join ---- */

static OrtStatus *join_run(void *kernel, OrtKernelContext *context) {
    (void)kernel;
    size_t inputs = 0, rank, count;
    int64_t dims[16];
    TRY(ort->KernelContext_GetInputCount(context, &inputs));
    TRY(read_input(context, 0, NULL, dims, &rank, &count));
    OrtValue *out = NULL;
    TRY(ort->KernelContext_GetOutput(context, 0, dims, rank, &out));
    for (size_t i = 0; i < count; i++) {
        char text[256] = "";
        size_t at = 0;
        for (size_t k = 0; k < inputs; k++) {
            const OrtValue *value = NULL;
            size_t length = 0;
            TRY(ort->KernelContext_GetInput(context, k, &value));
            TRY(ort->GetStringTensorElementLength(value, i, &length));
            if (at + length >= sizeof text) return ort->CreateStatus(ORT_FAIL, "Join: too long");
            TRY(ort->GetStringTensorElement(value, length, i, text + at));
            at += length;
        }
        text[at] = 0;
        TRY(ort->FillStringTensorElement(out, text, i));
    }
    return NULL;
}

static const char *join_name(const OrtCustomOp *op) {
    (void)op;
    return "Join";
}

static const OrtCustomOp join_op = {.version = 16,
                                    .GetName = join_name,
                                    .GetExecutionProviderType = cpu,
                                    .GetInputType = is_string,
                                    .GetInputTypeCount = one,
                                    .GetOutputType = is_string,
                                    .GetOutputTypeCount = one,
                                    .KernelDestroy = free_kernel,
                                    .GetInputCharacteristic = variadic,
                                    .GetOutputCharacteristic = required,
                                    .GetInputMemoryType = on_cpu,
                                    .GetVariadicInputMinArity = yes,
                                    .GetVariadicInputHomogeneity = yes,
                                    .CreateKernelV2 = no_state,
                                    .KernelComputeV2 = join_run};

/* ---- Twice ---- */

static void twice_float(void *range, size_t i) {
    void **r = range;
    ((float *)r[1])[i] = 2 * ((const float *)r[0])[i];
}

static OrtStatus *twice_float_run(void *kernel, OrtKernelContext *context) {
    (void)kernel;
    const void *x = NULL;
    void *range[2] = {NULL, NULL};
    int64_t dims[16];
    size_t rank, count;
    TRY(read_input(context, 0, &x, dims, &rank, &count));
    TRY(make_output(context, dims, rank, &range[1]));
    range[0] = (void *)x;
    return ort->KernelContext_ParallelFor(context, twice_float, count, 0, range);
}

static OrtStatus *twice_int_run(void *kernel, OrtKernelContext *context) {
    (void)kernel;
    const void *x = NULL;
    void *out = NULL;
    int64_t dims[16];
    size_t rank, count;
    TRY(read_input(context, 0, &x, dims, &rank, &count));
    TRY(make_output(context, dims, rank, &out));
    for (size_t i = 0; i < count; i++) ((int64_t *)out)[i] = 2 * ((const int64_t *)x)[i];
    return NULL;
}

static const char *twice_name(const OrtCustomOp *op) {
    (void)op;
    return "Twice";
}

static const OrtCustomOp twice_float_op = {PLAIN_OP(17, twice_name, is_float, twice_float_run),
                                           .GetStartVersion = first_version,
                                           .GetEndVersion = last_version};

static const OrtCustomOp twice_int_op = {PLAIN_OP(17, twice_name, is_int64, twice_int_run),
                                         .GetStartVersion = first_version,
                                         .GetEndVersion = last_version};

/* ---- Refuse ---- */

static OrtStatus *refuse_run(void *kernel, OrtKernelContext *context) {
    (void)kernel, (void)context;
    return ort->CreateStatus(ORT_INVALID_ARGUMENT, "Refuse refuses everything");
}

static const char *refuse_name(const OrtCustomOp *op) {
    (void)op;
    return "Refuse";
}

static const OrtCustomOp refuse_op = {PLAIN_OP(16, refuse_name, is_float, refuse_run)};

ORT_EXPORTED OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base);

OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base) {
    static OrtCustomOpDomain *domain; /* one for the process: sessions may use it to the end */
    const OrtCustomOp *const ops[] = {&blend_op,       &count_op,     &keep_op,  &join_op,
                                      &twice_float_op, &twice_int_op, &refuse_op};
    ort = base->GetApi(18);
    if (!domain) {
        TRY(ort->CreateCustomOpDomain("test.custom", &domain));
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
            TRY(ort->CustomOpDomain_Add(domain, ops[i]));
    }
    return ort->AddCustomOpDomain(options, domain);
}
