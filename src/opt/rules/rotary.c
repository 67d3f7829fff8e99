/* rotary.c - rotary positions as exporters spell them out, x * cos + rotated(x) * sin, where
 * rotated(x) is (-x2, x1) of the halves of a head or of each pair of its elements, become
 * RotaryEmbedding. That has one cosine and one sine for both elements of a pair, so that those of
 * the pattern must be known to come twice. */
#include "opt/rules/rules.h"

enum { DEPTH = 16 }; /* nodes between cosines and where they are doubled */

/* ---- Cosines and sines that come twice ---- */

static int64_t last_of(const sni_type *t) {
    return t->has_shape && t->rank > 0 ? t->dims[t->rank - 1] : -1;
}

static bool is_doubled_const(sni_const *c, bool pairs) {
    const sni_tensor *t;
    if (c->tensor.dtype != SN_FLOAT32 || c->tensor.rank < 1 || sni_const_load(c, &t, NULL) != SN_OK)
        return false;
    int64_t width = t->dims[t->rank - 1], half = width / 2;
    const float *x = t->data;
    for (int64_t at = 0; at + width <= t->count && width > 0; at += width)
        for (int64_t i = 0; i < half; i++)
            if (pairs ? x[at + 2 * i] != x[at + 2 * i + 1] : x[at + i] != x[at + half + i])
                return false;
    return true;
}

static bool is_one_of(const sni_node *n, const char *const *names) {
    for (; *names; names++)
        if (!n->domain.n && sni_str_is(n->type, *names)) return true;
    return false;
}

static int64_t axis_of(const sni_node *n, int rank) {
    const sni_attr *a = sni_node_attr(n, "axis");
    int64_t axis = a ? a->u.i : 0;
    return axis < 0 ? axis + rank : axis;
}

/* A Slice that leaves the last axis alone. */
static bool keeps_last(const sni_graph *g, const sni_node *n, int rank) {
    sni_const *axes = n->n_in > 3 ? sni_value_const(g, n->in[3]) : NULL;
    const sni_tensor *t;
    if (!axes || axes->tensor.dtype != SN_INT64 || sni_const_load(axes, &t, NULL) != SN_OK)
        return false;
    for (int64_t i = 0; i < t->count; i++) {
        int64_t axis = ((const int64_t *)t->data)[i];
        if (axis == -1 || axis == rank - 1) return false;
    }
    return true;
}

static bool is_doubled(const sni_graph *g, int32_t id, bool pairs, int depth);

/* The same input twice: side by side, or on an axis of their own that was then dissolved. */
static bool is_doubling(const sni_graph *g, const sni_node *n, bool pairs) {
    const sni_type *y = &sni_graph_value(g, n->out[0])->type;
    if (pairs && !n->domain.n && sni_str_is(n->type, "Reshape")) {
        const sni_value *x = sni_graph_value(g, n->in[0]);
        const sni_node *from = sni_value_producer(g, x);
        return from && last_of(&x->type) == 2 && last_of(y) > 1 && is_doubling(g, from, false);
    }
    return !pairs && !n->domain.n && sni_str_is(n->type, "Concat") && n->n_in == 2 &&
           n->in[0] == n->in[1] && y->has_shape && axis_of(n, y->rank) == y->rank - 1;
}

static bool is_moved(const sni_graph *g, const sni_node *n, const sni_type *x) {
    static const char *const rows[] = {"Reshape", "Unsqueeze", "Squeeze", "Expand", "Identity",
                                       "Cos",     "Sin",       "Cast",    "Neg",    NULL};
    if (is_one_of(n, rows)) return true;
    if (n->domain.n || !x->has_shape) return false;
    if (sni_str_is(n->type, "Gather")) return axis_of(n, x->rank) < x->rank - 1;
    if (sni_str_is(n->type, "Slice")) return keeps_last(g, n, x->rank);
    if (!sni_str_is(n->type, "Transpose")) return false;
    const sni_attr *p = sni_node_attr(n, "perm");
    return p && p->count == (size_t)x->rank && p->u.ints[x->rank - 1] == x->rank - 1;
}

/* True if rows of a value's last axis hold everything twice: the halves are the same or, with
 * `pairs`, elements 2 i and 2 i + 1 are. */
static bool is_doubled(const sni_graph *g, int32_t id, bool pairs, int depth) {
    static const char *const scaled[] = {"Mul", "Div", NULL};
    const sni_value *v = sni_graph_value(g, id);
    sni_const *c = sni_value_const(g, id);
    const sni_node *n = v ? sni_value_producer(g, v) : NULL;
    double number;
    if (c) return is_doubled_const(c, pairs);
    if (!n || depth == DEPTH || n->n_in < 1) return false;
    if (is_doubling(g, n, pairs)) return true;
    const sni_value *x = sni_graph_value(g, n->in[0]);
    if (!x || last_of(&x->type) != last_of(&v->type) || last_of(&v->type) < 2) return false;
    if (is_one_of(n, scaled) ? sni_value_scalar(g, n->in[1], &number) : is_moved(g, n, &x->type))
        return is_doubled(g, n->in[0], pairs, depth + 1);
    return false;
}

/* ---- Matching ---- */

/* Where x has its positions: axis 2 of (batch, heads, length, size) or 1 of (batch, length, heads,
 * size). */
static bool fits(const sni_match *m, const char *name, int axis, int64_t size) {
    const sni_type *x = sni_match_type(m, "x"), *c = sni_match_type(m, name);
    if (!c->has_shape || c->rank < 2 || c->rank > 4 || c->dtype != SN_FLOAT32) return false;
    int lead = 4 - c->rank;
    if (lead > axis || last_of(c) != size || c->dims[axis - lead] != x->dims[axis]) return false;
    for (int i = lead; i < 3; i++) {
        sni_dim d = c->dims[i - lead];
        if (i != axis && d != 1 && !(i == 0 && d == x->dims[0])) return false;
    }
    return true;
}

static bool is_number(const sni_match *m, const char *name, int64_t least, int64_t most) {
    const sni_tensor *t = sni_match_const(m, name);
    int64_t v;
    if (!t || t->dtype != SN_INT64 || t->count != 1) return false;
    memcpy(&v, t->data, sizeof v);
    return v >= least && v <= most;
}

static bool is_rotated(sni_match *m, int axis, bool pairs, bool whole) {
    const sni_type *x = sni_match_type(m, "x");
    int64_t size = last_of(x);
    if (!x->has_shape || x->rank != 4 || x->dtype != SN_FLOAT32 || size < 2 || size % 2)
        return false;
    if (!pairs && !is_number(m, "h", size / 2, size / 2)) return false;
    if (!is_number(m, "e", size, INT64_MAX)) return false;
    if (pairs && (!is_number(m, "f", size - 1, INT64_MAX) ||
                  !(is_number(m, "u", -1, -1) || is_number(m, "u", 4, 4))))
        return false;
    if (!fits(m, "c", axis, whole ? size : size / 2) ||
        !fits(m, "s", axis, whole ? size : size / 2))
        return false;
    return !whole || (is_doubled(m->g, sni_match_value(m, "c"), pairs, 0) &&
                      is_doubled(m->g, sni_match_value(m, "s"), pairs, 0));
}

static bool halves_of_heads(sni_match *m) {
    return is_rotated(m, 2, false, true);
}

static bool halves_of_rows(sni_match *m) {
    return is_rotated(m, 1, false, true);
}

static bool pairs_of_heads(sni_match *m) {
    return is_rotated(m, 2, true, true);
}

static bool pairs_of_rows(sni_match *m) {
    return is_rotated(m, 1, true, true);
}

static bool parts_of_heads(sni_match *m) {
    return is_rotated(m, 2, false, false);
}

static bool parts_of_rows(sni_match *m) {
    return is_rotated(m, 1, false, false);
}

/* ---- Building ---- */

static sn_status one_axis(sni_match *m, const char *op, int32_t *id, int64_t axis) {
    int32_t axes = SNI_NO_ID;
    SN_TRY(sni_match_list(m, 1, &axis, &axes));
    return sni_match_new_node(m, op, (int32_t[]){*id, axes}, 2, NULL, 0, id);
}

/* (1, length, half) repeated for every batch of x. */
static sn_status for_batches(sni_match *m, int32_t *id) {
    sni_dim batches = sni_match_type(m, "x")->dims[0];
    int64_t ones[3] = {batches, 1, 1};
    int32_t shape = SNI_NO_ID, x = sni_match_value(m, "x"), count = SNI_NO_ID, rest = SNI_NO_ID;
    if (sni_graph_value(m->g, *id)->type.dims[0] == batches) return SN_OK;
    if (sni_dim_known(batches)) {
        SN_TRY(sni_match_list(m, 3, ones, &shape));
    } else {
        sni_attr first[] = {sni_attr_of_int("start", 0), sni_attr_of_int("end", 1)};
        sni_attr axis = sni_attr_of_int("axis", 0);
        SN_TRY(sni_match_new_node(m, "Shape", &x, 1, first, 2, &count));
        SN_TRY(sni_match_list(m, 2, ones + 1, &rest));
        SN_TRY(sni_match_new_node(m, "Concat", (int32_t[]){count, rest}, 2, &axis, 1, &shape));
    }
    return sni_match_new_node(m, "Expand", (int32_t[]){*id, shape}, 2, NULL, 0, id);
}

/* Binds `to`: the cosines or sines `from`, each once, as (batch, length, half). */
static sn_status bind_angles(sni_match *m, const char *from, const char *to, int axis,
                             int64_t step) {
    int32_t id = sni_match_value(m, from), in[5];
    const sni_type *c = sni_match_type(m, from);
    int64_t size = last_of(sni_match_type(m, "x"));
    int lead = 4 - c->rank, heads = axis == 2 ? 1 : 2;
    bool whole = last_of(c) == size;
    if (whole) {
        in[0] = id;
        SN_TRY(sni_match_list(m, 1, &(int64_t){0}, &in[1]));
        SN_TRY(sni_match_list(m, 1, &(int64_t){step == 2 ? size : size / 2}, &in[2]));
        SN_TRY(sni_match_list(m, 1, &(int64_t){-1}, &in[3]));
        SN_TRY(sni_match_list(m, 1, &step, &in[4]));
        SN_TRY(sni_match_new_node(m, "Slice", in, step == 1 ? 4 : 5, NULL, 0, &id));
    }
    if (lead <= heads && !(lead == 1 && heads == 1))
        SN_TRY(one_axis(m, "Squeeze", &id, heads - lead));
    if (lead == 2 || (lead == 1 && heads == 2)) SN_TRY(one_axis(m, "Unsqueeze", &id, 0));
    SN_TRY(for_batches(m, &id));
    return sni_match_set_value(m, to, id);
}

static sn_status bind_all(sni_match *m, int axis, int64_t step) {
    const sni_type *x = sni_match_type(m, "x");
    SN_TRY(bind_angles(m, "c", "c2", axis, step));
    SN_TRY(bind_angles(m, "s", "s2", axis, step));
    if (axis == 2) return SN_OK;
    int64_t shape[4] = {0, 0, x->dims[2], x->dims[3]};
    SN_TRY(sni_match_new_ints(m, "r", 4, shape));
    return sni_match_set_attr(m, "heads", sni_attr_of_int("heads", x->dims[2]));
}

static sn_status bind_heads(sni_match *m) {
    return bind_all(m, 2, 1);
}

static sn_status bind_rows(sni_match *m) {
    return bind_all(m, 1, 1);
}

static sn_status bind_paired_heads(sni_match *m) {
    return bind_all(m, 2, 2);
}

static sn_status bind_paired_rows(sni_match *m) {
    return bind_all(m, 1, 2);
}

/* ---- Around it ---- */

/* The first r of the last axis are rotated and the others stand as they were. */
static bool is_part(sni_match *m) {
    const sni_tensor *r = sni_match_const(m, "r");
    const sni_type *x = sni_match_type(m, "x");
    const sni_attr *part = sni_match_attr(m, "part");
    int64_t v;
    if (!r || r->dtype != SN_INT64 || r->count != 1 || x->rank != 4 || (part && part->u.i))
        return false;
    memcpy(&v, r->data, sizeof v);
    return v >= 2 && v < last_of(x) && v % 2 == 0 && is_number(m, "e", last_of(x), INT64_MAX);
}

static sn_status bind_part(sni_match *m) {
    int64_t v;
    memcpy(&v, sni_match_const(m, "r")->data, sizeof v);
    return sni_match_set_attr(m, "size", sni_attr_of_int("size", v));
}

/* x is (batch, length, heads * size) and becomes (batch, length, heads, size). */
static bool splits(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    const sni_type *y = &sni_graph_value(m->g, sni_match_node(m, "h")->out[0])->type;
    return x->has_shape && y->has_shape && x->rank == 3 && y->rank == 4 && y->dims[2] > 0 &&
           y->dims[3] > 0 && x->dims[0] == y->dims[0] && x->dims[1] == y->dims[1] &&
           x->dims[2] == y->dims[2] * y->dims[3];
}

static sn_status bind_split(sni_match *m) {
    const sni_type *y = &sni_graph_value(m->g, sni_match_node(m, "h")->out[0])->type;
    int64_t shape[4] = {0, 0, y->dims[2], y->dims[3]};
    SN_TRY(sni_match_new_ints(m, "t", 4, shape));
    return sni_match_set_attr(m, "heads", sni_attr_of_int("heads", y->dims[2]));
}

#define TURN_HALVES \
    "Concat<axis = -1>(Neg(Slice(x, %h, %e, [-1], [1]?)), Slice(x, [0], %h, [-1], [1]?))"
#define TURN_PAIRS                                                                 \
    "Reshape(Concat<axis = -1>(Unsqueeze(Neg(Slice(x, [1], %e, [-1], [2])), %u), " \
    "Unsqueeze(Slice(x, [0], %f, [-1], [2]), %u)), t)"
#define ROTATED(rotated) "Add(Mul(x, c), Mul(" rotated ", s))"
#define ONE "Slice(x, [0], %h, [-1], [1]?)"
#define TWO "Slice(x, %h, %e, [-1], [1]?)"
#define PARTS \
    "Concat<axis = -1>(Sub(Mul(~a:" ONE ", c), Mul(~b:" TWO ", s)), Add(Mul(b, c), Mul(a, s)))"
#define HEADS(more) "RotaryEmbedding" more "(x, c2, s2)"
#define ROWS(more) \
    "Reshape(RotaryEmbedding<" more "num_heads = @heads>(Reshape(x, [0, 0, -1]), c2, s2), r)"
#define HALVES "%h=int64{4} %e=int64{9223372036854775807} "
#define PAIRS "%e=int64{9223372036854775807} %f=int64{8} %u=int64{-1} "

const sni_rule sni_rules_rotary[] = {
    {"rotary-halves", ROTATED(TURN_HALVES), HEADS(""), .where = halves_of_heads,
     .build = bind_heads,
     .sample = "x=[N,3,S,8] c=2x[N,1,S,4] s=2x[N,1,S,4] " HALVES
               "; x=[N,3,S,8] c=2x[1,1,S,4] s=2x[1,S,4] " HALVES
               "; x=[2,3,5,8] c=2x[5,4] s=2x[1,1,5,4] " HALVES},
    {"rotary-halves-rows", ROTATED(TURN_HALVES), ROWS(""), .where = halves_of_rows,
     .build = bind_rows,
     .sample = "x=[N,S,3,8] c=2x[N,S,1,4] s=2x[N,S,1,4] " HALVES
               "; x=[N,S,3,8] c=2x[1,S,1,4] s=2x[S,1,4] " HALVES},
    {"rotary-pairs", ROTATED(TURN_PAIRS), HEADS("<interleaved = 1>"), .where = pairs_of_heads,
     .build = bind_paired_heads,
     .sample = "x=[N,3,S,8] c=x2[N,1,S,4] s=x2[1,1,S,4] t=int64{0,0,0,8} " PAIRS},
    {"rotary-pairs-rows", ROTATED(TURN_PAIRS), ROWS("interleaved = 1, "), .where = pairs_of_rows,
     .build = bind_paired_rows,
     .sample = "x=[N,S,3,8] c=x2[N,S,1,4] s=x2[1,S,1,4] t=int64{0,0,0,8} " PAIRS},
    {"rotary-parts", PARTS, HEADS(""), .where = parts_of_heads, .build = bind_heads,
     .sample =
         "x=[N,3,S,8] c=[N,1,S,4] s=[N,1,S,4] " HALVES "; x=[N,3,S,8] c=[S,4] s=[1,S,4] " HALVES},
    {"rotary-parts-rows", PARTS, ROWS(""), .where = parts_of_rows, .build = bind_rows,
     .sample = "x=[N,S,3,8] c=[N,S,1,4] s=[S,1,4] " HALVES},
    {"rotary-part",
     "Concat<axis = -1>(y:RotaryEmbedding<rotary_embedding_dim = @part>(Slice(x, [0], %r, [-1], "
     "[1]?), c, s), Slice(x, %r, %e, [-1], [1]?))",
     "RotaryEmbedding<*y, rotary_embedding_dim = @size>(x, c, s)", .where = is_part,
     .build = bind_part, .sample = "x=[2,3,5,8] %r=int64{6} %e=int64{8} c=[2,5,3] s=[2,5,3]"},
    {"rotary-split-heads",
     "y:RotaryEmbedding<interleaved = @i>(Transpose<perm = [0, 2, 1, 3]>(h:Reshape(x, z)), c, s)",
     "Transpose<perm = [0, 2, 1, 3]>(Reshape(RotaryEmbedding<*y, num_heads = @heads>(x, c, s), t))",
     .where = splits, .build = bind_split,
     .sample = "x=[N,S,24] z=int64{0,0,3,8} c=[N,S,4] s=[N,S,4]; x=[2,5,24] z=int64{0,0,3,8} "
               "c=[2,5,4] s=[2,5,4] @i=1"},
    {0},
};
