/* ep_stream.c - streams of work on devices. */
#include "ort/ep.h"

#include <stdlib.h>

OrtStatus *ort_stream_new(OrtSyncStreamImpl *impl, const OrtMemoryInfo *memory,
                          OrtSyncStream **out) {
    OrtSyncStream *s = calloc(1, sizeof *s);
    if (!s) {
        if (impl->Release) impl->Release(impl);
        return ort_fail_memory();
    }
    s->impl = impl;
    s->memory = memory;
    atomic_init(&s->sync_id, 0);
    *out = s;
    return NULL;
}

OrtStatusPtr ort_CreateSyncStreamForEpDevice(const OrtEpDevice *ep_device,
                                             const OrtKeyValuePairs *stream_options,
                                             OrtSyncStream **stream) {
    NEED(ep_device);
    NEED(stream);
    OrtEpFactory *f = ep_device->factory;
    if (!f || !ORT_EP_HAS(f, IsStreamAware, 23) || !f->IsStreamAware(f) ||
        !ORT_EP_HAS(f, CreateSyncStreamForDevice, 23))
        return ort_fail(ORT_NOT_IMPLEMENTED, "provider '%s' has no streams", ep_device->name);
    if (!ep_device->memory)
        return ort_fail(ORT_INVALID_ARGUMENT, "provider '%s' has no memory of its own",
                        ep_device->name);
    OrtSyncStreamImpl *impl = NULL;
    ORT_TRY(f->CreateSyncStreamForDevice(f, ort_memory_device(ep_device->memory), stream_options,
                                         &impl));
    if (!impl) return ort_fail(ORT_FAIL, "provider '%s' gave no stream", ep_device->name);
    return ort_stream_new(impl, ep_device->memory, stream);
}

void ort_ReleaseSyncStream(OrtSyncStream *input) {
    if (!input) return;
    if (input->impl->Release) input->impl->Release(input->impl);
    free(input);
}

void *ort_SyncStream_GetHandle(OrtSyncStream *stream) {
    return stream && stream->impl->GetHandle ? stream->impl->GetHandle(stream->impl) : NULL;
}

OrtStatus *ort_stream_finish(OrtSyncStream *stream) {
    OrtSyncStreamImpl *impl = stream->impl;
    atomic_fetch_add(&stream->sync_id, 1);
    OrtStatus *status = impl->Flush ? impl->Flush(impl) : NULL;
    if (!status && impl->OnSessionRunEnd) status = impl->OnSessionRunEnd(impl);
    return status;
}

const OrtSyncStreamImpl *ort_ep_SyncStream_GetImpl(const OrtSyncStream *stream) {
    return stream ? stream->impl : NULL;
}

uint64_t ort_ep_SyncStream_GetSyncId(const OrtSyncStream *stream) {
    return stream ? atomic_load(&((OrtSyncStream *)stream)->sync_id) : 0;
}

/* Streams never wait for each other here: a part's work is done when its run returns. */
uint64_t ort_ep_GetSyncIdForLastWaitOnSyncStream(const OrtSyncStream *producer,
                                                 const OrtSyncStream *consumer) {
    (void)producer, (void)consumer;
    return 0;
}
