/* plugin.c - a plug-in with three providers for tests: one that compiles, one of kernels that pack
 * their weights, one with memory of its own. */
#include "plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const OrtApi *ort;
const OrtEpApi *ep_api;

/* ---- What happened ---- */

static struct {
    const char *what;
    int times;
} notes[64];

void note(const char *what) {
    for (int i = 0; i < 64; i++) {
        if (notes[i].what && strcmp(notes[i].what, what) != 0) continue;
        notes[i].what = what;
        notes[i].times++;
        return;
    }
}

/* How often something happened since the last question. */
ORT_EXPORTED int plugin_count(const char *what);
int plugin_count(const char *what) {
    for (int i = 0; i < 64 && notes[i].what; i++) {
        if (strcmp(notes[i].what, what) != 0) continue;
        int times = notes[i].times;
        notes[i].times = 0;
        return times;
    }
    return 0;
}

static const char *failing = "";

ORT_EXPORTED void plugin_fail(const char *what);
void plugin_fail(const char *what) {
    failing = what;
}

OrtStatus *fail_at(const char *what) {
    return strcmp(what, failing) == 0
               ? ort->CreateStatus(ORT_EP_FAIL, "the plug-in was told to fail")
               : NULL;
}

/* ---- Shared pieces ---- */

static const char *get_name(const OrtEpFactory *self) {
    return ((const factory *)self)->name;
}

static const char *get_vendor(const OrtEpFactory *self) {
    (void)self;
    return "Tests";
}

static uint32_t get_vendor_id(const OrtEpFactory *self) {
    (void)self;
    return 0x7e57;
}

static const char *get_version(const OrtEpFactory *self) {
    (void)self;
    return "1.2.3";
}

OrtStatus *new_ep_device(factory *f, const OrtHardwareDevice *const *devices, size_t count,
                         OrtEpDevice **out, size_t *out_count) {
    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (ort->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
        OrtKeyValuePairs *metadata, *options;
        ort->CreateKeyValuePairs(&metadata);
        ort->CreateKeyValuePairs(&options);
        ort->AddKeyValuePair(metadata, "kind", f->name);
        ort->AddKeyValuePair(options, "speed", "fast");
        OrtStatus *status = ep_api->CreateEpDevice(&f->base, devices[i], metadata, options, out);
        ort->ReleaseKeyValuePairs(metadata);
        ort->ReleaseKeyValuePairs(options);
        if (status) return status;
        *out_count = 1;
        if (f->memory) TRY(ep_api->EpDevice_AddAllocatorInfo(*out, f->memory));
        break;
    }
    return NULL;
}

static OrtStatusPtr get_devices(OrtEpFactory *self, const OrtHardwareDevice *const *devices,
                                size_t count, OrtEpDevice **out, size_t room, size_t *out_count) {
    *out_count = 0;
    return room ? new_ep_device((factory *)self, devices, count, out, out_count) : NULL;
}

static void release_ep(OrtEpFactory *self, OrtEp *ep) {
    (void)self;
    note("ReleaseEp");
    free(ep);
}

static bool no_streams(const OrtEpFactory *self) {
    (void)self;
    return false;
}

static OrtStatusPtr no_allocator(OrtEpFactory *self, const OrtMemoryInfo *info,
                                 const OrtKeyValuePairs *options, OrtAllocator **out) {
    (void)self, (void)info, (void)options;
    *out = NULL;
    return NULL;
}

static void no_release(OrtEpFactory *self, OrtAllocator *allocator) {
    (void)self, (void)allocator;
}

static OrtStatusPtr no_transfer(OrtEpFactory *self, OrtDataTransferImpl **out) {
    (void)self;
    *out = NULL;
    return NULL;
}

void factory_init(factory *f, const char *name) {
    f->name = name;
    f->base = (OrtEpFactory){.ort_version_supported = 24,
                             .GetName = get_name,
                             .GetVendor = get_vendor,
                             .GetVendorId = get_vendor_id,
                             .GetVersion = get_version,
                             .GetSupportedDevices = get_devices,
                             .ReleaseEp = release_ep,
                             .IsStreamAware = no_streams,
                             .CreateAllocator = no_allocator,
                             .ReleaseAllocator = no_release,
                             .CreateDataTransfer = no_transfer};
}

OrtStatus *count_of(const OrtValue *value, size_t *count, int64_t *dims, size_t *rank) {
    OrtTensorTypeAndShapeInfo *info;
    TRY(ort->GetTensorTypeAndShape(value, &info));
    OrtStatus *status = ort->GetTensorShapeElementCount(info, count);
    if (!status && rank) status = ort->GetDimensionsCount(info, rank);
    if (!status && dims) status = ort->GetDimensions(info, dims, *rank);
    ort->ReleaseTensorTypeAndShapeInfo(info);
    return status;
}

/* ---- What a plug-in exports ---- */

static factory factories[3];

ORT_EXPORTED OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base,
                                          const OrtLogger *logger, OrtEpFactory **out, size_t room,
                                          size_t *count);
OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger,
                             OrtEpFactory **out, size_t room, size_t *count) {
    (void)name;
    ort = base->GetApi(24);
    if (!ort || !logger || room < 3) {
        *count = 0;
        return ort ? ort->CreateStatus(ORT_INVALID_ARGUMENT, "no room for three factories") : NULL;
    }
    ep_api = ort->GetEpApi();
    compiling_init(&factories[0]);
    kernels_init(&factories[1]);
    device_init(&factories[2]);
    for (int i = 0; i < 3; i++) out[i] = &factories[i].base;
    *count = 3;
    return NULL;
}

ORT_EXPORTED OrtStatus *ReleaseEpFactory(OrtEpFactory *self);
OrtStatus *ReleaseEpFactory(OrtEpFactory *self) {
    factory *f = (factory *)self;
    if (f->memory) ort->ReleaseMemoryInfo(f->memory);
    f->memory = NULL;
    return NULL;
}
