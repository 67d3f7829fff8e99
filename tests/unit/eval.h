/* eval.h - one operator on tensors written down in the test.
 *
 *     eval e;
 *     eval_start(&e, "Div", 14);
 *     eval_input(&e, SN_INT32, 1, (int64_t[]){2}, (int32_t[]){7, -7});
 *     eval_input(&e, SN_INT32, 0, NULL, (int32_t[]){0});
 *     assert_int_equal(eval_run(&e, 1), SN_OK);
 *     ... e.out[0].tensor ...
 *     eval_end(&e);
 */
#ifndef EVAL_H
#define EVAL_H

#include "unit.h"

#include "ops/core/call.h"

enum { EVAL_MOST = 18, EVAL_MOST_ATTRS = 16 };

typedef struct eval {
    sni_store *store;
    sni_graph *graph;
    const char *type;
    int64_t version;
    int n_in, n_attrs;
    int32_t in_ids[EVAL_MOST];
    sni_datum in[EVAL_MOST];
    sni_attr attrs[EVAL_MOST_ATTRS];
    sni_datum out[EVAL_MOST];
    sni_arena text;
    sn_error err;
} eval;

static inline void eval_start(eval *e, const char *type, int64_t version) {
    memset(e, 0, sizeof *e);
    e->type = type;
    e->version = version;
    sni_arena_init(&e->text, 0);
    assert_int_equal(sni_store_new(NULL, 0, &e->store, &e->err), SN_OK);
    assert_int_equal(sni_graph_new(e->store, NULL, NULL, &e->graph, &e->err), SN_OK);
}

/* The next input; `data` is copied. A data of NULL leaves the input out. */
static inline void eval_input(eval *e, sn_dtype dtype, int rank, const int64_t *dims,
                              const void *data) {
    int i = e->n_in++;
    e->in_ids[i] = SNI_NO_ID;
    if (!data) return;
    sni_value *v;
    assert_int_equal(sni_graph_add_value(e->graph, (sni_str){0}, &v, &e->err), SN_OK);
    e->in_ids[i] = v->id;
    v->type.kind = e->in[i].kind = SN_KIND_TENSOR;
    v->type.dtype = dtype;
    assert_int_equal(sni_tensor_new(&e->in[i].tensor, dtype, rank, dims, NULL, &e->err), SN_OK);
    size_t bytes = sni_tensor_bytes(&e->in[i].tensor);
    if (bytes) memcpy(e->in[i].tensor.data, data, bytes);
}

static inline void eval_attr(eval *e, sni_attr attr) {
    e->attrs[e->n_attrs++] = attr;
}

/* Lists, which must stay until the node has run. */
static inline void eval_ints(eval *e, const char *name, const int64_t *list, size_t count) {
    eval_attr(e,
              (sni_attr){
                  .name = sni_str_of(name), .kind = SNI_ATTR_INTS, .count = count, .u.ints = list});
}

static inline void eval_floats(eval *e, const char *name, const float *list, size_t count) {
    eval_attr(e, (sni_attr){.name = sni_str_of(name),
                            .kind = SNI_ATTR_FLOATS,
                            .count = count,
                            .u.floats = list});
}

/* Resolves the node, upgrade included, and runs it. The upgrade must not need further nodes. */
static inline sn_status eval_run(eval *e, int n_out) {
    int32_t out_ids[EVAL_MOST];
    const sni_datum *in[EVAL_MOST] = {0};
    sni_node *n;
    for (int i = 0; i < n_out; i++) {
        sni_value *v;
        assert_int_equal(sni_graph_add_value(e->graph, (sni_str){0}, &v, &e->err), SN_OK);
        out_ids[i] = v->id;
    }
    assert_int_equal(sni_graph_add_node(e->graph, SNI_NO_ID,
                                        &(sni_new_node){SNI_STR(""), sni_str_of(e->type), e->in_ids,
                                                        e->n_in, out_ids, n_out},
                                        &n, &e->err),
                     SN_OK);
    n->version = e->version;
    for (int i = 0; i < e->n_attrs; i++)
        assert_int_equal(sni_node_set_attr(e->graph, n, &e->attrs[i], &e->err), SN_OK);
    sn_status status = sni_node_resolve(e->graph, n, &e->err);
    if (status != SN_OK) return status;
    for (int i = 0; i < e->n_in; i++) in[i] = e->in_ids[i] == SNI_NO_ID ? NULL : &e->in[i];
    return sni_eval(n, in, e->out, NULL, &e->text, &e->err);
}

static inline void eval_end(eval *e) {
    for (int i = 0; i < EVAL_MOST; i++) {
        sni_datum_clear(&e->in[i]);
        sni_datum_clear(&e->out[i]);
    }
    sni_arena_free(&e->text);
    sni_store_release(e->store);
}

#endif
