/* plugin_device.c - a provider whose memory the host cannot read: pointers into it are shifted, so
 * that whoever follows one faults. Copies and kernels shift them back. */
#include "plugin.h"

#include <stdlib.h>
#include <string.h>

enum { SHIFT = 47 }; /* a bit that no address of a process has */

static void *to_device(void *p) {
    return (void *)((uintptr_t)p | (uintptr_t)1 << SHIFT);
}

/* The host's address of what may be on the device. */
static const void *to_host(const void *p) {
    return (const void *)((uintptr_t)p & ~((uintptr_t)1 << SHIFT));
}

static OrtMemoryInfo *device_memory;

/* ---- The allocator ---- */

static void *allocate(OrtAllocator *self, size_t size) {
    (void)self;
    void *p = aligned_alloc(64, (size + 127) & ~(size_t)63);
    note("Alloc");
    return p ? to_device(p) : NULL;
}

static void release(OrtAllocator *self, void *p) {
    (void)self;
    note("Free");
    if (p) free((void *)(uintptr_t)to_host(p));
}

static const OrtMemoryInfo *info_of(const OrtAllocator *self) {
    (void)self;
    return device_memory;
}

static OrtAllocator allocator = {
    .version = 24, .Alloc = allocate, .Free = release, .Info = info_of};

static OrtStatusPtr create_allocator(OrtEpFactory *self, const OrtMemoryInfo *info,
                                     const OrtKeyValuePairs *options, OrtAllocator **out) {
    (void)self, (void)info, (void)options;
    *out = &allocator;
    return NULL;
}

static void release_allocator(OrtEpFactory *self, OrtAllocator *a) {
    (void)self, (void)a;
}

/* ---- Copies ---- */

static bool is_device(const OrtMemoryDevice *device) {
    return ep_api->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_GPU &&
           ep_api->MemoryDevice_GetVendorId(device) == 0x7e57;
}

static bool can_copy(const OrtDataTransferImpl *self, const OrtMemoryDevice *from,
                     const OrtMemoryDevice *to) {
    (void)self;
    return is_device(from) || is_device(to);
}

static OrtStatusPtr copy_tensors(OrtDataTransferImpl *self, const OrtValue **from, OrtValue **to,
                                 OrtSyncStream **streams, size_t count) {
    (void)self, (void)streams;
    for (size_t i = 0; i < count; i++) {
        const void *source;
        void *target;
        size_t bytes;
        bool up = is_device(ep_api->Value_GetMemoryDevice(to[i]));
        TRY(ort->GetTensorSizeInBytes(from[i], &bytes));
        TRY(ort->GetTensorData(from[i], &source));
        TRY(ort->GetTensorMutableData(to[i], &target));
        if (is_device(ep_api->Value_GetMemoryDevice(from[i]))) source = to_host(source);
        if (up) target = (void *)(uintptr_t)to_host(target);
        memcpy(target, source, bytes);
        note(up ? "copy up" : "copy down");
    }
    return NULL;
}

static void release_transfer(OrtDataTransferImpl *self) {
    (void)self;
}

static OrtDataTransferImpl transfer = {.ort_version_supported = 24,
                                       .Release = release_transfer,
                                       .CanCopy = can_copy,
                                       .CopyTensors = copy_tensors};

static OrtStatusPtr create_transfer(OrtEpFactory *self, OrtDataTransferImpl **out) {
    (void)self;
    *out = &transfer;
    return NULL;
}

/* ---- Streams ---- */

static void release_stream(OrtSyncStreamImpl *self) {
    note("stream released");
    free(self);
}

static void *stream_handle(OrtSyncStreamImpl *self) {
    return self;
}

static void release_notification(OrtSyncNotificationImpl *self) {
    free(self);
}

static OrtStatusPtr nothing(OrtSyncNotificationImpl *self) {
    (void)self;
    return NULL;
}

static OrtStatusPtr wait_on_device(OrtSyncNotificationImpl *self, OrtSyncStream *stream) {
    (void)self, (void)stream;
    return NULL;
}

static OrtStatusPtr create_notification(OrtSyncStreamImpl *self, OrtSyncNotificationImpl **out) {
    (void)self;
    OrtSyncNotificationImpl *n = calloc(1, sizeof *n);
    *n = (OrtSyncNotificationImpl){.ort_version_supported = 24,
                                   .Release = release_notification,
                                   .Activate = nothing,
                                   .WaitOnDevice = wait_on_device,
                                   .WaitOnHost = nothing};
    *out = n;
    return NULL;
}

static OrtStatusPtr flush(OrtSyncStreamImpl *self) {
    (void)self;
    note("Flush");
    return NULL;
}

static OrtStatusPtr run_end(OrtSyncStreamImpl *self) {
    (void)self;
    return NULL;
}

static OrtStatusPtr create_stream(OrtEpFactory *self, const OrtMemoryDevice *memory,
                                  const OrtKeyValuePairs *options, OrtSyncStreamImpl **out) {
    (void)self, (void)options;
    if (!is_device(memory)) return ort->CreateStatus(ORT_INVALID_ARGUMENT, "not this memory");
    OrtSyncStreamImpl *s = calloc(1, sizeof *s);
    *s = (OrtSyncStreamImpl){.ort_version_supported = 24,
                             .Release = release_stream,
                             .GetHandle = stream_handle,
                             .CreateNotification = create_notification,
                             .Flush = flush,
                             .OnSessionRunEnd = run_end};
    note("stream made");
    *out = s;
    return NULL;
}

static bool has_streams(const OrtEpFactory *self) {
    (void)self;
    return true;
}

/* ---- Kernels ---- */

typedef struct kernel {
    OrtKernelImpl base;
    bool mul;
} kernel;

static OrtStatusPtr compute(OrtKernelImpl *self, OrtKernelContext *context) {
    const kernel *k = (const kernel *)self;
    const OrtValue *in[2];
    OrtValue *y;
    const void *data[2];
    void *out, *stream;
    int64_t dims[8];
    size_t count[2], rank;
    for (size_t i = 0; i < 2; i++) {
        TRY(ort->KernelContext_GetInput(context, 1 - i, &in[1 - i]));
        TRY(count_of(in[1 - i], &count[1 - i], dims, &rank));
        TRY(ort->GetTensorData(in[1 - i], &data[1 - i]));
        if (!is_device(ep_api->Value_GetMemoryDevice(in[1 - i]))) note("an input on the host");
    }
    TRY(ort->KernelContext_GetOutput(context, 0, dims, rank, &y));
    TRY(ort->GetTensorMutableData(y, &out));
    TRY(ort->KernelContext_GetGPUComputeStream(context, &stream));
    note(is_device(ep_api->Value_GetMemoryDevice(y)) ? "Compute" : "an output on the host");
    if (!stream) note("no stream");
    const float *a = to_host(data[0]), *b = to_host(data[1]);
    float *to = (float *)(uintptr_t)to_host(out);
    for (size_t i = 0; i < count[0]; i++)
        to[i] = k->mul ? a[i] * b[i % count[1]] : a[i] + b[i % count[1]];
    return NULL;
}

static void release_kernel(OrtKernelImpl *self) {
    free(self);
}

static OrtStatus *create_kernel(void *state, const OrtKernelInfo *info, OrtKernelImpl **out) {
    char op[32];
    size_t size = sizeof op;
    (void)state;
    TRY(ort->KernelInfo_GetOperatorType(info, op, &size));
    kernel *k = calloc(1, sizeof *k);
    k->mul = strcmp(op, "Mul") == 0;
    k->base =
        (OrtKernelImpl){.ort_version_supported = 24, .Compute = compute, .Release = release_kernel};
    *out = &k->base;
    return NULL;
}

void device_init(factory *f) {
    factory_init(f, "TestDevice");
    registry_init(f, create_kernel);
    f->base.CreateAllocator = create_allocator;
    f->base.ReleaseAllocator = release_allocator;
    f->base.CreateDataTransfer = create_transfer;
    f->base.IsStreamAware = has_streams;
    f->base.CreateSyncStreamForDevice = create_stream;
    OrtStatus *status =
        ort->CreateMemoryInfo_V2("TestDevice", OrtMemoryInfoDeviceType_GPU, 0x7e57, 0,
                                 OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator, &f->memory);
    if (status) ort->ReleaseStatus(status);
    device_memory = f->memory;
}
