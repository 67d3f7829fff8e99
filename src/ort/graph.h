/* graph.h - models as OrtModel, OrtGraph, OrtNode and OrtValueInfo show them: read from a file,
 * built in code, or cut out of another one. */
#ifndef SNI_ORT_GRAPH_H
#define SNI_ORT_GRAPH_H

#include "ort/ort.h"

/* Bytes of a file that stay where they are as long as the model. */
typedef struct ort_bytes {
    const void *p; /* NULL: not from a file */
    size_t size;
} ort_bytes;

typedef struct ort_use {
    OrtNode *node;
    int64_t index; /* of the input; -1: only the node's bodies use the value */
} ort_use;

struct OrtValueInfo {
    char *name;
    OrtTypeInfo *type; /* NULL: not known */
    OrtGraph *graph;   /* that lists it; NULL: none yet, the caller owns it */
    size_t number;     /* in the graph's list */
    OrtNode *producer; /* NULL: none in this graph */
    size_t output;     /* of the producer */
    ort_use *uses;
    size_t use_count;
    OrtValue *weight; /* an initialiser's contents; NULL: none, or not known yet */
    bool is_initializer, is_input, is_output;
    bool is_unwritten;     /* nobody needs the weight in the file that is written */
    bool is_constant_node; /* an initialiser that is a Constant node in the file */
    bool is_outer;         /* of a graph around this one */
    ort_bytes proto;       /* ValueInfoProto */
    ort_bytes tensor;      /* TensorProto of an initialiser */
};

struct OrtNode {
    char *name, *op, *domain;
    size_t id, index;                   /* number in the model's graph, and place in this one */
    char **input_names, **output_names; /* "": left out */
    size_t input_count, output_count;
    OrtOpAttr **attributes;
    size_t attribute_count;
    OrtGraph **bodies;
    char **body_names; /* of their attributes */
    size_t body_count;
    ort_bytes proto; /* NodeProto */
    /* Once in a graph that is linked: */
    OrtGraph *graph;
    OrtValueInfo **inputs, **outputs; /* NULL: left out */
    OrtValueInfo **implicit;          /* that the bodies use */
    size_t implicit_count;
    bool is_gone;   /* its results are known, or nobody needs them */
    const char *ep; /* name of the provider that runs it; NULL: nobody's yet */
};

struct OrtGraph {
    char *name;
    OrtModel *model; /* borrowed; NULL: none yet */
    OrtGraph *parent;
    OrtNode *parent_node;
    OrtNode **nodes; /* owned; in topological order once linked */
    size_t node_count;
    OrtValueInfo **values; /* owned: every value of the graph */
    size_t value_count;
    OrtValueInfo **table; /* the same by hash of their names; a power of two */
    size_t table_size;
    OrtValueInfo **inputs, **outputs, **initializers;
    size_t input_count, output_count, initializer_count;
    ort_bytes *rest; /* fields of the GraphProto that nothing here has taken apart */
    size_t rest_count;
    OrtNode **constants; /* Constant nodes of a file: their outputs are initialisers, and nobody
                            sees the nodes; owned */
    size_t constant_count;
    bool is_cut; /* its nodes have the ids of those that they are copies of */
};

typedef struct ort_opset {
    char *domain;
    int64_t version;
} ort_opset;

struct OrtModel {
    OrtGraph *graph;
    ort_opset *opsets;
    size_t opset_count;
    int64_t ir_version;
    bool lists_weights; /* the file lists weights as inputs, and this does not */
    char *path;         /* "" when it is from no file */
    OrtKeyValuePairs metadata;
    char *producer, *domain, *doc;
    int64_t version;
    ort_bytes *rest; /* fields of the ModelProto that nothing here has taken apart */
    size_t rest_count;
};

/* ---- Attributes (custom_infer.c) ---- */

/* One of type TENSOR has a pointer to its value as data, which it takes over. */
OrtOpAttr *ort_attr_new(const char *name, OrtOpAttrType type, const void *data, size_t size);
/* A text; its size counts the end. */
OrtOpAttr *ort_attr_text(const char *name, const char *text, size_t length);
OrtValue *ort_attr_tensor(const OrtOpAttr *attribute); /* NULL: not one */
OrtOpAttr *ort_attr_copy(const OrtOpAttr *attribute);

/* ---- Building (graph.c) ---- */

OrtGraph *ort_graph_new(const char *name);
void ort_graph_free(OrtGraph *graph);
void ort_node_free(OrtNode *node);
void ort_value_info_free(OrtValueInfo *value);
void ort_model_free(OrtModel *model);
OrtModel *ort_model_new(void);

/* The value of a name, made when there is none; NULL when memory runs out. */
OrtValueInfo *ort_graph_value(OrtGraph *graph, const char *name);
OrtValueInfo *ort_graph_find(const OrtGraph *graph, const char *name); /* NULL: none */
bool ort_model_set_opset(OrtModel *model, const char *domain, int64_t version);
/* Version of a domain that a model imports; 0: none. "ai.onnx" is "". */
int64_t ort_model_opset(const OrtModel *model, const char *domain);
bool ort_list_add(void *list, size_t *count, void *entry);
bool ort_node_add_name(char ***names, size_t *count, const char *name, size_t length);

/* ---- Linking (graph_link.c) ---- */

/* Connects nodes and values by their names, bodies included, and puts nodes into topological order.
 */
OrtStatus *ort_graph_link(OrtGraph *graph);

/* A graph of some nodes of another one, whose weights it shares: the nodes keep their ids. Its
 * inputs are what the nodes use and do not make, in the order of first use, constant weights only
 * `with_weights`; its outputs are what somebody else uses. The other graph outlives it. */
OrtStatus *ort_graph_cut(const OrtGraph *from, const OrtNode *const *nodes, size_t count,
                         bool with_weights, OrtGraph **out);

/* ---- Files (model_read.c, model_write.c) ---- */

/* The bytes stay in use as long as the model. */
OrtStatus *ort_model_read(const void *bytes, size_t size, const char *path, OrtModel **out);

/* Types and weights of all values, as the engine's importer knows them. Weights are borrowed from
 * the imported model, which outlives the graph. */
OrtStatus *ort_model_learn(OrtModel *model, const sn_model *imported);

/* Takes out the nodes whose results are weights in `folded`, the model after its constants were
 * folded, which outlives the graph. */
OrtStatus *ort_model_fold(OrtModel *model, const sn_model *folded);

/* Bytes that grow. */
typedef struct ort_sink {
    char *bytes;
    size_t size, capacity;
} ort_sink;
int ort_sink_write(void *sink, const void *bytes, size_t size); /* an sn_write_fn */

OrtStatus *ort_model_write(const OrtModel *model, ort_sink *out);
/* The same of a model that was built in code, whose graph is linked first. */
OrtStatus *ort_model_to_bytes(const OrtModel *model, ort_sink *out);

/* A file in memory. */
typedef struct ort_file_bytes {
    void *p;
    size_t size;
} ort_file_bytes;
OrtStatus *ort_file_read(const char *path, ort_file_bytes *out);
void ort_file_free(ort_file_bytes *file);

/* A model with what a session's options say, custom operators and the host's parts. */
OrtStatus *ort_model_load(const OrtSession *session, const ort_source *source,
                          const OrtSessionOptions *options, sn_model **out);

/* Version of an operator's definition that a node uses; 0: it is not known. */
int ort_since_version(const char *domain, const char *op, int64_t opset);

int ort_node_since(const OrtNode *node);
const OrtOpAttr *ort_node_attribute(const OrtNode *node, const char *name); /* NULL: none */

/* ---- Answers (graph_api.c, metadata.c) ---- */

/* Copies `count` pointers to a caller's list. */
OrtStatus *ort_give_pointers(const char *what, const void *from, size_t count, void *to,
                             size_t room);

/* What metadata objects are made of; copied. */
typedef struct ort_metadata {
    const char *producer, *graph, *domain, *description;
    int64_t version;
    const OrtKeyValuePairs *custom;
} ort_metadata;
OrtStatus *ort_metadata_make(const ort_metadata *from, OrtModelMetadata **out);

#endif
