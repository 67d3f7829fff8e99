/* cache.c - answers of models whose configuration asks for it, kept for equal requests.
 *
 * An entry keeps the inputs whole and compares them byte by byte: no answer is ever given to
 * somebody else's question because two hashes met. The one used longest ago goes first. */
#include "server/engine/cache.h"
#include "server/engine/model.h"

#include <stdlib.h>

#define BUCKETS 1024

typedef struct cached {
    uint64_t hash, serial; /* of the inputs; of the loaded model */
    srv_text key;
    srv_output *outputs;
    size_t output_count, bytes;
    struct cached *next;          /* in its bucket */
    struct cached *older, *newer; /* by use */
} cached;

struct srv_cache {
    pthread_mutex_t lock; /* guards what is below */
    cached *buckets[BUCKETS];
    cached *oldest, *newest;
    size_t bytes, max_bytes;
};

/* ---- What is compared --------------------------------------------------------------------- */

static uint64_t hash_of(const srv_text *key, uint64_t serial) {
    uint64_t hash = serial * 0x9E3779B97F4A7C15u + 1;
    size_t at = 0;
    for (; at + 8 <= key->length; at += 8) {
        uint64_t word;
        memcpy(&word, key->data + at, 8);
        hash = (hash ^ word) * 0xBF58476D1CE4E5B9u;
        hash ^= hash >> 31;
    }
    for (; at < key->length; at++) hash = (hash ^ (unsigned char)key->data[at]) * 1099511628211u;
    return hash ^ hash >> 29;
}

/* Everything that an answer depends on: inputs with their shapes, and which outputs are wanted. */
static bool make_key(const srv_request *request, srv_text *key) {
    for (size_t i = 0; i < request->input_count; i++) {
        const srv_input *input = &request->inputs[i];
        if (!input->memory) return false; /* strings */
        srv_text_add(key, &input->index, sizeof input->index);
        srv_text_add(key, &input->rank, sizeof input->rank);
        srv_text_add(key, input->dims, (size_t)input->rank * sizeof input->dims[0]);
        srv_text_add(key, input->memory, input->bytes);
    }
    for (size_t i = 0; i < request->wanted_count; i++) {
        srv_text_add(key, &request->wanted[i].index, sizeof(int));
    }
    return !key->failed;
}

/* ---- The table (under the lock) ----------------------------------------------------------- */

static void unlink_use(srv_cache *cache, cached *entry) {
    if (entry->older) {
        entry->older->newer = entry->newer;
    } else {
        cache->oldest = entry->newer;
    }
    if (entry->newer) {
        entry->newer->older = entry->older;
    } else {
        cache->newest = entry->older;
    }
}

static void link_newest(srv_cache *cache, cached *entry) {
    entry->older = cache->newest;
    entry->newer = NULL;
    if (cache->newest) {
        cache->newest->newer = entry;
    } else {
        cache->oldest = entry;
    }
    cache->newest = entry;
}

static void free_entry(cached *entry) {
    for (size_t i = 0; i < entry->output_count; i++) srv_shared_release(entry->outputs[i].owner);
    free(entry->outputs);
    srv_text_free(&entry->key);
    free(entry);
}

static void drop(srv_cache *cache, cached *entry) {
    cached **at = &cache->buckets[entry->hash % BUCKETS];
    while (*at != entry) at = &(*at)->next;
    *at = entry->next;
    unlink_use(cache, entry);
    cache->bytes -= entry->bytes;
    free_entry(entry);
}

static cached *find(const srv_cache *cache, uint64_t hash, uint64_t serial, const srv_text *key) {
    for (cached *entry = cache->buckets[hash % BUCKETS]; entry; entry = entry->next) {
        if (entry->hash == hash && entry->serial == serial && entry->key.length == key->length &&
            memcmp(entry->key.data, key->data, key->length) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* ---- What others call --------------------------------------------------------------------- */

/* Entries are in the model's order of outputs, as the request's are: see give_outputs. */
static bool copy_outputs(srv_request *request, const cached *entry) {
    srv_output *outputs = SNI_NEW_ARRAY(&request->arena, srv_output, entry->output_count + 1);
    if (!outputs) return false;
    for (size_t i = 0; i < entry->output_count; i++) {
        outputs[i] = entry->outputs[i];
        srv_shared_retain(outputs[i].owner);
        outputs[i].wanted = NULL;
        int index = srv_io_find(request->model->outputs, request->model->output_count,
                                sni_str_of(outputs[i].name));
        outputs[i].name = request->model->outputs[index].name;
        for (size_t j = 0; j < request->wanted_count; j++) {
            if (request->wanted[j].index == index) outputs[i].wanted = &request->wanted[j];
        }
    }
    request->outputs = outputs;
    request->output_count = entry->output_count;
    return true;
}

bool srv_cache_find(srv_cache *cache, srv_request *request) {
    if (!request->model->config.cache) return false;
    srv_text key = {0};
    bool hit = false;
    if (make_key(request, &key)) {
        uint64_t hash = hash_of(&key, request->model->serial);
        pthread_mutex_lock(&cache->lock);
        cached *entry = find(cache, hash, request->model->serial, &key);
        if (entry) {
            unlink_use(cache, entry);
            link_newest(cache, entry);
            hit = copy_outputs(request, entry);
        }
        pthread_mutex_unlock(&cache->lock);
    }
    srv_text_free(&key);
    request->cache_hit = hit;
    if (!hit) {
        pthread_mutex_lock(&request->model->stats_lock);
        request->model->stats.cache_miss.count++;
        pthread_mutex_unlock(&request->model->stats_lock);
    }
    return hit;
}

static cached *make_entry(const srv_request *request) {
    cached *entry = calloc(1, sizeof *entry);
    if (!entry) return NULL;
    entry->outputs = calloc(request->output_count + 1, sizeof *entry->outputs);
    if (!entry->outputs || !make_key(request, &entry->key)) {
        free_entry(entry);
        return NULL;
    }
    entry->bytes = sizeof *entry + entry->key.capacity;
    for (size_t i = 0; i < request->output_count; i++) {
        entry->outputs[i] = request->outputs[i];
        srv_shared_retain(entry->outputs[i].owner);
        entry->output_count++;
        /* a row of a batch keeps the whole batch alive */
        entry->bytes += sizeof(srv_output) + sn_tensor_bytes(entry->outputs[i].owner->value);
    }
    entry->serial = request->model->serial;
    entry->hash = hash_of(&entry->key, entry->serial);
    return entry;
}

void srv_cache_store(srv_cache *cache, const srv_request *request) {
    if (!request->model->config.cache || request->code != SRV_OK) return;
    cached *entry = make_entry(request);
    if (!entry) return;
    pthread_mutex_lock(&cache->lock);
    if (entry->bytes > cache->max_bytes / 4 ||
        find(cache, entry->hash, entry->serial, &entry->key)) {
        pthread_mutex_unlock(&cache->lock);
        free_entry(entry);
        return;
    }
    while (cache->oldest && cache->bytes + entry->bytes > cache->max_bytes)
        drop(cache, cache->oldest);
    entry->next = cache->buckets[entry->hash % BUCKETS];
    cache->buckets[entry->hash % BUCKETS] = entry;
    link_newest(cache, entry);
    cache->bytes += entry->bytes;
    pthread_mutex_unlock(&cache->lock);
}

srv_cache *srv_cache_create(size_t max_bytes) {
    srv_cache *cache = calloc(1, sizeof *cache);
    if (!cache) return NULL;
    pthread_mutex_init(&cache->lock, NULL);
    cache->max_bytes = max_bytes;
    return cache;
}

void srv_cache_destroy(srv_cache *cache) {
    if (!cache) return;
    while (cache->oldest) drop(cache, cache->oldest);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}
