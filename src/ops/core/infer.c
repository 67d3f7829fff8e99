/* infer.c - helpers of operators' inference functions, and one call of them. */
#include "ops/core/op.h"

#include <inttypes.h>

enum {
    DIMS_LIMIT = 1024, /* longest integer tensor whose elements are followed as dimensions */
    VARS = 16
}; /* type variables of one operator */

/* ---- Asking ---- */

sn_status sni_infer_known(sni_infer *c, int i, const sni_tensor **out) {
    *out = NULL;
    if (i >= c->n_in || !c->in[i]) return SN_OK;
    if (c->known && c->known[i])
        *out = c->known[i];
    else if (c->constants && c->constants[i])
        return sni_const_load(c->constants[i], out, c->err);
    return SN_OK;
}

/* Bools stand between comparisons of dimensions and Where. */
static bool dims_type(sn_dtype dtype) {
    return dtype == SN_INT64 || dtype == SN_INT32 || dtype == SN_BOOL;
}

static sn_status dims_of_tensor(sni_infer *c, const sni_tensor *t, const sni_dim **out,
                                int32_t *count) {
    if (t->rank > 1 || t->count > DIMS_LIMIT || !dims_type(t->dtype)) return SN_OK;
    sni_dim *dims = SNI_NEW_ARRAY(c->arena, sni_dim, t->count);
    if (!dims) return sni_fail_memory(c->err);
    for (int64_t i = 0; i < t->count; i++) {
        int64_t v = t->dtype == SN_INT64   ? ((const int64_t *)t->data)[i]
                    : t->dtype == SN_INT32 ? ((const int32_t *)t->data)[i]
                                           : ((const uint8_t *)t->data)[i] != 0;
        dims[i] = v < SNI_DIM_LOWEST ? SNI_DIM_LOWEST : v;
    }
    *out = dims;
    *count = (int32_t)t->count;
    return SN_OK;
}

/* Contents are wanted only of tensors that can be lists of dimensions: large ones stay unread. */
static bool may_be_dims(const sni_type *type) {
    return type->kind == SN_KIND_TENSOR && dims_type(type->dtype) && type->has_shape &&
           (type->rank == 0 || (type->rank == 1 && type->dims[0] <= DIMS_LIMIT));
}

sn_status sni_infer_dims(sni_infer *c, int i, const sni_dim **out, int32_t *count) {
    *out = NULL;
    *count = 0;
    if (i >= c->n_in || !c->in[i] || !may_be_dims(c->in[i])) return SN_OK;
    const sni_tensor *t;
    SN_TRY(sni_infer_known(c, i, &t));
    if (t) return dims_of_tensor(c, t, out, count);
    if (c->in_dims && c->in_dims[i]) {
        *out = c->in_dims[i];
        *count = c->in_dims_count[i];
    }
    return SN_OK;
}

sn_status sni_infer_axis(sni_infer *c, int64_t axis, int rank, int *out) {
    if (axis < -rank || axis >= rank)
        return SNI_INFER_FAIL(c, "axis %" PRId64 " is outside a tensor of rank %d", axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return SN_OK;
}

/* ---- Answering ---- */

sn_status sni_infer_set_type(sni_infer *c, int out, sn_dtype dtype) {
    if (out >= c->n_out) return SN_OK;
    if (!sni_dtype_valid(dtype)) return SNI_INFER_FAIL(c, "%d is no element type", (int)dtype);
    c->out[out].kind = SN_KIND_TENSOR;
    c->out[out].dtype = dtype;
    return SN_OK;
}

sn_status sni_infer_set_full_type(sni_infer *c, int out, const sni_type *type) {
    if (out >= c->n_out) return SN_OK;
    return sni_type_copy(&c->out[out], type, c->arena) ? SN_OK : sni_fail_memory(c->err);
}

sn_status sni_infer_set_shape(sni_infer *c, int out, int rank, const sni_dim *dims) {
    if (out >= c->n_out) return SN_OK;
    if (rank > SN_MAX_RANK)
        return sni_fail(c->err, SN_UNSUPPORTED, "rank %d is more than the %d supported", rank,
                        SN_MAX_RANK);
    sni_dim *copy = SNI_NEW_ARRAY(c->arena, sni_dim, rank);
    if (!copy) return sni_fail_memory(c->err);
    for (int i = 0; i < rank; i++) {
        if (dims[i] == SNI_DIM_FAIL) return sni_fail_memory(c->err);
        if (dims[i] < 0 && !sni_dim_is_symbol(dims[i]))
            return SNI_INFER_FAIL(c, "dimension %d of output %d would be %" PRId64, i, out,
                                  dims[i]);
        copy[i] = dims[i];
    }
    c->out[out].kind = SN_KIND_TENSOR;
    c->out[out].has_shape = true;
    c->out[out].rank = rank;
    c->out[out].dims = copy;
    return SN_OK;
}

sn_status sni_infer_set_dims(sni_infer *c, int out, int32_t count, const sni_dim *dims) {
    if (out >= c->n_out || count > DIMS_LIMIT) return SN_OK;
    sni_dim *copy = SNI_NEW_ARRAY(c->arena, sni_dim, count);
    if (!copy) return sni_fail_memory(c->err);
    for (int32_t i = 0; i < count; i++) {
        if (dims[i] == SNI_DIM_FAIL) return sni_fail_memory(c->err);
        copy[i] = dims[i];
    }
    c->out_dims[out] = copy;
    c->out_dims_count[out] = count;
    return SN_OK;
}

/* ---- Common answers ---- */

sn_status sni_infer_same(sni_infer *c) {
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    return sni_infer_set_shape(c, 0, c->in[0]->rank, c->in[0]->dims);
}

sn_status sni_infer_broadcast_of(sni_infer *c, int out, const int *inputs, int count) {
    int rank = 0;
    for (int i = 0; i < count; i++) {
        if (!sni_infer_given(c, inputs[i])) continue;
        if (!sni_infer_shaped(c, inputs[i])) return SN_OK;
        int r = c->in[inputs[i]]->rank;
        if (r > rank) rank = r;
    }
    sni_dim dims[SN_MAX_RANK];
    for (int axis = 0; axis < rank; axis++) {
        dims[axis] = 1;
        for (int i = 0; i < count; i++) {
            if (!sni_infer_given(c, inputs[i])) continue;
            const sni_type *t = c->in[inputs[i]];
            int at = axis - (rank - t->rank);
            if (at < 0) continue;
            bool ok = true;
            sni_dim before = dims[axis];
            dims[axis] = sni_dim_broadcast(c->symbols, before, t->dims[at], &ok);
            if (!ok)
                return SNI_INFER_FAIL(c, "input %d has size %s where the others have %s (axis %d)",
                                      inputs[i], sni_dim_text(c->symbols, t->dims[at]),
                                      sni_dim_text(c->symbols, before), axis);
        }
    }
    return sni_infer_set_shape(c, out, rank, dims);
}

sn_status sni_infer_broadcast(sni_infer *c) {
    int *inputs = SNI_NEW_ARRAY(c->arena, int, c->n_in);
    if (!inputs) return sni_fail_memory(c->err);
    for (int i = 0; i < c->n_in; i++) inputs[i] = i;
    return sni_infer_broadcast_of(c, 0, inputs, c->n_in);
}

/* ---- Types by description ---- */

static sni_types type_bit(const sni_type *t) {
    switch (t->kind) {
    case SN_KIND_TENSOR:
        return t->dtype ? SNI_T(t->dtype) : 0;
    case SN_KIND_SEQUENCE:
        return SNI_T_SEQ;
    case SN_KIND_OPTIONAL:
        return SNI_T_OPTIONAL;
    case SN_KIND_MAP:
        return SNI_T_MAP;
    default:
        return 0;
    }
}

/* The types a formal allows, and the number of its type variable (-1: a fixed type). */
static sni_types formal_types(const sni_op *op, const sni_formal *f, int *var) {
    *var = -1;
    for (int i = 0; op->types && op->types[i].name && i < VARS; i++) {
        if (strcmp(op->types[i].name, f->type) != 0) continue;
        *var = i;
        return op->types[i].types;
    }
    sn_dtype dtype = sni_dtype_find(sni_str_of(f->type));
    return dtype ? SNI_T(dtype) : SNI_T_ALL;
}

static sn_status check_input(sni_infer *c, int i, const sni_formal *f, const sni_type **bound) {
    int var;
    sni_types allowed = formal_types(c->op, f, &var);
    const sni_type *t = c->in[i];
    sni_types bit = type_bit(t);
    if (bit == 0) return SN_OK; /* not known yet */
    if (!(bit & allowed))
        return SNI_INFER_FAIL(c, "input %d ('%s') is %s, which %s does not take", i, f->name,
                              t->kind == SN_KIND_TENSOR ? sn_dtype_name(t->dtype) : "not a tensor",
                              c->op->name);
    if (var < 0 || (f->flags & SNI_HETEROGENEOUS)) return SN_OK;
    if (!bound[var]) {
        bound[var] = t;
    } else if (type_bit(bound[var]) != bit && t->kind == SN_KIND_TENSOR &&
               bound[var]->kind == SN_KIND_TENSOR) {
        return SNI_INFER_FAIL(c, "input %d ('%s') is %s where the others are %s", i, f->name,
                              sn_dtype_name(t->dtype), sn_dtype_name(bound[var]->dtype));
    }
    return SN_OK;
}

static sn_status check_inputs(sni_infer *c, const sni_type **bound) {
    const sni_formal *f = c->op->inputs;
    for (int i = 0; i < c->n_in && f && f->name; i++) {
        if (c->in[i]) SN_TRY(check_input(c, i, f, bound));
        if (!(f->flags & SNI_VARIADIC)) f++;
    }
    return SN_OK;
}

static void preset_outputs(sni_infer *c, const sni_type *const *bound) {
    const sni_formal *f = c->op->outputs;
    for (int i = 0; i < c->n_out; i++) {
        c->out[i] = (sni_type){0};
        c->out_dims[i] = NULL;
        c->out_dims_count[i] = -1;
        if (!f || !f->name) continue;
        int var;
        sni_types allowed = formal_types(c->op, f, &var);
        if (var >= 0 && bound[var] && !(f->flags & SNI_HETEROGENEOUS)) {
            c->out[i] = *bound[var];
            c->out[i].has_shape = false;
            c->out[i].rank = 0;
            c->out[i].dims = NULL;
        } else if (allowed && (allowed & (allowed - 1)) == 0 && allowed < SNI_T_SEQ) {
            c->out[i].kind = SN_KIND_TENSOR;
            c->out[i].dtype = (sn_dtype)__builtin_ctzll(allowed);
        }
        if (!(f->flags & SNI_VARIADIC)) f++;
    }
}

sn_status sni_infer_call(sni_infer *c) {
    const sni_type *bound[VARS] = {0};
    SN_TRY(check_inputs(c, bound));
    preset_outputs(c, bound);
    return c->op->infer ? c->op->infer(c) : SN_OK;
}
