/* memory.c - descriptions of memory, and the allocator that names and tensors come from. */
#include "ort/ort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

const OrtMemoryInfo ort_cpu_memory = {.name = "Cpu", .allocator = OrtDeviceAllocator};

/* ---- Descriptions ---- */

/* Names that clients use, with the device each one means. Tensors can be on the CPU only; the
 * others may be described, as clients do before they know what there is. */
static const struct device {
    const char *name;
    OrtMemoryInfoDeviceType type;
} devices[] = {
    {"Cpu", OrtMemoryInfoDeviceType_CPU},          {"CpuPinned", OrtMemoryInfoDeviceType_CPU},
    {"CUDAPinned", OrtMemoryInfoDeviceType_CPU},   {"CudaPinned", OrtMemoryInfoDeviceType_CPU},
    {"HipPinned", OrtMemoryInfoDeviceType_CPU},    {"CannPinned", OrtMemoryInfoDeviceType_CPU},
    {"OpenVINO_CPU", OrtMemoryInfoDeviceType_CPU}, {"QnnHtpShared", OrtMemoryInfoDeviceType_CPU},
    {"Cuda", OrtMemoryInfoDeviceType_GPU},         {"Hip", OrtMemoryInfoDeviceType_GPU},
    {"DML", OrtMemoryInfoDeviceType_GPU},          {"OpenVINO_RT", OrtMemoryInfoDeviceType_GPU},
    {"WebGPU_Buf", OrtMemoryInfoDeviceType_GPU},   {"WebGPU_Buffer", OrtMemoryInfoDeviceType_GPU},
    {"WebNN_Ten", OrtMemoryInfoDeviceType_GPU},    {"WebNN_Tensor", OrtMemoryInfoDeviceType_GPU},
    {"Cann", OrtMemoryInfoDeviceType_NPU},         {"OpenVINO_RT_NPU", OrtMemoryInfoDeviceType_NPU},
};

/* A copy of a description, with a name that must fit. The caller releases it. */
static OrtStatus *new_info(const OrtMemoryInfo *info, const char *name, OrtMemoryInfo **out) {
    if (strlen(name) >= sizeof info->name)
        return ort_fail(ORT_INVALID_ARGUMENT, "the name '%s' of a device has more than %zu letters",
                        name, sizeof info->name - 1);
    OrtMemoryInfo *m = malloc(sizeof *m);
    if (!m) return ort_fail_memory();
    *m = *info;
    snprintf(m->name, sizeof m->name, "%s", name);
    *out = m;
    return NULL;
}

OrtStatusPtr ort_CreateMemoryInfo(const char *name, OrtAllocatorType type, int id,
                                  OrtMemType mem_type, OrtMemoryInfo **out) {
    NEED(name);
    NEED(out);
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        if (strcmp(devices[i].name, name) != 0) continue;
        OrtMemoryInfo m = {.allocator = type, .id = id, .type = mem_type};
        m.device = devices[i].type;
        return new_info(&m, name, out);
    }
    return ort_fail(ORT_INVALID_ARGUMENT, "CreateMemoryInfo: there is no device '%s'", name);
}

OrtStatusPtr ort_CreateMemoryInfo_V2(const char *name, OrtMemoryInfoDeviceType device_type,
                                     uint32_t vendor_id, int32_t device_id,
                                     OrtDeviceMemoryType mem_type, size_t alignment,
                                     OrtAllocatorType allocator_type, OrtMemoryInfo **out) {
    NEED(name);
    NEED(out);
    if (device_type < OrtMemoryInfoDeviceType_CPU || device_type > OrtMemoryInfoDeviceType_NPU)
        return ort_fail(ORT_INVALID_ARGUMENT, "CreateMemoryInfo_V2: device type %d is not known",
                        (int)device_type);
    OrtMemoryInfo m = {.allocator = allocator_type,
                       .id = device_id,
                       .type = mem_type == OrtDeviceMemoryType_DEFAULT ? OrtMemTypeDefault
                                                                       : OrtMemTypeCPU,
                       .device = device_type,
                       .device_memory = mem_type,
                       .vendor = vendor_id,
                       .alignment = alignment};
    return new_info(&m, name, out);
}

OrtStatusPtr ort_CreateCpuMemoryInfo(OrtAllocatorType type, OrtMemType mem_type,
                                     OrtMemoryInfo **out) {
    NEED(out);
    OrtMemoryInfo m = {.allocator = type, .type = mem_type};
    return new_info(&m, "Cpu", out);
}

void ort_ReleaseMemoryInfo(OrtMemoryInfo *input) {
    if (input != &ort_cpu_memory) free(input);
}

OrtStatusPtr ort_CompareMemoryInfo(const OrtMemoryInfo *info1, const OrtMemoryInfo *info2,
                                   int *out) {
    NEED(info1);
    NEED(info2);
    NEED(out);
    bool same = strcmp(info1->name, info2->name) == 0 && info1->allocator == info2->allocator &&
                info1->id == info2->id && info1->type == info2->type &&
                info1->device == info2->device && info1->vendor == info2->vendor;
    *out = same ? 0 : -1;
    return NULL;
}

OrtStatusPtr ort_MemoryInfoGetName(const OrtMemoryInfo *ptr, const char **out) {
    NEED(ptr);
    NEED(out);
    *out = ptr->name;
    return NULL;
}

OrtStatusPtr ort_MemoryInfoGetId(const OrtMemoryInfo *ptr, int *out) {
    NEED(ptr);
    NEED(out);
    *out = ptr->id;
    return NULL;
}

OrtStatusPtr ort_MemoryInfoGetMemType(const OrtMemoryInfo *ptr, OrtMemType *out) {
    NEED(ptr);
    NEED(out);
    *out = ptr->type;
    return NULL;
}

OrtStatusPtr ort_MemoryInfoGetType(const OrtMemoryInfo *ptr, OrtAllocatorType *out) {
    NEED(ptr);
    NEED(out);
    *out = ptr->allocator;
    return NULL;
}

void ort_MemoryInfoGetDeviceType(const OrtMemoryInfo *ptr, OrtMemoryInfoDeviceType *out) {
    if (out) *out = ptr ? ptr->device : OrtMemoryInfoDeviceType_CPU;
}

OrtDeviceMemoryType ort_MemoryInfoGetDeviceMemType(const OrtMemoryInfo *ptr) {
    return ptr ? ptr->device_memory : OrtDeviceMemoryType_DEFAULT;
}

uint32_t ort_MemoryInfoGetVendorId(const OrtMemoryInfo *ptr) {
    return ptr ? ptr->vendor : 0;
}

/* ---- The allocator ---- */

static atomic_size_t allocations, releases;

/* The allocator's members. A request for nothing gives NULL, which is no failure. */
static void *alloc(OrtAllocator *self, size_t size) {
    (void)self;
    if (size == 0) return NULL;
    void *p = NULL;
    if (posix_memalign(&p, ALIGNMENT, size) != 0) return NULL;
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return p;
}

/* Takes memory of alloc(), or NULL. */
static void release(OrtAllocator *self, void *p) {
    (void)self;
    if (p) atomic_fetch_add_explicit(&releases, 1, memory_order_relaxed);
    free(p);
}

static const OrtMemoryInfo *info_of(const OrtAllocator *self) {
    (void)self;
    return &ort_cpu_memory;
}

/* Calls of alloc() and release() since the process began. The caller releases the pairs. */
static OrtStatusPtr stats_of(const OrtAllocator *self, OrtKeyValuePairs **out) {
    (void)self;
    NEED(out);
    OrtKeyValuePairs *pairs = NULL;
    ort_CreateKeyValuePairs(&pairs);
    if (!pairs) return ort_fail_memory();
    char text[32];
    snprintf(text, sizeof text, "%zu", atomic_load(&allocations));
    bool good = ort_pairs_set(pairs, "NumAllocs", text);
    snprintf(text, sizeof text, "%zu", atomic_load(&releases));
    good = good && ort_pairs_set(pairs, "NumFrees", text);
    if (!good) {
        ort_ReleaseKeyValuePairs(pairs);
        return ort_fail_memory();
    }
    *out = pairs;
    return NULL;
}

/* There are no streams: the same as alloc(). */
static void *alloc_on_stream(OrtAllocator *self, size_t size, OrtSyncStream *stream) {
    (void)stream;
    return alloc(self, size);
}

/* Nothing is kept back that could be given up. */
static OrtStatusPtr shrink(OrtAllocator *self) {
    (void)self;
    return NULL;
}

OrtAllocator ort_cpu_allocator = {.version = ORT_API_VERSION,
                                  .Alloc = alloc,
                                  .Free = release,
                                  .Info = info_of,
                                  .Reserve = alloc,
                                  .GetStats = stats_of,
                                  .AllocOnStream = alloc_on_stream,
                                  .Shrink = shrink};

OrtStatusPtr ort_GetAllocatorWithDefaultOptions(OrtAllocator **out) {
    NEED(out);
    *out = &ort_cpu_allocator;
    return NULL;
}

OrtStatusPtr ort_AllocatorAlloc(OrtAllocator *ort_allocator, size_t size, void **out) {
    NEED(ort_allocator);
    NEED(out);
    void *p = ort_allocator->Alloc(ort_allocator, size);
    if (!p && size) return ort_fail_memory();
    *out = p;
    return NULL;
}

OrtStatusPtr ort_AllocatorFree(OrtAllocator *ort_allocator, void *p) {
    NEED(ort_allocator);
    ort_allocator->Free(ort_allocator, p);
    return NULL;
}

OrtStatusPtr ort_AllocatorGetInfo(const OrtAllocator *ort_allocator, const OrtMemoryInfo **out) {
    NEED(ort_allocator);
    NEED(out);
    *out = ort_allocator->Info(ort_allocator);
    return NULL;
}

OrtStatusPtr ort_AllocatorGetStats(const OrtAllocator *ort_allocator, OrtKeyValuePairs **out) {
    NEED(ort_allocator);
    NEED(out);
    if (ort_allocator->version >= 23 && ort_allocator->GetStats)
        return ort_allocator->GetStats(ort_allocator, out);
    ort_CreateKeyValuePairs(out);
    return *out ? NULL : ort_fail_memory();
}

/* Only the CPU has memory here. */
static OrtStatus *refuse_device(const char *function, const OrtMemoryInfo *info) {
    return ort_fail(ORT_INVALID_ARGUMENT, "%s: there is no memory '%s' here, only 'Cpu'", function,
                    info->name);
}

OrtStatusPtr ort_CreateAllocator(const OrtSession *session, const OrtMemoryInfo *mem_info,
                                 OrtAllocator **out) {
    NEED(session);
    NEED(mem_info);
    NEED(out);
    if (mem_info->device != OrtMemoryInfoDeviceType_CPU)
        return refuse_device("CreateAllocator", mem_info);
    *out = &ort_cpu_allocator;
    return NULL;
}

void ort_ReleaseAllocator(OrtAllocator *input) {
    (void)input; /* there is one allocator, and it stays */
}

/* ---- Allocators shared by sessions ---- */

/* Sessions plan their own memory; a registration is remembered so that it can be taken back. */
static pthread_mutex_t registered_lock = PTHREAD_MUTEX_INITIALIZER;
static bool registered;

/* Remembers that one is registered. A second one is refused. */
static OrtStatus *add_allocator(const OrtMemoryInfo *info) {
    if (info->device != OrtMemoryInfoDeviceType_CPU)
        return refuse_device("RegisterAllocator", info);
    pthread_mutex_lock(&registered_lock);
    registered = true; /* in place of one that was there */
    pthread_mutex_unlock(&registered_lock);
    return NULL;
}

OrtStatusPtr ort_CreateAndRegisterAllocator(OrtEnv *env, const OrtMemoryInfo *mem_info,
                                            const OrtArenaCfg *arena_cfg) {
    (void)arena_cfg;
    NEED(env);
    NEED(mem_info);
    return add_allocator(mem_info);
}

OrtStatusPtr ort_CreateAndRegisterAllocatorV2(OrtEnv *env, const char *provider_type,
                                              const OrtMemoryInfo *mem_info,
                                              const OrtArenaCfg *arena_cfg,
                                              const char *const *provider_options_keys,
                                              const char *const *provider_options_values,
                                              size_t num_keys) {
    (void)arena_cfg, (void)provider_options_keys, (void)provider_options_values, (void)num_keys;
    NEED(env);
    NEED(provider_type);
    NEED(mem_info);
    if (strcmp(provider_type, "CPUExecutionProvider") != 0)
        return ort_fail(ORT_INVALID_ARGUMENT, "there is no provider '%s'", provider_type);
    return add_allocator(mem_info);
}

OrtStatusPtr ort_RegisterAllocator(OrtEnv *env, OrtAllocator *allocator) {
    NEED(env);
    NEED(allocator);
    const OrtMemoryInfo *info = allocator->Info ? allocator->Info(allocator) : NULL;
    return info ? add_allocator(info)
                : ort_fail(ORT_INVALID_ARGUMENT, "the allocator does not tell its memory");
}

OrtStatusPtr ort_UnregisterAllocator(OrtEnv *env, const OrtMemoryInfo *mem_info) {
    NEED(env);
    NEED(mem_info);
    pthread_mutex_lock(&registered_lock);
    bool was = registered && mem_info->device == OrtMemoryInfoDeviceType_CPU;
    if (was) registered = false;
    pthread_mutex_unlock(&registered_lock);
    return was ? NULL
               : ort_fail(ORT_INVALID_ARGUMENT, "no allocator for '%s' memory is registered",
                          mem_info->name);
}

/* ---- Arena settings: checked and accepted; sessions plan their memory and need none ---- */

struct OrtArenaCfg {
    size_t most;
};

OrtStatusPtr ort_CreateArenaCfg(size_t max_mem, int arena_extend_strategy,
                                int initial_chunk_size_bytes, int max_dead_bytes_per_chunk,
                                OrtArenaCfg **out) {
    (void)arena_extend_strategy, (void)initial_chunk_size_bytes, (void)max_dead_bytes_per_chunk;
    NEED(out);
    OrtArenaCfg *cfg = malloc(sizeof *cfg);
    if (!cfg) return ort_fail_memory();
    cfg->most = max_mem;
    *out = cfg;
    return NULL;
}

OrtStatusPtr ort_CreateArenaCfgV2(const char *const *arena_config_keys,
                                  const size_t *arena_config_values, size_t num_keys,
                                  OrtArenaCfg **out) {
    static const char *const known[] = {"max_mem",
                                        "arena_extend_strategy",
                                        "initial_chunk_size_bytes",
                                        "max_dead_bytes_per_chunk",
                                        "initial_growth_chunk_size_bytes",
                                        "max_power_of_two_extend_bytes"};
    NEED(out);
    if (num_keys) NEED(arena_config_keys);
    if (num_keys) NEED(arena_config_values);
    size_t most = 0;
    for (size_t i = 0; i < num_keys; i++) {
        const char *key = arena_config_keys[i] ? arena_config_keys[i] : "";
        size_t k = 0;
        while (k < sizeof known / sizeof *known && strcmp(known[k], key) != 0) k++;
        if (k == sizeof known / sizeof *known)
            return ort_fail(ORT_INVALID_ARGUMENT, "CreateArenaCfgV2: there is no setting '%s'",
                            key);
        if (k == 0) most = arena_config_values[i];
    }
    return ort_CreateArenaCfg(most, -1, -1, -1, out);
}

void ort_ReleaseArenaCfg(OrtArenaCfg *input) {
    free(input);
}
