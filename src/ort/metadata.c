/* metadata.c - what a model says of itself. */
#include "ort/graph.h"

#include <stdlib.h>

/* Copies: metadata may outlive its session. */
struct OrtModelMetadata {
    char *producer, *graph, *domain, *description, *graph_description;
    int64_t version;
    OrtKeyValuePairs custom;
};

void ort_ReleaseModelMetadata(OrtModelMetadata *input) {
    if (!input) return;
    free(input->producer);
    free(input->graph);
    free(input->domain);
    free(input->description);
    free(input->graph_description);
    ort_pairs_clear(&input->custom);
    free(input);
}

static bool fill(OrtModelMetadata *m, const sn_model *model) {
    sn_model_info info;
    sn_model_get_info(model, &info);
    bool good = ort_replace_text(&m->producer, info.producer_name) &&
                ort_replace_text(&m->graph, info.graph_name) &&
                ort_replace_text(&m->domain, info.domain) &&
                ort_replace_text(&m->description, info.doc) &&
                ort_replace_text(&m->graph_description, info.graph_doc);
    m->version = info.has_model_version ? info.model_version : INT64_MAX;
    const char *key, *value;
    for (size_t i = 0; good && sn_model_metadata(model, i, &key, &value); i++)
        good = ort_pairs_set(&m->custom, key, value);
    return good;
}

OrtStatus *ort_metadata_make(const ort_metadata *from, OrtModelMetadata **out) {
    OrtModelMetadata *m = calloc(1, sizeof *m);
    if (m) m->version = from->version;
    if (m && ort_replace_text(&m->producer, from->producer) &&
        ort_replace_text(&m->graph, from->graph) && ort_replace_text(&m->domain, from->domain) &&
        ort_replace_text(&m->description, from->description) &&
        ort_replace_text(&m->graph_description, "") && ort_pairs_copy(&m->custom, from->custom)) {
        *out = m;
        return NULL;
    }
    ort_ReleaseModelMetadata(m);
    return ort_fail_memory();
}

OrtStatusPtr ort_SessionGetModelMetadata(const OrtSession *session, OrtModelMetadata **out) {
    NEED(session);
    NEED(out);
    OrtModelMetadata *m = calloc(1, sizeof *m);
    if (!m || !fill(m, session->model)) {
        ort_ReleaseModelMetadata(m);
        return ort_fail_memory();
    }
    *out = m;
    return NULL;
}

OrtStatusPtr ort_ModelMetadataGetProducerName(const OrtModelMetadata *model_metadata,
                                              OrtAllocator *allocator, char **value) {
    NEED(model_metadata);
    NEED(allocator);
    NEED(value);
    return ort_copy_text(allocator, model_metadata->producer, value);
}

OrtStatusPtr ort_ModelMetadataGetGraphName(const OrtModelMetadata *model_metadata,
                                           OrtAllocator *allocator, char **value) {
    NEED(model_metadata);
    NEED(allocator);
    NEED(value);
    return ort_copy_text(allocator, model_metadata->graph, value);
}

OrtStatusPtr ort_ModelMetadataGetDomain(const OrtModelMetadata *model_metadata,
                                        OrtAllocator *allocator, char **value) {
    NEED(model_metadata);
    NEED(allocator);
    NEED(value);
    return ort_copy_text(allocator, model_metadata->domain, value);
}

OrtStatusPtr ort_ModelMetadataGetDescription(const OrtModelMetadata *model_metadata,
                                             OrtAllocator *allocator, char **value) {
    NEED(model_metadata);
    NEED(allocator);
    NEED(value);
    return ort_copy_text(allocator, model_metadata->description, value);
}

OrtStatusPtr ort_ModelMetadataGetGraphDescription(const OrtModelMetadata *model_metadata,
                                                  OrtAllocator *allocator, char **value) {
    NEED(model_metadata);
    NEED(allocator);
    NEED(value);
    return ort_copy_text(allocator, model_metadata->graph_description, value);
}

OrtStatusPtr ort_ModelMetadataGetVersion(const OrtModelMetadata *model_metadata, int64_t *value) {
    NEED(model_metadata);
    NEED(value);
    *value = model_metadata->version;
    return NULL;
}

/* A key that is not there gives NULL. */
OrtStatusPtr ort_ModelMetadataLookupCustomMetadataMap(const OrtModelMetadata *model_metadata,
                                                      OrtAllocator *allocator, const char *key,
                                                      char **value) {
    NEED(model_metadata);
    NEED(allocator);
    NEED(key);
    NEED(value);
    const char *found = ort_pairs_get(&model_metadata->custom, key);
    *value = NULL;
    return found ? ort_copy_text(allocator, found, value) : NULL;
}

OrtStatusPtr ort_ModelMetadataGetCustomMetadataMapKeys(const OrtModelMetadata *model_metadata,
                                                       OrtAllocator *allocator, char ***keys,
                                                       int64_t *num_keys) {
    NEED(model_metadata);
    NEED(allocator);
    NEED(keys);
    NEED(num_keys);
    size_t count = model_metadata->custom.count;
    char **list = NULL;
    if (count) {
        list = allocator->Alloc(allocator, count * sizeof *list);
        if (!list) return ort_fail_memory();
    }
    for (size_t i = 0; i < count; i++) {
        OrtStatus *status = ort_copy_text(allocator, model_metadata->custom.keys[i], &list[i]);
        if (!status) continue;
        while (i > 0) allocator->Free(allocator, list[--i]);
        allocator->Free(allocator, list);
        return status;
    }
    *keys = list;
    *num_keys = (int64_t)count;
    return NULL;
}
