/* plugin_registry.c - what providers with a registry of kernels share. */
#include "plugin.h"

#include <stdlib.h>

typedef struct provider {
    OrtEp base;
    const char *name;
    OrtKernelCreateFunc create;
    OrtKernelRegistry *registry;
} provider;

static OrtStatus *add_kernel(OrtKernelRegistry *registry, const char *ep, const char *op, int first,
                             int last, OrtKernelCreateFunc create) {
    OrtKernelDefBuilder *b;
    OrtKernelDef *def = NULL;
    const OrtDataType *floats;
    TRY(ep_api->CreateKernelDefBuilder(&b));
    OrtStatus *status = ep_api->GetTensorDataType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &floats);
    if (!status) status = ep_api->KernelDefBuilder_SetOperatorType(b, op);
    if (!status) status = ep_api->KernelDefBuilder_SetDomain(b, "");
    if (!status) status = ep_api->KernelDefBuilder_SetSinceVersion(b, first, last);
    if (!status) status = ep_api->KernelDefBuilder_SetExecutionProvider(b, ep);
    if (!status) status = ep_api->KernelDefBuilder_AddTypeConstraint(b, "T", &floats, 1);
    if (!status) status = ep_api->KernelDefBuilder_Build(b, &def);
    if (!status) status = ep_api->KernelRegistry_AddKernel(registry, def, create, (void *)ep);
    ep_api->ReleaseKernelDef(def);
    ep_api->ReleaseKernelDefBuilder(b);
    return status;
}

static OrtStatus *new_registry(const char *ep, OrtKernelCreateFunc create,
                               OrtKernelRegistry **out) {
    TRY(ep_api->CreateKernelRegistry(out));
    TRY(add_kernel(*out, ep, "Mul", 7, 12, create));
    TRY(add_kernel(*out, ep, "Mul", 13, 13, create));
    TRY(add_kernel(*out, ep, "Mul", 14, 14, create));
    TRY(add_kernel(*out, ep, "Add", 7, 12, create));
    TRY(add_kernel(*out, ep, "Add", 13, 13, create));
    return add_kernel(*out, ep, "Add", 14, 14, create);
}

static OrtStatusPtr get_capability(OrtEp *self, const OrtGraph *graph,
                                   OrtEpGraphSupportInfo *support) {
    (void)self;
    size_t count;
    const OrtNode *nodes[64];
    TRY(ort->Graph_GetNumNodes(graph, &count));
    if (count > 64) return NULL;
    TRY(ort->Graph_GetNodes(graph, nodes, count));
    for (size_t i = 0; i < count; i++) {
        const OrtKernelDef *def = NULL;
        TRY(ep_api->EpGraphSupportInfo_LookUpKernel(support, nodes[i], &def));
        if (def) TRY(ep_api->EpGraphSupportInfo_AddSingleNode(support, nodes[i]));
    }
    return NULL;
}

static const char *get_name(const OrtEp *self) {
    return ((const provider *)self)->name;
}

static OrtStatusPtr get_registry(OrtEp *self, const OrtKernelRegistry **out) {
    provider *p = (provider *)self;
    if (!p->registry) TRY(new_registry(p->name, p->create, &p->registry));
    *out = p->registry;
    return NULL;
}

static void release_ep(OrtEpFactory *self, OrtEp *ep) {
    (void)self;
    note("ReleaseEp");
    ep_api->ReleaseKernelRegistry(((provider *)ep)->registry);
    free(ep);
}

static OrtStatusPtr create_ep(OrtEpFactory *self, const OrtHardwareDevice *const *devices,
                              const OrtKeyValuePairs *const *metadata, size_t count,
                              const OrtSessionOptions *options, const OrtLogger *logger,
                              OrtEp **out) {
    (void)devices, (void)metadata, (void)count, (void)options, (void)logger;
    provider *p = calloc(1, sizeof *p);
    p->name = ((factory *)self)->name;
    p->create = ((factory *)self)->create;
    p->base = (OrtEp){.ort_version_supported = 24,
                      .GetName = get_name,
                      .GetCapability = get_capability,
                      .GetKernelRegistry = get_registry};
    *out = &p->base;
    return NULL;
}

void registry_init(factory *f, OrtKernelCreateFunc create) {
    f->create = create;
    f->base.CreateEp = create_ep;
    f->base.ReleaseEp = release_ep;
}
