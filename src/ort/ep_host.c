/* ep_host.c - from a model and options to the same model with parts that providers run. */
#include "ort/ep_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ort_host_wanted(const OrtSessionOptions *options) {
    if (!options) return false;
    return options->has_policy || (options->ep_device_count && options->ep_devices[0]->factory);
}

/* ---- The changed model ---- */

/* What a node has become: itself, or the part that it is in. */
typedef struct unit {
    const OrtNode *node;
    const ort_part *part; /* NULL: the node alone */
    size_t waits;
} unit;

typedef struct order {
    unit *units;
    size_t count;
    size_t *unit_of; /* by position of the node */
} order;

static OrtStatus *find_units(const ort_host *host, order *o) {
    const OrtGraph *g = host->model->graph;
    size_t none = SIZE_MAX;
    o->units = calloc(g->node_count + host->part_count + 1, sizeof *o->units);
    o->unit_of = calloc(g->node_count + 1, sizeof *o->unit_of);
    if (!o->units || !o->unit_of) return ort_fail_memory();
    for (size_t i = 0; i < g->node_count; i++) o->unit_of[i] = none;
    for (size_t p = 0; p < host->part_count; p++) {
        const OrtGraph *cut = host->parts[p]->graph;
        for (size_t k = 0; k < cut->node_count; k++) o->unit_of[cut->nodes[k]->id] = o->count;
        o->units[o->count++] = (unit){host->parts[p]->fused, host->parts[p], 0};
    }
    for (size_t i = 0; i < g->node_count; i++) {
        if (o->unit_of[i] != none) continue;
        o->unit_of[i] = o->count;
        o->units[o->count++] = (unit){g->nodes[i], NULL, 0};
    }
    return NULL;
}

/* Calls for every edge between units. */
static void each_edge(const OrtGraph *g, const order *o, size_t node,
                      void (*fn)(unit *to, void *ctx), void *ctx) {
    for (size_t k = 0; k < g->nodes[node]->output_count; k++) {
        const OrtValueInfo *v = g->nodes[node]->outputs[k];
        for (size_t u = 0; v && u < v->use_count; u++) {
            size_t to = o->unit_of[v->uses[u].node->index];
            if (to != o->unit_of[node]) fn(&o->units[to], ctx);
        }
    }
}

static void add_wait(unit *to, void *ctx) {
    (void)ctx;
    to->waits++;
}

typedef struct ready {
    unit **list;
    size_t count;
} ready;

static void end_wait(unit *to, void *ctx) {
    ready *r = ctx;
    if (--to->waits == 0) r->list[r->count++] = to;
}

static OrtStatus *sort_units(const ort_host *host, const order *o, ready *r) {
    const OrtGraph *g = host->model->graph;
    for (size_t i = 0; i < g->node_count; i++) each_edge(g, o, i, add_wait, NULL);
    for (size_t i = 0; i < o->count; i++)
        if (!o->units[i].waits) r->list[r->count++] = &o->units[i];
    for (size_t done = 0; done < r->count; done++) {
        const unit *u = r->list[done];
        if (!u->part) {
            each_edge(g, o, u->node->index, end_wait, r);
            continue;
        }
        for (size_t k = 0; k < u->part->graph->node_count; k++)
            each_edge(g, o, u->part->graph->nodes[k]->id, end_wait, r);
    }
    return r->count == o->count
               ? NULL
               : ort_fail(ORT_EP_FAIL, "parts that the providers claim wait for each other");
}

/* Weights that only nodes in parts use stay with the providers. */
static void find_unwritten(const ort_host *host, const order *o) {
    const OrtGraph *g = host->model->graph;
    for (size_t i = 0; i < g->initializer_count; i++) {
        OrtValueInfo *v = g->initializers[i];
        v->is_unwritten = !v->is_output && !v->is_input;
        for (size_t u = 0; u < v->use_count; u++) {
            const unit *by = &o->units[o->unit_of[v->uses[u].node->index]];
            if (!by->part) v->is_unwritten = false;
            for (size_t k = 0; by->part && k < by->part->input_count; k++)
                if (strcmp(by->part->inputs[k]->name, v->name) == 0) v->is_unwritten = false;
        }
    }
}

/* Writes the model with parts as single nodes; `context`: as the nodes that a compiled model has.
 */
static OrtStatus *write_units(const ort_host *host, const ready *r, bool context, ort_sink *out) {
    OrtModel *m = host->model;
    OrtGraph *g = m->graph;
    OrtNode **nodes = calloc(r->count + 1, sizeof(OrtNode *)), **kept = g->nodes;
    if (!nodes) return ort_fail_memory();
    for (size_t i = 0; i < r->count; i++) {
        const unit *u = r->list[i];
        nodes[i] = (OrtNode *)(context && u->part && u->part->context ? u->part->context : u->node);
    }
    size_t count = g->node_count, opsets = m->opset_count;
    g->nodes = nodes;
    g->node_count = r->count;
    OrtStatus *status = ort_model_set_opset(m, context ? "com.microsoft" : ORT_PART_DOMAIN, 1)
                            ? NULL
                            : ort_fail_memory();
    if (!status) status = ort_model_write(m, out);
    if (m->opset_count > opsets) free(m->opsets[--m->opset_count].domain);
    g->nodes = kept;
    g->node_count = count;
    free(nodes);
    return status;
}

/* ---- Compiled models ---- */

static const char *setting(const ort_host *host, const char *key) {
    const char *value = ort_pairs_get(&host->options->config, key);
    return value ? value : "";
}

static OrtStatus *save_context(const ort_host *host) {
    char path[4096];
    const char *wanted = setting(host, "ep.context_file_path");
    const char *model = host->model->path;
    if (host->options->compiles) return NULL; /* the caller takes it */
    size_t stem = strlen(model);
    if (stem > 5 && strcmp(model + stem - 5, ".onnx") == 0) stem -= 5;
    if (!*wanted && !*model)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "a compiled model of a model in memory needs ep.context_file_path");
    snprintf(path, sizeof path, *wanted ? "%.*s" : "%.*s_ctx.onnx",
             (int)(*wanted ? strlen(wanted) : stem), *wanted ? wanted : model);
    FILE *f = fopen(path, "wbx");
    if (!f)
        return ort_fail(ORT_FAIL,
                        "Failed to generate EP context model: '%s' exists already or cannot be "
                        "written",
                        path);
    bool good = fwrite(host->context.bytes, 1, host->context.size, f) == host->context.size;
    good = fclose(f) == 0 && good;
    return good ? NULL : ort_fail(ORT_FAIL, "'%s' is not complete", path);
}

static bool has_context(const ort_host *host) {
    for (size_t i = 0; i < host->part_count; i++)
        if (host->parts[i]->context) return true;
    return false;
}

/* ---- Opening ---- */

static OrtStatus *check_fallback(const ort_host *host) {
    if (strcmp(setting(host, "session.disable_cpu_ep_fallback"), "1") != 0) return NULL;
    for (size_t i = 0; i < host->model->graph->node_count; i++)
        if (!host->model->graph->nodes[i]->ep)
            return ort_fail(ORT_FAIL,
                            "This session contains graph nodes that are assigned to the default "
                            "CPU EP, but fallback to CPU EP has been explicitly disabled by the "
                            "user.");
    return NULL;
}

static OrtStatus *write_changed(ort_host *host, ort_sink *changed) {
    order o = {0};
    ready r = {0};
    OrtStatus *status = find_units(host, &o);
    r.list = calloc(o.count + 1, sizeof(unit *));
    if (!status && !r.list) status = ort_fail_memory();
    if (!status) status = sort_units(host, &o, &r);
    if (!status) find_unwritten(host, &o);
    if (!status) status = write_units(host, &r, false, changed);
    if (!status && host->wants_context && has_context(host)) {
        status = write_units(host, &r, true, &host->context);
        if (!status) status = save_context(host);
    }
    free(o.units);
    free(o.unit_of);
    free(r.list);
    return status;
}

/* What the engine's folding knows: a model after it. NULL: it cannot be had, which is no failure:
 * operators that only a provider has, for example. */
static sn_model *fold_model(const ort_host *host) {
    sn_session_options so;
    sn_error err;
    sn_session *session = NULL;
    sn_model *folded = NULL;
    ort_sink bytes = {0};
    sn_session_options_init(&so, sizeof so);
    so.optimize = 1;
    if (host->options->optimization == ORT_DISABLE_ALL) return NULL;
    if (sn_session_create(host->original, &so, &session, &err) == SN_OK &&
        sn_session_write(session, SN_STAGE_OPT, SN_FORMAT_ONNX, ort_sink_write, &bytes, &err) ==
            SN_OK)
        if (sn_model_load_memory(bytes.bytes, bytes.size, NULL, &folded, &err) != SN_OK)
            folded = NULL;
    sn_session_destroy(session);
    free(bytes.bytes);
    return folded;
}

static OrtStatus *open_host(ort_host *host, OrtSession *session, const ort_file_bytes *file,
                            const char *path, ort_sink *changed) {
    ORT_TRY(ort_apply_policy(host->options));
    host->wants_context = strcmp(setting(host, "ep.context_enable"), "1") == 0;
    host->file.p = malloc(file->size + 1);
    if (!host->file.p) return ort_fail_memory();
    host->file.size = file->size;
    memcpy(host->file.p, file->p, file->size);
    ort_source source = {.bytes = host->file.p, .size = host->file.size};
    ORT_TRY(ort_host_providers(host));
    if (!host->provider_count) return NULL;
    ORT_TRY(ort_model_load(session, &source, host->options, &host->original));
    ORT_TRY(ort_model_read(host->file.p, host->file.size, path, &host->model));
    ORT_TRY(ort_model_learn(host->model, host->original));
    host->folded = fold_model(host);
    if (host->folded) ORT_TRY(ort_model_fold(host->model, host->folded));
    ORT_TRY(ort_host_claim(host));
    ORT_TRY(check_fallback(host));
    ORT_TRY(ort_host_build(host));
    return host->part_count ? write_changed(host, changed) : NULL;
}

OrtStatus *ort_host_open(OrtSession *session, const OrtSessionOptions *options,
                         const ort_file_bytes *file, const char *path, ort_sink *changed) {
    ort_host *host = calloc(1, sizeof *host);
    if (!host) return ort_fail_memory();
    session->host = host; /* closed with the session */
    host->logger.log = session->log;
    ORT_TRY(ort_CloneSessionOptions(options, &host->options));
    return open_host(host, session, file, path, changed);
}

void ort_host_close(ort_host *host) {
    if (!host) return;
    for (size_t i = 0; i < host->part_count; i++) ort_part_free(host->parts[i]);
    for (size_t i = 0; i < host->provider_count; i++) ort_provider_free(host->providers[i]);
    ort_model_free(host->model);
    sn_model_destroy(host->original);
    sn_model_destroy(host->folded);
    ort_ReleaseSessionOptions(host->options);
    free(host->file.p);
    free(host->context.bytes);
    free(host->parts);
    free(host->providers);
    free(host);
}

/* ---- Operators ---- */

OrtStatus *ort_host_operators(ort_host *host, sn_operators **set) {
    static const sn_op_port any = {
        .name = "values", .flags = SN_OP_VARIADIC | SN_OP_HETEROGENEOUS | SN_OP_NONE_ALLOWED};
    sn_error err;
    if (!host->part_count) return NULL;
    if (!*set && sn_operators_create(set, &err) != SN_OK) return ort_fail_sn(&err);
    for (size_t i = 0; i < host->part_count; i++) {
        sn_op op = {.size = sizeof op,
                    .domain = ORT_PART_DOMAIN,
                    .name = host->parts[i]->op,
                    .inputs = &any,
                    .input_count = 1,
                    .outputs = &any,
                    .output_count = 1,
                    .ctx = host->parts[i],
                    .infer = ort_part_infer,
                    .run = ort_part_run};
        if (sn_operators_add(*set, &op, &err) != SN_OK) return ort_fail_sn(&err);
    }
    return NULL;
}

/* ---- Around runs ---- */

OrtStatus *ort_host_run_start(const ort_host *host, const OrtRunOptions *options) {
    for (size_t i = 0; host && i < host->provider_count; i++) {
        OrtEp *ep = host->providers[i]->ep;
        if (ORT_EP_HAS(ep, OnRunStart, 23)) ORT_TRY(ep->OnRunStart(ep, options));
    }
    return NULL;
}

OrtStatus *ort_host_run_end(const ort_host *host, const OrtRunOptions *options) {
    for (size_t i = 0; host && i < host->provider_count; i++) {
        OrtEp *ep = host->providers[i]->ep;
        if (ORT_EP_HAS(ep, OnRunEnd, 23)) ORT_TRY(ep->OnRunEnd(ep, options, true));
    }
    return NULL;
}

/* Settings that change while a session lives: every provider that takes such gets all of them. */
OrtStatusPtr ort_SetEpDynamicOptions(OrtSession *sess, const char *const *keys,
                                     const char *const *values, size_t kv_len) {
    NEED(sess);
    if (kv_len) NEED(keys);
    if (kv_len) NEED(values);
    for (size_t i = 0; sess->host && i < sess->host->provider_count; i++) {
        OrtEp *ep = sess->host->providers[i]->ep;
        if (ORT_EP_HAS(ep, SetDynamicOptions, 23))
            ORT_TRY(ep->SetDynamicOptions(ep, keys, values, kv_len));
    }
    return NULL;
}
