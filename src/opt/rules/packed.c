/* packed.c - attention over queries, keys and values that one product makes: it takes them from
 * there, without copies. Three products of one input become one. */
#include "base/floats.h"
#include "opt/rules/rules.h"

static int64_t int_attr(const sni_match *m, const char *name) {
    const sni_attr *a = sni_match_attr(m, name);
    return a && a->kind == SNI_ATTR_INT ? a->u.i : 0;
}

/* The attention has nothing that PackedAttention lacks. */
static bool is_plain(const sni_match *m) {
    static const char *const known[] = {"is_causal", "q_num_heads", "kv_num_heads", "scale"};
    const sni_node *n = m->root;
    int64_t q = int_attr(m, "qh"), kv = int_attr(m, "kh");
    const sni_value *kept = n->n_out > 3 ? sni_graph_value(m->g, n->out[3]) : NULL;
    if (q < 1 || kv < 1 || q % kv || (kept && kept->use_count)) return false;
    for (int32_t i = 0; i < n->n_attrs; i++) {
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            found |= sni_str_is(n->attrs[i].name, known[k]);
        if (!found) return false;
    }
    return true;
}

/* Columns of queries, of keys and of values in rows of `width`. */
static bool divides(const sni_match *m, int64_t q, int64_t k, int64_t v, int64_t width) {
    int64_t heads = int_attr(m, "qh"), kv = int_attr(m, "kh");
    return q > 0 && q % heads == 0 && k == q / heads * kv && v == k && q + k + v == width;
}

static int64_t number_in(const sni_match *m, const char *name) {
    const sni_tensor *t = sni_match_const(m, name);
    int64_t v = -1;
    if (t && t->dtype == SN_INT64 && t->count == 1) memcpy(&v, t->data, sizeof v);
    return v;
}

static const sni_type *rows(const sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    return x->has_shape && x->rank == 3 && x->dtype == SN_FLOAT32 && x->dims[2] > 0 ? x : NULL;
}

static bool is_sliced(sni_match *m) {
    const sni_type *x = rows(m);
    int64_t b = number_in(m, "b"), c = number_in(m, "c"), e = number_in(m, "e");
    return x && is_plain(m) && e >= x->dims[2] && divides(m, b, c - b, x->dims[2] - c, x->dims[2]);
}

static bool is_split(sni_match *m) {
    const sni_type *x = rows(m);
    const sni_node *n = sni_match_node(m, "h");
    int64_t part[3];
    if (!x || !is_plain(m) || n->n_out != 3) return false;
    for (int i = 0; i < 3; i++) {
        const sni_value *v = sni_graph_value(m->g, n->out[i]);
        if (!v || !v->type.has_shape || v->type.rank != 3) return false;
        part[i] = v->type.dims[2];
    }
    return divides(m, part[0], part[1], part[2], x->dims[2]);
}

/* ---- Three products of one input ---- */

enum { MOST_WEIGHTS = 1 << 26 }; /* elements of the product's weights */

static const char *const layers[3] = {"lq", "lk", "lv"};
static const char *const weights[3] = {"wq", "wk", "wv"};
static const char *const offsets[3] = {"bq", "bk", "bv"};

static bool is_transposed(const sni_match *m, const char *layer) {
    const sni_attr *a = sni_node_attr(sni_match_node(m, layer), "trans_w");
    return a && a->u.i;
}

/* Columns of layer i; -1 if it is not one that can be joined to the others. */
static int64_t columns(const sni_match *m, int i) {
    const sni_const *w = sni_value_const(m->g, sni_match_value(m, weights[i]));
    const sni_const *first = sni_value_const(m->g, sni_match_value(m, weights[0]));
    const sni_attr *act = sni_node_attr(sni_match_node(m, layers[i]), "activation");
    bool transposed = is_transposed(m, layers[i]);
    if (!w || !first || w->tensor.dtype != SN_FLOAT32 || w->tensor.rank != 2 ||
        first->tensor.rank != 2 || (act && act->u.s.n) ||
        transposed != is_transposed(m, layers[0]) ||
        w->tensor.dims[transposed] != first->tensor.dims[transposed])
        return -1;
    int64_t n = w->tensor.dims[!transposed];
    const sni_const *b = sni_value_const(m->g, sni_match_value(m, offsets[i]));
    if (b && (b->tensor.dtype != SN_FLOAT32 || b->tensor.rank != 1 || b->tensor.count != n))
        return -1;
    return n;
}

static bool is_joined(sni_match *m) {
    int64_t n[3];
    if (!rows(m) || !is_plain(m)) return false;
    for (int i = 0; i < 3; i++)
        if ((n[i] = columns(m, i)) < 1) return false;
    int64_t all = n[0] + n[1] + n[2], depth = rows(m)->dims[2];
    return divides(m, n[0], n[1], n[2], all) && depth <= MOST_WEIGHTS / all;
}

/* Weights of three layers side by side. */
typedef struct joined {
    sni_const *parts[3];
    int64_t rows, columns[3]; /* each part is rows x columns[i] */
} joined;

/* Reads the parts one after the other, so that one at a time is in memory beside the result. */
static sn_status decode_joined(sni_const *c, sn_error *err) {
    const joined *j = c->source;
    int64_t all = j->columns[0] + j->columns[1] + j->columns[2], at = 0;
    int64_t width = (int64_t)sni_dtype_width(c->tensor.dtype);
    SN_TRY(sni_const_own_memory(c, err));
    for (int i = 0; i < 3; i++) {
        int64_t n = j->columns[i];
        sni_borrow borrow;
        SN_TRY(sni_const_borrow(j->parts[i], true, &borrow, err));
        for (int64_t r = 0; r < j->rows; r++)
            memcpy((char *)c->tensor.data + (r * all + at) * width,
                   (const char *)borrow.tensor.data + r * n * width, (size_t)(n * width));
        sni_borrow_end(&borrow);
        at += n;
    }
    return SN_OK;
}

/* Takes narrow parts in their places, if all three have them and of one type. */
static sn_dtype join_narrow(joined *j) {
    sn_dtype type = j->parts[0]->narrow ? j->parts[0]->narrow->tensor.dtype : SN_FLOAT32;
    for (int i = 1; i < 3; i++)
        if (!j->parts[i]->narrow || j->parts[i]->narrow->tensor.dtype != type) type = SN_FLOAT32;
    for (int i = 0; i < 3 && type != SN_FLOAT32; i++) j->parts[i] = j->parts[i]->narrow;
    return type;
}

/* Binds `to` to the constants of the layers named in `from`: `rows` rows of each, joined. */
static sn_status join(sni_match *m, const char *to, const char *const *from, int rank,
                      const int64_t *dims, int64_t rows) {
    sni_tensor shape = {0};
    sni_const *c, *wide;
    joined *j = SNI_NEW(&m->r->store->arena, joined);
    if (!j) return sni_fail_memory(m->r->err);
    j->rows = rows;
    for (int i = 0; i < 3; i++) {
        j->parts[i] = sni_value_const(m->g, sni_match_value(m, from[i]));
        if (!j->parts[i])
            return sni_fail(m->r->err, SN_INTERNAL, "the weights are no longer there");
        j->columns[i] = j->parts[i]->tensor.count / rows;
    }
    sn_dtype type = join_narrow(j);
    SN_TRY(sni_tensor_shape(&shape, type, rank, dims, m->r->err));
    if (type == SN_FLOAT32) return sni_match_new_lazy(m, to, &shape, decode_joined, j);
    SN_TRY(sni_const_new_lazy(m->r->store, &shape, decode_joined, j, &c, m->r->err));
    SN_TRY(sni_const_widened(c, &wide, m->r->err));
    return sni_match_bind_const(m, to, wide);
}

/* Binds w and b: the layers' side by side. */
static sn_status join_layers(sni_match *m) {
    bool transposed = is_transposed(m, layers[0]), biased = sni_match_value(m, "bq") != SNI_NO_ID;
    int64_t depth = rows(m)->dims[2], all = 0;
    for (int i = 0; i < 3; i++) all += columns(m, i);
    SN_TRY(join(m, "w", weights, 2, transposed ? (int64_t[]){all, depth} : (int64_t[]){depth, all},
                transposed ? 1 : depth));
    return biased ? join(m, "b", offsets, 1, &all, 1) : SN_OK;
}

#define NODE "a:Attention<q_num_heads = @qh, kv_num_heads = @kh, scale = @scale>"
#define PACKED "(root, root[1], root[2]) = ai.sinter.PackedAttention<*a>"
#define LAYER(to, bias) "l" to ":ai.sinter.Linear<trans_w = @t>(x, %w" to bias ")"
#define CACHES "mask?, pk?, pv?)"
#define SAMPLE "@qh=2 @kh=2 @scale=0.5 mask=[1] pk=[N,2,3,4] pv=[N,2,3,4] "

const sni_rule sni_rules_packed[] = {
    {"packed-attention-slices",
     NODE "(Slice(x, [0], %b, [-1], [1]?), Slice(x, %b, %c, [-1], [1]?), "
          "Slice(x, %c, %e, [-1], [1]?), mask?, pk?, pv?)",
     PACKED "(x, mask, pk, pv)", .where = is_sliced,
     .sample = SAMPLE "x=[N,S,24] %b=int64{8} %c=int64{16} %e=int64{24}"},
    {"packed-attention-split", NODE "(h:Split<axis = -1>(x, sizes?), h[1], h[2], mask?, pk?, pv?)",
     PACKED "(x, mask, pk, pv)", .where = is_split,
     .sample = SAMPLE "x=[N,S,24] sizes=int64{8,8,8}; @qh=4 @kh=2 @scale=0.5 mask=[1] "
                      "pk=[N,2,3,4] pv=[N,2,3,4] x=[N,S,32] sizes=int64{16,8,8}"},
    {"packed-attention-linear",
     NODE "(" LAYER("q", ", %bq") ", " LAYER("k", ", %bk") ", " LAYER("v", ", %bv") ", " CACHES,
     PACKED "(ai.sinter.Linear<trans_w = @t>(x, w, b), mask, pk, pv)", .where = is_joined,
     .build = join_layers,
     .sample = SAMPLE "x=[N,S,6] %wq=[6,8] %wk=[6,8] %wv=[6,8] %bq=[8] %bk=[8] %bv=[8]; " SAMPLE
                      "x=[N,S,6] %wq=[8,6] %wk=[8,6] %wv=[8,6] %bq=[8] %bk=[8] %bv=[8] @t=1"},
    {"packed-attention-matmul",
     NODE "(" LAYER("q", "") ", " LAYER("k", "") ", " LAYER("v", "") ", " CACHES,
     PACKED "(ai.sinter.Linear<trans_w = @t>(x, w), mask, pk, pv)", .where = is_joined,
     .build = join_layers, .sample = SAMPLE "x=[N,S,6] %wq=[6,8] %wk=[6,8] %wv=[6,8]"},
    {0},
};
