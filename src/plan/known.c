/* known.c - contents that are known before a run: constants, and integers that shapes are computed
 * from. */
#include "ops/core/call.h"
#include "plan/builder.h"

#include <stdlib.h>

enum {
    KNOWN_LIMIT = 4096
}; /* elements of a tensor, not of text, that is worth working out beforehand */

sni_const *sni_plan_constant(const sni_builder *b, int32_t id) {
    sni_ref r = b->refs[id];
    bool bound = r >= 0 && b->plan->slots[r].place == SNI_PLACE_INPUT;
    return bound ? NULL : b->graph->values[id]->constant;
}

sni_datum *sni_plan_weight(const sni_builder *b, int32_t id) {
    sni_datum *d = &b->common->weights[id];
    if (d->kind == SN_KIND_NONE) {
        const sni_tensor *t = &b->graph->values[id]->constant->tensor;
        d->kind = SN_KIND_TENSOR;
        d->tensor = (sni_tensor){.dtype = t->dtype, .rank = t->rank, .count = t->count};
        memcpy(d->tensor.dims, t->dims, sizeof t->dims);
    }
    return d;
}

sn_status sni_plan_load_weight(sni_builder *b, int32_t id, const sni_datum **out) {
    sni_datum *d = sni_plan_weight(b, id);
    if (!d->tensor.data) {
        sni_const *c = b->graph->values[id]->constant;
        size_t charged = c->made ? sni_tensor_bytes(&c->tensor) : 0;
        const sni_tensor *t;
        SN_TRY(sni_budget_take(b->common->packed, charged, b->err));
        sn_status status = sni_const_load(c, &t, b->err);
        if (status != SN_OK) {
            sni_budget_give(b->common->packed, charged);
            return status;
        }
        d->tensor.data = t->data;
    }
    *out = d;
    return SN_OK;
}

/* Contents of a value, loading small constants; NULL if not known. */
static sn_status contents(sni_builder *b, int32_t id, const sni_tensor **out) {
    const sni_const *c = sni_plan_constant(b, id);
    const sni_datum *d = b->known[id];
    if (!d && c && c->tensor.count <= KNOWN_LIMIT) SN_TRY(sni_plan_load_weight(b, id, &d));
    *out = d ? &d->tensor : NULL;
    return SN_OK;
}

/* Takes over what `d` holds as the contents of a value. */
static sn_status keep_known(sni_builder *b, int32_t id, sni_datum *d) {
    b->known[id] = malloc(sizeof *d);
    if (!b->known[id]) {
        sni_datum_clear(d);
        return sni_fail_memory(b->err);
    }
    *b->known[id] = *d;
    return SN_OK;
}

sn_status sni_plan_keep_dims(sni_builder *b, int32_t id, const sni_type *type, const sni_dim *dims,
                             int32_t count) {
    if (type->kind != SN_KIND_TENSOR || !type->has_shape || type->rank > 1) return SN_OK;
    if (type->dtype != SN_INT64 && type->dtype != SN_INT32) return SN_OK;
    if (type->rank == 1 ? type->dims[0] != count : count != 1) return SN_OK;
    for (int32_t i = 0; i < count; i++)
        if (sni_dim_is_symbol(dims[i])) return SN_OK;
    sni_datum d = {.kind = SN_KIND_TENSOR};
    SN_TRY(sni_tensor_new(&d.tensor, type->dtype, type->rank, type->dims, NULL, b->err));
    for (int32_t i = 0; i < count; i++) {
        if (type->dtype == SN_INT64)
            ((int64_t *)d.tensor.data)[i] = dims[i];
        else
            ((int32_t *)d.tensor.data)[i] = (int32_t)dims[i];
    }
    return keep_known(b, id, &d);
}

static bool small_type(const sni_type *t) {
    int64_t count = 1;
    if (t->kind != SN_KIND_TENSOR || !t->has_shape || t->dtype == SN_STRING) return false;
    for (int i = 0; i < t->rank; i++) {
        if (!sni_dim_known(t->dims[i]) || t->dims[i] > KNOWN_LIMIT) return false;
        count *= t->dims[i];
        if (count > KNOWN_LIMIT) return false;
    }
    return true;
}

sn_status sni_plan_evaluable(sni_builder *b, const sni_node *n, bool *yes) {
    *yes = false;
    if ((n->op->flags & (SNI_OP_RANDOM | SNI_OP_SUBGRAPHS | SNI_OP_ALLOCATES)) || !n->op->ref)
        return SN_OK;
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != SNI_NO_ID && !small_type(&b->types[n->out[i]])) return SN_OK;
    for (int32_t i = 0; i < n->n_in; i++) {
        const sni_tensor *t;
        if (n->in[i] == SNI_NO_ID) continue;
        SN_TRY(contents(b, n->in[i], &t));
        if (!t || t->count > KNOWN_LIMIT) return SN_OK;
    }
    *yes = true;
    return SN_OK;
}

sn_status sni_plan_evaluate(sni_builder *b, const sni_node *n) {
    sni_datum *in = SNI_NEW_ARRAY(&b->scratch, sni_datum, n->n_in);
    const sni_datum **ins = SNI_NEW_ARRAY(&b->scratch, const sni_datum *, n->n_in);
    sni_datum *out = SNI_NEW_ARRAY(&b->scratch, sni_datum, n->n_out);
    if (!in || !ins || !out) return sni_fail_memory(b->err);
    for (int32_t i = 0; i < n->n_in; i++) {
        const sni_tensor *t;
        if (n->in[i] == SNI_NO_ID) continue;
        SN_TRY(contents(b, n->in[i], &t));
        in[i].kind = SN_KIND_TENSOR;
        in[i].tensor = *t;
        in[i].tensor.buffer = NULL;
        ins[i] = &in[i];
    }
    sn_status status = sni_eval(n, ins, out, NULL, &b->plan->arena, b->err);
    for (int32_t i = 0; i < n->n_out; i++) {
        if (status == SN_OK && out[i].kind == SN_KIND_TENSOR && !b->known[n->out[i]])
            status = keep_known(b, n->out[i], &out[i]);
        else
            sni_datum_clear(&out[i]);
    }
    return status;
}
