/* node_api.c - what plug-ins ask nodes: the slots Node_*. */
#include "ort/graph.h"

#include <string.h>

#define TELL(slot, member, out_type)                              \
    OrtStatusPtr ort_##slot(const OrtNode *node, out_type *out) { \
        NEED(node);                                               \
        NEED(out);                                                \
        *out = node->member;                                      \
        return NULL;                                              \
    }
#define LIST(slot, member, count_member, out_type, what)                              \
    OrtStatusPtr ort_##slot(const OrtNode *node, const out_type **out, size_t room) { \
        NEED(node);                                                                   \
        return ort_give_pointers(what, node->member, node->count_member, out, room);  \
    }

TELL(Node_GetId, id, size_t)
TELL(Node_GetName, name, const char *)
TELL(Node_GetOperatorType, op, const char *)
TELL(Node_GetDomain, domain, const char *)
TELL(Node_GetNumInputs, input_count, size_t)
TELL(Node_GetNumOutputs, output_count, size_t)
TELL(Node_GetNumImplicitInputs, implicit_count, size_t)
TELL(Node_GetNumAttributes, attribute_count, size_t)
TELL(Node_GetNumSubgraphs, body_count, size_t)
TELL(Node_GetGraph, graph, const OrtGraph *)
TELL(Node_GetEpName, ep, const char *)
LIST(Node_GetInputs, inputs, input_count, OrtValueInfo, "inputs")
LIST(Node_GetOutputs, outputs, output_count, OrtValueInfo, "outputs")
LIST(Node_GetImplicitInputs, implicit, implicit_count, OrtValueInfo, "implicit inputs")
LIST(Node_GetAttributes, attributes, attribute_count, OrtOpAttr, "attributes")

int ort_node_since(const OrtNode *node) {
    const OrtModel *m = node->graph ? node->graph->model : NULL;
    return ort_since_version(node->domain, node->op, ort_model_opset(m, node->domain));
}

OrtStatusPtr ort_Node_GetSinceVersion(const OrtNode *node, int *since_version) {
    NEED(node);
    NEED(since_version);
    *since_version = ort_node_since(node);
    return NULL;
}

const OrtOpAttr *ort_node_attribute(const OrtNode *node, const char *name) {
    for (size_t i = 0; i < node->attribute_count; i++)
        if (strcmp(node->attributes[i]->name, name) == 0) return node->attributes[i];
    return NULL;
}

OrtStatusPtr ort_Node_GetAttributeByName(const OrtNode *node, const char *attribute_name,
                                         const OrtOpAttr **attribute) {
    NEED(node);
    NEED(attribute_name);
    NEED(attribute);
    *attribute = ort_node_attribute(node, attribute_name);
    return *attribute ? NULL
                      : ort_fail(ORT_NOT_FOUND, "node '%s' has no attribute '%s'", node->name,
                                 attribute_name);
}

OrtStatusPtr ort_OpAttr_GetTensorAttributeAsOrtValue(const OrtOpAttr *attribute,
                                                     OrtValue **attr_tensor) {
    NEED(attribute);
    NEED(attr_tensor);
    OrtValue *tensor = ort_attr_tensor(attribute);
    if (!tensor)
        return ort_fail(ORT_INVALID_ARGUMENT, "attribute '%s' is not a tensor", attribute->name);
    *attr_tensor = ort_of_sn(sn_value_retain(ort_sn(tensor)));
    return NULL;
}

OrtStatusPtr ort_Node_GetSubgraphs(const OrtNode *node, const OrtGraph **subgraphs,
                                   size_t num_subgraphs, const char **attribute_names) {
    NEED(node);
    ORT_TRY(ort_give_pointers("bodies", node->bodies, node->body_count, subgraphs, num_subgraphs));
    for (size_t i = 0; attribute_names && i < node->body_count; i++)
        attribute_names[i] = node->body_names[i];
    return NULL;
}
