/* export.h - what both writers of graphs (ONNX file and ONNX text) need to decide first: a name for
 * every value that is right in its scope, and the operator sets to declare. */
#ifndef SNI_MODEL_EXPORT_H
#define SNI_MODEL_EXPORT_H

#include "model/model.h"

/* A graph and its names. In ONNX a subgraph sees the names of the graphs around it and must not
 * define them again, and the output of a graph is the value of that name. */
typedef struct sni_export {
    const sni_graph *graph;
    sni_str *values;  /* by value id; captures have the name of the value they stand for */
    sni_str *outputs; /* the names of the outputs */
    sni_str *nodes;   /* by node id: names, none twice; n 0: none */
    bool *copied;     /* by output: its value has another name and must be copied to this one */
    const sni_places *places;      /* constants that are written elsewhere; NULL: none */
    struct sni_export **subgraphs; /* by node id: n_subgraphs in a row; NULL if none */
    sni_str
        *calls; /* by node id: the function of ai.sinter that is called in its place; n 0: none */
} sni_export;

/* Names for a main graph and all its subgraphs, in `arena`. */
sn_status sni_export_names(const sni_graph *g, const sni_places *places, sni_arena *arena,
                           sni_export **out, sn_error *err);

/* The type to declare for output `i` of a main graph: inferred, or as `model` (may be NULL) says
 * where that tells more. */
const sni_type *sni_export_output_type(const sni_graph *g, const sni_model *model, int32_t i);

typedef struct sni_export_versions {
    int64_t ir_version;
    sni_opset *opsets; /* ai.onnx first; no domain twice */
    size_t n_opsets;
} sni_export_versions;

/* The lowest operator sets under which every node, as it stands, means what it does here: not below
 * those that `model` (may be NULL) imports. With `spell`, nodes that can be spelled out
 * (model/spell.h) need none. */
sn_status sni_export_choose(const sni_graph *g, const sni_model *model, bool spell,
                            sni_arena *arena, sni_export_versions *out, sn_error *err);

/* A function of the file, FunctionProto. */
typedef struct sni_export_function {
    sni_str name, text, bytes;
    struct sni_export_function *next;
} sni_export_function;

/* Sets e->calls of a graph and its subgraphs, and declares the domain of the functions that nodes
 * become. */
sn_status sni_export_spell(sni_export *e, sni_export_versions *versions, sni_arena *arena,
                           sni_export_function **out, sn_error *err);

#endif
