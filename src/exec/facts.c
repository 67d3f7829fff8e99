/* facts.c - what can be said of one step of a run when it is over. */
#include "exec/facts.h"

#include <inttypes.h>
#include <stdio.h>

enum { MOST_INPUTS = 32, MOST_OUTPUTS = 8 };

typedef struct writer {
    char *text;
    size_t size, used;
} writer;

static void add(writer *w, const char *text) {
    if (w->used + 1 >= w->size) return;
    int n = snprintf(w->text + w->used, w->size - w->used, "%s", text);
    if (n > 0) w->used += (size_t)n;
    if (w->used >= w->size) w->used = w->size - 1;
}

/* "2x3", "scalar", or the kind of what is no tensor. */
static void add_shape(writer *w, const sni_datum *d) {
    static const char *const kinds[] = {"none", "", "sequence", "map", "optional", "sparse"};
    if (w->used && w->text[w->used - 1] != ' ') add(w, " ");
    if (d->kind != SN_KIND_TENSOR) {
        add(w, (size_t)d->kind < sizeof kinds / sizeof *kinds ? kinds[d->kind] : "?");
        return;
    }
    if (d->tensor.rank == 0) add(w, "scalar");
    for (int i = 0; i < d->tensor.rank; i++) {
        char number[32];
        snprintf(number, sizeof number, "%s%" PRId64, i ? "x" : "", d->tensor.dims[i]);
        add(w, number);
    }
}

static uint64_t bytes_of(const sni_datum *d) {
    return d->kind == SN_KIND_TENSOR ? sni_tensor_bytes(&d->tensor) : 0;
}

static sni_type type_of(const sni_datum *d) {
    sni_type t = {.kind = d->kind};
    if (d->kind == SN_KIND_TENSOR) {
        t.dtype = d->tensor.dtype;
        t.has_shape = true;
        t.rank = d->tensor.rank;
        t.dims = d->tensor.dims;
    }
    return t;
}

static uint64_t macs_of(const sni_node *n, const sni_datum *const *in,
                        const sni_datum *const *out) {
    if (!n->op->macs || n->n_in > MOST_INPUTS || n->n_out > MOST_OUTPUTS) return 0;
    const sni_type *in_types[MOST_INPUTS] = {0};
    sni_type types[MOST_INPUTS], out_types[MOST_OUTPUTS] = {{0}};
    for (int32_t i = 0; i < n->n_in; i++) {
        if (!in[i]) continue;
        types[i] = type_of(in[i]);
        in_types[i] = &types[i];
    }
    for (int32_t i = 0; i < n->n_out; i++)
        if (out[i]) out_types[i] = type_of(out[i]);
    sni_infer c = {.op = n->op,
                   .node = n,
                   .params = n->params,
                   .n_in = n->n_in,
                   .n_out = n->n_out,
                   .in = in_types,
                   .out = out_types};
    int64_t macs = n->op->macs(&c);
    return macs > 0 ? (uint64_t)macs : 0;
}

void sni_step_describe(const sni_node *n, const sni_datum *const *in, const sni_datum *const *out,
                       uint32_t unread, sni_step_facts *facts) {
    *facts = (sni_step_facts){.macs = macs_of(n, in, out)};
    writer w = {.text = facts->shapes, .size = sizeof facts->shapes};
    for (int32_t i = 0; i < n->n_in; i++) {
        if (!in[i]) continue;
        if (i >= 32 || !(unread >> i & 1)) facts->input_bytes += bytes_of(in[i]);
        add_shape(&w, in[i]);
    }
    add(&w, w.used ? " -> " : "-> ");
    for (int32_t i = 0; i < n->n_out; i++) {
        if (!out[i]) continue;
        facts->output_bytes += bytes_of(out[i]);
        add_shape(&w, out[i]);
    }
}
