/* model.h - an imported model: its graph in canonical operators, and what the file said of itself.
 */
#ifndef SNI_MODEL_MODEL_H
#define SNI_MODEL_MODEL_H

#include "base/mapping.h"
#include "graph/graph.h"

typedef struct sni_opset {
    sni_str domain; /* "" for ai.onnx */
    int64_t version;
} sni_opset;

typedef struct sni_pair {
    sni_str key, value;
} sni_pair;

typedef struct sni_model {
    sni_store *store; /* holds everything below; one reference is the model's */
    sni_graph
        *graph; /* resolved (ops/core/op.h), sorted, verified, types inferred; functions inlined */
    const sni_type *output_types; /* as declared, one per graph output */
    int64_t ir_version;
    int64_t model_version;
    bool has_model_version;
    sni_str producer_name, producer_version, domain, doc, graph_doc;
    sni_opset *opsets; /* as the file imports them */
    size_t n_opsets;
    sni_pair *metadata;
    size_t n_metadata;
    sni_mapping **mappings; /* the model file and its external data, as far as opened */
    size_t n_mappings;
} sni_model;

/* Contents to be used for an initialiser, whatever the file has for it. */
typedef struct sni_given {
    sni_str name;
    sni_tensor tensor; /* its data is kept alive by the model's store */
} sni_given;

typedef struct sni_import_options {
    sni_mapping *file; /* what the bytes are part of, for sni_model_intact; NULL: plain memory.
                          The store owns it */
    bool allow_links;  /* see sn_load_options */
    bool allow_hard_links, strict;
    bool copy;
    const char *base_path;          /* folder of external data; NULL: external data is refused */
    uint64_t memory_limit;          /* of the store's arena; 0: in proportion to the file */
    const sn_dimension *dimensions; /* these lists are borrowed for the import; see sinter.h */
    size_t n_dimensions;
    const sni_given *given;
    size_t n_given;
    const sn_file *files; /* external data that is in memory; its bytes are copied ... */
    size_t n_files;
    bool borrow_files; /* ... or stay in use: the store keeps them alive */
    /* Looks for an operator that the table of this build does not have; NULL: there are none. */
    const struct sni_op *(*find_op)(const void *ctx, sni_str domain, sni_str name, int64_t version);
    const void *find_ctx;
} sni_import_options;

/* Reads an ONNX ModelProto. `bytes` stay in use by the model: `store` keeps them alive and is
 * taken over (released on failure too). Owned by the caller: sni_model_free. */
sn_status sni_model_import(const unsigned char *bytes, size_t size, sni_store *store,
                           const sni_import_options *options, sni_model **out, sn_error *err);

/* Reads a model in ONNX text syntax (docs/TEXT.md); nothing of `text` stays in use. */
sn_status sni_model_import_text(const char *text, size_t size, sni_model **out, sn_error *err);

void sni_model_free(sni_model *model); /* its reference to the store, too; NULL is fine */

/* SN_IO if a mapped file changed since it was opened. */
sn_status sni_model_intact(const sni_model *model, sn_error *err);
/* The same for every run: see sni_mapping_watch(). */
sn_status sni_model_watch(const sni_model *model, sn_error *err);

/* ---- Writing (writer.c, text_print.c) ---- */

/* Each of these calls `write` with pieces in order and fails with SN_IO when it refuses one. */

/* A graph as an ONNX file that other tools can read, or as text. `model` gives metadata; NULL:
 * none. Canonical operators are written with the opset that has them. */
sn_status sni_write_onnx(const sni_graph *graph, const sni_model *model, sn_write_fn write,
                         void *ctx, sn_error *err);
/* The same where operators that other programs do not know, or that the model's opset does not
 * have, are calls of functions with bodies of those that it has (model/spell.h). */
sn_status sni_write_portable(const sni_graph *graph, const sni_model *model, sn_write_fn write,
                             void *ctx, sn_error *err);
sn_status sni_write_text(const sni_graph *graph, const sni_model *model, sn_write_fn write,
                         void *ctx, sn_error *err);

/* What a drawing says of each node besides: writes a line into `text`. */
typedef struct sni_dot_notes {
    void (*note)(void *ctx, const sni_node *n, char *text, size_t size);
    void *ctx;
} sni_dot_notes;

/* A graph in the DOT language of Graphviz. `notes` may be NULL. */
sn_status sni_write_dot(const sni_graph *graph, const sni_dot_notes *notes, sn_write_fn write,
                        void *ctx, sn_error *err);

/* Where constants stand that are not written into the file but beside it: parallel arrays, the
 * constants by rising address. */
typedef struct sni_places {
    const char *location; /* the name of the file beside */
    sni_const **constants;
    uint64_t *offsets;
    size_t count;
} sni_places;

/* sni_write_onnx() with constants of `places` as external data. */
sn_status sni_write_onnx_beside(const sni_graph *graph, const sni_model *model,
                                const sni_places *places, sn_write_fn write, void *ctx,
                                sn_error *err);

/* ---- Values as protobuf messages (tensor_proto.c) ---- */

/* TensorProto, SequenceProto, MapProto or OptionalProto to a datum that owns its memory, and back.
 * Text of strings goes to `arena`. */
sn_status sni_datum_decode(sn_kind kind, const unsigned char *bytes, size_t size, sni_arena *arena,
                           sni_datum *out, sn_error *err);
sn_status sni_datum_encode(const sni_datum *datum, sni_str name, sn_write_fn write, void *ctx,
                           sn_error *err);

struct sni_out; /* model/wire_write.h */
/* The fields of a TensorProto; the name is left out when it is empty. */
void sni_put_tensor(struct sni_out *out, const sni_tensor *t, sni_str name);

#endif
