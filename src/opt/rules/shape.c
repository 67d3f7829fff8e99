/* shape.c - movers that move nothing, or undo each other. */
#include "opt/rules/rules.h"

static bool is_rising(const sni_attr *perm) {
    for (size_t i = 0; perm && i < perm->count; i++)
        if (perm->u.ints[i] != (int64_t)i) return false;
    return perm != NULL;
}

static bool keeps_order(sni_match *m) {
    return is_rising(sni_match_attr(m, "p"));
}

/* The second permutation after the first, without the perm attribute that reverses. */
static bool both_given(sni_match *m) {
    const sni_attr *p = sni_match_attr(m, "p"), *q = sni_match_attr(m, "q");
    return p && q && p->count == q->count;
}

static sn_status join_perms(sni_match *m) {
    const sni_attr *p = sni_match_attr(m, "p"), *q = sni_match_attr(m, "q");
    int64_t *joined = SNI_NEW_ARRAY(&m->r->store->arena, int64_t, p->count);
    if (!joined) return sni_fail_memory(m->r->err);
    for (size_t i = 0; i < p->count; i++) joined[i] = q->u.ints[p->u.ints[i]];
    sni_attr a = *p;
    a.u.ints = joined;
    return sni_match_set_attr(m, "r", a);
}

/* The second permutation undoes the first. */
static bool transposes_back(sni_match *m) {
    const sni_attr *p = sni_match_attr(m, "p"), *q = sni_match_attr(m, "q");
    if (!p || !q || p->count != q->count) return false;
    for (size_t i = 0; i < p->count; i++)
        if (p->u.ints[i] < 0 || p->u.ints[i] >= (int64_t)p->count ||
            q->u.ints[p->u.ints[i]] != (int64_t)i)
            return false;
    return true;
}

/* ---- Elements of a turned tensor: those of the tensor, turned ---- */

/* The axis that a Gather of a turned tensor has there; -1: it cannot be told. */
static int64_t gathered_axis(const sni_match *m) {
    const sni_attr *p = sni_match_attr(m, "p"), *axis = sni_match_attr(m, "a");
    int64_t a = axis ? axis->u.i : 0, rank = p ? (int64_t)p->count : 0;
    if (a < 0) a += rank;
    return a >= 0 && a < rank ? a : -1;
}

/* One element along an axis, or a list of no more than there are: what is turned gets no larger. */
static bool gathers_transposed(sni_match *m) {
    const sni_const *i = sni_value_const(m->g, sni_match_value(m, "i"));
    const sni_type *x = sni_match_type(m, "x");
    const sni_attr *p = sni_match_attr(m, "p");
    int64_t a = gathered_axis(m);
    return i && i->tensor.rank <= 1 && a >= 0 && x->has_shape && x->rank == (int)p->count &&
           (i->tensor.rank == 0 || i->tensor.count <= x->dims[p->u.ints[a]]);
}

static sn_status transpose_gathered(sni_match *m) {
    const sni_attr *p = sni_match_attr(m, "p");
    const sni_const *i = sni_value_const(m->g, sni_match_value(m, "i"));
    int64_t a = gathered_axis(m), axis = p->u.ints[a];
    int64_t *left = SNI_NEW_ARRAY(&m->r->store->arena, int64_t, p->count);
    sni_attr perm = *p;
    if (!left) return sni_fail_memory(m->r->err);
    perm.u.ints = left;
    perm.count = 0;
    for (int64_t j = 0; j < (int64_t)p->count; j++) {
        bool gone = i->tensor.rank == 0; /* the axis, from the result */
        if (gone && j == a) continue;
        left[perm.count++] = p->u.ints[j] - (gone && p->u.ints[j] > axis);
    }
    SN_TRY(sni_match_set_attr(m, "b", sni_attr_of_int("b", axis)));
    return sni_match_set_attr(m, "q", perm);
}

static bool pads_nothing(sni_match *m) {
    const sni_tensor *t = sni_match_const(m, "pads");
    for (int64_t i = 0; t && i < t->count; i++)
        if (((const int64_t *)t->data)[i] != 0) return false;
    return t != NULL;
}

/* A 0 would mean a dimension of the tensor in between. */
static bool has_no_zero(sni_match *m) {
    const sni_tensor *t = sni_match_const(m, "t");
    for (int64_t i = 0; t && i < t->count; i++)
        if (((const int64_t *)t->data)[i] == 0) return false;
    return t != NULL;
}

/* With static or symbolic dimensions that are all the same, and steps of 1, a Slice is everything.
 */
static bool takes_all(sni_match *m) {
    const sni_tensor *steps = sni_match_const(m, "steps");
    const sni_value *y = sni_graph_value(m->g, m->root->out[0]);
    if (sni_match_value(m, "steps") != SNI_NO_ID && !steps) return false;
    for (int64_t i = 0; steps && i < steps->count; i++) {
        bool one = steps->dtype == SN_INT64 ? ((const int64_t *)steps->data)[i] == 1
                                            : ((const int32_t *)steps->data)[i] == 1;
        if (!one) return false;
    }
    return sni_types_equal(sni_match_type(m, "x"), &y->type);
}

static bool is_copied(const sni_type *x, const sni_type *y, int i) {
    return x->has_shape && i < x->rank && x->dims[i] == y->dims[i];
}

/* Elements of the input and of the result are as many, whatever the sizes. */
static bool same_count(sni_match *m, const sni_type *x, const sni_type *y) {
    sni_dim a = 1, b = 1;
    if (!x->has_shape) return false;
    for (int i = 0; i < x->rank; i++) a = sni_dim_mul(m->g->symbols, a, x->dims[i]);
    for (int i = 0; i < y->rank; i++) b = sni_dim_mul(m->g->symbols, b, y->dims[i]);
    return a == b && a != SNI_DIM_FAIL;
}

/* A computed shape can be written down if each of its elements is a number or the dimension of the
 * input in the same place; or if one is neither, all others are numbers, and its size is right
 * whatever the sizes are. The element itself counts: a type may hold only for runs that succeed. */
static bool shape_can_be_told(sni_match *m) {
    const sni_type *y = &sni_graph_value(m->g, m->root->out[0])->type;
    const sni_type *x = sni_match_type(m, "x");
    const sni_value *s = sni_graph_value(m->g, sni_match_value(m, "s"));
    int open = 0, copied = 0, rest = 0;
    if (s->constant || !y->has_shape || !s->shape_value || s->shape_count != y->rank) return false;
    for (int i = 0; i < y->rank; i++) {
        sni_dim d = s->shape_value[i];
        if (y->dims[i] == 0) return false;
        if (d == -1) rest++;
        if (!sni_dim_is_symbol(d)) continue;
        if (d != y->dims[i]) return false;
        if (is_copied(x, y, i))
            copied++;
        else
            open++;
    }
    return open == 0 || (open == 1 && copied == 0 && rest == 0 && same_count(m, x, y));
}

static sn_status tell_shape(sni_match *m) {
    const sni_type *y = &sni_graph_value(m->g, m->root->out[0])->type;
    const sni_type *x = sni_match_type(m, "x");
    const sni_value *s = sni_graph_value(m->g, sni_match_value(m, "s"));
    int64_t dims[SN_MAX_RANK];
    for (int i = 0; i < y->rank; i++) {
        sni_dim d = s->shape_value[i];
        dims[i] = !sni_dim_is_symbol(d) ? d : is_copied(x, y, i) ? 0 : -1;
    }
    return sni_match_new_ints(m, "t", y->rank, dims);
}

/* The type that a CastLike casts to. */
static bool knows_type(sni_match *m) {
    return sni_match_type(m, "y")->dtype != SN_UNDEFINED;
}

static sn_status bind_type(sni_match *m) {
    return sni_match_set_attr(m, "to", sni_attr_of_int("to", sni_match_type(m, "y")->dtype));
}

/* ---- Rows of a table by their number: as many as another tensor has on an axis ---- */

/* ids is (1, M) and counts from 0; the table has at least as many rows. */
static bool counts_rows(sni_match *m) {
    const sni_tensor *ids = sni_match_const(m, "ids");
    const sni_const *table = sni_value_const(m->g, sni_match_value(m, "table"));
    const sni_attr *from = sni_match_attr(m, "from"), *to = sni_match_attr(m, "to");
    if (!ids || !table || !from || !to || from->u.i < 0 || to->u.i != from->u.i + 1) return false;
    if (ids->dtype != SN_INT64 || ids->rank != 2 || ids->dims[0] != 1 || table->tensor.rank != 2 ||
        table->tensor.dtype != SN_FLOAT32 || table->tensor.dims[0] < ids->count)
        return false;
    for (int64_t i = 0; i < ids->count; i++)
        if (((const int64_t *)ids->data)[i] != i) return false;
    return true;
}

static sn_status bind_rows(sni_match *m) {
    const sni_tensor *table = sni_match_const(m, "table");
    const sni_const *ids = sni_value_const(m->g, sni_match_value(m, "ids"));
    float *data;
    if (!table) return sni_fail(m->r->err, SN_INTERNAL, "a constant is no longer there");
    int64_t dims[3] = {1, ids->tensor.count, table->dims[1]};
    SN_TRY(sni_match_new_floats(m, "rows", 3, dims, &data));
    size_t bytes = (size_t)(dims[1] * dims[2]) * sizeof *data;
    if (bytes) memcpy(data, table->data, bytes);
    return SN_OK;
}

const sni_rule sni_rules_shape[] = {
    {"noop-transpose", "Transpose<perm = @p>(x)", "x", .where = keeps_order, .level = 1,
     .sample = "@p=[0,1,2]"},
    {"transpose-transpose", "Transpose<perm = @p>(Transpose<perm = @q>(x))",
     "Transpose<perm = @r>(x)", .where = both_given, .build = join_perms, .level = 1,
     .sample = "@p=[2,0,1] @q=[1,2,0]; @p=[0,2,1] @q=[0,2,1]; x=[N,4] @p=[1,0] @q=[1,0]"},
    {"transpose-back", "Transpose<perm = @p>(~Transpose<perm = @q>(x))", "x",
     .where = transposes_back, .level = 1,
     .sample = "@p=[2,0,1] @q=[1,2,0]; x=[N,4] @p=[1,0] @q=[1,0]"},
    {"gather-transpose", "Gather<axis = @a>(Transpose<perm = @p>(x), %i)",
     "Transpose<perm = @q>(Gather<axis = @b>(x, i))", .where = gathers_transposed,
     .build = transpose_gathered, .level = 1,
     .sample = "x=[3,N,8] %i=A[] @p=[1,0,2] @a=1; x=[3,4,N] %i=int64{1,-1} @p=[2,0,1] @a=-1; "
               "x=[3,4,N] %i=A[] @p=[1,2,0] @a=0"},
    {"reshape-reshape", "Reshape(Reshape(x, %s), %t)", "Reshape(x, t)", .where = has_no_zero,
     .level = 1, .sample = "%s=int64{2,-1} x=[N,2,6] %t=int64{3,-1}"},
    {"reshape-flatten", "Reshape(Flatten(x), %t)", "Reshape(x, t)", .where = has_no_zero,
     .level = 1, .sample = "x=[1,4,6] %t=int64{3,8}"},
    {"reshape-squeeze", "Reshape(Squeeze|Unsqueeze(x, %s), %t)", "Reshape(x, t)",
     .where = has_no_zero, .level = 1, .sample = "%s=int64{0} x=[1,4,6] %t=int64{3,8}"},
    {"noop-pad", "Pad(x, %pads, v?, axes?)", "x", .where = pads_nothing, .level = 1,
     .sample = "%pads=int64{0,0,0,0,0,0} v=[] axes=int64{0,1,2}"},
    {"noop-slice", "Slice(x, starts, ends, axes?, steps?)", "x", .where = takes_all, .level = 1,
     .sample = "starts=int64{0,0} ends=int64{3,8} axes=int64{1,2} steps=int64{1,1}"},
    {"reshape-known", "Reshape(x, s)", "Reshape(x, t)", .where = shape_can_be_told,
     .build = tell_shape, .level = 1, .sample = "x=[N,3,8] s=Shape(x)"},
    {"cast-like", "CastLike<saturate = @s>(x, y)", "Cast<to = @to, saturate = @s>(x)",
     .where = knows_type, .build = bind_type, .level = 1, .sample = "y=[]"},
    {"rows-like",
     "Gather<axis = 0>(%table, ~Slice(%ids, [0], ~Shape<start = @from, end = @to>(x), [1], [1]?))",
     "ai.sinter.SliceLike<axis = 1, like_axis = @from>(rows, x)", .where = counts_rows,
     .build = bind_rows, .level = 2, .sample = "%table=[9,4] %ids=A[1,8] x=[N,S] @from=1 @to=2"},
    {0},
};
