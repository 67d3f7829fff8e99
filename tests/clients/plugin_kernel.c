/* plugin_kernel.c - a provider with a registry of kernels, which pack their constant inputs. */
#include "plugin.h"

#include <stdlib.h>
#include <string.h>

typedef struct kernel {
    OrtKernelImpl base;
    bool mul;
    float *packed; /* twice the weight, to see that it is used */
    size_t packed_count;
} kernel;

static OrtStatusPtr pack(OrtKernelImpl *self, const OrtValue *tensor, int index,
                         OrtAllocator *allocator, OrtSharedPrePackedWeightCache *cache,
                         bool *is_packed) {
    kernel *k = (kernel *)self;
    const void *data;
    (void)cache;
    *is_packed = false;
    if (index != 1 || !allocator) return NULL;
    TRY(count_of(tensor, &k->packed_count, NULL, NULL));
    TRY(ort->GetTensorData(tensor, &data));
    k->packed = malloc(k->packed_count * sizeof(float));
    for (size_t i = 0; i < k->packed_count; i++) k->packed[i] = 2 * ((const float *)data)[i];
    note("PrePackWeight");
    *is_packed = true;
    return NULL;
}

static OrtStatusPtr compute(OrtKernelImpl *self, OrtKernelContext *context) {
    const kernel *k = (const kernel *)self;
    const OrtValue *a, *b;
    OrtValue *y;
    const void *x;
    const void *w = k->packed;
    void *out;
    int64_t dims[8];
    size_t count, rank, other = k->packed_count;
    note("Compute");
    TRY(ort->KernelContext_GetInput(context, 0, &a));
    TRY(count_of(a, &count, dims, &rank));
    TRY(ort->GetTensorData(a, &x));
    if (!w) {
        TRY(ort->KernelContext_GetInput(context, 1, &b));
        TRY(count_of(b, &other, NULL, NULL));
        TRY(ort->GetTensorData(b, &w));
    }
    TRY(ort->KernelContext_GetOutput(context, 0, dims, rank, &y));
    TRY(ort->GetTensorMutableData(y, &out));
    float scale = k->packed ? 0.5f : 1;
    for (size_t i = 0; i < count; i++) {
        float v = ((const float *)x)[i], by = scale * ((const float *)w)[i % other];
        ((float *)out)[i] = k->mul ? v * by : v + by;
    }
    return NULL;
}

static void release_kernel(OrtKernelImpl *self) {
    note("kernel released");
    free(((kernel *)self)->packed);
    free(self);
}

static OrtStatus *create_kernel(void *state, const OrtKernelInfo *info, OrtKernelImpl **out) {
    char op[32];
    size_t size = sizeof op, inputs;
    const OrtEp *ep;
    (void)state;
    TRY(ort->KernelInfo_GetOperatorType(info, op, &size));
    TRY(ort->KernelInfo_GetInputCount(info, &inputs));
    TRY(ep_api->KernelInfo_GetEp(info, &ep));
    note(inputs == 2 && ep ? "kernel made" : "kernel made of nothing");
    kernel *k = calloc(1, sizeof *k);
    k->mul = strcmp(op, "Mul") == 0;
    k->base = (OrtKernelImpl){.ort_version_supported = 24,
                              .Compute = compute,
                              .Release = release_kernel,
                              .PrePackWeight = pack};
    *out = &k->base;
    return NULL;
}

void kernels_init(factory *f) {
    factory_init(f, "TestKernels");
    registry_init(f, create_kernel);
}
