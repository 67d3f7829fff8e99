/* ep_memory.c - memory of devices: tensors in it, and the environment's allocators for it. */
#include "ort/ep.h"

#include <stdlib.h>
#include <string.h>

bool ort_on_host(const OrtMemoryInfo *info) {
    return info->device == OrtMemoryInfoDeviceType_CPU ||
           info->device_memory == OrtDeviceMemoryType_HOST_ACCESSIBLE;
}

/* ---- Where values are ---- */

typedef struct placed { /* a value whose elements the host cannot read */
    const OrtValue *value;
    OrtMemoryInfo info;
    struct placed *next;
} placed;

enum { BUCKETS = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static placed *buckets[BUCKETS];
static atomic_size_t placed_count; /* so that nobody looks while there is none */

static placed **bucket_of(const OrtValue *value) {
    return &buckets[((uintptr_t)value >> 6) % BUCKETS];
}

const OrtMemoryInfo *ort_value_memory(const OrtValue *value) {
    if (!atomic_load_explicit(&placed_count, memory_order_acquire)) return &ort_cpu_memory;
    const OrtMemoryInfo *info = &ort_cpu_memory;
    pthread_mutex_lock(&lock);
    for (const placed *p = *bucket_of(value); p; p = p->next)
        if (p->value == value) info = &p->info;
    pthread_mutex_unlock(&lock);
    return info;
}

OrtStatus *ort_value_place(OrtValue *value, const OrtMemoryInfo *info) {
    placed *p = malloc(sizeof *p);
    if (!p) return ort_fail_memory();
    *p = (placed){.value = value, .info = *info};
    pthread_mutex_lock(&lock);
    placed **bucket = bucket_of(value);
    p->next = *bucket;
    *bucket = p;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&placed_count, 1);
    return NULL;
}

static void forget(const OrtValue *value) {
    pthread_mutex_lock(&lock);
    placed **at = bucket_of(value);
    while (*at && (*at)->value != value) at = &(*at)->next;
    placed *p = *at;
    if (p) *at = p->next;
    pthread_mutex_unlock(&lock);
    if (p) atomic_fetch_sub(&placed_count, 1);
    free(p);
}

/* ---- Tensors ---- */

typedef struct owner {       /* of a tensor's elements on a device */
    OrtAllocator *allocator; /* NULL: the caller's memory */
    OrtValue *value;
} owner;

static void release(void *ctx, void *data) {
    owner *o = ctx;
    forget(o->value);
    if (o->allocator && data) o->allocator->Free(o->allocator, data);
    free(o);
}

/* A tensor over memory of a device, which goes back to the allocator if there is one. */
OrtStatus *ort_tensor_over(OrtAllocator *allocator, const OrtMemoryInfo *info, void *data,
                           size_t bytes, const ort_tensor_shape *shape, OrtValue **out) {
    owner *o = calloc(1, sizeof *o);
    if (!o) return ort_fail_memory();
    o->allocator = allocator;
    sn_value *v;
    sn_error err;
    if (sn_tensor_adopt(shape->dtype, shape->rank, shape->dims, data, bytes, release, o, &v,
                        &err) != SN_OK) {
        free(o);
        return ort_fail_sn(&err);
    }
    o->value = ort_of_sn(v);
    OrtStatus *status = ort_value_place(o->value, info);
    if (status) {
        o->allocator = NULL;
        sn_value_destroy(v);
        return status;
    }
    *out = o->value;
    return NULL;
}

OrtStatus *ort_tensor_on(OrtAllocator *allocator, sn_dtype dtype, int rank, const int64_t *dims,
                         OrtValue **out) {
    const OrtMemoryInfo *info = allocator->Info(allocator);
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(count, (size_t)dims[i], &count))
            return ort_fail(ORT_INVALID_ARGUMENT, "the shape of a tensor is too large");
    size_t bytes = sn_dtype_bytes(dtype, count);
    void *data = allocator->Alloc(allocator, bytes ? bytes : 1);
    if (!data)
        return ort_fail(ORT_FAIL, "%zu bytes of '%s' memory are not there", bytes, info->name);
    OrtStatus *status =
        ort_tensor_over(allocator, info, data, bytes, &(ort_tensor_shape){dtype, rank, dims}, out);
    if (status) allocator->Free(allocator, data);
    return status;
}

/* ---- What plug-ins ask ---- */

const OrtMemoryDevice *ort_ep_MemoryInfo_GetMemoryDevice(const OrtMemoryInfo *info) {
    return info ? ort_memory_device(info) : NULL;
}

const OrtMemoryDevice *ort_ep_Value_GetMemoryDevice(const OrtValue *value) {
    return value ? ort_memory_device(ort_value_memory(value)) : NULL;
}

bool ort_ep_MemoryDevice_AreEqual(const OrtMemoryDevice *a, const OrtMemoryDevice *b) {
    if (!a || !b) return a == b;
    return a->info.device == b->info.device && a->info.device_memory == b->info.device_memory &&
           a->info.vendor == b->info.vendor && a->info.id == b->info.id;
}

OrtMemoryInfoDeviceType ort_ep_MemoryDevice_GetDeviceType(const OrtMemoryDevice *device) {
    return device ? device->info.device : OrtMemoryInfoDeviceType_CPU;
}

OrtDeviceMemoryType ort_ep_MemoryDevice_GetMemoryType(const OrtMemoryDevice *device) {
    return device ? device->info.device_memory : OrtDeviceMemoryType_DEFAULT;
}

uint32_t ort_ep_MemoryDevice_GetVendorId(const OrtMemoryDevice *device) {
    return device ? device->info.vendor : 0;
}

uint32_t ort_ep_MemoryDevice_GetDeviceId(const OrtMemoryDevice *device) {
    return device ? (uint32_t)device->info.id : 0;
}

/* ---- The environment's allocators ---- */

static const OrtMemoryInfo *memory_of(const OrtEpDevice *device, OrtDeviceMemoryType type) {
    return type == OrtDeviceMemoryType_HOST_ACCESSIBLE ? device->host_memory : device->memory;
}

static OrtStatus *make_shared(OrtEpDevice *device, OrtDeviceMemoryType type,
                              const OrtKeyValuePairs *options, OrtAllocator **out) {
    const OrtMemoryInfo *info = memory_of(device, type);
    OrtAllocator **place = &device->shared[type == OrtDeviceMemoryType_HOST_ACCESSIBLE];
    if (!info || !device->factory || !ORT_EP_HAS(device->factory, CreateAllocator, 23))
        return ort_fail(ORT_INVALID_ARGUMENT, "provider '%s' has no allocator of this kind",
                        device->name);
    OrtAllocator *made = NULL;
    ORT_TRY(device->factory->CreateAllocator(device->factory, info, options, &made));
    if (!made) return ort_fail(ORT_FAIL, "provider '%s' gave no allocator", device->name);
    if (*place && ORT_EP_HAS(device->factory, ReleaseAllocator, 23))
        device->factory->ReleaseAllocator(device->factory, *place);
    *place = made;
    *out = made;
    return NULL;
}

OrtStatusPtr ort_CreateSharedAllocator(OrtEnv *env, const OrtEpDevice *ep_device,
                                       OrtDeviceMemoryType mem_type,
                                       OrtAllocatorType allocator_type,
                                       const OrtKeyValuePairs *allocator_options,
                                       OrtAllocator **allocator) {
    NEED(env);
    NEED(ep_device);
    if (allocator_type != OrtDeviceAllocator)
        return ort_fail(ORT_INVALID_ARGUMENT, "Only OrtDeviceAllocator is supported here.");
    OrtAllocator *made = NULL;
    ORT_TRY(make_shared((OrtEpDevice *)ep_device, mem_type, allocator_options, &made));
    if (allocator) *allocator = made;
    return NULL;
}

static bool same_memory(const OrtMemoryInfo *a, const OrtMemoryInfo *b) {
    return ort_ep_MemoryDevice_AreEqual(ort_memory_device(a), ort_memory_device(b));
}

/* NULL is no failure: nobody has such memory. */
OrtStatusPtr ort_GetSharedAllocator(OrtEnv *env, const OrtMemoryInfo *mem_info,
                                    OrtAllocator **allocator) {
    NEED(env);
    NEED(mem_info);
    NEED(allocator);
    *allocator = NULL;
    if (same_memory(mem_info, &ort_cpu_memory)) *allocator = &ort_cpu_allocator;
    const OrtEpDevice *const *all = NULL;
    size_t count = 0;
    ORT_TRY(ort_GetEpDevices(env, &all, &count));
    for (size_t i = 0; i < count && !*allocator; i++)
        for (int k = 0; k < 2 && !*allocator; k++) {
            OrtDeviceMemoryType type =
                k ? OrtDeviceMemoryType_HOST_ACCESSIBLE : OrtDeviceMemoryType_DEFAULT;
            const OrtMemoryInfo *info = memory_of(all[i], type);
            if (!info || !same_memory(info, mem_info)) continue;
            *allocator = all[i]->shared[k];
            if (!*allocator) ORT_TRY(make_shared((OrtEpDevice *)all[i], type, NULL, allocator));
        }
    return NULL;
}

OrtStatusPtr ort_ReleaseSharedAllocator(OrtEnv *env, const OrtEpDevice *ep_device,
                                        OrtDeviceMemoryType mem_type) {
    NEED(env);
    NEED(ep_device);
    OrtAllocator **place =
        &((OrtEpDevice *)ep_device)->shared[mem_type == OrtDeviceMemoryType_HOST_ACCESSIBLE];
    if (*place && ORT_EP_HAS(ep_device->factory, ReleaseAllocator, 23))
        ep_device->factory->ReleaseAllocator(ep_device->factory, *place);
    *place = NULL;
    return NULL;
}
