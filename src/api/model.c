/* model.c - loading models. */
#include "api/model.h"

#include "api/custom.h"
#include "api/value.h"
#include "exec/compiled_format.h"

#include <stdlib.h>

void sni_options_init(void *given, size_t theirs, const void *defaults, size_t ours) {
    if (!given || theirs < sizeof theirs) return;
    memset(given, 0, theirs);
    memcpy(given, defaults, theirs < ours ? theirs : ours);
    memcpy(given, &theirs, sizeof theirs);
}

void sn_load_options_init(sn_load_options *options, size_t size) {
    const sn_load_options defaults = {.size = sizeof defaults};
    sni_options_init(options, size, &defaults, sizeof defaults);
}

/* Whether the lists of the options can be read. */
static sn_status check_lists(const sn_load_options *o, sn_error *err) {
    if ((o->dimension_count && !o->dimensions) || (o->weight_count && !o->weights) ||
        (o->file_count && !o->files))
        return sni_fail(err, SN_INVALID_ARGUMENT, "a list of the load options is NULL");
    for (size_t i = 0; i < o->dimension_count; i++)
        if (!o->dimensions[i].name || o->dimensions[i].size < 0)
            return sni_fail(err, SN_INVALID_ARGUMENT, "dimension %zu has no name or no size", i);
    for (size_t i = 0; i < o->weight_count; i++)
        if (!o->weights[i].name || sn_value_kind(o->weights[i].value) != SN_KIND_TENSOR)
            return sni_fail(err, SN_INVALID_ARGUMENT, "weight %zu has no name or is no tensor", i);
    for (size_t i = 0; i < o->file_count; i++)
        if (!o->files[i].name || (!o->files[i].bytes && o->files[i].size))
            return sni_fail(err, SN_INVALID_ARGUMENT, "file %zu has no name or no contents", i);
    return SN_OK;
}

sn_status sni_options_read(const void *given, void *out, size_t size, const char *init,
                           sn_error *err) {
    size_t theirs;
    if (!given) return SN_OK;
    memcpy(&theirs, given, sizeof theirs);
    if (theirs < sizeof(size_t) || theirs > 4096)
        return sni_fail(err, SN_INVALID_ARGUMENT, "options without their size: use %s()", init);
    for (size_t i = size; i < theirs; i++)
        if (((const unsigned char *)given)[i])
            return sni_fail(err, SN_UNSUPPORTED,
                            "an option is set that this version of the library does not know");
    memcpy(out, given, theirs < size ? theirs : size);
    memcpy(out, &size, sizeof size);
    return SN_OK;
}

/* The caller's options over the defaults, checked. Lists and strings stay the caller's. */
static sn_status read_options(const sn_load_options *given, sn_load_options *out, sn_error *err) {
    sn_load_options_init(out, sizeof *out);
    SN_TRY(sni_options_read(given, out, sizeof *out, "sn_load_options_init", err));
    return check_lists(out, err);
}

/* ---- Making ---- */

sn_status sni_model_make(sni_model *imported, sn_model **out, sn_error *err) {
    sn_model *m = calloc(1, sizeof *m);
    if (!m) {
        sni_model_free(imported);
        return sni_fail_memory(err);
    }
    atomic_init(&m->refs, 1);
    m->model = imported;
    sni_arena_init(&m->arena, 0);
    sn_status status = sni_model_describe(m, err);
    if (status == SN_OK)
        *out = m;
    else
        sn_model_destroy(m);
    return status;
}

sn_model *sni_model_retain(sn_model *model) {
    atomic_fetch_add(&model->refs, 1);
    return model;
}

void sn_model_destroy(sn_model *model) {
    if (!model || atomic_fetch_sub(&model->refs, 1) != 1) return;
    sni_compiled_free(&model->compiled);
    sni_model_free(model->model);
    sni_arena_free(&model->arena);
    free(model);
}

/* Ways in which a store gives back what it owns (sni_store_own). */
static void destroy_value(void *value) {
    sn_value_destroy(value);
}

static void clear_tensor(void *datum) {
    sni_datum_clear(datum);
    free(datum);
}

/* Weights that a caller gives, as tensors that the store keeps alive. */
static sn_status give_weights(const sn_load_options *o, sni_store *store, sni_given *given,
                              sn_error *err) {
    for (size_t i = 0; i < o->weight_count; i++) {
        sn_value *value = sn_value_retain(o->weights[i].value);
        SN_TRY(sni_store_own(store, value, destroy_value, err));
        sni_datum *d = calloc(1, sizeof *d);
        if (!d) return sni_fail_memory(err);
        SN_TRY(sni_store_own(store, d, clear_tensor, err));
        SN_TRY(sni_value_to_datum(value, d, err));
        given[i] = (sni_given){.name = sni_str_of(o->weights[i].name), .tensor = d->tensor};
        given[i].tensor.buffer = NULL;
    }
    return SN_OK;
}

static void release_operators(void *set) {
    sn_operators_destroy(set);
}

/* What the model keeps of its load options. */
static sn_status keep_options(const sn_load_options *o, sni_store *store, sni_given *given,
                              sn_error *err) {
    if (o->operators)
        SN_TRY(sni_store_own(store, sni_operators_retain(o->operators), release_operators, err));
    return give_weights(o, store, given, err);
}

/* Where a model comes from. */
typedef struct source {
    const unsigned char *bytes; /* kept by the store */
    size_t size;
    sni_store *store;      /* taken over by import(), also on failure */
    sni_mapping *file;     /* NULL: memory */
    const char *base_path; /* of external data */
} source;

/* A compiled model: its graph is imported, its packed weights are kept for sessions. */
static sn_status import_compiled(const source *from, const sn_load_options *o, sn_model **out,
                                 sn_error *err) {
    sni_store *store = from->store;
    sni_compiled c = {0};
    sn_status status = SN_OK;
    if (o->operators)
        status = sni_store_own(store, sni_operators_retain(o->operators), release_operators, err);
    if (from->file) sni_mapping_use_large(from->file);
    if (status == SN_OK)
        status = sni_compiled_read(from->bytes, from->size, o->verify, o->repack, &c, err);
    if (status != SN_OK) {
        sni_store_release(store);
        return status;
    }
    sni_import_options options = {.file = from->file,
                                  .memory_limit = o->memory_limit,
                                  .files = &c.weights,
                                  .n_files = 1,
                                  .borrow_files = true,
                                  .find_op = o->operators ? sni_operators_find : NULL,
                                  .find_ctx = o->operators};
    sni_model *imported;
    status = sni_model_import(c.graph, c.graph_size, store, &options, &imported, err);
    if (status == SN_OK) status = sni_model_make(imported, out, err);
    if (status != SN_OK) {
        sni_compiled_free(&c);
        return status;
    }
    (*out)->is_compiled = true;
    (*out)->compiled = c;
    return SN_OK;
}

/* Of what the caller says of free dimensions: it is part of what a cached file is found by. */
static uint64_t hash_dimensions(const sn_load_options *o) {
    uint64_t sum = o->dimension_count;
    for (size_t i = 0; i < o->dimension_count; i++) {
        const sn_dimension *d = &o->dimensions[i];
        sum = sni_checksum(sum, d->name, strlen(d->name) + 1);
        sum = sni_checksum(sum, &d->size, sizeof d->size);
    }
    return sum;
}

/* A FlatBuffer with the identifier of ONNX Runtime's models. */
static bool is_ort(const source *from) {
    return from->size >= 8 && memcmp(from->bytes + 4, "ORTM", 4) == 0;
}

/* Makes a model of bytes of either kind. */
static sn_status import(const source *from, const sn_load_options *o, sn_model **out,
                        sn_error *err) {
    if (sni_compiled_is(from->bytes, from->size)) return import_compiled(from, o, out, err);
    if (is_ort(from)) {
        sni_store_release(from->store);
        return sni_fail(err, SN_UNSUPPORTED,
                        "it is in ONNX Runtime's own format (.ort), which is made from an .onnx "
                        "file: load that one, or compile it (sinter compile) for a quick start");
    }
    sni_store *store = from->store;
    sni_given *given = calloc(o->weight_count + 1, sizeof *given);
    sn_status status = given ? keep_options(o, store, given, err) : sni_fail_memory(err);
    if (status != SN_OK) {
        free(given);
        sni_store_release(store);
        return status;
    }
    sni_import_options options = {.file = from->file,
                                  .allow_links = o->allow_links,
                                  .allow_hard_links = o->allow_hard_links,
                                  .strict = o->strict,
                                  .copy = o->copy,
                                  .base_path = from->base_path,
                                  .memory_limit = o->memory_limit,
                                  .dimensions = o->dimensions,
                                  .n_dimensions = o->dimension_count,
                                  .given = given,
                                  .n_given = o->weight_count,
                                  .files = o->files,
                                  .n_files = o->file_count,
                                  .find_op = o->operators ? sni_operators_find : NULL,
                                  .find_ctx = o->operators};
    sni_model *imported;
    status = sni_model_import(from->bytes, from->size, store, &options, &imported, err);
    free(given);
    if (status == SN_OK) status = sni_model_make(imported, out, err);
    if (status != SN_OK) return status;
    (*out)->cacheable = !o->operators && !o->weight_count && !o->file_count;
    (*out)->sizes = hash_dimensions(o);
    if (!from->file) {
        (*out)->bytes = from->bytes;
        (*out)->byte_count = from->size;
        if (imported->n_mappings) (*out)->cacheable = false; /* one name for both is not worth it */
    }
    return SN_OK;
}

static void close_mapping(void *mapping) {
    sni_mapping_close(mapping);
}

/* The folder of a file, for the external data that the model names; NULL without memory. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* The mapping belongs to the model's store from the moment that there is one. */
static sn_status load_path(const char *path, const sn_load_options *o, sn_model **out,
                           sn_error *err) {
    sni_mapping *mapping;
    SN_TRY(sni_mapping_open(path, o->copy ? SNI_OPEN_COPY : 0, &mapping, err));
    char *folder = folder_of(path);
    source from = {.bytes = sni_mapping_bytes(mapping),
                   .size = sni_mapping_size(mapping),
                   .file = mapping,
                   .base_path = folder};
    sn_status status = folder ? sni_store_new(NULL, 0, &from.store, err) : sni_fail_memory(err);
    if (status != SN_OK)
        sni_mapping_close(mapping);
    else
        status = sni_store_own(from.store, mapping, close_mapping, err);
    if (status == SN_OK)
        status = import(&from, o, out, err);
    else
        sni_store_release(from.store);
    if (status == SN_OK) {
        /* The pages may have changed under the importer's eyes. */
        status = sni_mapping_intact(mapping, err);
        if (status != SN_OK) sn_model_destroy(*out);
    }
    free(folder);
    return status;
}

sn_status sn_model_load(const char *path, const sn_load_options *options, sn_model **out,
                        sn_error *err) {
    if (!path || !out) return sni_fail(err, SN_INVALID_ARGUMENT, "path or out is NULL");
    sn_load_options o;
    SN_TRY(read_options(options, &o, err));
    sn_model *m = NULL;
    sn_status status = load_path(path, &o, &m, err);
    if (status != SN_OK) return sni_fail_context(err, status, "%s", path);
    *out = m;
    return SN_OK;
}

sn_status sn_model_load_memory(const void *bytes, size_t size, const sn_load_options *options,
                               sn_model **out, sn_error *err) {
    if (!out || (!bytes && size)) return sni_fail(err, SN_INVALID_ARGUMENT, "bytes or out is NULL");
    sn_load_options o;
    SN_TRY(read_options(options, &o, err));
    sni_store *store;
    SN_TRY(sni_store_new(NULL, 0, &store, err));
    if (!o.borrow) {
        size_t capacity = (size / SNI_ALIGN + 1) * SNI_ALIGN;
        void *copy = capacity > size ? aligned_alloc(SNI_ALIGN, capacity) : NULL;
        sn_status status = copy ? sni_store_own(store, copy, free, err) : sni_fail_memory(err);
        if (status != SN_OK) {
            sni_store_release(store);
            return status;
        }
        if (size) memcpy(copy, bytes, size);
        bytes = copy;
    }
    source from = {.bytes = bytes, .size = size, .store = store, .base_path = o.base_path};
    return import(&from, &o, out, err);
}

sn_status sn_model_load_text(const char *text, size_t size, sn_model **out, sn_error *err) {
    if (!out || (!text && size)) return sni_fail(err, SN_INVALID_ARGUMENT, "text or out is NULL");
    sni_model *imported;
    SN_TRY(sni_model_import_text(text, size, &imported, err));
    return sni_model_make(imported, out, err);
}

sn_status sn_model_write(const sn_model *model, sn_format format, sn_write_fn write, void *ctx,
                         sn_error *err) {
    if (!model || !write) return sni_fail(err, SN_INVALID_ARGUMENT, "model or write is NULL");
    const sni_graph *g = model->model->graph;
    if (format == SN_FORMAT_ONNX) return sni_write_onnx(g, model->model, write, ctx, err);
    if (format == SN_FORMAT_DOT) return sni_write_dot(g, NULL, write, ctx, err);
    return sni_write_text(g, model->model, write, ctx, err);
}

/* ---- Values as files ---- */

sn_status sn_value_decode(sn_kind kind, const void *bytes, size_t size, sn_value **out,
                          sn_error *err) {
    if (!out || (!bytes && size)) return sni_fail(err, SN_INVALID_ARGUMENT, "bytes or out is NULL");
    sni_arena arena;
    sni_arena_init(&arena, 0);
    sni_datum d = {.kind = SN_KIND_NONE};
    sn_status status = sni_datum_decode(kind, bytes, size, &arena, &d, err);
    if (status == SN_OK) status = sni_value_from_datum(&d, out, err);
    sni_datum_clear(&d);
    sni_arena_free(&arena);
    return status;
}

sn_status sn_value_encode(const sn_value *value, const char *name, sn_write_fn write, void *ctx,
                          sn_error *err) {
    if (!value || !write) return sni_fail(err, SN_INVALID_ARGUMENT, "value or write is NULL");
    sni_datum d = {.kind = SN_KIND_NONE};
    SN_TRY(sni_value_to_datum(value, &d, err));
    sn_status status = sni_datum_encode(&d, sni_str_of(name), write, ctx, err);
    sni_datum_clear(&d);
    return status;
}
