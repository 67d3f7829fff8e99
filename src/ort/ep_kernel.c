/* ep_kernel.c - registries of kernels: what operators a provider has one-node kernels for. */
#include "ort/ep.h"

#include <stdlib.h>
#include <string.h>

struct OrtDataType {
    sn_dtype dtype;
};

struct OrtKernelDefBuilder {
    OrtKernelDef def;
};

/* ---- Element types ---- */

OrtStatusPtr ort_ep_GetTensorDataType(ONNXTensorElementDataType type, const OrtDataType **out) {
    static const OrtDataType all[32] = {
        {0},  {1},  {2},  {3},  {4},  {5},  {6},  {7},  {8},  {9},  {10},
        {11}, {12}, {13}, {14}, {15}, {16}, {17}, {18}, {19}, {20}, {21},
        {22}, {23}, {24}, {25}, {26}, {27}, {28}, {29}, {30}, {31},
    };
    NEED(out);
    sn_dtype dtype = ort_dtype_in(type);
    if (dtype == SN_UNDEFINED || (size_t)dtype >= sizeof all / sizeof *all)
        return ort_fail(ORT_INVALID_ARGUMENT, "%d is no element type", (int)type);
    *out = &all[dtype];
    return NULL;
}

/* ---- Definitions ---- */

static void clear_def(OrtKernelDef *d) {
    free(d->op);
    free(d->domain);
    free(d->ep);
    for (size_t i = 0; i < d->rule_count; i++) free(d->rules[i].name);
    free(d->rules);
}

static OrtKernelDef *copy_def(const OrtKernelDef *from) {
    OrtKernelDef *d = malloc(sizeof *d);
    if (!d) return NULL;
    *d = *from;
    d->op = d->domain = d->ep = NULL;
    d->rules = calloc(from->rule_count + 1, sizeof *d->rules);
    d->rule_count = 0;
    bool good = d->rules && ort_replace_text(&d->op, from->op) &&
                ort_replace_text(&d->domain, from->domain) && ort_replace_text(&d->ep, from->ep);
    for (size_t i = 0; i < from->rule_count && good; i++) {
        d->rules[d->rule_count++].types = from->rules[i].types;
        good = ort_replace_text(&d->rules[i].name, from->rules[i].name);
    }
    if (good) return d;
    ort_ep_ReleaseKernelDef(d);
    return NULL;
}

void ort_ep_ReleaseKernelDef(OrtKernelDef *def) {
    if (!def) return;
    clear_def(def);
    free(def);
}

OrtStatusPtr ort_ep_CreateKernelDefBuilder(OrtKernelDefBuilder **out) {
    NEED(out);
    OrtKernelDefBuilder *b = calloc(1, sizeof *b);
    if (!b || !ort_replace_text(&b->def.op, "") || !ort_replace_text(&b->def.domain, "") ||
        !ort_replace_text(&b->def.ep, "")) {
        ort_ep_ReleaseKernelDefBuilder(b);
        return ort_fail_memory();
    }
    b->def.first = 1;
    b->def.last = INT32_MAX;
    *out = b;
    return NULL;
}

void ort_ep_ReleaseKernelDefBuilder(OrtKernelDefBuilder *builder) {
    if (!builder) return;
    clear_def(&builder->def);
    free(builder);
}

#define SET_TEXT(slot, member, text)                                                              \
    OrtStatusPtr ort_ep_KernelDefBuilder_##slot(OrtKernelDefBuilder *builder, const char *text) { \
        NEED(builder);                                                                            \
        NEED(text);                                                                               \
        return ort_replace_text(&builder->def.member, text) ? NULL : ort_fail_memory();           \
    }
SET_TEXT(SetOperatorType, op, op)
SET_TEXT(SetDomain, domain, domain)
SET_TEXT(SetExecutionProvider, ep, name)

OrtStatusPtr ort_ep_KernelDefBuilder_SetSinceVersion(OrtKernelDefBuilder *builder, int first,
                                                     int last) {
    NEED(builder);
    if (first < 1 || last < first)
        return ort_fail(ORT_INVALID_ARGUMENT, "versions %d to %d of an operator", first, last);
    builder->def.first = first;
    builder->def.last = last;
    return NULL;
}

static OrtStatus *set_memory(OrtMemType *list, size_t index, OrtMemType type) {
    if (index >= ORT_KERNEL_PORTS)
        return ort_fail(ORT_INVALID_ARGUMENT, "port %zu of a kernel; it may have %d", index,
                        ORT_KERNEL_PORTS);
    list[index] = type;
    return NULL;
}

OrtStatusPtr ort_ep_KernelDefBuilder_SetInputMemType(OrtKernelDefBuilder *builder, size_t index,
                                                     OrtMemType type) {
    NEED(builder);
    return set_memory(builder->def.inputs, index, type);
}

OrtStatusPtr ort_ep_KernelDefBuilder_SetOutputMemType(OrtKernelDefBuilder *builder, size_t index,
                                                      OrtMemType type) {
    NEED(builder);
    return set_memory(builder->def.outputs, index, type);
}

OrtStatusPtr ort_ep_KernelDefBuilder_AddTypeConstraint(OrtKernelDefBuilder *builder,
                                                       const char *name,
                                                       const OrtDataType *const *types,
                                                       size_t count) {
    NEED(builder);
    NEED(name);
    NEED(types);
    ort_type_rule *r =
        ort_append((void **)&builder->def.rules, &builder->def.rule_count, sizeof *r);
    if (!r || !ort_replace_text(&r->name, name)) return ort_fail_memory();
    for (size_t i = 0; i < count; i++)
        if (types[i]) r->types |= 1u << types[i]->dtype;
    return NULL;
}

/* Kernels may always be given the memory that they ask for: an alias is an offer, not a need. */
static OrtStatus *check_aliases(const OrtKernelDefBuilder *builder, const int *inputs,
                                const int *outputs, size_t count) {
    NEED(builder);
    if (count) NEED(inputs);
    if (count) NEED(outputs);
    return NULL;
}

OrtStatusPtr ort_ep_KernelDefBuilder_AddInputOutputAliases(OrtKernelDefBuilder *builder,
                                                           const int *inputs, const int *outputs,
                                                           size_t count) {
    return check_aliases(builder, inputs, outputs, count);
}

OrtStatusPtr ort_ep_KernelDefBuilder_AddInputOutputMutableAliases(OrtKernelDefBuilder *builder,
                                                                  const int *inputs,
                                                                  const int *outputs,
                                                                  size_t count) {
    return check_aliases(builder, inputs, outputs, count);
}

OrtStatusPtr ort_ep_KernelDefBuilder_Build(OrtKernelDefBuilder *builder, OrtKernelDef **out) {
    NEED(builder);
    NEED(out);
    *out = copy_def(&builder->def);
    return *out ? NULL : ort_fail_memory();
}

const char *ort_ep_KernelDef_GetOperatorType(const OrtKernelDef *def) {
    return def ? def->op : "";
}

const char *ort_ep_KernelDef_GetDomain(const OrtKernelDef *def) {
    return def ? def->domain : "";
}

const char *ort_ep_KernelDef_GetExecutionProvider(const OrtKernelDef *def) {
    return def ? def->ep : "";
}

OrtStatusPtr ort_ep_KernelDef_GetSinceVersion(const OrtKernelDef *def, int *first, int *last) {
    NEED(def);
    NEED(first);
    NEED(last);
    *first = def->first;
    *last = def->last;
    return NULL;
}

OrtStatusPtr ort_ep_KernelDef_GetInputMemType(const OrtKernelDef *def, size_t index,
                                              OrtMemType *out) {
    NEED(def);
    NEED(out);
    *out = index < ORT_KERNEL_PORTS ? def->inputs[index] : OrtMemTypeDefault;
    return NULL;
}

OrtStatusPtr ort_ep_KernelDef_GetOutputMemType(const OrtKernelDef *def, size_t index,
                                               OrtMemType *out) {
    NEED(def);
    NEED(out);
    *out = index < ORT_KERNEL_PORTS ? def->outputs[index] : OrtMemTypeDefault;
    return NULL;
}

/* ---- Registries ---- */

OrtStatusPtr ort_ep_CreateKernelRegistry(OrtKernelRegistry **out) {
    NEED(out);
    *out = calloc(1, sizeof **out);
    return *out ? NULL : ort_fail_memory();
}

void ort_ep_ReleaseKernelRegistry(OrtKernelRegistry *registry) {
    if (!registry) return;
    for (size_t i = 0; i < registry->count; i++) ort_ep_ReleaseKernelDef(registry->entries[i].def);
    free(registry->entries);
    free(registry);
}

OrtStatusPtr ort_ep_KernelRegistry_AddKernel(OrtKernelRegistry *registry, const OrtKernelDef *def,
                                             OrtKernelCreateFunc create, void *state) {
    NEED(registry);
    NEED(def);
    NEED(create);
    ort_kernel_entry *e = ort_append((void **)&registry->entries, &registry->count, sizeof *e);
    if (!e) return ort_fail_memory();
    *e = (ort_kernel_entry){copy_def(def), create, state};
    if (e->def) return NULL;
    registry->count--;
    return ort_fail_memory();
}

static bool same_domain(const char *a, const char *b) {
    return strcmp(strcmp(a, "ai.onnx") ? a : "", strcmp(b, "ai.onnx") ? b : "") == 0;
}

static bool port_fits(const OrtKernelDef *d, const OrtNode *node, bool input, size_t index,
                      const OrtValueInfo *v) {
    char variable[32];
    if (!v || !v->type || !ort_port_variable(node->domain, node->op, input, index, variable))
        return true;
    for (size_t i = 0; i < d->rule_count; i++)
        if (strcmp(d->rules[i].name, variable) == 0)
            return v->type->kind == ONNX_TYPE_TENSOR &&
                   (d->rules[i].types >> ort_dtype_in(v->type->tensor.type) & 1);
    return true;
}

static bool fits(const OrtKernelDef *d, const OrtNode *node, int since) {
    if (strcmp(d->op, node->op) != 0 || !same_domain(d->domain, node->domain)) return false;
    if (since && since != d->first && (d->last == INT32_MAX || since < d->first || since > d->last))
        return false; /* a range without an end is of one definition */
    for (size_t i = 0; i < node->input_count; i++)
        if (!port_fits(d, node, true, i, node->inputs[i])) return false;
    for (size_t i = 0; i < node->output_count; i++)
        if (!port_fits(d, node, false, i, node->outputs[i])) return false;
    return true;
}

const ort_kernel_entry *ort_kernel_find(const OrtKernelRegistry *registry, const OrtNode *node) {
    int since = ort_node_since(node);
    for (size_t i = 0; registry && i < registry->count; i++)
        if (fits(registry->entries[i].def, node, since)) return &registry->entries[i];
    return NULL;
}
