/* custom_infer.c - shape inference of custom operators, and attributes as objects. */
#include "ort/graph.h"
#include "ort/guard.h"

#include <stdlib.h>
#include <string.h>

/* One question; everything handed out lives until it is answered. */
struct OrtShapeInferContext {
    sn_op_infer *call;
    OrtTensorTypeAndShapeInfo *inputs; /* as far as asked for; one per input */
    size_t input_count;
    OrtOpAttr **attrs;
    size_t attr_count;
};

/* ---- Attributes ---- */

/* An attribute with a copy of `size` bytes as ReadOpAttr gives them; NULL when memory runs out. */
OrtOpAttr *ort_attr_new(const char *name, OrtOpAttrType type, const void *data, size_t size) {
    OrtOpAttr *a = calloc(1, sizeof *a + size + 1);
    if (!a || !ort_replace_text(&a->name, name)) {
        free(a);
        return NULL;
    }
    a->type = type;
    a->size = size;
    if (size) memcpy(a->data, data, size);
    return a;
}

OrtValue *ort_attr_tensor(const OrtOpAttr *attribute) {
    OrtValue *tensor = NULL;
    if (attribute->type == ORT_OP_ATTR_TENSOR) memcpy(&tensor, attribute->data, sizeof tensor);
    return tensor;
}

OrtOpAttr *ort_attr_copy(const OrtOpAttr *attribute) {
    sn_value_retain(ort_sn(ort_attr_tensor(attribute)));
    return ort_attr_new(attribute->name, attribute->type, attribute->data, attribute->size);
}

OrtOpAttr *ort_attr_text(const char *name, const char *text, size_t length) {
    OrtOpAttr *a = ort_attr_new(name, ORT_OP_ATTR_STRING, text, length);
    if (a) a->size = length + 1; /* with its end */
    return a;
}

void ort_ReleaseOpAttr(OrtOpAttr *input) {
    if (!input) return;
    sn_value_destroy(ort_sn(ort_attr_tensor(input)));
    free(input->name);
    free(input);
}

/* Texts one after the other, each with its end. */
static OrtOpAttr *texts_attr(const char *name, const char *const *texts, size_t count) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++) size += strlen(texts[i]) + 1;
    char *all = malloc(size + 1), *at = all;
    if (!all) return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(texts[i]) + 1;
        memcpy(at, texts[i], n);
        at += n;
    }
    OrtOpAttr *a = ort_attr_new(name, ORT_OP_ATTR_STRINGS, all, size);
    free(all);
    return a;
}

/* The attribute of strings of a node. */
static OrtOpAttr *node_texts(const sn_op_node *node, const char *name, size_t count) {
    const char **texts = calloc(count + 1, sizeof *texts);
    if (!texts) return NULL;
    for (size_t i = 0; i < count; i++)
        sn_operators_api()->node_text_at(node, name, i, &texts[i], NULL);
    OrtOpAttr *a = texts_attr(name, texts, count);
    free(texts);
    return a;
}

OrtOpAttr *ort_attr_of_node(const sn_op_node *node, const char *name) {
    const sn_op_api *api = sn_operators_api();
    int64_t i;
    float f;
    const int64_t *ints;
    const float *floats;
    const char *text;
    size_t n;
    if (api->node_int(node, name, &i)) return ort_attr_new(name, ORT_OP_ATTR_INT, &i, sizeof i);
    if (api->node_float(node, name, &f)) return ort_attr_new(name, ORT_OP_ATTR_FLOAT, &f, sizeof f);
    if (api->node_ints(node, name, &ints, &n))
        return ort_attr_new(name, ORT_OP_ATTR_INTS, ints, n * sizeof *ints);
    if (api->node_floats(node, name, &floats, &n))
        return ort_attr_new(name, ORT_OP_ATTR_FLOATS, floats, n * sizeof *floats);
    if (api->node_text(node, name, &text, &n)) return ort_attr_text(name, text, n);
    if (api->node_texts(node, name, &n)) return node_texts(node, name, n);
    return NULL;
}

/* Whether `data` can hold so many elements. */
static OrtStatus *check_length(const void *data, int len) {
    if (len < 0 || (len && !data))
        return ort_fail(ORT_INVALID_ARGUMENT, "CreateOpAttr: %d elements, or data is NULL", len);
    return NULL;
}

OrtStatusPtr ort_CreateOpAttr(const char *name, const void *data, int len, OrtOpAttrType type,
                              OrtOpAttr **op_attr) {
    NEED(name);
    NEED(op_attr);
    ORT_TRY(check_length(data, len));
    OrtOpAttr *a = NULL;
    size_t n = (size_t)len;
    switch (type) {
    case ORT_OP_ATTR_INT:
    case ORT_OP_ATTR_FLOAT:
        NEED(data);
        a = ort_attr_new(name, type, data,
                         type == ORT_OP_ATTR_INT ? sizeof(int64_t) : sizeof(float));
        break;
    case ORT_OP_ATTR_INTS:
        a = ort_attr_new(name, type, data, n * sizeof(int64_t));
        break;
    case ORT_OP_ATTR_FLOATS:
        a = ort_attr_new(name, type, data, n * sizeof(float));
        break;
    case ORT_OP_ATTR_STRING:
        NEED(data);
        a = ort_attr_text(name, data, n);
        break;
    case ORT_OP_ATTR_STRINGS:
        a = texts_attr(name, data, n);
        break;
    default:
        return ort_fail(ORT_NOT_IMPLEMENTED, "CreateOpAttr: attributes of type %d are not taken",
                        (int)type);
    }
    if (!a) return ort_fail_memory();
    *op_attr = a;
    return NULL;
}

OrtStatusPtr ort_ReadOpAttr(const OrtOpAttr *op_attr, OrtOpAttrType type, void *data, size_t len,
                            size_t *out) {
    NEED(op_attr);
    NEED(out);
    if (op_attr->type != type)
        return ort_fail(ORT_INVALID_ARGUMENT, "attribute '%s' is of type %d, not %d", op_attr->name,
                        (int)op_attr->type, (int)type);
    if (type == ORT_OP_ATTR_TENSOR || type == ORT_OP_ATTR_GRAPH)
        return ort_fail(ORT_INVALID_ARGUMENT, "attribute '%s' cannot be read as bytes",
                        op_attr->name);
    /* A text is kept with its end, which does not count. */
    size_t size = type == ORT_OP_ATTR_STRING ? op_attr->size - 1 : op_attr->size;
    *out = size;
    if (len < size || (!data && size))
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "attribute '%s' takes %zu bytes and there is room for %zu", op_attr->name,
                        size, data ? len : 0);
    if (size) memcpy(data, op_attr->data, size);
    return NULL;
}

OrtStatusPtr ort_OpAttr_GetType(const OrtOpAttr *attribute, OrtOpAttrType *type) {
    NEED(attribute);
    NEED(type);
    *type = attribute->type;
    return NULL;
}

OrtStatusPtr ort_OpAttr_GetName(const OrtOpAttr *attribute, const char **name) {
    NEED(attribute);
    NEED(name);
    *name = attribute->name;
    return NULL;
}

/* ---- The context ---- */

OrtStatusPtr ort_ShapeInferContext_GetInputCount(const OrtShapeInferContext *context, size_t *out) {
    NEED(context);
    NEED(out);
    *out = context->input_count;
    return NULL;
}

/* A copy of an input's type and shape; `out` is clear before. */
static OrtStatus *read_input(const sn_value_info *info, OrtTensorTypeAndShapeInfo *out) {
    OrtTypeInfo *type = NULL;
    ORT_TRY(ort_type_of_info(info, &type));
    OrtStatus *status = ort_shape_copy(&type->tensor, out);
    ort_ReleaseTypeInfo(type);
    return status;
}

OrtStatusPtr ort_ShapeInferContext_GetInputTypeShape(const OrtShapeInferContext *context,
                                                     size_t index,
                                                     OrtTensorTypeAndShapeInfo **info) {
    NEED(context);
    NEED(info);
    if (index >= context->input_count)
        return ort_fail(ORT_INVALID_ARGUMENT, "input %zu of a node that has %zu", index,
                        context->input_count);
    OrtTensorTypeAndShapeInfo *kept = &context->inputs[index];
    sn_value_info v;
    if (!sn_operators_api()->infer_input(context->call, index, &v))
        return ort_fail(ORT_FAIL, "input %zu was left out", index);
    ort_shape_clear(kept);
    ORT_TRY(read_input(&v, kept));
    *info = kept;
    return NULL;
}

OrtStatusPtr ort_ShapeInferContext_GetAttribute(const OrtShapeInferContext *context,
                                                const char *attr_name, const OrtOpAttr **attr) {
    NEED(context);
    NEED(attr_name);
    NEED(attr);
    OrtShapeInferContext *c = (OrtShapeInferContext *)context; /* keeps what it gives */
    OrtOpAttr *a = ort_attr_of_node(sn_operators_api()->infer_node(c->call), attr_name);
    if (!a) return ort_fail(ORT_FAIL, "the node has no attribute '%s'", attr_name);
    OrtOpAttr **place = ort_append((void **)&c->attrs, &c->attr_count, sizeof *place);
    if (!place) {
        ort_ReleaseOpAttr(a);
        return ort_fail_memory();
    }
    *place = a;
    *attr = a;
    return NULL;
}

OrtStatusPtr ort_ShapeInferContext_SetOutputTypeShape(const OrtShapeInferContext *context,
                                                      size_t index,
                                                      const OrtTensorTypeAndShapeInfo *info) {
    NEED(context);
    NEED(info);
    sn_error err;
    int rank = info->has_shape ? info->rank : -1;
    /* The element type stays what the operator declares. */
    if (sn_operators_api()->infer_output(context->call, index, SN_UNDEFINED, rank, info->dims,
                                         (const char *const *)info->symbols, &err) != SN_OK)
        return ort_fail_sn(&err);
    return NULL;
}

/* ---- Inference ---- */

/* An output without a type of its own has that of the first such input. */
static sn_dtype open_type(const OrtCustomOp *op, const sn_op_infer *call) {
    const sn_op_api *api = sn_operators_api();
    size_t formals = op->GetInputTypeCount(op);
    sn_value_info info;
    for (size_t i = 0; i < formals; i++)
        if (op->GetInputType(op, i) == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED &&
            api->infer_input(call, i, &info))
            return info.dtype;
    return SN_UNDEFINED;
}

/* Gives outputs the element types that the operator's description names. Shapes are left open. */
static sn_status set_types(const OrtCustomOp *op, sn_op_infer *call, sn_error *err) {
    const sn_op_api *api = sn_operators_api();
    size_t formals = op->GetOutputTypeCount(op);
    size_t count = api->node_output_count(api->infer_node(call));
    for (size_t i = 0; i < count && formals; i++) {
        sn_dtype dtype = ort_dtype_in(op->GetOutputType(op, i < formals ? i : formals - 1));
        if (!dtype) dtype = open_type(op, call);
        sn_status status = api->infer_output(call, i, dtype, -1, NULL, NULL, err);
        if (status != SN_OK) return status;
    }
    return SN_OK;
}

static bool is_variadic(const OrtCustomOp *op, bool input) {
    size_t n = input ? op->GetInputTypeCount(op) : op->GetOutputTypeCount(op);
    if (op->version < 14 || n == 0) return false;
    OrtCustomOpInputOutputCharacteristic (*get)(const OrtCustomOp *, size_t) =
        input ? op->GetInputCharacteristic : op->GetOutputCharacteristic;
    return get && get(op, n - 1) == INPUT_OUTPUT_VARIADIC;
}

/* Refuses fewer values than a variadic port takes. */
static OrtStatus *check_arity(const OrtCustomOp *op, const sn_op_node *node, bool input) {
    const sn_op_api *api = sn_operators_api();
    int (*get)(const OrtCustomOp *) =
        input ? op->GetVariadicInputMinArity : op->GetVariadicOutputMinArity;
    if (!is_variadic(op, input) || !get) return NULL;
    size_t formals = input ? op->GetInputTypeCount(op) : op->GetOutputTypeCount(op);
    size_t count = input ? api->node_input_count(node) : api->node_output_count(node);
    long long least = (long long)formals - 1 + get(op);
    if ((long long)count >= least) return NULL;
    return ort_fail(ORT_INVALID_GRAPH,
                    "Error Node(%s) with schema(%s::%s:%lld) has %s size %zu not in range "
                    "[min=%lld, max=%d]",
                    api->node_name(node), api->node_domain(node), api->node_type(node),
                    (long long)api->node_version(node), input ? "input" : "output", count, least,
                    INT32_MAX);
}

/* Refuses values of different types where a variadic input wants them alike. */
static OrtStatus *check_alike(const OrtCustomOp *op, const sn_op_node *node) {
    const sn_op_api *api = sn_operators_api();
    if (!is_variadic(op, true) || !op->GetVariadicInputHomogeneity ||
        !op->GetVariadicInputHomogeneity(op))
        return NULL;
    size_t first = op->GetInputTypeCount(op) - 1;
    sn_dtype type = SN_UNDEFINED;
    for (size_t i = first; i < api->node_input_count(node); i++) {
        sn_value_info info;
        if (!api->node_input(node, i, &info) || !info.dtype) continue;
        if (type && info.dtype != type)
            return ort_fail(ORT_FAIL,
                            "Type Error: Type parameter (Input%zu) of Optype (%s) bound to "
                            "different types (tensor(%s) and tensor(%s)) in node (%s)",
                            first, api->node_type(node), sn_dtype_name(type),
                            sn_dtype_name(info.dtype), api->node_name(node));
        type = info.dtype;
    }
    return NULL;
}

static sn_status check_node(const OrtCustomOp *op, const sn_op_node *node, sn_error *err) {
    OrtStatus *status = check_arity(op, node, true);
    if (!status) status = check_arity(op, node, false);
    if (!status) status = check_alike(op, node);
    return ort_to_sn(status, err);
}

/* One call of a function that infers shapes. */
typedef struct inferring {
    const OrtCustomOp *op;
    OrtShapeInferContext *context;
    OrtStatus *status;
} inferring;

static void infer_guarded(void *arg) {
    inferring *i = arg;
    i->status = i->op->InferOutputShapeFn(i->op, i->context);
}

sn_status ort_custom_infer(void *ctx, sn_op_infer *call, sn_error *err) {
    const ort_custom *c = ctx;
    const sn_op_api *api = sn_operators_api();
    const OrtCustomOp *op = ort_custom_choose(c, api->infer_node(call));
    if (!op) return SN_OK; /* told when the kernel is made, with all types known */
    sn_status status = check_node(op, api->infer_node(call), err);
    if (status == SN_OK) status = set_types(op, call, err);
    if (status != SN_OK || op->version < 17 || !op->InferOutputShapeFn) return status;
    OrtShapeInferContext context = {.call = call};
    context.input_count = api->node_input_count(api->infer_node(call));
    context.inputs = calloc(context.input_count + 1, sizeof *context.inputs);
    if (!context.inputs) return ort_to_sn(ort_fail_memory(), err);
    inferring asked = {.op = op, .context = &context};
    if (!ort_guarded(infer_guarded, &asked))
        asked.status = ort_fail(ORT_RUNTIME_EXCEPTION,
                                "the shape inference of '%s' threw an exception", op->GetName(op));
    status = ort_to_sn(asked.status, err);
    for (size_t i = 0; i < context.input_count; i++) ort_shape_clear(&context.inputs[i]);
    for (size_t i = 0; i < context.attr_count; i++) ort_ReleaseOpAttr(context.attrs[i]);
    free(context.inputs);
    free(context.attrs);
    return status;
}
