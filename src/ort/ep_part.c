/* ep_part.c - runs parts: an operator of the engine whose kernel is a provider's. */
#include "ort/ep_host.h"

#include <stdlib.h>
#include <string.h>

/* A value of a part during a run: at most one copy in each memory. */
typedef struct slot {
    OrtValue *host, *device; /* borrowed where the flags are false */
    bool own_host, own_device;
} slot;

struct ort_part_call {
    const ort_part *part;
    const ort_step *step; /* NULL: the whole part is compiled */
    sn_op_call *call;
    OrtSyncStream *stream; /* NULL: none */
    slot *slots;           /* by number of the value in the part's graph */
};

static size_t number_of(const ort_part *p, const OrtValueInfo *v) {
    return v->number < p->graph->value_count ? v->number : 0;
}

/* ---- Memory ---- */

static bool on_device(const ort_part *p) {
    return p->provider->allocator != NULL;
}

static OrtStatus *to_device(const ort_part_call *c, slot *s) {
    if (s->device || !s->host) return NULL;
    const sn_value *v = ort_sn(s->host);
    ORT_TRY(ort_tensor_on(c->part->provider->allocator, sn_tensor_dtype(v), sn_tensor_rank(v),
                          sn_tensor_dims(v), &s->device));
    s->own_device = true;
    if (!sn_tensor_bytes(v)) return NULL;
    return ort_copy_values((const OrtValue *const *)&s->host, &s->device, c->stream, 1);
}

/* A copy that the host can read; the stream's work before it is waited for. */
static OrtStatus *to_host(const ort_part_call *c, slot *s) {
    if (s->host || !s->device) return NULL;
    const sn_value *v = ort_sn(s->device);
    sn_value *made;
    sn_error err;
    if (sn_tensor_create(sn_tensor_dtype(v), sn_tensor_rank(v), sn_tensor_dims(v), &made, &err) !=
        SN_OK)
        return ort_fail_sn(&err);
    s->host = ort_of_sn(made);
    s->own_host = true;
    if (!sn_tensor_bytes(v)) return NULL;
    ORT_TRY(ort_copy_values((const OrtValue *const *)&s->device, &s->host, c->stream, 1));
    return c->stream ? ort_stream_finish(c->stream) : NULL;
}

/* ---- What kernels ask ---- */

static const OrtValueInfo *port(const ort_part_call *c, bool input, size_t index) {
    const ort_part *p = c->part;
    if (c->step) return input ? c->step->node->inputs[index] : c->step->node->outputs[index];
    return input ? p->inputs[index] : p->outputs[index];
}

size_t ort_part_ports(const ort_part_call *c, bool input) {
    if (c->step) return input ? c->step->node->input_count : c->step->node->output_count;
    return input ? c->part->input_count : c->part->output_count;
}

static bool wants_host(const ort_part_call *c, bool input, size_t index) {
    if (!on_device(c->part)) return true;
    if (!c->step || index >= ORT_KERNEL_PORTS) return false;
    const OrtKernelDef *d = c->step->entry->def;
    return (input ? d->inputs[index] : d->outputs[index]) < OrtMemTypeDefault;
}

OrtStatus *ort_part_input(const ort_part_call *c, size_t index, const OrtValue **out) {
    const OrtValueInfo *v = port(c, true, index);
    *out = NULL;
    if (!v) return NULL;
    slot *s = &c->slots[number_of(c->part, v)];
    bool host = wants_host(c, true, index);
    ORT_TRY(host ? to_host(c, s) : to_device(c, s));
    *out = host ? s->host : s->device;
    return NULL;
}

/* Which output of the part a value is; the count: none. */
static size_t part_output(const ort_part *p, const OrtValueInfo *v) {
    size_t i = 0;
    while (i < p->output_count && p->outputs[i] != v) i++;
    return i;
}

static OrtStatus *engine_output(const ort_part_call *c, size_t index, const ort_tensor_shape *shape,
                                OrtValue **out) {
    sn_op_tensor t;
    sn_error err;
    if (sn_operators_api()->output(c->call, index, shape->dtype, shape->rank, shape->dims, &t,
                                   &err) != SN_OK)
        return ort_fail_sn(&err);
    *out = ort_of_sn(t.value);
    return NULL;
}

static OrtStatus *host_output(const ort_part_call *c, const OrtValueInfo *v, slot *s,
                              const ort_tensor_shape *shape) {
    size_t at = part_output(c->part, v);
    if (at < c->part->output_count) {
        ORT_TRY(engine_output(c, at, shape, &s->host));
        if (s->host) return NULL;
    }
    sn_value *made;
    sn_error err;
    if (sn_tensor_create(shape->dtype, shape->rank, shape->dims, &made, &err) != SN_OK)
        return ort_fail_sn(&err);
    s->host = ort_of_sn(made);
    s->own_host = true;
    return NULL;
}

OrtStatus *ort_part_output(const ort_part_call *c, size_t index, const int64_t *dims, size_t rank,
                           OrtValue **out) {
    const OrtValueInfo *v = port(c, false, index);
    *out = NULL;
    if (!v) return NULL;
    if (!v->type || v->type->kind != ONNX_TYPE_TENSOR)
        return ort_fail(ORT_FAIL, "the element type of '%s' is not known", v->name);
    slot *s = &c->slots[number_of(c->part, v)];
    ort_tensor_shape shape = {ort_dtype_in(v->type->tensor.type), (int)rank, dims};
    bool host = wants_host(c, false, index);
    OrtValue **place = host ? &s->host : &s->device;
    if (!*place && host) ORT_TRY(host_output(c, v, s, &shape));
    if (!*place) {
        ORT_TRY(
            ort_tensor_on(c->part->provider->allocator, shape.dtype, shape.rank, dims, &s->device));
        s->own_device = true;
    }
    *out = *place;
    return NULL;
}

OrtAllocator *ort_part_allocator(const ort_part_call *c, const OrtMemoryInfo *info) {
    if (ort_on_host(info)) return &ort_cpu_allocator;
    return c->part->provider->allocator;
}

OrtSyncStream *ort_part_stream(const ort_part_call *c) {
    return c->stream;
}

/* ---- Runs ---- */

static OrtStatus *bind_inputs(const ort_part_call *c) {
    const ort_part *p = c->part;
    const sn_op_api *api = sn_operators_api();
    for (size_t i = 0; i < p->graph->initializer_count; i++) {
        const OrtValueInfo *v = p->graph->initializers[i];
        slot *s = &c->slots[number_of(p, v)];
        s->host = v->weight;
        s->device = p->device_weights ? p->device_weights[number_of(p, v)] : NULL;
    }
    for (size_t i = 0; i < p->input_count; i++) {
        sn_op_tensor t;
        if (!api->input(c->call, i, &t))
            return ort_fail(ORT_FAIL, "input '%s' of part '%s' is missing", p->inputs[i]->name,
                            p->fused->name);
        c->slots[number_of(p, p->inputs[i])].host = ort_of_sn(t.value);
    }
    return NULL;
}

/* Results that a device holds go to the engine's memory; none may be missing. */
static OrtStatus *deliver(const ort_part_call *c) {
    const ort_part *p = c->part;
    for (size_t i = 0; i < p->output_count; i++) {
        slot *s = &c->slots[number_of(p, p->outputs[i])];
        if (s->host) continue;
        if (!s->device)
            return ort_fail(ORT_EP_FAIL, "provider '%s' made no output '%s' of part '%s'",
                            p->provider->name, p->outputs[i]->name, p->fused->name);
        const sn_value *v = ort_sn(s->device);
        ort_tensor_shape shape = {sn_tensor_dtype(v), sn_tensor_rank(v), sn_tensor_dims(v)};
        ORT_TRY(engine_output(c, i, &shape, &s->host));
        if (s->host && sn_tensor_bytes(v))
            ORT_TRY(ort_copy_values((const OrtValue *const *)&s->device, &s->host, c->stream, 1));
    }
    return c->stream ? ort_stream_finish(c->stream) : NULL;
}

static OrtStatus *compute(ort_part_call *c) {
    const ort_part *p = c->part;
    OrtKernelContext context = {.call = c->call, .logger = &p->provider->logger, .part = c};
    if (p->compiled) return p->info->Compute(p->info, p->state, &context);
    for (size_t i = 0; i < p->step_count; i++) {
        if (sn_operators_api()->cancelled(c->call))
            return ort_fail(ORT_FAIL, "Exiting due to terminate flag being set to true.");
        c->step = &p->steps[i];
        OrtStatus *status = p->steps[i].impl->Compute(p->steps[i].impl, &context);
        if (status) return status;
    }
    return NULL;
}

static OrtStatus *open_stream(ort_part_call *c) {
    ort_provider *p = c->part->provider;
    OrtSyncStreamImpl *impl = NULL;
    if (!p->streams) return NULL;
    const OrtMemoryDevice *memory = ort_memory_device(p->device->memory);
    if (ORT_EP_HAS(p->ep, CreateSyncStreamForDevice, 23))
        ORT_TRY(p->ep->CreateSyncStreamForDevice(p->ep, memory, &impl));
    else
        ORT_TRY(
            p->device->factory->CreateSyncStreamForDevice(p->device->factory, memory, NULL, &impl));
    return impl ? ort_stream_new(impl, p->device->memory, &c->stream) : NULL;
}

static void clear_slots(const ort_part_call *c) {
    for (size_t i = 0; i < c->part->graph->value_count; i++) {
        if (c->slots[i].own_host) sn_value_destroy(ort_sn(c->slots[i].host));
        if (c->slots[i].own_device) sn_value_destroy(ort_sn(c->slots[i].device));
    }
}

static OrtStatus *run(ort_part_call *c) {
    ORT_TRY(open_stream(c));
    OrtStatus *status = bind_inputs(c);
    if (!status) status = compute(c);
    c->step = NULL;
    if (!status) status = deliver(c);
    if (status && c->stream) ort_ReleaseStatus(ort_stream_finish(c->stream));
    return status;
}

sn_status ort_part_run(void *ctx, void *state, sn_op_call *call, sn_error *err) {
    const ort_part *p = ctx;
    (void)state;
    ort_part_call c = {.part = p, .call = call};
    c.slots = calloc(p->graph->value_count + 1, sizeof *c.slots);
    if (!c.slots) return ort_to_sn(ort_fail_memory(), err);
    if (p->provider->serial) pthread_mutex_lock(&p->provider->lock);
    OrtStatus *status = run(&c);
    clear_slots(&c);
    ort_ReleaseSyncStream(c.stream);
    if (p->provider->serial) pthread_mutex_unlock(&p->provider->lock);
    free(c.slots);
    return ort_to_sn(status, err);
}

/* Shapes that the model does not fix are known when the part has run. */
sn_status ort_part_infer(void *ctx, sn_op_infer *call, sn_error *err) {
    const ort_part *p = ctx;
    for (size_t i = 0; i < p->output_count; i++) {
        const OrtTensorTypeAndShapeInfo *t = &p->outputs[i]->type->tensor;
        bool fixed = t->has_shape;
        for (int k = 0; k < t->rank; k++) fixed = fixed && t->dims[k] >= 0;
        sn_status status = sn_operators_api()->infer_output(
            call, i, ort_dtype_in(t->type), fixed ? t->rank : -1, t->dims, NULL, err);
        if (status != SN_OK) return status;
    }
    return SN_OK;
}
