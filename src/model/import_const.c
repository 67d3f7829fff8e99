/* import_const.c - tensors of a model file: initialisers, attributes and Constant nodes, inside the
 * file or beside it. Nothing is decoded before it is used. */
#include "model/import.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Decoding, at first use ---- */

/* Memory for the contents and for their text, owned by the constant's store. */
static sn_status make_memory(sni_const *c, size_t text_size, char **text, sn_error *err) {
    *text = NULL;
    if (text_size) {
        *text = malloc(text_size);
        if (!*text) return sni_fail_memory(err);
        SN_TRY(sni_store_own(c->store, *text, free, err));
    }
    return sni_const_own_memory(c, err);
}

static sn_status decode_tensor(sni_const *c, sn_error *err) {
    const sni_tensor_view *v = c->source;
    char *text;
    SN_TRY(make_memory(c, v->text_size, &text, err));
    sn_status status = sni_tensor_view_fill(v, c->tensor.data, text, err);
    if (status != SN_OK) c->tensor.data = NULL;
    if (v->raw) sni_mapping_drop(c->mapping, v->raw, v->raw_size);
    return status;
}

static sn_status decode_sparse(sni_const *c, sn_error *err) {
    const sni_sparse_view *v = c->source;
    char *text;
    SN_TRY(make_memory(c, v->values.text_size, &text, err));
    sn_status status = sni_sparse_view_fill(v, c->tensor.data, text, err);
    if (status != SN_OK) c->tensor.data = NULL;
    return status;
}

/* ---- External data: the one place where a model names a file ---- */

static void close_mapping(void *mapping) {
    sni_mapping_close(mapping);
}

static sn_status keep_mapping(sni_importer *imp, sni_mapping *mapping) {
    SN_TRY(sni_store_own(imp->store, mapping, close_mapping, imp->err));
    sni_model *m = imp->model;
    sni_mapping **all = SNI_NEW_ARRAY(&imp->store->arena, sni_mapping *, m->n_mappings + 1);
    if (!all) return sni_import_no_memory(imp);
    if (m->n_mappings) memcpy(all, m->mappings, m->n_mappings * sizeof *all);
    all[m->n_mappings++] = mapping;
    m->mappings = all;
    return SN_OK;
}

static sn_status add_file(sni_importer *imp, sni_str location, const unsigned char *bytes,
                          size_t size, const sni_mapping *mapping) {
    if (imp->n_files == imp->files_capacity) {
        size_t capacity = imp->files_capacity ? imp->files_capacity * 2 : 8;
        sni_file *files = realloc(imp->files, capacity * sizeof *files);
        if (!files) return sni_fail_memory(imp->err);
        imp->files = files;
        imp->files_capacity = capacity;
    }
    imp->files[imp->n_files] =
        (sni_file){.location = location, .bytes = bytes, .size = size, .mapping = mapping};
    return sni_names_add(&imp->file_index, location, (int32_t)imp->n_files++, 0, imp->err);
}

/* "./a" names the same file as "a". */
static sni_str without_dot(sni_str path) {
    while (path.n > 2 && path.p[0] == '.' && path.p[1] == '/')
        path = (sni_str){path.p + 2, path.n - 2};
    return path;
}

/* A file that the caller of the import has in memory; NULL: none. */
static const sn_file *file_in_memory(const sni_importer *imp, sni_str location) {
    for (size_t i = 0; i < imp->options.n_files; i++)
        if (sni_str_eq(without_dot(sni_str_of(imp->options.files[i].name)), without_dot(location)))
            return &imp->options.files[i];
    return NULL;
}

static sn_status take_file(sni_importer *imp, sni_str location, const sn_file *file) {
    if (imp->options.borrow_files) return add_file(imp, location, file->bytes, file->size, NULL);
    unsigned char *copy = file->size < SIZE_MAX ? malloc(file->size + 1) : NULL;
    if (!copy) return sni_fail_memory(imp->err);
    if (file->size) memcpy(copy, file->bytes, file->size);
    SN_TRY(sni_store_own(imp->store, copy, free, imp->err));
    return add_file(imp, location, copy, file->size, NULL);
}

/* Makes the file part of imp->files unless it is there. */
static sn_status open_file(sni_importer *imp, sni_str location) {
    const sn_file *memory = file_in_memory(imp, location);
    if (memory) return take_file(imp, location, memory);
    if (!imp->options.base_path)
        return sni_fail(imp->err, SN_INVALID_ARGUMENT,
                        "it has external data in '%.*s', but no folder was given for it",
                        SNI_FMT(location));
    if (memchr(location.p, 0, location.n))
        return sni_fail(imp->err, SN_INVALID_MODEL, "the path of its external data holds a NUL");
    sni_str path;
    SN_TRY(sni_import_copy(imp, location, &path));
    int flags = (imp->options.copy ? SNI_OPEN_COPY : 0) |
                (imp->options.allow_links ? SNI_OPEN_ALLOW_LINKS : 0) |
                (imp->options.allow_hard_links ? SNI_OPEN_ALLOW_HARD_LINKS : 0);
    sni_mapping *mapping;
    SN_TRY(sni_mapping_open_beneath(imp->options.base_path, path.p, flags, &mapping, imp->err));
    SN_TRY(keep_mapping(imp, mapping));
    if (imp->options.allow_hard_links && sni_mapping_names(mapping) > 1)
        SN_TRY(sni_store_tolerate(imp->store, (sni_str){0}, imp->err,
                                  "external data '%s' has %" PRIu64 " names (hard links)", path.p,
                                  sni_mapping_names(mapping)));
    return add_file(imp, path, sni_mapping_bytes(mapping), sni_mapping_size(mapping), mapping);
}

static sn_status find_file(sni_importer *imp, sni_str location, sni_file *out) {
    const sni_name *known = sni_names_find(&imp->file_index, location);
    if (!known) SN_TRY(open_file(imp, location));
    *out = imp->files[known ? (size_t)known->value : imp->n_files - 1];
    return SN_OK;
}

/* Sets `raw` of a view whose contents are external, and the file that they are in. */
static sn_status find_external(sni_importer *imp, sni_tensor_view *v, const sni_mapping **mapping) {
    const sni_external *e = &v->external;
    size_t bytes = sni_tensor_view_bytes(v);
    sni_file file = {0};
    sn_status status = find_file(imp, e->location, &file);
    if (status == SN_OK && (e->offset > file.size || bytes > file.size - (size_t)e->offset))
        status = sni_fail(imp->err, SN_INVALID_MODEL,
                          "it needs %zu bytes at offset %" PRIu64 " of '%.*s', which has %zu",
                          bytes, e->offset, SNI_FMT(e->location), file.size);
    if (status != SN_OK)
        return sni_fail_context(imp->err, status, "tensor '%.*s'", SNI_FMT(v->name));
    v->raw = file.bytes + e->offset;
    v->raw_size = bytes;
    *mapping = file.mapping;
    return SN_OK;
}

static sn_status locate(sni_importer *imp, sni_tensor_view *v, const sni_mapping **mapping) {
    *mapping = imp->options.file;
    return v->is_external ? find_external(imp, v, mapping) : SN_OK;
}

/* ---- Constants ---- */

/* Contents that the caller of the import gives for an initialiser; NULL: none. */
static const sni_given *find_given(const sni_importer *imp, sni_str name) {
    for (size_t i = 0; i < imp->options.n_given; i++)
        if (sni_str_eq(imp->options.given[i].name, name)) return &imp->options.given[i];
    return NULL;
}

static sn_status check_given(const sni_importer *imp, const sni_tensor *file,
                             const sni_given *given) {
    const sni_tensor *t = &given->tensor;
    bool same = t->dtype == file->dtype && t->rank == file->rank;
    for (int i = 0; same && i < t->rank; i++) same = t->dims[i] == file->dims[i];
    if (same) return SN_OK;
    return sni_fail(imp->err, SN_INVALID_ARGUMENT,
                    "the contents given for weight '%.*s' are %s of rank %d with %" PRId64
                    " elements, and the model has %s of rank %d with %" PRId64,
                    SNI_FMT(given->name), sn_dtype_name(t->dtype), t->rank, t->count,
                    sn_dtype_name(file->dtype), file->rank, file->count);
}

sn_status sni_import_tensor(sni_importer *imp, sni_wire *w, sni_const **out, sni_str *name) {
    sni_tensor_view view;
    SN_TRY(sni_tensor_view_read(w, &view));
    const sni_mapping *mapping = NULL;
    const sni_given *given = name && imp->takes_given ? find_given(imp, view.name) : NULL;
    if (given)
        SN_TRY(check_given(imp, &view.shape, given));
    else
        SN_TRY(locate(imp, &view, &mapping));
    sni_const *c = SNI_NEW(&imp->store->arena, sni_const);
    if (!c) return sni_import_no_memory(imp);
    c->tensor = view.shape;
    c->store = imp->store;
    c->file_bytes = view.raw ? view.raw_size : view.data_size;
    c->mapping = mapping;
    if (given) {
        c->tensor = given->tensor;
    } else if (sni_tensor_view_in_place(&view)) {
        c->tensor.data = (void *)view.raw; /* only ever read */
    } else {
        sni_tensor_view *source = SNI_NEW(&imp->store->arena, sni_tensor_view);
        if (!source) return sni_import_no_memory(imp);
        *source = view;
        c->source = source;
        c->decode = decode_tensor;
        if (!sni_dtype_subbyte(view.shape.dtype)) c->raw = view.raw;
    }
    if (name) *name = view.name;
    *out = c;
    return SN_OK;
}

sn_status sni_import_sparse(sni_importer *imp, sni_wire *w, sni_const **out, sni_str *name) {
    sni_sparse_view *v = SNI_NEW(&imp->store->arena, sni_sparse_view);
    sni_const *c = SNI_NEW(&imp->store->arena, sni_const);
    if (!v || !c) return sni_import_no_memory(imp);
    SN_TRY(sni_sparse_view_read(w, v));
    const sni_mapping *mapping;
    SN_TRY(locate(imp, &v->values, &mapping));
    SN_TRY(locate(imp, &v->indices, &mapping));
    c->tensor = v->shape;
    c->store = imp->store;
    c->file_bytes = sni_tensor_view_bytes(&v->values) + sni_tensor_view_bytes(&v->indices);
    c->source = v;
    c->decode = decode_sparse;
    if (name) *name = v->values.name;
    *out = c;
    return SN_OK;
}

/* ---- Constant nodes ---- */

static sn_status constant_of(sni_importer *imp, sn_dtype dtype, bool list, const void *data,
                             size_t count, sni_const **out) {
    int64_t dims[1] = {(int64_t)count};
    sni_const *c;
    SN_TRY(sni_const_new(imp->store, dtype, list ? 1 : 0, dims, &c, imp->err));
    if (count) memcpy(c->tensor.data, data, sni_tensor_bytes(&c->tensor));
    *out = c;
    return SN_OK;
}

sn_status sni_import_constant(sni_importer *imp, const sni_attr *attrs, int32_t n,
                              sni_const **out) {
    static const struct {
        const char *name;
        sni_attr_kind kind;
    } forms[] = {{"value", SNI_ATTR_TENSOR},        {"sparse_value", SNI_ATTR_TENSOR},
                 {"value_float", SNI_ATTR_FLOAT},   {"value_floats", SNI_ATTR_FLOATS},
                 {"value_int", SNI_ATTR_INT},       {"value_ints", SNI_ATTR_INTS},
                 {"value_string", SNI_ATTR_STRING}, {"value_strings", SNI_ATTR_STRINGS}};
    if (n != 1)
        return sni_fail(imp->err, SN_INVALID_MODEL, "a Constant has %d attributes instead of one",
                        (int)n);
    sni_attr_kind kind = SNI_ATTR_NONE;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (sni_str_is(attrs->name, forms[i].name) && attrs->kind == forms[i].kind)
            kind = forms[i].kind;
    switch (kind) {
    case SNI_ATTR_TENSOR:
        *out = attrs->u.tensor;
        return SN_OK;
    case SNI_ATTR_FLOAT:
        return constant_of(imp, SN_FLOAT32, false, &attrs->u.f, 1, out);
    case SNI_ATTR_FLOATS:
        return constant_of(imp, SN_FLOAT32, true, attrs->u.floats, attrs->count, out);
    case SNI_ATTR_INT:
        return constant_of(imp, SN_INT64, false, &attrs->u.i, 1, out);
    case SNI_ATTR_INTS:
        return constant_of(imp, SN_INT64, true, attrs->u.ints, attrs->count, out);
    case SNI_ATTR_STRING:
        return constant_of(imp, SN_STRING, false, &attrs->u.s, 1, out);
    case SNI_ATTR_STRINGS:
        return constant_of(imp, SN_STRING, true, attrs->u.strings, attrs->count, out);
    default:
        return sni_fail(imp->err, SN_INVALID_MODEL, "a Constant has no attribute '%.*s' like that",
                        SNI_FMT(attrs->name));
    }
}
