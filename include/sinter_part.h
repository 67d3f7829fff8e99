/* sinter_part.h - the nodes of a model, and models made of a part of them; for tools that look for
 * the cause of something. The conventions are those of sinter.h. */
#ifndef SINTER_PART_H
#define SINTER_PART_H

#include "sinter.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A node of the main graph as it was imported: functions expanded, operators of older versions
 * brought up to date. Strings are borrowed. */
typedef struct sn_node_info {
    const char *name; /* may be "" */
    const char *domain;
    const char *op;
    size_t input_count; /* values that its subgraphs use come last */
    size_t output_count;
} sn_node_info;

SN_API size_t sn_model_node_count(const sn_model *model);
/* By index, each node after those that it depends on; false when out of range. */
SN_API bool sn_model_node(const sn_model *model, size_t index, sn_node_info *out);
/* The name of a value that a node reads or makes: "" if it is left out, NULL when out of range.
 * Borrowed. */
SN_API const char *sn_model_node_input(const sn_model *model, size_t node, size_t index);
SN_API const char *sn_model_node_output(const sn_model *model, size_t node, size_t index);

/* Calls `fn` for every named value of the model, those of bodies after those of the graph around
 * them: what is known of its type, and its contents if it is a weight or another constant of at
 * least 8 bits an element (else NULL). Both are borrowed until `fn` returns, the elements of
 * `weight` until the model is destroyed. Anything but SN_OK from `fn` ends the walk and is
 * returned. */
typedef sn_status (*sn_model_value_fn)(void *ctx, const sn_value_info *info, const sn_value *weight,
                                       sn_error *err);
SN_API sn_status sn_model_values(const sn_model *model, sn_model_value_fn fn, void *ctx,
                                 sn_error *err);

/* A model of the nodes that make `outputs`, names of values of the main graph. Values named by
 * `inputs` are not made but become inputs; those that nothing needs are left out. Inputs of the
 * model that are needed stay inputs, weights that are not needed are dropped. SN_NOT_FOUND: there
 * is no value of a name. The new model shares the weights of `model`, which may be destroyed before
 * it. Owned. */
SN_API sn_status sn_model_extract(const sn_model *model, const char *const *inputs,
                                  size_t input_count, const char *const *outputs,
                                  size_t output_count, sn_model **out, sn_error *err);

#ifdef __cplusplus
}
#endif

#endif
