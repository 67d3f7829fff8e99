/* call.c - running one node outside a plan. */
#include "ops/core/call.h"

#include "base/clock.h"

#include <stdlib.h>

sn_status sni_call_kernel(sni_kernel *k) {
    if (!k->node->op->ref)
        return sni_fail(k->err, SN_UNSUPPORTED, "operator %s has no kernel", k->node->op->name);
    return k->node->op->ref(k);
}

/* Steps of a loop over the sizes beside a 0, at most; 0: it is not empty. */
static int64_t steps_beside_zero(const sni_datum *d) {
    if (!d || d->kind != SN_KIND_TENSOR || d->tensor.count) return 0;
    int64_t steps = 1;
    for (int i = 0; i < d->tensor.rank; i++)
        if (d->tensor.dims[i]) steps *= d->tensor.dims[i]; /* fits: sni_shape_count() */
    return steps;
}

bool sni_call_is_void(const sni_kernel *k) {
    enum { LONG = 1 << 16 };
    bool is_long = false, any = false;
    for (int i = 0; i < k->n_out; i++) {
        if (!k->out[i]) continue;
        int64_t steps = steps_beside_zero(k->out[i]);
        if (!steps) return false;
        any = true;
        is_long |= steps > LONG;
    }
    for (int i = 0; any && !is_long && i < k->n_in; i++)
        is_long = steps_beside_zero(k->in[i]) > LONG;
    return any && is_long;
}

/* ---- Types of values ---- */

void sni_datum_describe(const sni_datum *d, sni_type *type, sni_type *inner) {
    *type = (sni_type){.kind = SN_KIND_NONE};
    if (!d) return;
    type->kind = d->kind == SN_KIND_NONE ? SN_KIND_OPTIONAL : d->kind;
    if (d->kind == SN_KIND_TENSOR) {
        type->dtype = d->tensor.dtype;
        type->has_shape = true;
        type->rank = d->tensor.rank;
        type->dims = d->tensor.dims;
    } else if (d->kind == SN_KIND_SEQUENCE) {
        *inner = (sni_type){.kind = SN_KIND_TENSOR, .dtype = d->seq->dtype};
        if (d->seq->count) inner->kind = d->seq->items[0].kind;
        type->inner = inner;
    } else if (d->kind == SN_KIND_MAP) {
        type->dtype = d->map->keys.tensor.dtype;
    }
}

/* The types of the outputs, and of the inputs: both in the arena. */
static sn_status infer_call(sni_kernel *k, sni_symbols *symbols, sni_arena *arena, sni_type *out,
                            const sni_type ***in_types) {
    int n_in = k->node->n_in;
    const sni_type **in = SNI_NEW_ARRAY(arena, const sni_type *, n_in);
    sni_type *types = SNI_NEW_ARRAY(arena, sni_type, 2 * (size_t)n_in);
    const sni_tensor **known = SNI_NEW_ARRAY(arena, const sni_tensor *, n_in);
    const sni_dim **out_dims = SNI_NEW_ARRAY(arena, const sni_dim *, k->n_out);
    int32_t *counts = SNI_NEW_ARRAY(arena, int32_t, k->n_out);
    if (!in || !types || !known || !out_dims || !counts) return sni_fail_memory(k->err);
    for (int i = 0; i < n_in; i++) {
        if (!k->in[i]) continue;
        sni_datum_describe(k->in[i], &types[i], &types[n_in + i]);
        in[i] = &types[i];
        if (k->in[i]->kind == SN_KIND_TENSOR) known[i] = &k->in[i]->tensor;
    }
    *in_types = in;
    sni_infer c = {.op = k->node->op,
                   .node = k->node,
                   .params = k->params,
                   .n_in = n_in,
                   .n_out = k->n_out,
                   .in = in,
                   .known = known,
                   .out = out,
                   .out_dims = out_dims,
                   .out_dims_count = counts,
                   .symbols = symbols,
                   .arena = arena,
                   .err = k->err};
    return sni_infer_call(&c);
}

/* ---- Memory ---- */

static bool is_shaped(const sni_type *type) {
    bool yes = type->kind == SN_KIND_TENSOR && type->dtype && type->has_shape;
    for (int i = 0; yes && i < type->rank; i++) yes = sni_dim_known(type->dims[i]);
    return yes;
}

/* Whether a tensor is what an output will be. */
static bool is_of_type(const sni_tensor *t, const sni_type *type) {
    if (t->dtype != type->dtype || t->rank != type->rank) return false;
    for (int axis = 0; axis < t->rank; axis++)
        if (t->dims[axis] != type->dims[axis]) return false;
    return true;
}

/* Memory for output i: that of `offered` (may be NULL) if it fits. */
static sn_status allocate(sni_kernel *k, int i, const sni_type *type, const sni_tensor *offered) {
    if ((k->node->op->flags & (SNI_OP_CUSTOM | SNI_OP_PART)) && !is_shaped(type)) return SN_OK;
    /* Inference knows all values now: what it does not make of them they do not say. */
    if (type->kind != SN_KIND_TENSOR || !type->dtype || !type->has_shape)
        return sni_fail(k->err, SN_BAD_DATA, "its inputs leave open which shape output %d has", i);
    for (int axis = 0; axis < type->rank; axis++)
        if (!sni_dim_known(type->dims[axis]))
            return sni_fail(k->err, SN_BAD_DATA,
                            "its inputs' values leave open, or put out of range, dimension %d of "
                            "output %d",
                            axis, i);
    sni_datum *d = k->out[i];
    const sni_tensor *x = sni_in(k, 0);
    if (i == 0 && (k->node->op->flags & SNI_OP_VIEW) && x && x->buffer) {
        SN_TRY(sni_tensor_shape(&d->tensor, type->dtype, type->rank, type->dims, k->err));
        d->tensor.buffer = sni_buffer_retain(x->buffer);
        d->tensor.data = x->data;
    } else if (offered && is_of_type(offered, type)) {
        d->tensor = *offered;
        d->tensor.buffer = NULL; /* borrowed */
    } else {
        SN_TRY(sni_tensor_new(&d->tensor, type->dtype, type->rank, type->dims, k->budget, k->err));
    }
    d->kind = SN_KIND_TENSOR;
    return SN_OK;
}

sn_status sni_call(sni_kernel *k, sni_symbols *symbols, sni_arena *arena,
                   const sni_call_options *options) {
    static const sni_call_options plain = {NULL, NULL};
    const sni_call_options *with = options ? options : &plain;
    unsigned flags = k->node->op->flags;
    sn_status (*run)(sni_kernel *) = sni_call_kernel;
    /* A view of what is no tensor is the thing itself. */
    if ((flags & SNI_OP_VIEW) && k->n_in > 0 && k->in[0] && k->in[0]->kind != SN_KIND_TENSOR)
        return k->out[0] ? sni_datum_share(k->out[0], k->in[0], k->budget, k->err) : SN_OK;
    if (!(flags & SNI_OP_SUBGRAPHS)) {
        const sni_type **in = NULL;
        sni_type *types = SNI_NEW_ARRAY(arena, sni_type, k->n_out);
        if (!types) return sni_fail_memory(k->err);
        SN_TRY(infer_call(k, symbols, arena, types, &in));
        if (!(flags & SNI_OP_ALLOCATES))
            for (int i = 0; i < k->n_out; i++)
                if (k->out[i])
                    SN_TRY(allocate(k, i, &types[i], with->offered ? with->offered[i] : NULL));
        if (with->choose) SN_TRY(with->choose(k, in, &run));
    }
    return sni_call_is_void(k) ? SN_OK : run(k);
}

sn_status sni_call_alloc(sni_kernel *k, int out, sn_dtype dtype, int rank, const int64_t *dims) {
    if (out >= k->n_out || !k->out[out]) return SN_OK;
    SN_TRY(sni_tensor_new(&k->out[out]->tensor, dtype, rank, dims, k->budget, k->err));
    k->out[out]->kind = SN_KIND_TENSOR;
    return SN_OK;
}

/* ---- A host for single nodes ---- */

typedef struct eval_host {
    sni_arena *text;
    uint64_t deadline_ns;
    sni_buffer *scratch[64]; /* freed when the node is done */
    int n_scratch;
} eval_host;

static void *eval_scratch(sni_kernel *k, size_t bytes) {
    eval_host *h = k->host_ctx;
    if (h->n_scratch == 64) {
        sni_fail(k->err, SN_LIMIT, "the kernel asks for more than 64 pieces of memory");
        return NULL;
    }
    if (sni_buffer_new(bytes, k->budget, &h->scratch[h->n_scratch], k->err) != SN_OK) return NULL;
    return h->scratch[h->n_scratch++]->data;
}

static char *eval_text(sni_kernel *k, size_t bytes) {
    eval_host *h = k->host_ctx;
    if (sni_budget_take(k->budget, bytes, k->err) != SN_OK) return NULL;
    char *p = sni_arena_alloc(h->text, bytes);
    if (!p) sni_fail_memory(k->err);
    return p;
}

static sn_status eval_poll(const sni_kernel *k, sn_error *err) {
    const eval_host *h = k->host_ctx;
    if (!h->deadline_ns || sni_now_ns() < h->deadline_ns) return SN_OK;
    return sni_fail(err, SN_TIMEOUT, "the time for making constants is over");
}

static sn_status eval_subgraph(sni_kernel *k, int32_t index, const sni_datum *const *in, int n_in,
                               sni_datum *out, int n_out) {
    (void)index, (void)in, (void)n_in, (void)out, (void)n_out;
    return sni_fail(k->err, SN_UNSUPPORTED, "subgraphs are not evaluated here");
}

sn_status sni_eval(const sni_node *n, const sni_datum *const *in, sni_datum *out,
                   const sni_eval_limits *limits, sni_arena *text, sn_error *err) {
    static const sni_host host = {.alloc = sni_call_alloc,
                                  .scratch = eval_scratch,
                                  .text = eval_text,
                                  .poll = eval_poll,
                                  .subgraph = eval_subgraph};
    eval_host ctx = {.text = text, .deadline_ns = limits ? limits->deadline_ns : 0};
    sni_arena arena;
    sni_arena_init(&arena, 0);
    sn_status status = SN_OK;
    sni_symbols *symbols = sni_symbols_new();
    sni_datum **outs = SNI_NEW_ARRAY(&arena, sni_datum *, n->n_out);
    if (!outs || !symbols) {
        status = sni_fail_memory(err);
        goto done;
    }
    for (int32_t i = 0; i < n->n_out; i++) outs[i] = n->out[i] == SNI_NO_ID ? NULL : &out[i];
    sni_kernel k = {.node = n,
                    .params = n->params,
                    .n_in = n->n_in,
                    .n_out = n->n_out,
                    .in = in,
                    .out = outs,
                    .threads = 1,
                    .budget = limits ? limits->budget : NULL,
                    .host = &host,
                    .host_ctx = &ctx,
                    .err = err};
    status = sni_call(&k, symbols, &arena, NULL);
    for (int i = 0; i < ctx.n_scratch; i++) sni_buffer_release(ctx.scratch[i]);
done:
    sni_symbols_free(symbols);
    sni_arena_free(&arena);
    return status;
}
