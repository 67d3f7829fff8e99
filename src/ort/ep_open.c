/* ep_open.c - makes the providers that a session's options name. */
#include "ort/ep_host.h"

#include <stdlib.h>
#include <string.h>

void ort_provider_free(ort_provider *p) {
    if (!p) return;
    OrtEpFactory *f = p->device->factory;
    if (p->allocator && p->own_allocator && ORT_EP_HAS(f, ReleaseAllocator, 23))
        f->ReleaseAllocator(f, p->allocator);
    if (p->ep) f->ReleaseEp(f, p->ep);
    pthread_mutex_destroy(&p->lock);
    ort_library_drop(p->device->library);
    free(p);
}

/* Memory of its own, which the host cannot read: tensors are copied there and back. */
static OrtStatus *open_memory(ort_provider *p) {
    OrtEpFactory *f = p->device->factory;
    const OrtMemoryInfo *info = p->device->memory;
    if (!info || ort_on_host(info)) return NULL;
    if (ORT_EP_HAS(p->ep, CreateAllocator, 23))
        ORT_TRY(p->ep->CreateAllocator(p->ep, info, &p->allocator));
    else if (ORT_EP_HAS(f, CreateAllocator, 23))
        ORT_TRY(f->CreateAllocator(f, info, NULL, &p->allocator));
    if (!p->allocator)
        return ort_fail(ORT_EP_FAIL, "provider '%s' has '%s' memory and no allocator for it",
                        p->name, info->name);
    p->own_allocator = p->allocator != &ort_cpu_allocator;
    p->streams = ORT_EP_HAS(f, IsStreamAware, 23) && f->IsStreamAware(f) &&
                 (ORT_EP_HAS(p->ep, CreateSyncStreamForDevice, 23) ||
                  ORT_EP_HAS(f, CreateSyncStreamForDevice, 23));
    return NULL;
}

static OrtStatus *check_ep(const OrtEp *ep, const char *name) {
    if (!ep) return ort_fail(ORT_EP_FAIL, "the factory of provider '%s' made none", name);
    if (ep->ort_version_supported < 22 || !ep->GetName)
        return ort_fail(ORT_EP_FAIL, "provider '%s' lacks functions that it must have", name);
    return NULL;
}

static OrtStatus *open_ep(ort_host *host, ort_provider *p, const OrtEpDevice *const *devices,
                          size_t count) {
    OrtEpFactory *f = p->device->factory;
    const OrtHardwareDevice **hardware = calloc(count, sizeof *hardware);
    const OrtKeyValuePairs **metadata = calloc(count, sizeof *metadata);
    OrtStatus *status = hardware && metadata ? NULL : ort_fail_memory();
    for (size_t i = 0; i < count && !status; i++) {
        hardware[i] = devices[i]->hardware;
        metadata[i] = &devices[i]->metadata;
    }
    if (!status)
        status = f->CreateEp(f, hardware, metadata, count, host->options, &p->logger, &p->ep);
    free(hardware);
    free(metadata);
    if (status) return status;
    ORT_TRY(check_ep(p->ep, p->device->name));
    p->name = p->ep->GetName(p->ep);
    if (!p->name) p->name = p->device->name;
    if (ORT_EP_HAS(p->ep, GetKernelRegistry, 24))
        ORT_TRY(p->ep->GetKernelRegistry(p->ep, &p->registry));
    bool concurrent = true;
    if (ORT_EP_HAS(p->ep, IsConcurrentRunSupported, 24))
        ORT_TRY(p->ep->IsConcurrentRunSupported(p->ep, &concurrent));
    p->serial = !concurrent;
    return open_memory(p);
}

static OrtStatus *add_provider(ort_host *host, const OrtEpDevice *const *devices, size_t count) {
    ort_provider *p = calloc(1, sizeof *p);
    if (!p) return ort_fail_memory();
    p->device = devices[0];
    p->name = devices[0]->name;
    p->logger = host->logger;
    pthread_mutex_init(&p->lock, NULL);
    ort_library_hold(p->device->library);
    OrtStatus *status = open_ep(host, p, devices, count);
    if (!status && !ort_list_add(&host->providers, &host->provider_count, p))
        status = ort_fail_memory();
    if (status) ort_provider_free(p);
    return status;
}

/* Devices of one factory that follow each other are one provider's. Behind the CPU nobody is asked.
 */
OrtStatus *ort_host_providers(ort_host *host) {
    const OrtSessionOptions *o = host->options;
    for (size_t i = 0; i < o->ep_device_count && o->ep_devices[i]->factory;) {
        size_t count = 1;
        while (i + count < o->ep_device_count &&
               o->ep_devices[i + count]->factory == o->ep_devices[i]->factory)
            count++;
        ORT_TRY(add_provider(host, o->ep_devices + i, count));
        i += count;
    }
    return NULL;
}
