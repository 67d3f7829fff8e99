/* ep_build.c - makes parts: compiles those that are fused, creates the kernels of the others. */
#include "ort/ep_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Making ---- */

static OrtStatus *copy_port(OrtNode *fused, OrtValueInfo *const *from, size_t count, bool input) {
    OrtValueInfo ***list = input ? &fused->inputs : &fused->outputs;
    *list = calloc(count + 1, sizeof(OrtValueInfo *));
    if (!*list) return ort_fail_memory();
    for (size_t i = 0; i < count; i++) {
        (*list)[i] = from[i];
        bool good = input ? ort_node_add_name(&fused->input_names, &fused->input_count,
                                              from[i]->name, strlen(from[i]->name))
                          : ort_node_add_name(&fused->output_names, &fused->output_count,
                                              from[i]->name, strlen(from[i]->name));
        if (!good) return ort_fail_memory();
    }
    return NULL;
}

/* The node that stands for a part, in a domain of the providers' parts. */
static OrtStatus *make_fused(ort_part *p, size_t number) {
    char name[160];
    snprintf(name, sizeof name, "%.120s_%zu", p->provider->name, number);
    OrtNode *n = p->fused = calloc(1, sizeof *n);
    if (!n || !ort_replace_text(&p->op, name) || !ort_replace_text(&n->name, name) ||
        !ort_replace_text(&n->op, name) || !ort_replace_text(&n->domain, ORT_PART_DOMAIN))
        return ort_fail_memory();
    n->ep = p->provider->name;
    n->graph = p->graph;
    p->inputs = p->graph->inputs;
    p->input_count = p->graph->input_count;
    p->outputs = p->graph->outputs;
    p->output_count = p->graph->output_count;
    ORT_TRY(copy_port(n, p->inputs, p->input_count, true));
    return copy_port(n, p->outputs, p->output_count, false);
}

static bool is_tensor(const OrtValueInfo *v) {
    return v->type && v->type->kind == ONNX_TYPE_TENSOR &&
           v->type->tensor.type != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

/* Borders hand tensors over; results must have a known element type. */
static bool is_possible(const ort_part *p) {
    for (size_t i = 0; i < p->input_count; i++)
        if (!is_tensor(p->inputs[i])) return false;
    for (size_t i = 0; i < p->output_count; i++)
        if (!is_tensor(p->outputs[i])) return false;
    return p->output_count > 0;
}

OrtStatus *ort_part_make(ort_host *host, ort_provider *provider, const OrtNode *const *nodes,
                         const ort_claim *claim) {
    ort_part *p = calloc(1, sizeof *p);
    if (!p) return ort_fail_memory();
    p->host = host;
    p->provider = provider;
    p->compiled = claim->fused;
    OrtStatus *status = ort_graph_cut(host->model->graph, nodes, claim->count,
                                      claim->fused && !claim->drop_weights, &p->graph);
    if (!status) status = make_fused(p, host->part_count);
    bool possible = !status && is_possible(p);
    if (possible && !ort_list_add(&host->parts, &host->part_count, p)) status = ort_fail_memory();
    if (!possible && !status) {
        for (size_t i = 0; i < claim->count; i++) ((OrtNode *)nodes[i])->ep = NULL;
        ort_log_write(&host->logger.log, ORT_LOGGING_LEVEL_WARNING, provider->name,
                      "a part has a border that is no tensor: its nodes stay on the CPU");
    }
    if (status || !possible) ort_part_free(p);
    return status;
}

void ort_part_free(ort_part *p) {
    if (!p) return;
    OrtEp *ep = p->provider->ep;
    if (p->info && p->info->ReleaseState && p->state) p->info->ReleaseState(p->info, p->state);
    if (p->info && ORT_EP_HAS(ep, ReleaseNodeComputeInfos, 22))
        ep->ReleaseNodeComputeInfos(ep, &p->info, 1);
    for (size_t i = 0; i < p->step_count; i++)
        if (p->steps[i].impl && p->steps[i].impl->Release)
            p->steps[i].impl->Release(p->steps[i].impl);
    for (size_t i = 0; p->device_weights && i < p->graph->value_count; i++)
        sn_value_destroy(ort_sn(p->device_weights[i]));
    ort_node_free(p->context);
    ort_node_free(p->fused);
    ort_graph_free(p->graph);
    free(p->device_weights);
    free(p->steps);
    free(p->op);
    free(p);
}

/* ---- Compiling ---- */

typedef struct batch { /* the parts of one provider that it compiles */
    ort_part **parts;
    const OrtGraph **graphs;
    const OrtNode **nodes;
    OrtNodeComputeInfo **infos;
    OrtNode **contexts;
    size_t count;
} batch;

static void batch_free(batch *b) {
    free(b->parts);
    free(b->graphs);
    free(b->nodes);
    free(b->infos);
    free(b->contexts);
}

static OrtStatus *batch_init(batch *b, const ort_host *host, const ort_provider *provider) {
    size_t n = host->part_count + 1;
    *b = (batch){.parts = calloc(n, sizeof(ort_part *)),
                 .graphs = calloc(n, sizeof(OrtGraph *)),
                 .nodes = calloc(n, sizeof(OrtNode *)),
                 .infos = calloc(n, sizeof(OrtNodeComputeInfo *)),
                 .contexts = calloc(n, sizeof(OrtNode *))};
    if (!b->parts || !b->graphs || !b->nodes || !b->infos || !b->contexts) return ort_fail_memory();
    for (size_t i = 0; i < host->part_count; i++) {
        ort_part *p = host->parts[i];
        if (p->provider != provider || !p->compiled) continue;
        b->parts[b->count] = p;
        b->graphs[b->count] = p->graph;
        b->nodes[b->count++] = p->fused;
    }
    return NULL;
}

static OrtStatus *make_state(ort_part *p) {
    OrtNodeComputeContext context = {.name = p->fused->name};
    if (!p->info || !p->info->Compute)
        return ort_fail(ORT_EP_FAIL, "provider '%s' compiled nothing for part '%s'",
                        p->provider->name, p->fused->name);
    return p->info->CreateState ? p->info->CreateState(p->info, &context, &p->state) : NULL;
}

static OrtStatus *compile_batch(ort_provider *provider, batch *b) {
    OrtEp *ep = provider->ep;
    if (!ep->Compile)
        return ort_fail(ORT_EP_FAIL, "provider '%s' takes nodes to fuse and cannot compile",
                        provider->name);
    OrtStatus *status = ep->Compile(ep, b->graphs, b->nodes, b->count, b->infos, b->contexts);
    for (size_t i = 0; i < b->count; i++) { /* also of a failed call: what there is is freed */
        b->parts[i]->info = b->infos[i];
        b->parts[i]->context = b->contexts[i];
    }
    for (size_t i = 0; i < b->count && !status; i++) status = make_state(b->parts[i]);
    return status;
}

static OrtStatus *compile(ort_host *host, ort_provider *provider) {
    batch b;
    OrtStatus *status = batch_init(&b, host, provider);
    if (!status && b.count) status = compile_batch(provider, &b);
    batch_free(&b);
    return status;
}

/* ---- Kernels ---- */

static OrtStatus *prepack(const ort_part *p, ort_step *s, bool *packed) {
    OrtKernelImpl *k = s->impl;
    if (!ORT_EP_HAS(k, PrePackWeight, 24)) return NULL;
    OrtAllocator *allocator = p->provider->allocator ? p->provider->allocator : &ort_cpu_allocator;
    for (size_t i = 0; i < s->node->input_count; i++) {
        const OrtValueInfo *v = s->node->inputs[i];
        bool done = false;
        if (!v || !v->is_initializer || v->is_input || !v->weight) continue;
        ORT_TRY(k->PrePackWeight(k, v->weight, (int)i, allocator, NULL, &done));
        if (done) packed[v->number] = true;
    }
    return NULL;
}

static OrtStatus *make_step(const ort_part *p, ort_step *s, const OrtNode *n) {
    s->node = n;
    s->entry = ort_kernel_find(p->provider->registry, n);
    if (!s->entry)
        return ort_fail(ORT_EP_FAIL, "provider '%s' has no kernel for node '%s'", p->provider->name,
                        n->name);
    s->info = (OrtKernelInfo){.logger = &p->provider->logger,
                              .ep_node = n,
                              .provider = p->provider,
                              .config = &p->host->options->config};
    ORT_TRY(s->entry->create(s->entry->state, &s->info, &s->impl));
    if (!s->impl || !s->impl->Compute)
        return ort_fail(ORT_EP_FAIL, "provider '%s' made no kernel for node '%s'",
                        p->provider->name, n->name);
    return NULL;
}

/* Weights go to the device once, unless a kernel has packed them. */
static OrtStatus *upload(ort_part *p, const bool *packed) {
    if (!p->provider->allocator) return NULL;
    p->device_weights = calloc(p->graph->value_count + 1, sizeof(OrtValue *));
    if (!p->device_weights) return ort_fail_memory();
    for (size_t i = 0; i < p->graph->initializer_count; i++) {
        const OrtValueInfo *v = p->graph->initializers[i];
        if (!v->weight || packed[v->number]) continue;
        const sn_value *w = ort_sn(v->weight);
        OrtValue **to = &p->device_weights[v->number];
        if (sn_tensor_dtype(w) == SN_STRING) continue;
        ORT_TRY(ort_tensor_on(p->provider->allocator, sn_tensor_dtype(w), sn_tensor_rank(w),
                              sn_tensor_dims(w), to));
        if (sn_tensor_bytes(w))
            ORT_TRY(ort_copy_values((const OrtValue *const *)&v->weight, to, NULL, 1));
    }
    return NULL;
}

static OrtStatus *make_kernels(ort_part *p) {
    p->steps = calloc(p->graph->node_count + 1, sizeof *p->steps);
    bool *packed = calloc(p->graph->value_count + 1, sizeof *packed);
    OrtStatus *status = p->steps && packed ? NULL : ort_fail_memory();
    for (size_t i = 0; i < p->graph->node_count && !status; i++) {
        ort_step *s = &p->steps[p->step_count++];
        status = make_step(p, s, p->graph->nodes[i]);
        if (!status) status = prepack(p, s, packed);
    }
    if (!status) status = upload(p, packed);
    free(packed);
    return status;
}

OrtStatus *ort_host_build(ort_host *host) {
    for (size_t i = 0; i < host->provider_count; i++) ORT_TRY(compile(host, host->providers[i]));
    for (size_t i = 0; i < host->part_count; i++)
        if (!host->parts[i]->compiled) ORT_TRY(make_kernels(host->parts[i]));
    for (size_t i = 0; i < host->provider_count; i++) {
        OrtEp *ep = host->providers[i]->ep;
        if (ORT_EP_HAS(ep, OnSessionInitializationEnd, 27))
            ORT_TRY(ep->OnSessionInitializationEnd(ep));
    }
    return NULL;
}
