/* Einsum: products of tensors summed over labelled axes (Einstein's convention). Operands are
 * contracted pairwise from left to right: each step transposes two of them to batches of matrices,
 * multiplies those, and keeps the labels that the rest of the equation needs. */
#include "base/checked.h"
#include "ops/core/compute.h"
#include "ops/matmul/matmul_core.h"
#include "ops/core/tensor_util.h"

#include <string.h>

typedef struct einsum_params {
    sni_str equation;
} einsum_params;

enum {
    LETTERS = 52, /* labels a-z and A-Z; after them the axes of "..." */
    LABELS = LETTERS + SN_MAX_RANK,
    TERMS = 64, /* operands */
};

/* The labels of one term of the equation in order. */
typedef struct term {
    int rank;
    int label[SN_MAX_RANK];
} term;

typedef struct equation {
    int terms;
    term in[TERMS], out;
    sni_dim size[LABELS]; /* of each label; -1 if it does not occur */
} equation;

static int label_of(char c) {
    if (c >= 'a' && c <= 'z') return c - 'a';
    if (c >= 'A' && c <= 'Z') return c - 'A' + 26;
    return -1;
}

/* Letters of a term that is not the ellipsis, without spaces; -1 on a bad character. */
static int count_letters(sni_str s, bool *ellipsis) {
    int n = 0;
    *ellipsis = false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == ' ') continue;
        if (s.p[i] == '.' && !*ellipsis && i + 2 < s.n && s.p[i + 1] == '.' && s.p[i + 2] == '.') {
            *ellipsis = true;
            i += 2;
        } else if (label_of(s.p[i]) >= 0) {
            n++;
        } else {
            return -1;
        }
    }
    return n;
}

/* Reads a term whose ellipsis stands for `wide` axes, labelled so that the last one is always the
 * last label. */
static void read_term(sni_str s, int wide, term *t) {
    t->rank = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == ' ') continue;
        if (s.p[i] == '.') {
            for (int a = 0; a < wide; a++) t->label[t->rank++] = LABELS - wide + a;
            i += 2;
        } else {
            t->label[t->rank++] = label_of(s.p[i]);
        }
    }
}

/* Without "->" the output has the ellipsis, then every letter that occurs once, in order. */
static sn_status implicit_output(equation *e, int wide, sn_error *err) {
    int seen[LABELS] = {0};
    for (int i = 0; i < e->terms; i++)
        for (int a = 0; a < e->in[i].rank; a++) seen[e->in[i].label[a]]++;
    int rank = wide;
    /* 'A' to 'Z' come before 'a' to 'z'. */
    static const int order[2] = {26, 0};
    for (int a = 0; a < wide; a++) e->out.label[a] = LABELS - wide + a;
    for (int half = 0; half < 2; half++)
        for (int l = order[half]; l < order[half] + 26; l++) {
            if (seen[l] != 1) continue;
            if (rank >= SN_MAX_RANK)
                return sni_fail(err, SN_UNSUPPORTED, "an output of more than %d axes", SN_MAX_RANK);
            e->out.label[rank++] = l;
        }
    e->out.rank = rank;
    return SN_OK;
}

static sn_status set_size(equation *e, sni_symbols *symbols, int label, sni_dim d, sn_error *err) {
    bool ok = true;
    if (e->size[label] == SNI_DIM_FAIL)
        e->size[label] = d;
    else if (symbols)
        e->size[label] = sni_dim_broadcast(symbols, e->size[label], d, &ok);
    else if (e->size[label] == 1)
        e->size[label] = d;
    else
        ok = d == 1 || d == e->size[label];
    return ok ? SN_OK
              : sni_fail(err, SN_INVALID_MODEL, "a label stands for sizes %lld and %lld",
                         (long long)e->size[label], (long long)d);
}

/* Splits off the part of *rest before `separator`; false if there is none (all of it then). */
static bool split_at(sni_str *rest, const char *separator, sni_str *part) {
    const char *found = rest->n ? memmem(rest->p, rest->n, separator, strlen(separator)) : NULL;
    *part = *rest;
    if (!found) return false;
    part->n = (size_t)(found - rest->p);
    rest->n -= part->n + strlen(separator);
    rest->p = found + strlen(separator);
    return true;
}

static sn_status read_output(equation *e, sni_str right, int widest, sn_error *err) {
    bool ellipsis, used[LABELS] = {false};
    int letters = count_letters(right, &ellipsis);
    if (letters < 0 || letters + (ellipsis ? widest : 0) > SN_MAX_RANK)
        return sni_fail(err, SN_INVALID_MODEL, "the output '%.*s' cannot be read", SNI_FMT(right));
    read_term(right, widest, &e->out);
    for (int a = 0; a < e->out.rank; a++) {
        int l = e->out.label[a];
        if (e->size[l] == SNI_DIM_FAIL || used[l])
            return sni_fail(err, SN_INVALID_MODEL,
                            "a label of the output '%.*s' is in no input, or stands twice",
                            SNI_FMT(right));
        used[l] = true;
    }
    return SN_OK;
}

/* Reads the equation for operands of these shapes; `symbols` NULL at run time. */
static sn_status read_equation(sni_str text, int n, const int *rank, const sni_dim *const *dims,
                               sni_symbols *symbols, equation *e, sn_error *err) {
    sni_str left, right = text, part;
    bool has_output = split_at(&right, "->", &left), more = true;
    int widest = 0;
    for (int l = 0; l < LABELS; l++) e->size[l] = SNI_DIM_FAIL;
    for (e->terms = 0; more; e->terms++) {
        more = split_at(&left, ",", &part);
        bool ellipsis;
        int letters = count_letters(part, &ellipsis);
        if (e->terms >= n || e->terms >= TERMS || letters < 0 || letters > rank[e->terms] ||
            (!ellipsis && letters != rank[e->terms]))
            return sni_fail(err, SN_INVALID_MODEL,
                            "term %d of '%.*s' does not fit %d operands or their ranks", e->terms,
                            SNI_FMT(text), n);
        term *t = &e->in[e->terms];
        int wide = rank[e->terms] - letters;
        if (wide > widest) widest = wide;
        read_term(part, wide, t);
        for (int a = 0; a < t->rank; a++)
            SN_TRY(set_size(e, symbols, t->label[a], dims[e->terms][a], err));
    }
    if (e->terms != n)
        return sni_fail(err, SN_INVALID_MODEL, "%d terms for %d operands", e->terms, n);
    return has_output ? read_output(e, right, widest, err) : implicit_output(e, widest, err);
}

static sn_status einsum_infer(sni_infer *c) {
    const einsum_params *p = c->params;
    int rank[TERMS];
    const sni_dim *dims[TERMS];
    if (c->n_in > TERMS)
        return sni_fail(c->err, SN_UNSUPPORTED, "%d operands, more than %d", c->n_in, TERMS);
    for (int i = 0; i < c->n_in; i++) {
        if (!sni_infer_shaped(c, i)) return SN_OK;
        rank[i] = sni_infer_rank(c, i);
        dims[i] = c->in[i]->dims;
    }
    equation e;
    sni_dim out[SN_MAX_RANK];
    SN_TRY(read_equation(p->equation, c->n_in, rank, dims, c->symbols, &e, c->err));
    for (int a = 0; a < e.out.rank; a++) out[a] = e.size[e.out.label[a]];
    return sni_infer_set_shape(c, 0, e.out.rank, out);
}

/* An operand under way: dense or not, with a stride for every label (0: it does not have it). */
typedef struct view {
    const void *data;
    int64_t stride[LABELS];
    bool has[LABELS];
} view;

static void view_of(const equation *e, const term *t, const int64_t *dims, const void *data,
                    view *v) {
    int64_t strides[SN_MAX_RANK];
    *v = (view){.data = data};
    sni_strides(t->rank, dims, strides);
    for (int a = 0; a < t->rank; a++) {
        int l = t->label[a];
        v->has[l] = true;
        /* A label that stands twice walks the diagonal; size 1 is repeated. */
        if (dims[a] == e->size[l]) v->stride[l] += strides[a];
    }
}

/* Labels in an order, and the product of their sizes. */
typedef struct group {
    int n;
    int label[LABELS];
    int64_t size;
} group;

static sn_status add_label(sni_kernel *k, const equation *e, group *g, int label) {
    g->label[g->n++] = label;
    return sni_mul_i64(g->size, e->size[label], &g->size)
               ? SN_OK
               : sni_fail(k->err, SN_LIMIT, "an axis of too many elements");
}

/* A dense copy of `v` with its axes in the order of the groups. */
static sn_status arrange(sni_kernel *k, const equation *e, const view *v,
                         const group *const *groups, size_t width, const void **out) {
    int64_t dims[SN_MAX_RANK], from[SN_MAX_RANK], to[SN_MAX_RANK], count = 1;
    int rank = 0;
    for (int g = 0; g < 3; g++) {
        for (int i = 0; i < groups[g]->n; i++, rank++) {
            if (rank >= SN_MAX_RANK)
                return sni_fail(k->err, SN_UNSUPPORTED, "a step over more than %d axes",
                                SN_MAX_RANK);
            dims[rank] = e->size[groups[g]->label[i]];
            from[rank] = v->stride[groups[g]->label[i]];
        }
        if (!sni_mul_i64(count, groups[g]->size, &count))
            return sni_fail(k->err, SN_LIMIT, "an operand of too many elements");
    }
    sni_strides(rank, dims, to);
    bool dense = true;
    for (int a = 0; a < rank; a++) dense &= from[a] == to[a] || dims[a] == 1;
    *out = v->data;
    if (dense) return SN_OK;
    void *copy = NULL;
    SN_TRY(sni_scratch_array(k, count, width, &copy));
    sni_copy_box(k, &(sni_box){rank, dims, copy, to, v->data, from, width});
    *out = copy;
    return SN_OK;
}

typedef struct stack_job {
    const void *a, *b;
    void *c;
    int64_t a_step, b_step, c_step;
    size_t width;
} stack_job;

static void stack_locate(const void *ctx, int64_t i, sni_gemm *g) {
    const stack_job *j = ctx;
    g->a = sni_element(j->a, i * j->a_step, j->width);
    g->b = sni_element(j->b, i * j->b_step, j->width);
    g->c = sni_element(j->c, i * j->c_step, j->width);
}

/* a = a times b, summed over labels that `needed` does not have. */
static sn_status contract(sni_kernel *k, const equation *e, view *a, const view *b,
                          const bool *needed, sn_dtype dtype) {
    group stack = {.size = 1}, rows = {.size = 1}, columns = {.size = 1}, sums = {.size = 1};
    size_t width = sni_dtype_width(dtype);
    for (int l = 0; l < LABELS; l++) {
        if (!a->has[l] && !b->has[l]) continue;
        group *g = !needed[l]               ? &sums
                   : a->has[l] && b->has[l] ? &stack
                   : a->has[l]              ? &rows
                                            : &columns;
        SN_TRY(add_label(k, e, g, l));
    }
    stack_job job = {.a_step = rows.size * sums.size,
                     .b_step = sums.size * columns.size,
                     .c_step = rows.size * columns.size,
                     .width = width};
    int64_t count;
    if (!sni_mul_i64(stack.size, rows.size, &count) || !sni_mul_i64(count, columns.size, &count))
        return sni_fail(k->err, SN_LIMIT, "a product of too many elements");
    SN_TRY(arrange(k, e, a, (const group *[]){&stack, &rows, &sums}, width, &job.a));
    SN_TRY(arrange(k, e, b, (const group *[]){&stack, &sums, &columns}, width, &job.b));
    SN_TRY(sni_scratch_array(k, count, width, &job.c));
    sni_gemm g = {.m = rows.size,
                  .n = columns.size,
                  .k = sums.size,
                  .a_row = sums.size,
                  .a_col = 1,
                  .b_row = columns.size,
                  .b_col = 1,
                  .c_row = columns.size};
    SN_TRY(sni_gemm_batch(k, dtype, &g, stack.size, stack_locate, &job));
    *a = (view){.data = job.c};
    const group *order[3] = {&stack, &rows, &columns};
    int64_t step = 1;
    for (int i = 2; i >= 0; i--)
        for (int j = order[i]->n - 1; j >= 0; j--) {
            int l = order[i]->label[j];
            a->has[l] = true;
            a->stride[l] = step;
            step *= e->size[l];
        }
    return SN_OK;
}

/* The type sums are made in: 8- and 16-bit integers wrap when the result is cut. */
static sn_dtype sum_dtype(sn_dtype dtype) {
    const sni_dtype_facts *f = sni_dtype_get(dtype);
    if (f->cls == SNI_CLASS_S) return SN_FLOAT32;
    return f->bits < 32 ? SN_INT32 : dtype;
}

static void mark_needed(const equation *e, int from, bool *needed) {
    memset(needed, 0, LABELS * sizeof *needed);
    for (int i = from; i < e->terms; i++)
        for (int a = 0; a < e->in[i].rank; a++) needed[e->in[i].label[a]] = true;
    for (int a = 0; a < e->out.rank; a++) needed[e->out.label[a]] = true;
}

static sn_status einsum_ref(sni_kernel *k) {
    const einsum_params *p = k->params;
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sum_dtype(y->dtype);
    size_t width = sni_dtype_width(dtype);
    int rank[TERMS];
    const int64_t *dims[TERMS];
    equation e;
    for (int i = 0; i < k->n_in; i++) {
        rank[i] = sni_in(k, i)->rank;
        dims[i] = sni_in(k, i)->dims;
    }
    SN_TRY(read_equation(p->equation, k->n_in, rank, dims, NULL, &e, k->err));
    if (y->count == 0) return SN_OK;
    static const uint64_t one_i = 1;
    static const float one_f = 1;
    static const double one_d = 1;
    view all = {.data = dtype == SN_FLOAT32   ? (const void *)&one_f
                        : dtype == SN_FLOAT64 ? (const void *)&one_d
                                              : (const void *)&one_i};
    for (int i = 0; i < e.terms; i++) {
        bool needed[LABELS];
        const void *data;
        view next;
        SN_TRY(sni_poll(k));
        SN_TRY(sni_in_as(k, sni_in(k, i), dtype, &data));
        view_of(&e, &e.in[i], dims[i], data, &next);
        mark_needed(&e, i + 1, needed);
        bool keeps_all = true;
        for (int l = 0; l < LABELS; l++) keeps_all &= !next.has[l] || needed[l];
        if (i == 0 && (keeps_all || e.terms > 1)) /* sums may wait for the product */
            all = next;
        else
            SN_TRY(contract(k, &e, &all, &next, needed, dtype));
    }
    int64_t from[SN_MAX_RANK], to[SN_MAX_RANK];
    void *out;
    for (int a = 0; a < e.out.rank; a++) from[a] = all.stride[e.out.label[a]];
    sni_strides(e.out.rank, y->dims, to);
    SN_TRY(sni_out_as(k, y, dtype, &out));
    sni_copy_box(k, &(sni_box){e.out.rank, y->dims, out, to, all.data, from, width});
    sni_out_done(k, y, dtype, out);
    return SN_OK;
}

const sni_op sni_op_Einsum = {
    .name = "Einsum",
    .versions = SNI_VERSIONS(12),
    .inputs = SNI_FORMALS({"Inputs", "T", SNI_VARIADIC}),
    .outputs = SNI_FORMALS({"Output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS}),
    .params = SNI_PARAMS(
        {"equation", SNI_ATTR_STRING, offsetof(einsum_params, equation), .required = true}),
    .params_size = sizeof(einsum_params),
    .infer = einsum_infer,
    .ref = einsum_ref,
};
