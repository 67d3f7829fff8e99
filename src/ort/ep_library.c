/* ep_library.c - libraries of plug-in providers: loading, their factories and devices. */
#include "ort/ep.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static ort_library **libraries;
static size_t library_count;
static OrtLogger env_logger;

/* ---- Devices of factories ---- */

OrtStatusPtr ort_ep_CreateEpDevice(OrtEpFactory *factory, const OrtHardwareDevice *hardware,
                                   const OrtKeyValuePairs *metadata,
                                   const OrtKeyValuePairs *options, OrtEpDevice **out) {
    NEED(factory);
    NEED(hardware);
    NEED(out);
    OrtEpDevice *d = calloc(1, sizeof *d);
    if (!d || !ort_replace_text(&d->name, factory->GetName(factory)) ||
        !ort_replace_text(&d->vendor, factory->GetVendor(factory)) ||
        (metadata && !ort_pairs_copy(&d->metadata, metadata)) ||
        (options && !ort_pairs_copy(&d->options, options))) {
        ort_ep_ReleaseEpDevice(d);
        return ort_fail_memory();
    }
    if (ORT_EP_HAS(factory, GetVersion, 23)) {
        const char *version = factory->GetVersion(factory);
        if (version) ort_pairs_set(&d->metadata, "version", version);
    }
    d->hardware = hardware;
    d->factory = factory;
    *out = d;
    return NULL;
}

void ort_ep_ReleaseEpDevice(OrtEpDevice *device) {
    if (!device) return;
    free(device->name);
    free(device->vendor);
    ort_pairs_clear(&device->metadata);
    ort_pairs_clear(&device->options);
    free(device);
}

/* The plug-in's description stays the plug-in's. */
OrtStatusPtr ort_ep_EpDevice_AddAllocatorInfo(OrtEpDevice *device, const OrtMemoryInfo *info) {
    NEED(device);
    NEED(info);
    if (info->allocator == OrtReadOnlyAllocator) return NULL; /* weights are like the rest here */
    if (info->device_memory == OrtDeviceMemoryType_HOST_ACCESSIBLE)
        device->host_memory = info;
    else
        device->memory = info;
    return NULL;
}

/* ---- Loading ---- */

static void release_shared(OrtEpDevice *device) {
    for (int i = 0; i < 2; i++) {
        if (device->shared[i] && ORT_EP_HAS(device->factory, ReleaseAllocator, 23))
            device->factory->ReleaseAllocator(device->factory, device->shared[i]);
        device->shared[i] = NULL;
    }
}

static void unload(ort_library *l) {
    for (size_t i = 0; i < l->device_count; i++) {
        release_shared(l->devices[i]);
        ort_ep_ReleaseEpDevice(l->devices[i]);
    }
    free(l->devices);
    for (size_t i = 0; i < l->factory_count; i++) {
        if (l->transfers[i] && l->transfers[i]->Release) l->transfers[i]->Release(l->transfers[i]);
        if (l->factories[i]) ort_ReleaseStatus(l->release(l->factories[i]));
    }
    if (l->handle) dlclose(l->handle);
    free(l->name);
    free(l);
}

void ort_library_hold(ort_library *library) {
    if (library) atomic_fetch_add(&library->users, 1);
}

void ort_library_drop(ort_library *library) {
    if (library && atomic_fetch_sub(&library->users, 1) == 1) unload(library);
}

static OrtStatus *find_symbol(void *handle, const char *path, const char *name, void *out) {
    void *symbol = dlsym(handle, name);
    if (!symbol) return ort_fail(ORT_FAIL, "Failed to get symbol %s from '%s'", name, path);
    memcpy(out, &symbol, sizeof symbol);
    return NULL;
}

static OrtStatus *check_factory(const OrtEpFactory *f, const char *path) {
    if (!f) return ort_fail(ORT_FAIL, "'%s' counts a factory that is NULL", path);
    if (f->ort_version_supported < 22 || !f->GetName || !f->GetVendor || !f->GetSupportedDevices ||
        !f->CreateEp || !f->ReleaseEp)
        return ort_fail(ORT_FAIL, "a factory of '%s' lacks functions that it must have", path);
    return NULL;
}

static OrtStatus *create_factories(ort_library *l, const char *path) {
    OrtCreateEpFactoriesFn create = NULL;
    ORT_TRY(find_symbol(l->handle, path, "CreateEpFactories", &create));
    ORT_TRY(find_symbol(l->handle, path, "ReleaseEpFactory", &l->release));
    size_t room = sizeof l->factories / sizeof *l->factories, count = 0;
    env_logger.log = ort_env_log();
    ORT_TRY(create(l->name, &ort_api_base, &env_logger, l->factories, room, &count));
    if (count > room)
        return ort_fail(ORT_FAIL, "'%s' has %zu factories, and at most %zu are taken", path, count,
                        room);
    l->factory_count = count;
    for (size_t i = 0; i < count; i++) ORT_TRY(check_factory(l->factories[i], path));
    return NULL;
}

enum { MOST_DEVICES = 64 };

static OrtStatus *list_devices(ort_library *l, OrtEpFactory *f) {
    OrtEpDevice *made[MOST_DEVICES] = {0};
    size_t hardware_count, count = 0;
    const OrtHardwareDevice *const *hardware = ort_hardware(&hardware_count);
    ORT_TRY(f->GetSupportedDevices(f, hardware, hardware_count, made, MOST_DEVICES, &count));
    for (size_t i = 0; i < count && i < MOST_DEVICES; i++) {
        if (!made[i]) continue;
        made[i]->library = l;
        if (!ort_list_add(&l->devices, &l->device_count, made[i])) return ort_fail_memory();
    }
    return NULL;
}

static OrtStatus *create_transfer(OrtEpFactory *f, OrtDataTransferImpl **out) {
    if (!ORT_EP_HAS(f, CreateDataTransfer, 23)) return NULL;
    return f->CreateDataTransfer(f, out);
}

static OrtStatus *load(ort_library *l, const char *path) {
    l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!l->handle) {
        const char *why = dlerror();
        return ort_fail(ORT_FAIL, "Failed to load library '%s': %s", path, why ? why : "");
    }
    ORT_TRY(create_factories(l, path));
    for (size_t i = 0; i < l->factory_count; i++) {
        ORT_TRY(list_devices(l, l->factories[i]));
        ORT_TRY(create_transfer(l->factories[i], &l->transfers[i]));
    }
    for (size_t i = 0; i < l->device_count; i++)
        if (!ort_pairs_set(&l->devices[i]->metadata, "library_path", path))
            return ort_fail_memory();
    return NULL;
}

static size_t find(const char *name) {
    size_t i = 0;
    while (i < library_count && strcmp(libraries[i]->name, name) != 0) i++;
    return i;
}

static OrtStatus *add(const char *name, const char *path) {
    if (find(name) < library_count)
        return ort_fail(ORT_FAIL, "a provider library is registered as '%s' already", name);
    ort_library *l = calloc(1, sizeof *l);
    if (!l || !ort_replace_text(&l->name, name)) {
        free(l);
        return ort_fail_memory();
    }
    atomic_init(&l->users, 1);
    OrtStatus *status = load(l, path);
    if (!status && !ort_list_add(&libraries, &library_count, l)) status = ort_fail_memory();
    if (!status && !ort_devices_add(l->devices, l->device_count)) {
        library_count--;
        status = ort_fail_memory();
    }
    if (status) unload(l);
    return status;
}

OrtStatusPtr ort_RegisterExecutionProviderLibrary(OrtEnv *env, const char *registration_name,
                                                  const char *path) {
    NEED(env);
    NEED(registration_name);
    NEED(path);
    if (!*registration_name) return ort_fail(ORT_INVALID_ARGUMENT, "the registration has no name");
    pthread_mutex_lock(&lock);
    OrtStatus *status = add(registration_name, path);
    pthread_mutex_unlock(&lock);
    return status;
}

/* Sessions that use the library keep it until they are released. */
OrtStatusPtr ort_UnregisterExecutionProviderLibrary(OrtEnv *env, const char *registration_name) {
    NEED(env);
    NEED(registration_name);
    pthread_mutex_lock(&lock);
    size_t i = find(registration_name);
    ort_library *l = i < library_count ? libraries[i] : NULL;
    if (l) {
        memmove(libraries + i, libraries + i + 1, (library_count - i - 1) * sizeof *libraries);
        library_count--;
        ort_devices_remove(l);
    }
    pthread_mutex_unlock(&lock);
    ort_library_drop(l);
    return l ? NULL
             : ort_fail(ORT_FAIL, "no provider library is registered as '%s'", registration_name);
}

/* ---- Copies ---- */

static OrtDataTransferImpl *transfer_for(const OrtMemoryInfo *from, const OrtMemoryInfo *to) {
    for (size_t i = 0; i < library_count; i++)
        for (size_t k = 0; k < libraries[i]->factory_count; k++) {
            OrtDataTransferImpl *t = libraries[i]->transfers[k];
            if (t && t->CanCopy(t, ort_memory_device(from), ort_memory_device(to))) return t;
        }
    return NULL;
}

OrtStatus *ort_copy_values(const OrtValue *const *from, OrtValue *const *to, OrtSyncStream *stream,
                           size_t count) {
    if (!count) return NULL;
    const OrtMemoryInfo *source = ort_value_memory(from[0]), *target = ort_value_memory(to[0]);
    if (ort_on_host(source) && ort_on_host(target)) {
        for (size_t i = 0; i < count; i++) {
            size_t bytes = sn_tensor_bytes(ort_sn(from[i]));
            if (bytes != sn_tensor_bytes(ort_sn(to[i])))
                return ort_fail(ORT_INVALID_ARGUMENT, "tensor %zu differs in size", i);
            if (bytes)
                memcpy(sn_tensor_data(ort_sn(to[i])), sn_tensor_const_data(ort_sn(from[i])), bytes);
        }
        return NULL;
    }
    pthread_mutex_lock(&lock);
    OrtDataTransferImpl *t = transfer_for(source, target);
    pthread_mutex_unlock(&lock);
    if (!t)
        return ort_fail(ORT_FAIL, "no provider copies from '%s' to '%s' memory", source->name,
                        target->name);
    OrtSyncStream **streams = stream ? calloc(count, sizeof(OrtSyncStream *)) : NULL;
    if (stream && !streams) return ort_fail_memory();
    for (size_t i = 0; streams && i < count; i++) streams[i] = stream;
    OrtStatus *status =
        t->CopyTensors(t, (const OrtValue **)(void *)from, (OrtValue **)(void *)to, streams, count);
    free(streams);
    return status;
}

OrtStatusPtr ort_CopyTensors(const OrtEnv *env, const OrtValue *const *src_tensors,
                             OrtValue *const *dst_tensors, OrtSyncStream *stream,
                             size_t num_tensors) {
    NEED(env);
    if (num_tensors) NEED(src_tensors);
    if (num_tensors) NEED(dst_tensors);
    for (size_t i = 0; i < num_tensors; i++)
        if (!src_tensors[i] || !dst_tensors[i])
            return ort_fail(ORT_INVALID_ARGUMENT, "CopyTensors: tensor %zu is NULL", i);
    return ort_copy_values(src_tensors, dst_tensors, stream, num_tensors);
}
