/* spell.c - operators that other programs do not know, spelled out as functions of older ones. */
#include "model/spell.h"

#include "base/checked.h"
#include "ops/core/op.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { TEXT = 6000, NAME = 16, GROUPS_MOST = 256 };

/* The body of a function under construction. Inputs are x0, x1, ..., outputs y0, y1, ... by their
 * place in the node, results in between t1, t2, ... */
typedef struct speller {
    const sni_graph *g;
    const sni_node *n;
    int64_t opset;
    char body[TEXT];
    size_t used, last; /* where the newest line starts */
    int serial;
    bool failed; /* it cannot be written as a function, or the text is longer than the buffer */
} speller;

/* Adds a line that makes a new value, whose name it returns in `to`. */
static void line(speller *s, char *to, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(speller *s, const char *format, va_list args) {
    int n = vsnprintf(s->body + s->used, TEXT - s->used, format, args);
    if (n < 0 || (size_t)n >= TEXT - s->used)
        s->failed = true;
    else
        s->used += (size_t)n;
}

static void line(speller *s, char *to, const char *format, ...) {
    char name[NAME];
    va_list args;
    snprintf(name, sizeof name, "t%d", ++s->serial % 1000);
    s->last = s->used;
    s->used += (size_t)snprintf(s->body + s->used, TEXT - s->used, "%s = ", name);
    s->failed |= s->used >= TEXT - NAME;
    if (s->failed) s->used = 0;
    va_start(args, format);
    add(s, format, args);
    va_end(args);
    if (!s->failed && s->used + 2 < TEXT) s->body[s->used++] = '\n';
    s->body[s->used] = 0;
    memcpy(to, name, sizeof name);
}

/* Lets the newest line make output `i`. */
static void finish(speller *s, int i) {
    char *from = s->body + s->last, rest[TEXT];
    const char *equals = s->failed ? NULL : strchr(from, '=');
    if (!equals) return;
    snprintf(rest, sizeof rest, "%s", equals);
    int n = snprintf(from, TEXT - s->last, "y%d %s", i, rest);
    if (n < 0 || (size_t)n >= TEXT - s->last)
        s->failed = true;
    else
        s->used = s->last + (size_t)n;
}

static bool has_in(const speller *s, int i) {
    return i < s->n->n_in && s->n->in[i] != SNI_NO_ID;
}

static bool has_out(const speller *s, int i) {
    return i < s->n->n_out && s->n->out[i] != SNI_NO_ID;
}

/* The type of an input; without a shape if it is not there. */
static const sni_type *type_of(const speller *s, int i) {
    static const sni_type none;
    const sni_value *v = has_in(s, i) ? sni_graph_value(s->g, s->n->in[i]) : NULL;
    return v ? &v->type : &none;
}

static int64_t int_of(const speller *s, const char *name, int64_t otherwise) {
    const sni_attr *a = sni_node_attr(s->n, name);
    return a && a->kind == SNI_ATTR_INT ? a->u.i : otherwise;
}

static double float_of(const speller *s, const char *name, double otherwise) {
    const sni_attr *a = sni_node_attr(s->n, name);
    return a && a->kind == SNI_ATTR_FLOAT ? (double)a->u.f : otherwise;
}

static void number(speller *s, char *to, double v) {
    line(s, to, "Constant <value_float : float = %.9g> ()", v);
}

static void ints(speller *s, char *to, int n, const int64_t *v) {
    char list[256] = "";
    int used = 0;
    for (int i = 0; i < n && used < (int)sizeof list; i++)
        used +=
            snprintf(list + used, sizeof list - (size_t)used, "%s%" PRId64, i ? ", " : "", v[i]);
    line(s, to, "Constant <value_ints = [%s]> ()", list);
}

static void one_int(speller *s, char *to, int64_t v) {
    ints(s, to, 1, &v);
}

/* Elements [from, to) of an axis. */
static void slice(speller *s, char *out, const char *x, int64_t from, int64_t to, int64_t axis,
                  int64_t step) {
    char a[NAME], b[NAME], c[NAME], d[NAME];
    one_int(s, a, from);
    one_int(s, b, to);
    one_int(s, c, axis);
    one_int(s, d, step);
    line(s, out, "Slice (%s, %s, %s, %s, %s)", x, a, b, c, d);
}

static void shaped(speller *s, char *out, const char *op, const char *x, int n, const int64_t *v) {
    char list[NAME];
    ints(s, list, n, v);
    line(s, out, "%s (%s, %s)", op, x, list);
}

/* ---- Activations ---- */

static void with_number(speller *s, char *to, const char *op, const char *x, double v) {
    char c[NAME];
    number(s, c, v);
    line(s, to, "%s (%s, %s)", op, x, c);
}

static void spell_gelu(speller *s, char *to, const char *x, bool tanh) {
    char a[NAME], b[NAME];
    if (tanh) {
        line(s, a, "Mul (%s, %s)", x, x);
        line(s, b, "Mul (%s, %s)", a, x);
        with_number(s, a, "Mul", b, 0.044715);
        line(s, b, "Add (%s, %s)", x, a);
        with_number(s, a, "Mul", b, 0.7978845608028654);
        line(s, b, "Tanh (%s)", a);
    } else {
        with_number(s, a, "Div", x, 1.4142135623730951);
        line(s, b, "Erf (%s)", a);
    }
    with_number(s, a, "Add", b, 1);
    line(s, b, "Mul (%s, %s)", x, a);
    with_number(s, to, "Mul", b, 0.5);
}

static void spell_swish(speller *s, char *to, const char *x, double alpha) {
    char a[NAME], b[NAME];
    snprintf(a, sizeof a, "%s", x);
    if (alpha != 1) with_number(s, a, "Mul", x, alpha);
    line(s, b, "Sigmoid (%s)", a);
    line(s, to, "Mul (%s, %s)", x, b);
}

/* The activation `name` of operator attributes, with its parameters. */
static void spell_activation(speller *s, char *to, const char *x, sni_str name, const float *v) {
    char a[NAME], b[NAME];
    double v0 = v ? (double)v[0] : 0, v1 = v ? (double)v[1] : 0;
    if (sni_str_is(name, "Relu") || sni_str_is(name, "Tanh") || sni_str_is(name, "Sigmoid") ||
        sni_str_is(name, "Softplus") || (s->opset >= 14 && sni_str_is(name, "HardSwish"))) {
        line(s, to, "%.*s (%s)", (int)name.n, name.p, x);
    } else if (sni_str_is(name, "LeakyRelu") || sni_str_is(name, "Elu")) {
        line(s, to, "%.*s <alpha : float = %.9g> (%s)", (int)name.n, name.p, v0, x);
    } else if (sni_str_is(name, "HardSigmoid")) {
        line(s, to, "HardSigmoid <alpha : float = %.9g, beta : float = %.9g> (%s)", v0, v1, x);
    } else if (sni_str_is(name, "HardSwish")) {
        line(s, a, "HardSigmoid <alpha : float = 0.16666667, beta : float = 0.5> (%s)", x);
        line(s, to, "Mul (%s, %s)", x, a);
    } else if (sni_str_is(name, "Clip")) {
        number(s, a, v0);
        number(s, b, v1);
        line(s, to, "Clip (%s, %s, %s)", x, a, b);
    } else if (sni_str_is(name, "Silu")) {
        spell_swish(s, to, x, 1);
    } else if (sni_str_is(name, "Gelu") || sni_str_is(name, "FastGelu")) {
        spell_gelu(s, to, x, sni_str_is(name, "FastGelu"));
    } else if (sni_str_is(name, "Mish")) {
        line(s, a, "Softplus (%s)", x);
        line(s, b, "Tanh (%s)", a);
        line(s, to, "Mul (%s, %s)", x, b);
    } else {
        s->failed = true;
    }
}

/* The attributes `activation` and `activation_params` of the node. */
static void spell_epilogue(speller *s, char *to, const char *x) {
    const sni_attr *name = sni_node_attr(s->n, "activation");
    const sni_attr *params = sni_node_attr(s->n, "activation_params");
    float v[2] = {0};
    for (size_t i = 0; params && i < params->count && i < 2; i++) v[i] = params->u.floats[i];
    if (name && name->u.s.n) spell_activation(s, to, x, name->u.s, v);
}

static void spell_unary(speller *s) {
    const sni_attr *how = sni_node_attr(s->n, "approximate");
    char y[NAME];
    if (sni_str_is(s->n->type, "Gelu"))
        spell_gelu(s, y, "x0", how && sni_str_is(how->u.s, "tanh"));
    else if (sni_str_is(s->n->type, "Swish"))
        spell_swish(s, y, "x0", float_of(s, "alpha", 1));
    else
        spell_activation(s, y, "x0", s->n->type, NULL);
    finish(s, 0);
}

/* ---- Products ---- */

static void spell_linear(speller *s) {
    char y[NAME] = "x1";
    if (int_of(s, "trans_w", 0)) line(s, y, "Transpose <perm = [1, 0]> (x1)");
    line(s, y, "MatMul (x0, %s)", y);
    if (has_in(s, 2)) line(s, y, "Add (%s, x2)", y);
    if (has_in(s, 3)) line(s, y, "Add (%s, x3)", y);
    if (has_in(s, 4)) line(s, y, "PRelu (%s, x4)", y);
    spell_epilogue(s, y, y);
    finish(s, 0);
}

static void attr_text(char *out, size_t size, const sni_attr *a) {
    size_t used = strlen(out);
    used += (size_t)snprintf(out + used, size - used, "%s%.*s = ", used ? ", " : "", (int)a->name.n,
                             a->name.p);
    if (used >= size) return;
    if (a->kind == SNI_ATTR_INT) snprintf(out + used, size - used, "%" PRId64, a->u.i);
    if (a->kind == SNI_ATTR_STRING)
        snprintf(out + used, size - used, "\"%.*s\"", (int)a->u.s.n, a->u.s.p);
    for (size_t i = 0; a->kind == SNI_ATTR_INTS && i < a->count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%" PRId64 "%s", i ? ", " : "[",
                                 a->u.ints[i], i + 1 < a->count ? "" : "]");
}

/* The convolution as it is, then the activation. */
static void spell_conv(speller *s) {
    char attrs[512] = "", y[NAME], slopes[NAME];
    for (int32_t i = 0; i < s->n->n_attrs; i++)
        if (!sni_str_is(s->n->attrs[i].name, "activation") &&
            !sni_str_is(s->n->attrs[i].name, "activation_params") &&
            !(s->n->attrs[i].kind == SNI_ATTR_INTS && !s->n->attrs[i].count))
            attr_text(attrs, sizeof attrs, &s->n->attrs[i]);
    s->failed |= strlen(attrs) + 1 >= sizeof attrs;
    line(s, y, "Conv %s%s%s (x0, x1%s)", attrs[0] ? "<" : "", attrs, attrs[0] ? ">" : "",
         has_in(s, 2) ? ", x2" : "");
    if (has_in(s, 3)) line(s, y, "Add (%s, x3)", y);
    if (has_in(s, 4)) {
        int64_t shape[SN_MAX_RANK] = {-1};
        int rank = type_of(s, 1)->has_shape ? type_of(s, 1)->rank - 1 : 0;
        for (int i = 1; i < rank; i++) shape[i] = 1;
        s->failed |= rank < 2;
        shaped(s, slopes, "Reshape", "x4", rank, shape);
        line(s, y, "PRelu (%s, %s)", y, slopes);
    }
    spell_epilogue(s, y, y);
    finish(s, 0);
}

/* ---- Normalisations ---- */

/* The mean of squares or numbers over the last axes, from `axis` (below 0) on. */
static void mean(speller *s, char *to, const char *x, int64_t axis) {
    char axes[NAME], list[64] = "";
    int64_t v[SN_MAX_RANK];
    int n = 0, used = 0;
    for (int64_t i = axis; i < 0 && n < SN_MAX_RANK; i++) {
        used += snprintf(list + used, sizeof list - (size_t)used, "%s%" PRId64, n ? ", " : "", i);
        v[n++] = i;
    }
    if (s->opset < 18) {
        line(s, to, "ReduceMean <axes = [%s], keepdims = 1> (%s)", list, x);
        return;
    }
    ints(s, axes, n, v);
    line(s, to, "ReduceMean <keepdims = 1> (%s, %s)", x, axes);
}

/* LayerNormalization and RMSNormalization. */
static void spell_norm(speller *s) {
    bool centred = sni_str_is(s->n->type, "LayerNormalization");
    const sni_type *x = type_of(s, 0);
    int64_t axis = int_of(s, "axis", -1);
    char d[NAME] = "x0", a[NAME], b[NAME];
    if (!x->has_shape || has_out(s, 1) || has_out(s, 2) || int_of(s, "stash_type", 1) != 1)
        s->failed = true;
    if (axis >= 0) axis -= x->rank;
    if (axis >= 0 || axis < -8) s->failed = true;
    if (s->failed) return;
    if (centred) {
        mean(s, a, "x0", axis);
        line(s, d, "Sub (x0, %s)", a);
    }
    line(s, a, "Mul (%s, %s)", d, d);
    mean(s, b, a, axis);
    with_number(s, a, "Add", b, float_of(s, "epsilon", 1e-5));
    line(s, b, "Sqrt (%s)", a);
    line(s, a, "Div (%s, %s)", d, b);
    line(s, b, "Mul (%s, x1)", a);
    if (has_in(s, 2)) line(s, b, "Add (%s, x2)", b);
    finish(s, 0);
}

static void repeated(speller *s, char *to, int64_t count, int v) {
    char list[4 * GROUPS_MOST];
    for (int64_t i = 0; i < count; i++) snprintf(list + 3 * i, 5, "%d, ", v);
    list[3 * count - 2] = 0;
    line(s, to, "Constant <value_floats : floats = [%s]> ()", list);
}

/* Groups are the channels of an InstanceNormalization. */
static void spell_group_norm(speller *s) {
    const sni_type *x = type_of(s, 0);
    int64_t groups = int_of(s, "num_groups", 0), wide[SN_MAX_RANK];
    char one[NAME], zero[NAME], y[NAME], shape[NAME], g[NAME];
    if (!x->has_shape || x->rank < 3 || groups < 1 || groups > GROUPS_MOST) s->failed = true;
    if (s->failed) return;
    repeated(s, one, groups, 1);
    repeated(s, zero, groups, 0);
    shaped(s, y, "Reshape", "x0", 3, (int64_t[]){0, groups, -1});
    line(s, y, "InstanceNormalization <epsilon : float = %.9g> (%s, %s, %s)",
         float_of(s, "epsilon", 1e-5), y, one, zero);
    line(s, shape, "Shape (x0)");
    line(s, y, "Reshape (%s, %s)", y, shape);
    for (int i = 1; i < 3; i++) {
        wide[0] = -1;
        for (int k = 1; k < x->rank - 1; k++) wide[k] = 1;
        shaped(s, g, "Reshape", i == 1 ? "x1" : "x2", x->rank - 1, wide);
        line(s, y, "%s (%s, %s)", i == 1 ? "Mul" : "Add", y, g);
    }
    finish(s, 0);
}

/* ---- Positions ---- */

static void spell_slice_like(speller *s) {
    const sni_type *like = type_of(s, 1);
    int64_t at = int_of(s, "like_axis", 0);
    char shape[NAME], end[NAME], from[NAME], axis[NAME];
    if (!like->has_shape) s->failed = true;
    if (at < 0) at += like->rank;
    line(s, shape, "Shape (x1)");
    slice(s, end, shape, at, at + 1, 0, 1);
    one_int(s, from, 0);
    one_int(s, axis, int_of(s, "axis", 0));
    line(s, end, "Slice (x0, %s, %s, %s)", from, end, axis);
    finish(s, 0);
}

static void spell_rotary(speller *s) {
    const sni_type *x = type_of(s, 0);
    int64_t heads = int_of(s, "num_heads", 0), rotated = int_of(s, "rotary_embedding_dim", 0), size;
    bool flat = x->rank == 3, pairs = int_of(s, "interleaved", 0) != 0;
    char y[NAME] = "x0", c[2][NAME], half[2][NAME], p[NAME], q[NAME], made[2][NAME], rest[NAME];
    if (!x->has_shape || x->rank < 3 || x->dims[x->rank - 1] < 2 || (flat && heads < 1))
        s->failed = true;
    if (s->failed) return;
    size = x->dims[x->rank - 1] / (flat ? heads : 1);
    if (!rotated) rotated = size;
    if (rotated < 0 || rotated > size) s->failed = true;
    if (s->failed) return;
    if (flat) shaped(s, y, "Reshape", "x0", 4, (int64_t[]){0, 0, heads, size});
    for (int i = 0; i < 2; i++) {
        snprintf(p, sizeof p, "x%d", i + 1);
        if (has_in(s, 3)) line(s, p, "Gather (%s, x3)", p);
        shaped(s, c[i], "Unsqueeze", p, 1, &(int64_t){flat ? 2 : 1});
        slice(s, half[i], y, pairs ? i : i * rotated / 2, pairs ? rotated : (i + 1) * rotated / 2,
              -1, pairs ? 2 : 1);
    }
    for (int i = 0; i < 2; i++) {
        line(s, p, "Mul (%s, %s)", half[0], c[i]);
        line(s, q, "Mul (%s, %s)", half[1], c[1 - i]);
        line(s, made[i], "%s (%s, %s)", i ? "Add" : "Sub", p, q);
        if (pairs) shaped(s, made[i], "Unsqueeze", made[i], 1, &(int64_t){4});
    }
    if (rotated < size) slice(s, rest, y, rotated, size, -1, 1);
    line(s, y, "Concat <axis = -1> (%s, %s%s%s)", made[0], made[1],
         rotated < size && !pairs ? ", " : "", rotated < size && !pairs ? rest : "");
    if (pairs) shaped(s, y, "Reshape", y, 4, (int64_t[]){0, 0, 0, rotated});
    if (pairs && rotated < size) line(s, y, "Concat <axis = -1> (%s, %s)", y, rest);
    if (flat) shaped(s, y, "Reshape", y, 3, (int64_t[]){0, 0, heads * size});
    finish(s, 0);
}

/* ---- Attention ---- */

typedef struct heads {
    bool flat;
    int64_t q, kv, size, v_size;
} heads;

/* Input i as (batch, heads, length, size). */
static void outer_heads(speller *s, char *to, int i, const heads *h) {
    int64_t count = i ? h->kv : h->q, size = i == 2 ? h->v_size : h->size;
    char x[NAME];
    snprintf(to, NAME, "x%d", i);
    if (!h->flat) return;
    snprintf(x, sizeof x, "x%d", i);
    shaped(s, x, "Reshape", x, 4, (int64_t[]){0, 0, count, size});
    line(s, to, "Transpose <perm = [0, 2, 1, 3]> (%s)", x);
}

/* Keys or values with the cache at input `past` in front, which is output `present`. */
static void join_cache(speller *s, char *x, int past, int present) {
    if (has_in(s, past)) line(s, x, "Concat <axis = 2> (x%d, %s)", past, x);
    if (!has_out(s, present)) return;
    char out[NAME];
    line(s, out, "Identity (%s)", x);
    finish(s, present);
}

static void repeat_heads(speller *s, char *x, const heads *h) {
    char shape[NAME], batch[NAME], rows[NAME], count[NAME], wide[NAME];
    if (h->q == h->kv) return;
    line(s, shape, "Shape (%s)", x);
    slice(s, batch, shape, 0, 1, 0, 1);
    slice(s, rows, shape, 2, 4, 0, 1);
    one_int(s, count, h->q);
    line(s, shape, "Concat <axis = 0> (%s, %s, %s)", batch, count, rows);
    shaped(s, wide, "Unsqueeze", x, 1, &(int64_t){2});
    shaped(s, wide, "Expand", wide, 5, (int64_t[]){1, 1, h->q / h->kv, 1, 1});
    line(s, x, "Reshape (%s, %s)", wide, shape);
}

/* *out: how long axis 2 of a value is, a scalar. */
static void length_of(speller *s, char *out, const char *x) {
    char shape[NAME], at[NAME];
    line(s, shape, "Shape (%s)", x);
    line(s, at, "Constant <value_int = 2> ()");
    line(s, out, "Gather (%s, %s)", shape, at);
}

/* Scores of keys that come after the query are as low as can be. */
static void hide_later(speller *s, char *scores, const char *q, const char *k) {
    char keys[NAME], queries[NAME], first[NAME], zero[NAME], one[NAME], rows[NAME], cols[NAME];
    length_of(s, keys, k);
    length_of(s, queries, q);
    line(s, zero, "Constant <value_int = 0> ()");
    line(s, one, "Constant <value_int = 1> ()");
    line(s, first, "Sub (%s, %s)", keys, queries);
    line(s, rows, "Range (%s, %s, %s)", first, keys, one);
    line(s, cols, "Range (%s, %s, %s)", zero, keys, one);
    shaped(s, rows, "Unsqueeze", rows, 1, &(int64_t){1});
    line(s, rows, "Less (%s, %s)", rows, cols);
    number(s, first, -3.4028234663852886e38);
    line(s, scores, "Where (%s, %s, %s)", rows, first, scores);
}

static bool read_heads(speller *s, heads *h) {
    const sni_type *q = type_of(s, 0), *k = type_of(s, 1), *v = type_of(s, 2);
    if (!q->has_shape || !k->has_shape || !v->has_shape || q->rank != k->rank ||
        q->rank != v->rank || q->rank < 3)
        return false;
    *h = (heads){.flat = q->rank == 3};
    h->q = h->flat ? int_of(s, "q_num_heads", 0) : q->dims[1];
    h->kv = h->flat ? int_of(s, "kv_num_heads", 0) : k->dims[1];
    if (h->q < 1 || h->kv < 1 || h->q % h->kv) return false;
    h->size = q->dims[q->rank - 1] / (h->flat ? h->q : 1);
    h->v_size = v->dims[v->rank - 1] / (h->flat ? h->kv : 1);
    return h->size > 0 && h->v_size > 0;
}

static void spell_attention(speller *s) {
    char q[NAME], k[NAME], v[NAME], y[NAME];
    heads h = {0};
    const sni_type *mask = type_of(s, 3);
    if (!read_heads(s, &h)) s->failed = true;
    if (s->failed) return;
    bool odd = has_in(s, 6) || has_out(s, 3) || float_of(s, "softcap", 0) != 0 ||
               int_of(s, "left_window_size", -1) >= 0 || int_of(s, "right_window_size", -1) >= 0 ||
               !sni_node_attr(s->n, "scale") || (has_in(s, 3) && mask->dtype != SN_FLOAT32) ||
               (int_of(s, "is_causal", 0) && !has_in(s, 4) &&
                type_of(s, 0)->dims[type_of(s, 0)->rank - 2] !=
                    type_of(s, 1)->dims[type_of(s, 1)->rank - 2]);
    if (odd) {
        s->failed = true;
        return;
    }
    outer_heads(s, q, 0, &h);
    outer_heads(s, k, 1, &h);
    outer_heads(s, v, 2, &h);
    join_cache(s, k, 4, 1);
    join_cache(s, v, 5, 2);
    repeat_heads(s, k, &h);
    repeat_heads(s, v, &h);
    line(s, y, "Transpose <perm = [0, 1, 3, 2]> (%s)", k);
    line(s, y, "MatMul (%s, %s)", q, y);
    with_number(s, y, "Mul", y, float_of(s, "scale", 1));
    if (int_of(s, "is_causal", 0)) hide_later(s, y, q, k);
    if (has_in(s, 3)) line(s, y, "Add (%s, x3)", y);
    line(s, y, "Softmax <axis = -1> (%s)", y);
    line(s, y, "MatMul (%s, %s)", y, v);
    if (h.flat) {
        line(s, y, "Transpose <perm = [0, 2, 1, 3]> (%s)", y);
        shaped(s, y, "Reshape", y, 3, (int64_t[]){0, 0, h.q * h.v_size});
    }
    finish(s, 0);
}

/* ---- All of them ---- */

static const struct {
    const char *domain, *op;
    int since; /* first version of ai.onnx with this operator; 0: never part of a file */
    void (*spell)(speller *s);
} spelled[] = {
    {"ai.sinter", "Linear", 0, spell_linear},
    {"ai.sinter", "SliceLike", 0, spell_slice_like},
    {"com.microsoft", "FusedConv", 0, spell_conv},
    {"", "Gelu", 20, spell_unary},
    {"", "Swish", 24, spell_unary},
    {"", "Mish", 18, spell_unary},
    {"", "HardSwish", 14, spell_unary},
    {"", "LayerNormalization", 17, spell_norm},
    {"", "RMSNormalization", 23, spell_norm},
    {"", "GroupNormalization", 21, spell_group_norm},
    {"", "RotaryEmbedding", 23, spell_rotary},
    {"", "Attention", 23, spell_attention},
};

/* Activations that ONNX Runtime's FusedConv has. */
static bool is_known_conv(const sni_node *n) {
    static const char *const known[] = {"Relu", "Tanh",        "Sigmoid",  "LeakyRelu",
                                        "Clip", "HardSigmoid", "HardSwish"};
    const sni_attr *a = sni_node_attr(n, "activation");
    if (n->n_in > 4 && n->in[4] != SNI_NO_ID) return false;
    if (!a || !a->u.s.n) return true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (sni_str_is(a->u.s, known[i])) return true;
    return false;
}

bool sni_spell(const sni_graph *g, const sni_node *n, int64_t opset, sni_arena *arena,
               sni_str *body) {
    for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++) {
        if (!sni_str_is(n->type, spelled[i].op) || !sni_str_is(n->domain, spelled[i].domain))
            continue;
        if (spelled[i].since && opset >= spelled[i].since) return false;
        if (spelled[i].spell == spell_conv && is_known_conv(n)) return false;
        speller *s = SNI_NEW(arena, speller);
        if (!s) return false;
        *s = (speller){.g = g, .n = n, .opset = opset};
        spelled[i].spell(s);
        if (s->failed) return false;
        *body = (sni_str){s->body, s->used};
        return true;
    }
    return false;
}
