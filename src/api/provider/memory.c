/* memory.c - device memory and queues of an engine, kept from run to run. */
#include "api/provider/provider.h"

#include <stdlib.h>

enum { KEPT_BYTES = 256 << 20, GRAIN = 256 };

/* Sizes that blocks are made in: few enough for one to fit the next tensor, at most an eighth more
 * than was asked for. */
static size_t block_size(size_t bytes) {
    size_t step = GRAIN;
    while (step < bytes / 8) step *= 2;
    return bytes > SIZE_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

static sni_device_block *take_idle(sni_engine *e, size_t bytes) {
    pthread_mutex_lock(&e->lock);
    sni_device_block **at = &e->idle;
    while (*at && (*at)->bytes != bytes) at = &(*at)->next;
    sni_device_block *b = *at;
    if (b) {
        *at = b->next;
        e->idle_bytes -= b->bytes;
    }
    pthread_mutex_unlock(&e->lock);
    return b;
}

static sn_status ask(sni_engine *e, size_t bytes, sn_ep_memory **out, sn_error *err) {
    sn_error told = {0};
    sn_status status = e->provider->api.alloc(e->ep, bytes, out, &told);
    if (status == SN_OK && *out) return SN_OK;
    if (status == SN_OK) return sni_fail(err, SN_INTERNAL, "it gave no memory and no error");
    return sni_provider_failed(err, status, &told);
}

sn_status sni_engine_alloc(sni_engine *e, size_t bytes, sni_device_block **out, sn_error *err) {
    bytes = block_size(bytes ? bytes : 1);
    sni_device_block *b = take_idle(e, bytes);
    if (!b) {
        sn_ep_memory *memory = NULL;
        b = calloc(1, sizeof *b);
        if (!b) return sni_fail_memory(err);
        sn_status status = ask(e, bytes, &memory, err);
        if (status == SN_NO_MEMORY && sni_engine_trim(e)) status = ask(e, bytes, &memory, err);
        if (status != SN_OK) {
            free(b);
            return sni_fail_context(err, status, "%zu bytes of device memory", bytes);
        }
        b->memory = memory;
        b->bytes = bytes;
    }
    *out = b;
    return SN_OK;
}

void sni_engine_free(sni_engine *e, sni_device_block *block) {
    if (!block) return;
    pthread_mutex_lock(&e->lock);
    bool keep = block->bytes <= KEPT_BYTES - e->idle_bytes;
    if (keep) {
        block->next = e->idle;
        e->idle = block;
        e->idle_bytes += block->bytes;
    }
    pthread_mutex_unlock(&e->lock);
    if (keep) return;
    e->provider->api.free(block->memory);
    free(block);
}

size_t sni_engine_trim(sni_engine *e) {
    pthread_mutex_lock(&e->lock);
    sni_device_block *list = e->idle;
    size_t bytes = e->idle_bytes;
    e->idle = NULL;
    e->idle_bytes = 0;
    pthread_mutex_unlock(&e->lock);
    for (sni_device_block *next; list; list = next) {
        next = list->next;
        e->provider->api.free(list->memory);
        free(list);
    }
    return bytes;
}

sn_status sni_engine_queue(sni_engine *e, sn_ep_queue **out, sn_error *err) {
    sn_error told = {0};
    pthread_mutex_lock(&e->lock);
    sni_idle_queue *idle = e->queues;
    if (idle) e->queues = idle->next;
    pthread_mutex_unlock(&e->lock);
    if (idle) {
        *out = idle->queue;
        free(idle);
        return SN_OK;
    }
    sn_ep_queue *made = NULL;
    sn_status status = e->provider->api.queue_new(e->ep, &made, &told);
    if (status == SN_OK && !made) return sni_fail(err, SN_INTERNAL, "it made a queue of nothing");
    if (status != SN_OK) return sni_provider_failed(err, status, &told);
    *out = made;
    return SN_OK;
}

void sni_engine_queue_done(sni_engine *e, sn_ep_queue *queue, bool failed) {
    sni_idle_queue *idle = queue && !failed ? malloc(sizeof *idle) : NULL;
    if (!queue) return;
    if (!idle) {
        e->provider->api.queue_free(queue);
        return;
    }
    idle->queue = queue;
    pthread_mutex_lock(&e->lock);
    idle->next = e->queues;
    e->queues = idle;
    pthread_mutex_unlock(&e->lock);
}
