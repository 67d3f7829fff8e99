/* Reshape, Flatten, Squeeze, Unsqueeze: the same elements under another shape. */
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <assert.h>
#include <inttypes.h>

typedef struct reshape_params {
    int64_t allowzero;
} reshape_params;

/* The wanted shape while it is being solved. */
typedef struct target {
    int rank;
    sni_dim dims[SN_MAX_RANK];
    uint32_t copied; /* axes taken over from the input */
    int rest;        /* the axis given as -1; none: below 0 */
    bool open;       /* an axis is not known yet */
    uint32_t free;   /* axes of whose size nothing is known: any number may come */
} target;

static sn_status read_axis(sni_infer *c, const sni_list *shape, int j, target *t) {
    const reshape_params *p = c->params;
    int64_t v;
    if (!sni_list_int(shape, j, &v)) {
        t->dims[j] = sni_list_dim(c, shape, j);
        t->open = true;
        if (!sni_list_is_size(c, shape, j)) t->free |= 1u << j;
    } else if (v == -1) {
        if (t->rest >= 0) return SNI_INFER_FAIL(c, "shape has -1 at both %d and %d", t->rest, j);
        t->rest = j;
        t->dims[j] = 1;
    } else if (v == 0 && !p->allowzero) {
        if (!sni_infer_shaped(c, 0)) {
            t->dims[j] = sni_dim_fresh(c->symbols);
            t->open = true;
        } else if (j >= sni_infer_rank(c, 0)) {
            return SNI_INFER_FAIL(c, "shape has 0 at %d, but the input has rank %d", j,
                                  sni_infer_rank(c, 0));
        } else {
            t->dims[j] = sni_infer_dim(c, 0, j);
            t->copied |= 1u << j;
        }
    } else if (v < 0) {
        return SNI_INFER_FAIL(c, "shape has %" PRId64 " at %d", v, j);
    } else {
        t->dims[j] = v;
    }
    return SN_OK;
}

/* Elements of the input over elements of the target but axis `skip`, where equal factors on both
 * sides are left out. */
static void factors(sni_infer *c, const target *t, int skip, sni_dim *above, sni_dim *below) {
    sni_dim a[SN_MAX_RANK], b[SN_MAX_RANK];
    int na = 0, nb = 0;
    for (int i = 0; i < sni_infer_rank(c, 0); i++)
        if (i >= t->rank || !(t->copied >> i & 1)) a[na++] = sni_infer_dim(c, 0, i);
    for (int j = 0; j < t->rank; j++) {
        if (j == skip || t->copied >> j & 1) continue;
        int same = 0;
        while (same < na && a[same] != t->dims[j]) same++;
        if (same < na && t->dims[j] != 0)
            a[same] = a[--na];
        else
            b[nb++] = t->dims[j];
    }
    *above = sni_dims_product(c, a, 0, na);
    *below = sni_dims_product(c, b, 0, nb);
}

/* The axis that was given as -1. */
static sn_status solve_rest(sni_infer *c, target *t) {
    if (!sni_infer_shaped(c, 0)) {
        t->dims[t->rest] = sni_dim_fresh(c->symbols);
        return SN_OK;
    }
    sni_dim above, below;
    factors(c, t, t->rest, &above, &below);
    if (below == 0)
        return SNI_INFER_FAIL(c, "shape has -1 at %d beside a 0: it is not determined", t->rest);
    if (sni_dim_known(above) && sni_dim_known(below) && above % below != 0)
        return SNI_INFER_FAIL(c, "%" PRId64 " elements do not fill rows of %" PRId64, above, below);
    t->dims[t->rest] = sni_dim_floordiv(c->symbols, above, below);
    return SN_OK;
}

/* Unknown axes of a shape that was computed from sizes: since the number of elements stays, one
 * that is the exact quotient of the others is known after all. It may have been -1 or a size: the
 * quotient is right for both, and a plan, which knows the sizes, checks it. Numbers that only a run
 * brings could be any: for them the step must stay one that reads them. */
static void solve_open(sni_infer *c, target *t) {
    for (int j = 0; j < t->rank; j++) {
        if (sni_dim_known(t->dims[j]) || (t->copied | t->free) >> j & 1) continue;
        sni_dim above, below;
        factors(c, t, j, &above, &below);
        if (below == 0 || (sni_dim_known(above) && !sni_dim_known(below))) continue;
        sni_dim quotient = sni_dim_floordiv(c->symbols, above, below);
        if (sni_dim_mul(c->symbols, quotient, below) != above) continue;
        t->dims[j] = quotient;
        return;
    }
}

static sn_status reshape_infer(sni_infer *c) {
    sni_list shape;
    SN_TRY(sni_infer_list(c, 1, &shape));
    if (!shape.known) return SN_OK;
    if (shape.count > SN_MAX_RANK)
        return SNI_INFER_FAIL(c, "shape has %" PRId64 " elements: more than %d", shape.count,
                              SN_MAX_RANK);
    target t = {.rank = (int)shape.count, .rest = -1};
    for (int j = 0; j < t.rank; j++) SN_TRY(read_axis(c, &shape, j, &t));
    if (t.rest >= 0) {
        SN_TRY(solve_rest(c, &t));
    } else if (t.open && sni_infer_shaped(c, 0)) {
        solve_open(c, &t);
    } else if (sni_infer_shaped(c, 0)) {
        sni_dim above, below;
        factors(c, &t, -1, &above, &below);
        if (sni_dim_known(above) && sni_dim_known(below) && above != below)
            return SNI_INFER_FAIL(c, "the shape asks for %" PRId64 " elements of %" PRId64, below,
                                  above);
    }
    SN_TRY(sni_infer_set_shape(c, 0, t.rank, t.dims));
    return sni_infer_pass_dims(c);
}

/* The kernel of operators whose output is input 0 under another shape. */
static sn_status view_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    assert(sni_tensor_bytes(x) == sni_tensor_bytes(sni_out(k, 0)));
    sni_copy_shared(k->threads, sni_out(k, 0)->data, x->data, sni_tensor_bytes(x));
    return SN_OK;
}

const sni_op sni_op_Reshape = {
    .name = "Reshape",
    .versions = SNI_VERSIONS(1, 5, 13, 14, 19, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"data", "T"}, {"shape", "int64"}),
    .outputs = SNI_FORMALS({"reshaped", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params = SNI_PARAMS({"allowzero", SNI_ATTR_INT, offsetof(reshape_params, allowzero)}),
    .params_size = sizeof(reshape_params),
    .flags = SNI_OP_VIEW,
    .moves = SNI_ATTR_MOVES({"shape", 5, 1}),
    .infer = reshape_infer,
    .ref = view_ref,
};

typedef struct flatten_params {
    int64_t axis;
} flatten_params;

static sn_status flatten_infer(sni_infer *c) {
    const flatten_params *p = c->params;
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (p->axis < -rank || p->axis > rank)
        return SNI_INFER_FAIL(c, "axis %" PRId64 " for a tensor of rank %d", p->axis, rank);
    int axis = (int)(p->axis < 0 ? p->axis + rank : p->axis);
    const sni_dim *dims = c->in[0]->dims;
    return sni_infer_set_shape(c, 0, 2,
                               (const sni_dim[]){sni_dims_product(c, dims, 0, axis),
                                                 sni_dims_product(c, dims, axis, rank)});
}

const sni_op sni_op_Flatten = {
    .name = "Flatten",
    .versions = SNI_VERSIONS(1, 9, 11, 13, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"input", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(flatten_params, axis), .number = 1}),
    .params_size = sizeof(flatten_params),
    .flags = SNI_OP_VIEW,
    .infer = flatten_infer,
    .ref = view_ref,
};

/* ---- Squeeze and Unsqueeze ---- */

/* Without axes every axis of length 1 goes. */
static sn_status squeeze_infer(sni_infer *c) {
    sni_list axes;
    SN_TRY(sni_infer_list(c, 1, &axes));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    uint32_t set = 0;
    bool known = true;
    if (sni_infer_given(c, 1)) {
        SN_TRY(sni_infer_axis_set(c, &axes, rank, &set, &known));
    } else {
        for (int i = 0; i < rank; i++) {
            if (!sni_dim_known(sni_infer_dim(c, 0, i))) known = false;
            if (sni_infer_dim(c, 0, i) == 1) set |= 1u << i;
        }
    }
    if (!known) return SN_OK;
    sni_dim dims[SN_MAX_RANK];
    int n = 0;
    for (int i = 0; i < rank; i++) {
        sni_dim d = sni_infer_dim(c, 0, i);
        if (!(set >> i & 1))
            dims[n++] = d;
        else if (sni_dim_known(d) && d != 1)
            return SNI_INFER_FAIL(c, "axis %d has length %" PRId64 ", not 1", i, d);
    }
    SN_TRY(sni_infer_set_shape(c, 0, n, dims));
    return sni_infer_pass_dims(c);
}

const sni_op sni_op_Squeeze = {
    .name = "Squeeze",
    .versions = SNI_VERSIONS(1, 11, 13, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"data", "T"}, {"axes", "int64", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"squeezed", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .flags = SNI_OP_VIEW,
    .moves = SNI_ATTR_MOVES({"axes", 13, 1}),
    .infer = squeeze_infer,
    .ref = view_ref,
};

static sn_status unsqueeze_infer(sni_infer *c) {
    sni_list axes;
    SN_TRY(sni_infer_list(c, 1, &axes));
    if (!sni_infer_shaped(c, 0) || !axes.known) return SN_OK;
    if (axes.count > SN_MAX_RANK - sni_infer_rank(c, 0))
        return SNI_INFER_FAIL(c, "%" PRId64 " more axes make a rank above %d", axes.count,
                              SN_MAX_RANK);
    int rank = sni_infer_rank(c, 0) + (int)axes.count;
    uint32_t set;
    bool known;
    SN_TRY(sni_infer_axis_set(c, &axes, rank, &set, &known));
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0, j = 0; i < rank; i++) {
        if (!known)
            dims[i] = sni_dim_fresh(c->symbols);
        else
            dims[i] = set >> i & 1 ? 1 : sni_infer_dim(c, 0, j++);
    }
    SN_TRY(sni_infer_set_shape(c, 0, rank, dims));
    return sni_infer_pass_dims(c);
}

const sni_op sni_op_Unsqueeze = {
    .name = "Unsqueeze",
    .versions = SNI_VERSIONS(1, 11, 13, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"data", "T"}, {"axes", "int64"}),
    .outputs = SNI_FORMALS({"expanded", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .flags = SNI_OP_VIEW,
    .moves = SNI_ATTR_MOVES({"axes", 13, 1}),
    .infer = unsqueeze_infer,
    .ref = view_ref,
};
