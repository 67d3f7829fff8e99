/* attention.c - softmax(scale Q K^T + mask) V as exporters spell it out becomes the operator
 * Attention in three steps: the scores and what is done to them become one node on (batch, heads,
 * length, size); then it takes in scales and caches around it; then the reshapes and transposes
 * that make heads. */
#include "opt/rules/rules.h"

/* ---- Scores ---- */

static bool is_heads(const sni_type *t) {
    return t->has_shape && t->rank == 4 && t->dtype == SN_FLOAT32;
}

static bool is_known_4d(const sni_match *m, const char *name) {
    return is_heads(sni_match_type(m, name));
}

/* A Reshape of an expansion repeats each head of x, (B, K, L, D), to (B, K * G, L, D). */
static bool repeats_heads(const sni_graph *g, const sni_node *reshape, const sni_type *x) {
    const sni_type *wide = &sni_graph_value(g, reshape->in[0])->type;
    const sni_type *y = &sni_graph_value(g, reshape->out[0])->type;
    if (!is_heads(x) || !is_heads(y) || !wide->has_shape || wide->rank != 5 || x->dims[1] < 1 ||
        wide->dims[2] < 1)
        return false;
    return wide->dims[0] == x->dims[0] && wide->dims[1] == x->dims[1] &&
           wide->dims[3] == x->dims[2] && wide->dims[4] == x->dims[3] && y->dims[0] == x->dims[0] &&
           y->dims[1] == x->dims[1] * wide->dims[2] && y->dims[2] == x->dims[2] &&
           y->dims[3] == x->dims[3];
}

static const sni_type *scores_type(const sni_match *m) {
    return &sni_graph_value(m->g, sni_match_node(m, "s")->out[0])->type;
}

/* Queries, keys and values of 4 axes; batches and heads are the same, not repeated. */
static bool is_attention(sni_match *m) {
    const sni_type *q = sni_match_type(m, "q"), *v = sni_match_type(m, "v");
    const sni_type *s = scores_type(m);
    if (!is_known_4d(m, "q") || !is_known_4d(m, "v") || !s->has_shape || s->rank != 4) return false;
    const char *key = sni_match_value(m, "r") == SNI_NO_ID ? "k" : "r";
    const sni_type *k = sni_match_type(m, key);
    int heads = key[0] == 'k' ? 1 : 2;
    return is_known_4d(m, key) && q->dims[0] == k->dims[0] && q->dims[1] == k->dims[heads] &&
           q->dims[0] == v->dims[0] && q->dims[1] == v->dims[1];
}

static double number_or(const sni_match *m, const char *name, double otherwise) {
    return sni_match_value(m, name) == SNI_NO_ID ? otherwise : sni_match_number(m, name);
}

/* The product of all factors: #mul and #km multiply, #div and #kd divide. */
static sn_status bind_scale(sni_match *m) {
    double scale = number_or(m, "mul", 1) / number_or(m, "div", 1) * number_or(m, "km", 1) /
                   number_or(m, "kd", 1);
    return sni_match_set_number(m, "scale", scale);
}

/* The mask stretches to the scores, not the scores to the mask; the operator takes a last axis that
 * is shorter for padding, so that it has to be there in full. */
static bool mask_fits(const sni_match *m, const char *name) {
    const sni_type *t = sni_match_type(m, name), *s = scores_type(m);
    if (!t->has_shape || t->rank < 1 || t->rank > 4) return false;
    for (int i = 0; i < t->rank; i++) {
        sni_dim d = t->dims[t->rank - 1 - i], full = s->dims[3 - i];
        if (d != full && (d != 1 || i == 0)) return false;
    }
    return true;
}

static bool is_masked(sni_match *m) {
    return is_attention(m) && mask_fits(m, "mask") &&
           sni_match_type(m, "mask")->dtype == SN_FLOAT32;
}

/* So far below 0 that a score added to it is lost in rounding. */
static bool is_chosen(sni_match *m) {
    return is_attention(m) && mask_fits(m, "mask") && sni_match_number(m, "low") <= -1e8;
}

/* A positive factor of scores and mask: it keeps what is hidden hidden. */
static bool is_late_scale(sni_match *m) {
    double c = number_or(m, "mul", 1) / number_or(m, "div", 1);
    return c > 0 && c < 1e6 && sni_match_type(m, "mask")->dtype == SN_FLOAT32;
}

static sn_status bind_late_scale(sni_match *m) {
    return sni_match_set_number(m, "t", number_or(m, "mul", 1) / number_or(m, "div", 1));
}

/* ---- Masks that are as long as the keys, or 1, whichever it will be ---- */

/* The scores keep their shape, since there is a value for each; so the mask stretches to them. */
static bool is_open_mask(sni_match *m, bool truth) {
    const sni_type *t = sni_match_type(m, "mask"), *s = scores_type(m);
    if (!is_attention(m) || sni_match_value(m, "r") != SNI_NO_ID || !t->has_shape || t->rank < 1 ||
        t->rank > 4 || t->dtype != (truth ? SN_BOOL : SN_FLOAT32))
        return false;
    for (int i = 1; i < t->rank; i++) {
        sni_dim d = t->dims[t->rank - 1 - i];
        if (d != s->dims[3 - i] && d != 1) return false;
    }
    sni_dim last = t->dims[t->rank - 1];
    return sni_dim_is_symbol(last) && last != s->dims[3] &&
           sni_match_type(m, "v")->dims[2] == s->dims[3];
}

static bool is_open_masked(sni_match *m) {
    return is_open_mask(m, false);
}

static bool is_open_chosen(sni_match *m) {
    return sni_match_number(m, "low") <= -1e8 && is_open_mask(m, true);
}

static const sni_node *made_by(const sni_graph *g, int32_t id, const char *op) {
    const sni_value *v = sni_graph_value(g, id);
    const sni_node *n = v ? sni_value_producer(g, v) : NULL;
    return n && !n->domain.n && sni_str_is(n->type, op) ? n : NULL;
}

/* What heads are repeated from; the value itself if they are not. */
static int32_t not_repeated(const sni_graph *g, int32_t id) {
    const sni_node *reshape = made_by(g, id, "Reshape");
    const sni_node *expand = reshape ? made_by(g, reshape->in[0], "Expand") : NULL;
    const sni_node *wide = expand ? made_by(g, expand->in[0], "Unsqueeze") : NULL;
    if (!wide || !repeats_heads(g, reshape, &sni_graph_value(g, wide->in[0])->type)) return id;
    return wide->in[0];
}

/* *out: how many keys there are. What a cache and new keys are joined to may become a result of the
 * very node that is masked, so that each is asked for itself. */
static sn_status count_keys(sni_match *m, int32_t *out) {
    sni_attr axis[] = {sni_attr_of_int("start", 2), sni_attr_of_int("end", 3)};
    int32_t id = not_repeated(m->g, sni_match_value(m, "k"));
    const sni_node *join = made_by(m->g, id, "Concat");
    const sni_attr *along = join ? sni_node_attr(join, "axis") : NULL;
    if (!join || join->n_in != 2 || !along || (along->u.i != 2 && along->u.i != -2))
        return sni_match_new_node(m, "Shape", &id, 1, axis, 2, out);
    int32_t part[2], in[2] = {join->in[0], join->in[1]};
    for (int i = 0; i < 2; i++)
        SN_TRY(sni_match_new_node(m, "Shape", &in[i], 1, axis, 2, &part[i]));
    return sni_match_new_node(m, "Add", part, 2, NULL, 0, out);
}

static sn_status bind_open_mask(sni_match *m) {
    int32_t in[2] = {sni_match_value(m, "mask"), SNI_NO_ID}, wide = SNI_NO_ID;
    SN_TRY(count_keys(m, &in[1]));
    SN_TRY(sni_match_new_node(m, "Expand", in, 2, NULL, 0, &wide));
    SN_TRY(sni_match_set_value(m, "wide", wide));
    return bind_scale(m);
}

/* Batches of one head: (batch, length, size). */
static bool is_single(sni_match *m) {
    const sni_type *q = sni_match_type(m, "q"), *v = sni_match_type(m, "v"), *s = scores_type(m);
    const char *key = sni_match_value(m, "r") == SNI_NO_ID ? "k" : "r";
    const sni_type *k = sni_match_type(m, key);
    if (!q->has_shape || !k->has_shape || !v->has_shape || !s->has_shape) return false;
    if (q->rank != 3 || k->rank != 3 || v->rank != 3 || q->dtype != SN_FLOAT32) return false;
    return q->dims[0] == k->dims[key[0] == 'r'] && q->dims[0] == v->dims[0];
}

static bool fits_single(const sni_match *m, int rank) {
    const sni_type *t = sni_match_type(m, "mask"), *s = scores_type(m);
    if (!t->has_shape || t->dtype != SN_FLOAT32 || t->rank != rank) return false;
    for (int i = 0; i < rank; i++) {
        sni_dim d = t->dims[rank - 1 - i];
        if (d != s->dims[2 - i] && (d != 1 || i == 0)) return false;
    }
    return true;
}

static bool is_single_masked(sni_match *m) {
    return is_single(m) && (fits_single(m, 1) || fits_single(m, 2));
}

static bool is_single_batch_masked(sni_match *m) {
    return is_single(m) && fits_single(m, 3);
}

/* ---- Causal masks: a slice of a constant lower triangle ---- */

/* Element 0 of a list that inference has followed. */
static bool dim_value(const sni_match *m, const char *name, sni_dim *out) {
    const sni_value *v = sni_graph_value(m->g, sni_match_value(m, name));
    const sni_tensor *t = sni_match_const(m, name);
    if (t && t->dtype == SN_INT64 && t->count == 1) {
        memcpy(out, t->data, sizeof *out);
        return true;
    }
    if (!v || !v->shape_value || v->shape_count != 1) return false;
    *out = v->shape_value[0];
    return true;
}

static bool is_triangle(const sni_match *m, const char *name) {
    const sni_tensor *t = sni_match_const(m, name);
    if (!t || t->dtype != SN_BOOL || t->rank < 2) return false;
    int64_t rows = t->dims[t->rank - 2], columns = t->dims[t->rank - 1];
    if (rows != columns || t->count != rows * columns || rows < 1) return false;
    const unsigned char *first = t->data, *last = first + (rows - 1) * columns;
    for (int64_t j = 0; j < columns; j++)
        if (last[j] != 1 || first[j] != (j == 0)) return false;
    for (int64_t i = 0; i < rows; i++) {
        const unsigned char *row = first + i * columns;
        if (memcmp(row, last, (size_t)i + 1) != 0) return false;
        if (i + 1 < columns && memcmp(row + i + 1, first + 1, (size_t)(columns - i - 1)) != 0)
            return false;
    }
    return true;
}

/* Rows [total - new, total) and columns [0, total) of a lower triangle, where `total` keys meet
 * `new` queries. */
static bool is_causal(sni_match *m) {
    sni_dim row, row_end, column, column_end;
    const sni_type *s = scores_type(m);
    if (!is_attention(m) || sni_match_number(m, "low") > -1e4) return false;
    if (!dim_value(m, "r0", &row) || !dim_value(m, "r1", &row_end) ||
        !dim_value(m, "c0", &column) || !dim_value(m, "c1", &column_end))
        return false;
    sni_dim total = s->dims[3], first = sni_dim_sub(m->g->symbols, total, s->dims[2]);
    return column == 0 && column_end == total && row_end == total && row == first &&
           is_triangle(m, "seen");
}

static bool is_causal_alone(sni_match *m) {
    return is_causal(m) && scores_type(m)->dims[2] == scores_type(m)->dims[3];
}

/* ---- Heads ---- */

/* Reshape `node` makes (B, S, heads, size) of `name`, (B, S, heads * size). */
static bool splits_heads(const sni_match *m, const char *node, const char *name, int64_t *heads) {
    const sni_type *x = sni_match_type(m, name);
    const sni_type *y = &sni_graph_value(m->g, sni_match_node(m, node)->out[0])->type;
    if (!x->has_shape || !y->has_shape || x->rank != 3 || y->rank != 4) return false;
    if (x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1] || y->dims[2] < 1 || y->dims[3] < 1)
        return false;
    *heads = y->dims[2];
    return x->dims[2] == y->dims[2] * y->dims[3];
}

static bool has_heads(sni_match *m) {
    int64_t q, k, v;
    const sni_type *y = &sni_graph_value(m->g, m->root->out[0])->type;
    return splits_heads(m, "qs", "q", &q) && splits_heads(m, "ks", "k", &k) &&
           splits_heads(m, "vs", "v", &v) && k == v && y->has_shape && y->rank == 3;
}

static sn_status bind_heads(sni_match *m) {
    int64_t q = 1, k = 1;
    splits_heads(m, "qs", "q", &q);
    splits_heads(m, "ks", "k", &k);
    SN_TRY(sni_match_set_attr(m, "qh", sni_attr_of_int("qh", q)));
    return sni_match_set_attr(m, "kh", sni_attr_of_int("kh", k));
}

/* The scale of an Attention with queries of 4 axes; the default is 1 / sqrt(head size). */
static bool has_scale(sni_match *m) {
    return sni_match_attr(m, "scale") != NULL;
}

static sn_status multiply_scale(sni_match *m) {
    const sni_attr *a = sni_match_attr(m, "scale");
    double c = number_or(m, "mul", 1) / number_or(m, "div", 1);
    return sni_match_set_number(m, "t", (double)a->u.f * c);
}

/* Caches of 4 axes. */
static bool has_cache(sni_match *m) {
    return is_known_4d(m, "pk") && is_known_4d(m, "pv");
}

static bool has_groups(sni_match *m) {
    return repeats_heads(m->g, sni_match_node(m, "kr"), sni_match_type(m, "k")) &&
           repeats_heads(m->g, sni_match_node(m, "vr"), sni_match_type(m, "v"));
}

/* ---- Queries, keys and values of one product: (B, S, 3, heads, size), and one of the three ----
 */

static const sni_type *packed_type(const sni_match *m) {
    return &sni_graph_value(m->g, sni_match_node(m, "p")->out[0])->type;
}

static bool is_packed(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x"), *t = packed_type(m);
    if (!x->has_shape || x->rank != 3 || !t->has_shape || t->rank != 5) return false;
    return x->dims[0] == t->dims[0] && x->dims[1] == t->dims[1] && t->dims[2] == 3 &&
           t->dims[3] > 0 && t->dims[4] > 0 && x->dims[2] == 3 * t->dims[3] * t->dims[4];
}

static bool is_packed_choice(sni_match *m) {
    double i = sni_match_number(m, "i");
    return is_packed(m) && i >= 0 && i <= 2;
}

static sn_status bind_part(sni_match *m, int64_t i) {
    const sni_type *t = packed_type(m);
    int64_t width = t->dims[3] * t->dims[4], from = i * width, to = from + width;
    int64_t shape[4] = {0, 0, t->dims[3], t->dims[4]};
    SN_TRY(sni_match_new_ints(m, "from", 1, &from));
    SN_TRY(sni_match_new_ints(m, "to", 1, &to));
    return sni_match_new_ints(m, "shape", 4, shape);
}

static sn_status bind_choice(sni_match *m) {
    return bind_part(m, (int64_t)sni_match_number(m, "i"));
}

static sn_status bind_first(sni_match *m) {
    return bind_part(m, 0);
}

static sn_status bind_second(sni_match *m) {
    return bind_part(m, 1);
}

static sn_status bind_third(sni_match *m) {
    return bind_part(m, 2);
}

/* ---- Windows: the mask is added while windows stand on an axis of their own ---- */

static bool is_window_mask(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    const sni_type *t = &sni_graph_value(m->g, sni_match_node(m, "w")->out[0])->type;
    const sni_const *c = sni_value_const(m->g, sni_match_value(m, "mask"));
    const sni_type *y = &sni_graph_value(m->g, m->root->out[0])->type;
    if (!sni_types_equal(x, y) || x->rank != 4 || !t->has_shape || t->rank != 5 ||
        t->dims[0] != 1 || !c || c->tensor.rank != 5 || c->tensor.dims[0] != 1 ||
        c->tensor.dtype != SN_FLOAT32)
        return false;
    for (int i = 0; i < 4; i++)
        if (t->dims[i + 1] != x->dims[i]) return false;
    return true;
}

static sn_status bind_window_mask(sni_match *m) {
    const sni_tensor *t = sni_match_const(m, "mask");
    float *data;
    if (!t) return sni_fail(m->r->err, SN_INTERNAL, "a constant is no longer there");
    SN_TRY(sni_match_new_floats(m, "flat", 4, t->dims + 1, &data));
    if (t->count) memcpy(data, t->data, (size_t)t->count * sizeof *data);
    return SN_OK;
}

/* Both constants are small enough for their sum to be kept. A single number is left to
 * activations that begin with one. */
static bool are_small(sni_match *m) {
    const sni_const *a = sni_value_const(m->g, sni_match_value(m, "a"));
    const sni_const *b = sni_value_const(m->g, sni_match_value(m, "b"));
    const sni_type *y = &sni_graph_value(m->g, m->root->out[0])->type;
    return a && b && a->tensor.count <= 1 << 22 && b->tensor.count <= 1 << 22 &&
           b->tensor.count > 1 && y->dtype == SN_FLOAT32;
}

#define KEYS                                                                              \
    "{Transpose<perm = [0, 1, 3, 2]>(k) | Mul(Transpose<perm = [0, 1, 3, 2]>(k), #km) | " \
    "Div(Transpose<perm = [0, 1, 3, 2]>(k), #kd)}"
#define TRANSPOSED                                                                        \
    "{Transpose<perm = [0, 2, 3, 1]>(r) | Mul(Transpose<perm = [0, 2, 3, 1]>(r), #km) | " \
    "Div(Transpose<perm = [0, 2, 3, 1]>(r), #kd)}"
#define SCORES(keys)                                                                          \
    "{s:MatMul(q, " keys ") | Div(s:MatMul(q, " keys "), #div) | Mul(s:MatMul(q, " keys "), " \
    "#mul)}"
#define WEIGH(scores) "MatMul(p:Softmax<axis = -1>(" scores "), v)"
#define LATER "Transpose<perm = [0, 2, 1, 3]>(r)"
#define NODE(k, more) "Attention<scale = #scale>(q, " k ", v" more ")"
#define HEADS "q=[N,2,S,4] k=[N,2,7,4] r=[N,7,2,4] v=[N,2,7,4] #mul=0.5 #div=2.0 #km=0.5 #kd=2.0 "
#define OPEN "q=[2,2,S,4] k=[2,2,X,4] v=[2,2,X,4] #mul=0.5 #div=2.0 #km=0.5 #kd=2.0 "
#define SEEN "~Slice(~Slice(%seen, r0, r1, [2], [1]?), c0, c1, [3], [1]?)"
#define PAST_KEYS "Transpose<perm = [0, 1, 3, 2]>(kc:Concat<axis = -2>(pk, k))"

#define MERGE(x) "Transpose<perm = [0, 2, 1, 3]>(" x ")"
#define ONE_OF "Transpose<perm = [2, 0, 3, 1, 4]>(~p:Reshape(x, h))"
#define PART MERGE("Reshape(Slice(x, from, to, [-1]), shape)")
#define PACKED "x=[N,S,24] h=int64{0,0,3,2,4} sizes=int64{1,1,1}"

#define KEYS_3D "Transpose<perm = [0, 2, 1]>(k)"
#define TRANSPOSED_3D "Transpose<perm = [1, 2, 0]>(r)"
#define LATER_3D "Transpose<perm = [1, 0, 2]>(r)"
#define NODE_3D(k, more) \
    "Attention<scale = #scale, q_num_heads = 1, kv_num_heads = 1>(q, " k ", v" more ")"
#define SINGLE "q=[N,S,4] k=[N,7,4] r=[7,N,4] v=[N,7,6] #mul=0.5 #div=2.0 "

const sni_rule sni_rules_attention[] = {
    {"attention-window-mask", "Reshape(Add(~w:Reshape(x, s), %mask), t)", "Add(x, flat)",
     .where = is_window_mask, .build = bind_window_mask,
     .sample = "x=[4,2,3,3] s=int64{1,4,2,3,3} %mask=[1,4,1,3,3] t=int64{-1,2,3,3}"},
    {"add-constants", "Add(Add(x, %a), %b)", "Add(x, Add(a, b))", .where = are_small,
     .sample = "x=[N,3,8] %a=[3,8] %b=[8]"},
    {"attention-late-scale",
     "Softmax<axis = -1>({Div(Add(MatMul(q, k), mask), #div) | Mul(Add(MatMul(q, k), mask), "
     "#mul)})",
     "Softmax<axis = -1>(Add(Mul(MatMul(q, k), #t), Mul(mask, #t)))", .where = is_late_scale,
     .build = bind_late_scale,
     .sample = "q=[N,2,S,4] k=[N,2,4,7] mask=[N,1,1,7] #mul=0.5 #div=2.0"},
    {"attention", WEIGH(SCORES(KEYS)), NODE("k", ""), .where = is_attention, .build = bind_scale,
     .sample = HEADS},
    {"attention-transposed", WEIGH(SCORES(TRANSPOSED)), NODE(LATER, ""), .where = is_attention,
     .build = bind_scale, .sample = HEADS},
    {"attention-mask", WEIGH("Add(" SCORES(KEYS) ", mask)"), NODE("k", ", mask"),
     .where = is_masked, .build = bind_scale,
     .sample = HEADS "mask=[N,1,1,7]; " HEADS "mask=[7]; " HEADS "mask=[N,2,S,7]"},
    {"attention-mask-transposed", WEIGH("Add(" SCORES(TRANSPOSED) ", mask)"), NODE(LATER, ", mask"),
     .where = is_masked, .build = bind_scale, .sample = HEADS "mask=[N,1,1,7]"},
    {"attention-open-mask", WEIGH("Add(" SCORES(KEYS) ", mask)"), NODE("k", ", wide"),
     .where = is_open_masked, .build = bind_open_mask,
     .sample = OPEN "mask=[2,1,1,Y]; " OPEN "mask=[S,O]"},
    {"attention-open-where", WEIGH("Where(mask, " SCORES(KEYS) ", #low)"),
     NODE("k", ", Where(wide, 0, #low)"), .where = is_open_chosen, .build = bind_open_mask,
     .sample = OPEN "mask=bool[2,1,S,Y] #low=-1e9; " OPEN "mask=bool[O] #low=-1e9"},
    {"attention-where", WEIGH("Where(mask, " SCORES(KEYS) ", #low)"),
     NODE("k", ", Where(mask, 0, #low)"), .where = is_chosen, .build = bind_scale,
     .sample = HEADS "mask=bool[N,1,S,7] #low=-3.4028235e38"},
    {"attention-where-transposed", WEIGH("Where(mask, " SCORES(TRANSPOSED) ", #low)"),
     NODE(LATER, ", Where(mask, 0, #low)"), .where = is_chosen, .build = bind_scale,
     .sample = HEADS "mask=bool[N,1,S,7] #low=-1e9"},
    {"attention-fill", WEIGH("Where(mask, #low, " SCORES(KEYS) ")"),
     NODE("k", ", Where(mask, #low, 0)"), .where = is_chosen, .build = bind_scale,
     .sample = HEADS "mask=bool[N,1,S,7] #low=-3.4028235e38"},
    {"attention-fill-transposed", WEIGH("Where(mask, #low, " SCORES(TRANSPOSED) ")"),
     NODE(LATER, ", Where(mask, #low, 0)"), .where = is_chosen, .build = bind_scale,
     .sample = HEADS "mask=bool[N,1,S,7] #low=-1e9"},
    {"attention-single", WEIGH(SCORES(KEYS_3D)), NODE_3D("k", ""), .where = is_single,
     .build = bind_scale, .sample = SINGLE},
    {"attention-single-transposed", WEIGH(SCORES(TRANSPOSED_3D)), NODE_3D(LATER_3D, ""),
     .where = is_single, .build = bind_scale, .sample = SINGLE},
    {"attention-single-mask", WEIGH("Add(" SCORES(KEYS_3D) ", mask)"), NODE_3D("k", ", mask"),
     .where = is_single_masked, .build = bind_scale, .sample = SINGLE "mask=[S,7]"},
    {"attention-single-mask-transposed", WEIGH("Add(" SCORES(TRANSPOSED_3D) ", mask)"),
     NODE_3D(LATER_3D, ", mask"), .where = is_single_masked, .build = bind_scale,
     .sample = SINGLE "mask=[S,7]"},
    {"attention-single-batch-mask", WEIGH("Add(" SCORES(KEYS_3D) ", mask)"),
     NODE_3D("k", ", Unsqueeze(mask, [1])"), .where = is_single_batch_masked, .build = bind_scale,
     .sample = SINGLE "mask=[N,S,7]"},
    {"attention-single-batch-mask-transposed", WEIGH("Add(" SCORES(TRANSPOSED_3D) ", mask)"),
     NODE_3D(LATER_3D, ", Unsqueeze(mask, [1])"), .where = is_single_batch_masked,
     .build = bind_scale, .sample = SINGLE "mask=[N,1,7]"},
    {"attention-causal", WEIGH("Where(" SEEN ", " SCORES(KEYS) ", #low)"),
     "Attention<scale = #scale, is_causal = 1>(q, k, v)", .where = is_causal_alone,
     .build = bind_scale,
     .sample =
         "q=[N,2,5,4] k=[N,2,5,4] v=[N,2,5,4] #mul=0.5 #div=2.0 #km=0.5 #kd=2.0 %seen=L[1,1,9,9] "
         "r0=int64{0} r1=int64{5} c0=int64{0} c1=int64{5} #low=-1e4"},
    {"attention-causal-past",
     "MatMul(p:Softmax<axis = -1>(Where(" SEEN
     ", " SCORES(PAST_KEYS) ", #low)), "
                            "vc:Concat<axis = -2>(pv, v))",
     "(root, kc, vc) = Attention<scale = #scale, is_causal = 1>(q, k, v, _, pk, pv)",
     .where = is_causal, .build = bind_scale,
     .sample = "q=[N,2,5,4] k=[N,2,5,4] v=[N,2,5,4] pk=[N,2,3,4] pv=[N,2,3,4] #mul=0.5 #div=2.0 "
               "%seen=L[1,1,9,9] r0=int64{3} r1=int64{8} c0=int64{0} c1=int64{8} #low=-1e4"},
    {"attention-groups",
     "a:Attention<is_causal = @c, scale = @scale>(q, kr:Reshape(~Expand(~Unsqueeze(k, [2]), s1), "
     "t1), "
     "vr:Reshape(~Expand(~Unsqueeze(v, [2]), s2), t2), mask?)",
     "Attention<*a>(q, k, v, mask)", .where = has_groups,
     .sample = "q=[N,4,5,4] k=[N,2,7,4] v=[N,2,7,4] mask=[N,1,5,7] s1=int64{1,1,2,1,1} "
               "s2=int64{1,1,2,1,1} t1=int64{-1,4,7,4} t2=int64{-1,4,7,4} @scale=0.5"},
    {"attention-past",
     "a:Attention<is_causal = 0, scale = @scale>(q, kc:Concat<axis = -2>(pk, k), "
     "vc:Concat<axis = -2>(pv, v), mask?)",
     "(root, kc, vc) = Attention<*a>(q, k, v, mask, pk, pv)", .where = has_cache,
     .sample = "q=[N,2,5,4] k=[N,2,5,4] v=[N,2,5,4] pk=[N,2,3,4] pv=[N,2,3,4] mask=[N,1,5,8] "
               "@scale=0.5"},
    {"attention-scale-query",
     "a:Attention<scale = @scale>({Mul(q, #mul) | Div(q, #div)}, k, v, mask?, pk?, pv?)",
     "(root, root[1], root[2]) = Attention<*a, scale = #t>(q, k, v, mask, pk, pv)",
     .where = has_scale, .build = multiply_scale,
     .sample = "q=[N,2,5,4] k=[N,2,5,4] v=[N,2,5,4] pk=[N,2,3,4] pv=[N,2,3,4] mask=[8] @scale=0.5 "
               "#mul=0.5 #div=2.0"},
    {"attention-scale-key",
     "a:Attention<scale = @scale>(q, {Mul(k, #mul) | Div(k, #div)}, v, mask?)",
     "(root, _, root[2]) = Attention<*a, scale = #t>(q, k, v, mask)", .where = has_scale,
     .build = multiply_scale,
     .sample = "q=[N,2,5,4] k=[N,2,7,4] v=[N,2,7,4] mask=[7] @scale=0.5 #mul=0.5 #div=2.0"},
    {"attention-heads",
     "Reshape(" MERGE("a:Attention<scale = @scale>(" MERGE("qs:Reshape(q, s1)") ", " MERGE(
         "ks:Reshape(k, s2)") ", " MERGE("vs:Reshape(v, s3)") ", mask?, pk?, pv?)") ", s4)",
     "(root, a[1], a[2]) = Attention<*a, q_num_heads = @qh, kv_num_heads = @kh>(q, k, v, mask, pk, "
     "pv)",
     .where = has_heads, .build = bind_heads,
     .sample = "q=[N,S,8] k=[N,S,8] v=[N,S,8] pk=[N,2,3,4] pv=[N,2,3,4] mask=[1] @scale=0.5 "
               "s1=int64{0,0,2,4} s2=int64{0,0,2,4} s3=int64{0,0,2,4} s4=int64{0,0,8}"},
    {"attention-packed", "Gather<axis = 0>(~" ONE_OF ", #i)", PART, .where = is_packed_choice,
     .build = bind_choice, .sample = PACKED " #i=int64:1; " PACKED " #i=int64:2"},
    {"attention-packed-query", "Squeeze(~Split<axis = 0>(~" ONE_OF ", sizes?)[0], [0])", PART,
     .where = is_packed, .build = bind_first, .sample = PACKED},
    {"attention-packed-key", "Squeeze(~Split<axis = 0>(~" ONE_OF ", sizes?)[1], [0])", PART,
     .where = is_packed, .build = bind_second, .sample = PACKED},
    {"attention-packed-value", "Squeeze(~Split<axis = 0>(~" ONE_OF ", sizes?)[2], [0])", PART,
     .where = is_packed, .build = bind_third, .sample = PACKED},
    {0},
};
