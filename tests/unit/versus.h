/* versus.h - an operator's fast implementation against its reference kernel.
 *
 *     versus v;
 *     versus_start(&v, "com.microsoft", "FusedMatMul");
 *     versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){5, 7}, NULL);   random contents
 *     versus_weight(&v, SN_FLOAT32, 2, (int64_t[]){7, 9}, NULL);   part of the model
 *     versus_run(&v, 1, 1e-5);
 *
 * versus_run finds the implementation (there must be one), runs it with 1 and with 2 threads into
 * guarded memory, demands the same bits of both, and compares with the reference. */
#ifndef VERSUS_H
#define VERSUS_H

#include "base/floats.h"
#include "eval.h"

#include "base/floats.h"
#include "ep/ep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { VERSUS_GUARD = 64, VERSUS_SCRATCH = 64 };

typedef struct versus {
    eval e;
    const char *domain;
    sni_const *constants[EVAL_MOST];
    uint64_t seed;
    int special;         /* one in so many random floats is NaN or infinite; 0: none */
    float scale;         /* of random floats */
    const sni_impl *use; /* NULL: the one that is chosen */
    bool if_supported;   /* nothing is compared if `use` does not take the node */
    const char *impl;
    uint32_t numerics; /* families that are allowed */
    bool may_refuse;   /* no implementation: nothing is compared */
    int over;          /* this input lies where output 0 will be; 0: none */
} versus;

static inline void versus_start(versus *v, const char *domain, const char *type) {
    uint64_t seed = v->seed;
    memset(v, 0, sizeof *v);
    v->seed = seed + 17;
    v->domain = domain;
    v->scale = 1;
    const sni_op *op = sni_op_find(sni_str_of(domain), sni_str_of(type));
    assert_non_null(op);
    eval_start(&v->e, type, sni_op_version(op));
}

static inline float versus_float(versus *v) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e-40f, 3e38f};
    uint32_t r = unit_random(&v->seed);
    if (v->special && r % (uint32_t)v->special == 0) return odd[(r >> 8) % 6];
    return ((float)(int)(unit_random(&v->seed) % 20001) / 10000.0f - 1.0f) * v->scale;
}

static inline void versus_fill(versus *v, sn_dtype dtype, int64_t n, void *data) {
    for (int64_t i = 0; i < n; i++) {
        if (dtype == SN_FLOAT32)
            ((float *)data)[i] = versus_float(v);
        else if (dtype == SN_FLOAT64)
            ((double *)data)[i] = (double)versus_float(v);
        else if (dtype == SN_FLOAT16)
            ((uint16_t *)data)[i] = sni_f32_to_f16(versus_float(v));
        else if (dtype == SN_BFLOAT16)
            ((uint16_t *)data)[i] = sni_f32_to_bf16(versus_float(v));
        else if (dtype == SN_BOOL)
            ((unsigned char *)data)[i] = unit_random(&v->seed) & 1;
        else if (dtype == SN_UINT8 || dtype == SN_INT8)
            ((unsigned char *)data)[i] = (unsigned char)unit_random(&v->seed);
        else if (dtype == SN_INT64)
            ((int64_t *)data)[i] = (int64_t)(unit_random(&v->seed) % 200) - 100;
        else if (dtype == SN_INT32)
            ((int32_t *)data)[i] = (int32_t)(unit_random(&v->seed) % 200) - 100;
        else
            fail_msg("versus.h makes no random elements of this type");
    }
}

/* The next input, with random contents if `data` is NULL. */
static inline void versus_tensor(versus *v, sn_dtype dtype, int rank, const int64_t *dims,
                                 const void *data) {
    eval *e = &v->e;
    int i = e->n_in;
    sni_tensor t = {0};
    assert_int_equal(sni_tensor_shape(&t, dtype, rank, dims, NULL), SN_OK);
    void *made = malloc(sni_tensor_bytes(&t) + 1);
    assert_non_null(made);
    if (data && t.count) memcpy(made, data, sni_tensor_bytes(&t));
    if (!data) versus_fill(v, dtype, t.count, made);
    eval_input(e, dtype, rank, dims, made);
    free(made);
    sni_value *value = e->graph->values[e->in_ids[i]];
    value->type.has_shape = true;
    value->type.rank = rank;
    value->type.dims = e->in[i].tensor.dims;
}

/* The next input, part of the model. */
static inline void versus_weight(versus *v, sn_dtype dtype, int rank, const int64_t *dims,
                                 const void *data) {
    eval *e = &v->e;
    int i = e->n_in;
    versus_tensor(v, dtype, rank, dims, data);
    sni_const *c;
    assert_int_equal(sni_const_new(e->store, dtype, rank, dims, &c, &e->err), SN_OK);
    size_t bytes = sni_tensor_bytes(&c->tensor);
    if (bytes) memcpy(c->tensor.data, e->in[i].tensor.data, bytes);
    v->constants[i] = c;
}

/* Input i, a float32 weight, is made of the nearest numbers of a narrow type. */
static inline void versus_narrow(versus *v, int i, sn_dtype dtype) {
    const sni_tensor *t = &v->e.in[i].tensor;
    sni_const *c;
    assert_int_equal(sni_const_new(v->e.store, dtype, t->rank, t->dims, &c, &v->e.err), SN_OK);
    sni_narrow(dtype, t->data, c->tensor.data, (size_t)t->count, false);
    sni_widen(dtype, c->tensor.data, t->data, (size_t)t->count);
    assert_int_equal(sni_const_widened(c, &v->constants[i], &v->e.err), SN_OK);
}

static inline void versus_without(versus *v) { /* the next input is left out */
    eval_input(&v->e, SN_FLOAT32, 0, NULL, NULL);
}

/* ---- A host that hands out guarded scratch memory ---- */

typedef struct versus_host {
    unsigned char *scratch[VERSUS_SCRATCH];
    size_t bytes[VERSUS_SCRATCH];
    int n;
} versus_host;

static inline unsigned char *versus_guarded(size_t bytes) {
    size_t whole = (bytes + 2 * VERSUS_GUARD + 63) / 64 * 64;
    unsigned char *p = aligned_alloc(64, whole);
    assert_non_null(p);
    memset(p, 0xA5, whole);
    return p + VERSUS_GUARD;
}

static inline void versus_check_guard(const unsigned char *p, size_t bytes, const char *what) {
    for (int i = 0; i < VERSUS_GUARD; i++)
        if (p[-1 - i] != 0xA5 || p[bytes + (size_t)i] != 0xA5)
            fail_msg("%s: written outside its memory", what);
}

static inline void *versus_scratch(sni_kernel *k, size_t bytes) {
    versus_host *h = k->host_ctx;
    assert_true(h->n < VERSUS_SCRATCH);
    h->bytes[h->n] = bytes;
    return h->scratch[h->n++] = versus_guarded(bytes);
}

static inline sn_status versus_poll(const sni_kernel *k, sn_error *err) {
    (void)k, (void)err;
    return SN_OK;
}

/* Outputs have the reference's shapes from the start: an operator that allocates must ask for them.
 */
static inline sn_status versus_alloc(sni_kernel *k, int out, sn_dtype dtype, int rank,
                                     const int64_t *dims) {
    const sni_tensor *t = &k->out[out]->tensor;
    bool same = t->dtype == dtype && t->rank == rank;
    for (int i = 0; same && i < rank; i++) same = t->dims[i] == dims[i];
    if (!same) fail_msg("output %d: first dimension is %lld", out, (long long)(rank ? dims[0] : 0));
    return SN_OK;
}

/* Runs the implementation into fresh guarded outputs. */
static inline void versus_run_impl(versus *v, const sni_impl *impl, const void *state, int n_out,
                                   int threads, sni_datum *out) {
    static const sni_host host = {
        .alloc = versus_alloc, .scratch = versus_scratch, .poll = versus_poll};
    eval *e = &v->e;
    versus_host h = {.n = 0};
    const sni_datum *in[EVAL_MOST];
    sni_datum *outs[EVAL_MOST], packed[EVAL_MOST], over;
    for (int i = 0; i < e->n_in; i++) {
        in[i] = e->in_ids[i] == SNI_NO_ID ? NULL : &e->in[i];
        if (!in[i] || !v->constants[i] || !state || !(impl->packs >> i & 1)) continue;
        packed[i] = e->in[i];
        packed[i].tensor.data = NULL; /* as in plans */
        in[i] = &packed[i];
    }
    for (int i = 0; i < n_out; i++) {
        out[i] = e->out[i];
        out[i].tensor.buffer = NULL;
        out[i].tensor.data = versus_guarded(sni_tensor_bytes(&e->out[i].tensor));
        outs[i] = e->out[i].kind == SN_KIND_TENSOR ? &out[i] : NULL;
    }
    if (v->over) {
        over = e->in[v->over];
        memcpy(out[0].tensor.data, over.tensor.data, sni_tensor_bytes(&over.tensor));
        over.tensor.data = out[0].tensor.data;
        in[v->over] = &over;
    }
    const sni_node *n = sni_graph_first(e->graph);
    sni_kernel k = {.node = n,
                    .params = n->params,
                    .n_in = e->n_in,
                    .n_out = n_out,
                    .in = in,
                    .out = outs,
                    .threads = threads,
                    .state = state,
                    .host = &host,
                    .host_ctx = &h,
                    .err = &e->err};
    if (impl->run(&k) != SN_OK) fail_msg("%s: %s", impl->name, e->err.message);
    for (int i = 0; i < h.n; i++) {
        versus_check_guard(h.scratch[i], h.bytes[i], impl->name);
        free(h.scratch[i] - VERSUS_GUARD);
    }
    for (int i = 0; i < n_out; i++)
        versus_check_guard(out[i].tensor.data, sni_tensor_bytes(&out[i].tensor), impl->name);
}

/* Element i of a tensor of floats. */
static inline double versus_number(const sni_tensor *t, int64_t i) {
    if (t->dtype == SN_FLOAT64) return ((double *)t->data)[i];
    if (t->dtype == SN_FLOAT32) return (double)((float *)t->data)[i];
    uint16_t half = ((uint16_t *)t->data)[i];
    return (double)(t->dtype == SN_FLOAT16 ? sni_f16_to_f32(half) : sni_bf16_to_f32(half));
}

/* Narrow floats may differ by a unit in their last place more. */
static inline void versus_compare(const versus *v, const char *impl, int o, const sni_tensor *got,
                                  const sni_tensor *want, double tolerance) {
    if (!(SNI_T(want->dtype) & SNI_T_FLOATS)) {
        assert_memory_equal(got->data, want->data, sni_tensor_bytes(want));
        return;
    }
    if (want->dtype == SN_FLOAT16) tolerance += 0x1p-10;
    if (want->dtype == SN_BFLOAT16) tolerance += 0x1p-7;
    for (int64_t i = 0; i < want->count; i++) {
        double a = versus_number(got, i), b = versus_number(want, i);
        if (isnan(b) ? isnan(a) : a == b || fabs(a - b) <= tolerance * fmax(1, fabs(b))) continue;
        char shapes[256] = "";
        for (int t = 0; t < v->e.n_in; t++)
            for (int d = 0; d <= v->e.in[t].tensor.rank; d++) {
                size_t at = strlen(shapes);
                if (d < v->e.in[t].tensor.rank)
                    snprintf(shapes + at, sizeof shapes - at, "%lld ",
                             (long long)v->e.in[t].tensor.dims[d]);
                else
                    snprintf(shapes + at, sizeof shapes - at, "; ");
            }
        fail_msg("%s of %s: element %lld of output %d is %.9g, not %.9g (inputs %s)", impl,
                 v->e.type, (long long)i, o, a, b, shapes);
    }
}

static inline void versus_add_node(versus *v, int n_out) {
    eval *e = &v->e;
    int32_t ids[EVAL_MOST];
    sni_node *n;
    for (int i = 0; i < n_out; i++) {
        sni_value *value;
        assert_int_equal(sni_graph_add_value(e->graph, (sni_str){0}, &value, &e->err), SN_OK);
        ids[i] = value->id;
    }
    assert_int_equal(sni_graph_add_node(e->graph, SNI_NO_ID,
                                        &(sni_new_node){sni_str_of(v->domain), sni_str_of(e->type),
                                                        e->in_ids, e->n_in, ids, n_out},
                                        &n, &e->err),
                     SN_OK);
    n->version = e->version;
    for (int i = 0; i < e->n_attrs; i++)
        assert_int_equal(sni_node_set_attr(e->graph, n, &e->attrs[i], &e->err), SN_OK);
    if (sni_node_resolve(e->graph, n, &e->err) != SN_OK) fail_msg("%s", e->err.message);
}

/* Implementations of several variants make one of them only where it is expected to be quick. */
static inline bool versus_supports(const sni_impl *impl, const sni_choice *c) {
    return impl->accepts(c) && (!impl->variant || impl->variant(c));
}

static inline void versus_run(versus *v, int n_out, double tolerance) {
    eval *e = &v->e;
    const sni_datum *in[EVAL_MOST];
    const sni_type *types[EVAL_MOST];
    versus_add_node(v, n_out);
    const sni_node *n = sni_graph_first(e->graph);
    for (int i = 0; i < e->n_in; i++) {
        in[i] = e->in_ids[i] == SNI_NO_ID ? NULL : &e->in[i];
        types[i] = in[i] ? &e->graph->values[e->in_ids[i]]->type : NULL;
    }
    if (sni_eval(n, in, e->out, NULL, &e->text, &e->err) != SN_OK)
        fail_msg("%s: %s", e->type, e->err.message);
    sni_pack pack = {0};
    sni_borrows borrows = {.count = 0};
    sni_choice c = {.node = n,
                    .params = n->params,
                    .n_in = e->n_in,
                    .in = types,
                    .constants = v->constants,
                    .numerics = v->numerics,
                    .pack = &pack,
                    .borrows = &borrows};
    const sni_impl *impl = v->use ? v->use : sni_ep_find(&c);
    if (v->if_supported && !versus_supports(v->use, &c)) impl = NULL;
    if (!impl && !v->may_refuse && !v->if_supported) fail_msg("%s: no implementation", e->type);
    v->impl = impl ? impl->name : NULL;
    void *state = NULL;
    if (impl && impl->prepare && impl->prepare(&c, &state, &e->err) != SN_OK)
        fail_msg("%s", e->err.message);
    for (int i = 0; i < borrows.count; i++) sni_borrow_end(&borrows.of[i]);
    sni_datum first[EVAL_MOST], second[EVAL_MOST];
    if (impl) {
        versus_run_impl(v, impl, state, n_out, 1, first);
        versus_run_impl(v, impl, state, n_out, 2, second);
    }
    for (int i = 0; impl && i < n_out; i++) {
        size_t bytes = sni_tensor_bytes(&e->out[i].tensor);
        if (memcmp(first[i].tensor.data, second[i].tensor.data, bytes) != 0)
            fail_msg("%s of %s: 1 and 2 threads differ", impl->name, e->type);
        versus_compare(v, impl->name, i, &first[i].tensor, &e->out[i].tensor, tolerance);
        free((unsigned char *)first[i].tensor.data - VERSUS_GUARD);
        free((unsigned char *)second[i].tensor.data - VERSUS_GUARD);
    }
    if (impl && impl->release) impl->release(state);
    sni_pack_clear(&pack);
    eval_end(e);
}

#endif
