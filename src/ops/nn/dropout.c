/* Dropout. Outside training the output is the input; in training elements are dropped at random and
 * the others scaled to keep the mean.
 *
 * Before version 12 nothing but the attribute `is_test` of versions 1 and 6 told training from
 * inference; models of that time are run as inference. Their mask, which the specification leaves
 * open, is false everywhere, as in ONNX Runtime. */
#include "ops/core/convert.h"
#include "ops/core/op.h"
#include "ops/core/random.h"
#include "ops/core/tensor_util.h"

enum { BLOCK = 256 }; /* elements converted at a time */

typedef struct dropout_params {
    int64_t seed;
    bool has_seed;
} dropout_params;

/* The mask of versions before 12: nothing is less than itself. Before version 10 it has the type of
 * the data. */
static sn_status replace_mask(sni_upgrade *u) {
    int32_t in[2] = {u->node->in[0], u->node->in[0]}, mask;
    SN_TRY(sni_upgrade_insert(u, "Less", in, 2, NULL, 0, &mask));
    in[0] = mask;
    if (u->from < 10) SN_TRY(sni_upgrade_insert(u, "CastLike", in, 2, NULL, 0, &mask));
    return sni_graph_replace_uses(u->graph, u->node->out[1], mask, u->err);
}

static sn_status dropout_upgrade(sni_upgrade *u) {
    const sni_node *n = u->node;
    sni_node_remove_attr(u->node, "is_test");
    bool masks = u->from < 12 && n->n_in > 0 && n->in[0] != SNI_NO_ID && n->n_out > 1 &&
                 n->out[1] != SNI_NO_ID;
    return masks ? replace_mask(u) : SN_OK;
}

static sn_status dropout_infer(sni_infer *c) {
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    SN_TRY(sni_infer_set_shape(c, 1, c->in[0]->rank, c->in[0]->dims));
    return sni_infer_same(c);
}

static sn_status read_scalar(sni_kernel *k, int input, double otherwise, double *out) {
    const sni_tensor *t = sni_in(k, input);
    if (t && t->count != 1)
        return SNI_KERNEL_FAIL(k, "input %d has %lld elements instead of one", input,
                               (long long)t->count);
    *out = t ? sni_number_at(t, 0) : otherwise;
    return SN_OK;
}

/* y or mask may be NULL. */
static sn_status drop(sni_kernel *k, const sni_tensor *x, sni_tensor *y, uint8_t *mask,
                      double ratio) {
    const dropout_params *p = k->params;
    sni_random r;
    sni_random_seed(&r, p->has_seed ? (uint32_t)p->seed : sni_random_fresh_seed());
    size_t width = sni_dtype_width(x->dtype);
    double block[BLOCK], scale = 1 / (1 - ratio);
    for (int64_t done = 0; done < x->count; done += BLOCK) {
        int64_t n = x->count - done < BLOCK ? x->count - done : BLOCK;
        sni_convert(x->dtype, sni_element(x->data, done, width), SN_FLOAT64, block, (size_t)n,
                    NULL);
        for (int64_t i = 0; i < n; i++) {
            bool keep = sni_random_uniform(&r) >= ratio;
            block[i] = keep ? block[i] * scale : 0;
            if (mask) mask[done + i] = keep;
        }
        if (y)
            sni_convert(SN_FLOAT64, block, y->dtype, sni_element(y->data, done, width), (size_t)n,
                        NULL);
        SN_TRY(sni_poll(k));
    }
    return SN_OK;
}

static sn_status dropout_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0), *mask = sni_out(k, 1);
    double ratio = 0, training = 0;
    SN_TRY(read_scalar(k, 1, 0.5, &ratio));
    SN_TRY(read_scalar(k, 2, 0, &training));
    if (!(ratio >= 0 && ratio < 1))
        return SNI_KERNEL_FAIL(k, "the ratio is %g, which is not in [0, 1)", ratio);
    if (training != 0 && ratio > 0) return drop(k, x, y, mask ? mask->data : NULL, ratio);
    if (y) sni_copy_shared(k->threads, y->data, x->data, sni_tensor_bytes(x));
    if (mask && mask->count) memset(mask->data, 1, (size_t)mask->count);
    return SN_OK;
}

const sni_op sni_op_Dropout = {
    .name = "Dropout",
    .versions = SNI_VERSIONS(1, 6, 7, 10, 12, 13, 22),
    .inputs = SNI_FORMALS({"data", "T"}, {"ratio", "T1", SNI_OPTIONAL},
                          {"training_mode", "bool", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}, {"mask", "bool", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS | SNI_T_FLOAT8}, {"T1", SNI_T_FLOATS | SNI_T_FLOAT8}),
    .params = SNI_PARAMS({"seed", SNI_ATTR_INT, offsetof(dropout_params, seed),
                          .present = offsetof(dropout_params, has_seed) + 1}),
    .params_size = sizeof(dropout_params),
    .flags = SNI_OP_RANDOM,
    .inplace = 1,
    .moves = SNI_ATTR_MOVES({"ratio", 12, 1, SN_FLOAT32}),
    .upgrade = dropout_upgrade,
    .infer = dropout_infer,
    .ref = dropout_ref,
};
