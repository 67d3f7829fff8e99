/* compile.c - a part as an ONNX model, handed to its provider, and what comes back. */
#include "api/provider/provider.h"

#include "api/model.h"
#include "exec/compiled_format.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Blobs ---- */

#define BLOB_MAGIC "SINTERB1"

typedef struct blob_header {
    char magic[8];
    uint64_t bytes, checksum;
} blob_header;

/* Blobs that were read live until `compile` returns. */
typedef struct cache {
    const sni_engine *engine;
    struct blob {
        void *bytes;
        struct blob *next;
    } * blobs;
} cache;

static bool blob_path(const sn_ep_part *part, const char *name, char *path, size_t size) {
    const cache *c = part ? part->cache : NULL;
    if (!c || !c->engine->cache_folder || !name) return false;
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_') return false;
    int n = snprintf(path, size, "%s/provider-%s-%s-%s.blob", c->engine->cache_folder,
                     c->engine->provider->name, part->key, name);
    return n > 0 && (size_t)n < size;
}

static void *read_blob(FILE *f, size_t *count) {
    enum { MOST = 1 << 30 };
    blob_header h;
    if (fread(&h, sizeof h, 1, f) != 1 || memcmp(h.magic, BLOB_MAGIC, 8) != 0 || h.bytes > MOST)
        return NULL;
    unsigned char *bytes = malloc((size_t)h.bytes + 1);
    if (bytes && (fread(bytes, 1, (size_t)h.bytes, f) != h.bytes || fgetc(f) != EOF ||
                  sni_checksum(0, bytes, (size_t)h.bytes) != h.checksum)) {
        free(bytes);
        return NULL;
    }
    *count = (size_t)h.bytes;
    return bytes;
}

bool sni_ep_cache_get(const sn_ep_part *part, const char *name, const void **bytes, size_t *count) {
    char path[4096];
    if (!bytes || !count || !blob_path(part, name, path, sizeof path)) return false;
    cache *c = (cache *)part->cache;
    FILE *f = fopen(path, "rb");
    struct blob *kept = f ? calloc(1, sizeof *kept) : NULL;
    if (kept) kept->bytes = read_blob(f, count);
    if (f) fclose(f);
    if (!kept || !kept->bytes) {
        free(kept);
        return false;
    }
    kept->next = c->blobs;
    c->blobs = kept;
    *bytes = kept->bytes;
    return true;
}

void sni_ep_cache_put(const sn_ep_part *part, const char *name, const void *bytes, size_t count) {
    char path[4096], temporary[4200];
    if ((count && !bytes) || !blob_path(part, name, path, sizeof path)) return;
    const cache *c = part->cache;
    blob_header h = {.bytes = count, .checksum = sni_checksum(0, bytes, count)};
    memcpy(h.magic, BLOB_MAGIC, 8);
    snprintf(temporary, sizeof temporary, "%s.%ld.%p", path, (long)getpid(), (const void *)part);
    FILE *f = fopen(temporary, "wb");
    bool done = f && fwrite(&h, sizeof h, 1, f) == 1 && (!count || fwrite(bytes, count, 1, f) == 1);
    if (f && fclose(f) != 0) done = false;
    if (done) done = rename(temporary, path) == 0;
    if (f && !done) remove(temporary);
    if (!done) sni_engine_log(c->engine, SN_LOG_WARNING, "a blob could not be written to %s", path);
}

static void free_blobs(cache *c) {
    for (struct blob *b = c->blobs, *next; b; b = next) {
        next = b->next;
        free(b->bytes);
        free(b);
    }
}

/* ---- What the provider is given ---- */

static sn_status describe(const sni_graph *g, const int32_t *ids, const sni_str *names,
                          int32_t count, sni_arena *arena, const sn_value_info **out,
                          sn_error *err) {
    sn_value_info *infos = SNI_NEW_ARRAY(arena, sn_value_info, count);
    if (!infos) return sni_fail_memory(err);
    for (int32_t i = 0; i < count; i++) {
        const sni_value *v = g->values[ids[i]];
        SN_TRY(sni_describe_type(names ? names[i] : v->name, &v->type, g->symbols, arena, &infos[i],
                                 err));
    }
    *out = infos;
    return SN_OK;
}

static sn_status fill_part(const sni_compile *c, const unsigned char *bytes, size_t count,
                           sn_ep_part *p, sn_error *err) {
    const sni_graph *g = c->body;
    const char *digest = c->engine->digest;
    uint64_t a = sni_checksum(sni_checksum(1, bytes, count), digest, strlen(digest));
    uint64_t b = sni_checksum(sni_checksum(0x5bd1e995u, digest, strlen(digest)), bytes, count);
    *p = (sn_ep_part){.size = sizeof *p,
                      .name = c->name,
                      .onnx = bytes,
                      .onnx_bytes = count,
                      .input_count = (size_t)g->n_inputs,
                      .output_count = (size_t)g->n_outputs,
                      .node_count = c->count,
                      .nodes = c->members};
    p->key = sni_arena_printf(c->arena, "%016" PRIx64 "%016" PRIx64, a, b).p;
    if (!p->key) return sni_fail_memory(err);
    SN_TRY(describe(g, g->inputs, NULL, g->n_inputs, c->arena, &p->inputs, err));
    return describe(g, g->outputs, g->output_names, g->n_outputs, c->arena, &p->outputs, err);
}

/* ---- What comes back ---- */

static void free_shapes(const sn_ep_api *api, sni_part_shapes *s) {
    if (s->ready) api->ready_free(s->ready);
    free(s->dims);
    free(s);
}

static void free_part(void *object) {
    sni_provider_part *p = object;
    const sn_ep_api *api = &p->engine->provider->api;
    for (sni_part_shapes *s = p->shapes, *next; s; s = next) {
        next = s->next;
        free_shapes(api, s);
    }
    if (p->program) api->program_free(p->program);
    sni_engine_release(p->engine);
    pthread_mutex_destroy(&p->lock);
    free(p->name);
    free(p->types);
    free(p->readers);
    free(p->on_host);
    free(p);
}

static sn_status new_part(const sni_compile *c, sni_provider_part **out, sn_error *err) {
    const sni_graph *g = c->body;
    sni_provider_part *p = calloc(1, sizeof *p);
    if (!p || pthread_mutex_init(&p->lock, NULL) != 0) {
        free(p);
        return sni_fail_memory(err);
    }
    size_t n_out = (size_t)g->n_outputs + 1;
    p->engine = sni_engine_retain(c->engine);
    p->params = (sni_part_params){.provider = c->engine->provider->name, .run = sni_part_run};
    p->n_in = g->n_inputs;
    p->n_out = g->n_outputs;
    p->name = strdup(c->name);
    p->types = calloc(n_out, sizeof *p->types);
    p->readers = calloc(n_out, sizeof *p->readers);
    p->on_host = calloc(n_out, sizeof *p->on_host);
    if (!p->name || !p->types || !p->readers || !p->on_host) {
        free_part(p);
        return sni_fail_memory(err);
    }
    for (int32_t i = 0; i < g->n_outputs; i++) {
        p->types[i] = g->values[g->outputs[i]]->type.dtype;
        p->on_host[i] = true;
    }
    *out = p;
    return SN_OK;
}

static sn_status call_compile(const sni_compile *c, sn_ep_program **program, sn_error *err) {
    cache blobs = {.engine = c->engine};
    unsigned char *bytes = NULL;
    size_t count = 0;
    sn_ep_part part;
    sn_error told = {0};
    SN_TRY(sni_onnx_bytes(c->body, SIZE_MAX, &bytes, &count, err));
    sn_status status = fill_part(c, bytes, count, &part, err);
    if (status == SN_OK) {
        part.cache = &blobs;
        status = c->engine->provider->api.compile(c->engine->ep, &part, program, &told);
        if (status != SN_OK) {
            status = sni_provider_failed(err, status, &told);
            *program = NULL;
        } else if (!*program) {
            status = sni_fail(err, SN_INTERNAL, "it compiled the part and gave nothing back");
        }
    }
    free_blobs(&blobs);
    free(bytes);
    return status;
}

sn_status sni_compile_part(const sni_compile *c, sni_provider_part **out, sn_error *err) {
    sni_provider_part *p = NULL;
    sn_error why = {0};
    SN_TRY(new_part(c, &p, err));
    sn_status status = call_compile(c, &p->program, &why);
    if (status != SN_OK) {
        sni_engine_log(c->engine, SN_LOG_WARNING, "part '%s' stays on the CPU: %s", c->name,
                       why.message);
        free_part(p);
        return SN_OK;
    }
    /* The store frees it, also if it cannot keep it. */
    status = sni_store_own(c->body->store, p, free_part, err);
    if (status == SN_OK) *out = p;
    return status;
}
