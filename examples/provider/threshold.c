/* threshold.c - an example of a provider: runs chains of Relu and Clip in one pass over memory.
 *
 *     cc -shared -fPIC -O2 -Iinclude -o libthreshold.so examples/provider/threshold.c
 *     sinter devices --provider-library ./libthreshold.so
 *     sinter run model.onnx --provider-library ./libthreshold.so --provider threshold
 *
 * It works in the host's memory. One that has a device of its own also gives the functions from
 * `alloc` to `wait`; docs/PROVIDERS.md says what they do. */
#include "sinter_ep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sn_ep {
    int only_relu; /* a setting, to show how they are read */
};

/* A program is an interval: what the chain computes is max(low, min(high, x)). */
struct sn_ep_program {
    float low, high;
};

static const sn_ep_host *host;

/* ---- The device ---- */

static bool device(const sn_ep_api *api, size_t index, sn_ep_device *out) {
    (void)api;
    if (index > 0) return false;
    out->kind = SN_DEVICE_CPU;
    out->name = "thresholds in plain C";
    out->vendor = "example";
    out->driver = "";
    out->types = SN_OP_TYPE(SN_FLOAT32);
    return true;
}

static sn_status open_device(const sn_ep_api *api, size_t index, const sn_ep_setting *settings,
                             size_t count, sn_ep **out, sn_error *err) {
    (void)api, (void)index;
    sn_ep *ep = calloc(1, sizeof *ep);
    if (!ep) return host->fail(err, SN_NO_MEMORY, "no memory");
    for (size_t i = 0; i < count; i++) {
        if (strcmp(settings[i].key, "only_relu") == 0) {
            ep->only_relu = strcmp(settings[i].value, "1") == 0;
            continue;
        }
        free(ep);
        return host->fail(err, SN_INVALID_ARGUMENT, "there is no setting '%s', but only_relu",
                          settings[i].key);
    }
    *out = ep;
    return SN_OK;
}

static void close_device(sn_ep *ep) {
    free(ep);
}

/* ---- Nodes ---- */

/* A constant bound of Clip; a bound that is left out changes nothing. */
static bool read_bound(const sn_op_node *node, size_t input, float *bound) {
    sn_value_info info;
    sn_op_tensor t;
    if (input >= host->node->node_input_count(node)) return true;
    if (!host->node->node_input(node, input, &info)) return true;
    if (!host->tensor(host->node->node_constant(node, input), &t) || t.count != 1) return false;
    *bound = *(const float *)t.data;
    return true;
}

/* The interval that one node cuts its input to; false: the node is not one of ours. */
static bool read_node(const sn_ep *ep, const sn_op_node *node, float *low, float *high) {
    const sn_op_api *n = host->node;
    const char *type = n->node_type(node);
    sn_value_info in;
    *low = -INFINITY;
    *high = INFINITY;
    if (n->node_domain(node)[0] || !n->node_input(node, 0, &in) || in.dtype != SN_FLOAT32)
        return false;
    if (strcmp(type, "Relu") == 0) {
        *low = 0;
        return true;
    }
    if (strcmp(type, "Clip") != 0 || ep->only_relu) return false;
    return read_bound(node, 1, low) && read_bound(node, 2, high) && *low <= *high;
}

static sn_status claim(sn_ep *ep, const sn_ep_graph *graph, sn_ep_claims *claims, sn_error *err) {
    for (size_t i = 0; i < host->node_count(graph); i++) {
        float low, high;
        if (!read_node(ep, host->node_at(graph, i), &low, &high)) {
            host->refuse(claims, i, "it is no threshold of float32");
            continue;
        }
        sn_status status = host->claim(claims, SN_EP_NODES, &i, 1, err);
        if (status != SN_OK) return status;
    }
    return SN_OK;
}

/* ---- Parts ---- */

/* A part is a chain if each node reads what the one before it made; other parts are refused, and
 * the host runs their nodes. A compiler would read part->onnx instead. */
static sn_status compile(sn_ep *ep, const sn_ep_part *part, sn_ep_program **out, sn_error *err) {
    sn_ep_program p = {-INFINITY, INFINITY};
    sn_value_info made = {0}, read = {0};
    if (part->input_count != 1 || part->output_count != 1)
        return host->fail(err, SN_UNSUPPORTED, "%s is no chain", part->name);
    for (size_t i = 0; i < part->node_count; i++) {
        float low, high;
        bool ours = read_node(ep, part->nodes[i], &low, &high);
        bool linked = host->node->node_input(part->nodes[i], 0, &read) &&
                      (i == 0 || strcmp(read.name, made.name) == 0);
        if (!ours || !linked || !host->node->node_output(part->nodes[i], 0, &made))
            return host->fail(err, SN_UNSUPPORTED, "%s is no chain", part->name);
        p.low = fminf(fmaxf(p.low, low), high);
        p.high = fmaxf(fminf(p.high, high), low);
    }
    sn_ep_program *program = malloc(sizeof *program);
    if (!program) return host->fail(err, SN_NO_MEMORY, "no memory");
    *program = p;
    *out = program;
    return SN_OK;
}

static void program_free(sn_ep_program *program) {
    free(program);
}

/* ---- Runs ---- */

static sn_status run(sn_ep_program *program, sn_ep_ready *ready, sn_ep_queue *queue,
                     sn_ep_call *call, sn_error *err) {
    enum { BLOCK = 1 << 20 };
    (void)ready, (void)queue;
    const sn_ep_tensor *x = &call->inputs[0];
    /* The shape is that of the input; where the host knew it already, this checks it. */
    sn_status status = host->output(call, 0, x->rank, x->dims, err);
    if (status != SN_OK) return status;
    const float *from = x->host;
    float *to = call->outputs[0].host;
    size_t count = x->bytes / sizeof *from;
    for (size_t i = 0; i < count; i++) {
        if (i % BLOCK == 0 && host->stopping(call))
            return host->fail(err, SN_CANCELLED, "cancelled");
        float v = from[i] < program->low ? program->low : from[i]; /* NaN stays */
        to[i] = v > program->high ? program->high : v;
    }
    return SN_OK;
}

/* ---- The table ---- */

static const sn_ep_api api = {.size = sizeof api,
                              .version = SN_EP_VERSION,
                              .name = "threshold",
                              .vendor = "example",
                              .revision = "1",
                              .device = device,
                              .open = open_device,
                              .close = close_device,
                              .claim = claim,
                              .compile = compile,
                              .program_free = program_free,
                              .run = run};

sn_status sinter_ep_entry(const sn_ep_host *given, const sn_ep_api **out, sn_error *err) {
    (void)err;
    host = given;
    *out = &api;
    return SN_OK;
}
