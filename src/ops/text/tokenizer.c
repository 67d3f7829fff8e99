/* Tokenizer of com.microsoft: strings to tokens, by separators, by an expression that tokens match,
 * or character by character. */
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"
#include "ops/text/regex.h"
#include "ops/text/unicode.h"

#include <inttypes.h>

typedef struct tokenizer_params {
    sni_strings separators;
    sni_str expression, pad;
    int64_t mark, least; /* least: code points of a token */
} tokenizer_params;

static bool is_by_character(const tokenizer_params *p) {
    if (p->separators.given) return p->separators.n == 1 && p->separators.v[0].n == 0;
    return sni_str_is(p->expression, ".");
}

static sn_status tokenizer_prepare(void *params, sni_arena *arena, sn_error *err) {
    const tokenizer_params *p = params;
    (void)arena;
    if (p->least < 1) return sni_fail(err, SN_INVALID_MODEL, "mincharnum is %" PRId64, p->least);
    if (p->separators.given ? p->separators.n == 0 : p->expression.n == 0)
        return sni_fail(err, SN_INVALID_MODEL, "there are neither separators nor a tokenexp");
    if (is_by_character(p) && p->least > 1)
        return sni_fail(err, SN_INVALID_MODEL, "mincharnum is %" PRId64 " for single characters",
                        p->least);
    return SN_OK;
}

/* ---- Expressions ---- */

typedef struct expressions {
    sni_regex **v;
    size_t n;
} expressions;

static void free_expressions(expressions *e) {
    for (size_t i = 0; i < e->n; i++) sni_regex_free(e->v[i]);
    e->n = 0;
}

/* Compiles them into `e`, whose list has room; freed by the caller, after failure too. */
static sn_status compile(const tokenizer_params *p, expressions *e, sn_error *err) {
    if (is_by_character(p)) return SN_OK;
    size_t count = p->separators.given ? p->separators.n : 1;
    for (size_t i = 0; i < count; i++) {
        SN_TRY(
            sni_regex_new(p->separators.given ? p->separators.v[i] : p->expression, &e->v[i], err));
        e->n++;
    }
    return SN_OK;
}

static sn_status tokenizer_infer(sni_infer *c) {
    const tokenizer_params *p = c->params;
    expressions e = {.v = SNI_NEW_ARRAY(c->arena, sni_regex *, p->separators.n + 1)};
    if (!e.v) return sni_fail_memory(c->err);
    sn_status status = compile(p, &e, c->err);
    free_expressions(&e);
    SN_TRY(status);
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank != 1 && rank != 2)
        return SNI_INFER_FAIL(c, "the strings have rank %d, not 1 or 2", rank);
    sni_dim dims[3];
    for (int i = 0; i < rank; i++) dims[i] = sni_infer_dim(c, 0, i);
    dims[rank] = sni_dim_fresh(c->symbols);
    return sni_infer_set_shape(c, 0, rank + 1, dims);
}

/* ---- One string ---- */

typedef struct tokens {
    sni_str *v; /* room for one more than the longest string has bytes */
    int64_t n;
} tokens;

static int64_t code_points(sni_str s) {
    int64_t n = 0;
    size_t length;
    for (size_t at = 0; at < s.n; at += length, n++) sni_utf8_decode(s, at, &length);
    return n;
}

static sni_str part(sni_str s, size_t from, size_t to) {
    return (sni_str){s.p ? s.p + from : s.p, to - from};
}

static void put(const tokenizer_params *p, tokens *t, sni_str token) {
    if (code_points(token) >= p->least) t->v[t->n++] = token;
}

static size_t next_character(sni_str s, size_t at) {
    size_t length = 1;
    if (at < s.n) sni_utf8_decode(s, at, &length);
    return at + length;
}

/* The first match at or after `from`, the longest there; *found is false if there is none. */
static sn_status search(sni_kernel *k, sni_regex *r, sni_str s, size_t from, bool *found,
                        size_t *begin, size_t *end) {
    for (*begin = from; *begin <= s.n; *begin = next_character(s, *begin)) {
        *found = sni_regex_longest_match(r, s, *begin, end);
        if (*found) return SN_OK;
        SN_TRY(sni_poll(k)); /* each of them may look at all that follows */
    }
    *found = false;
    return SN_OK;
}

/* What stands between the matches of a separator. */
static sn_status split(sni_kernel *k, sni_regex *r, sni_str s, tokens *out) {
    const tokenizer_params *p = k->params;
    for (size_t at = 0; at <= s.n;) {
        bool found;
        size_t begin, end;
        SN_TRY(search(k, r, s, at, &found, &begin, &end));
        put(p, out, part(s, at, found ? begin : s.n));
        if (!found) break;
        at = end > begin ? end : next_character(s, begin);
    }
    return SN_OK;
}

/* One separator after the other, each on what the one before left. *t ends with the tokens. */
static sn_status split_all(sni_kernel *k, const expressions *e, sni_str s, tokens *t,
                           tokens *spare) {
    t->v[0] = s;
    t->n = 1;
    for (size_t i = 0; i < e->n && t->n; i++) {
        spare->n = 0;
        for (int64_t j = 0; j < t->n; j++) SN_TRY(split(k, e->v[i], t->v[j], spare));
        tokens swap = *t;
        *t = *spare;
        *spare = swap;
    }
    return SN_OK;
}

/* The matches of an expression. One that is too short is not taken, and its first character is left
 * out. */
static sn_status find_all(sni_kernel *k, sni_regex *r, sni_str s, tokens *t) {
    const tokenizer_params *p = k->params;
    t->n = 0;
    if (code_points(s) < p->least) return SN_OK;
    for (size_t at = 0; at <= s.n;) {
        bool found;
        size_t begin, end;
        SN_TRY(search(k, r, s, at, &found, &begin, &end));
        if (!found) break;
        int64_t before = t->n;
        put(p, t, part(s, begin, end));
        at = t->n > before ? end : next_character(s, begin);
    }
    return SN_OK;
}

static sn_status tokenize(sni_kernel *k, const expressions *e, sni_str s, tokens *t,
                          tokens *spare) {
    const tokenizer_params *p = k->params;
    if (e->n && p->separators.given) return split_all(k, e, s, t, spare);
    if (e->n) return find_all(k, e->v[0], s, t);
    t->n = 0;
    for (size_t at = 0, next; at < s.n; at = next) {
        next = next_character(s, at);
        t->v[t->n++] = part(s, at, next);
    }
    return SN_OK;
}

/* ---- The kernel ---- */

/* Checks that all strings are UTF-8; *most: bytes of the longest. */
static sn_status check_strings(sni_kernel *k, const sni_tensor *x, size_t *most) {
    *most = 0;
    for (int64_t i = 0; i < x->count; i++) {
        sni_str s = ((const sni_str *)x->data)[i];
        size_t length;
        for (size_t at = 0; at < s.n; at += length)
            if (sni_utf8_decode(s, at, &length) < 0)
                return SNI_KERNEL_FAIL(k, "string %" PRId64 " is no UTF-8", i);
        if (s.n > *most) *most = s.n;
    }
    return SN_OK;
}

static void write_row(const tokenizer_params *p, const tokens *t, int64_t width, sni_str *to) {
    int64_t at = 0;
    if (p->mark) to[at++] = SNI_STR("\x02");
    for (int64_t i = 0; i < t->n; i++) to[at++] = t->v[i];
    if (p->mark) to[at++] = SNI_STR("\x03");
    while (at < width) to[at++] = p->pad;
}

/* Twice over the strings: to count, and to write. */
static sn_status run(sni_kernel *k, const expressions *e, tokens *t, tokens *spare) {
    const tokenizer_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    const sni_str *strings = x->data;
    int64_t width = 0, dims[3];
    for (int64_t i = 0; i < x->count; i++) {
        SN_TRY(tokenize(k, e, strings[i], t, spare));
        if (t->n > width) width = t->n;
    }
    if (width && p->mark) width += 2;
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    dims[x->rank] = width;
    SN_TRY(sni_out_alloc(k, 0, SN_STRING, x->rank + 1, dims));
    sni_tensor *y = sni_out(k, 0);
    for (int64_t i = 0; y && width && i < x->count; i++) {
        SN_TRY(tokenize(k, e, strings[i], t, spare));
        write_row(p, t, width, (sni_str *)y->data + i * width);
    }
    return SN_OK;
}

static sn_status tokenizer_ref(sni_kernel *k) {
    const tokenizer_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    size_t most;
    void *list = NULL, *first = NULL, *second = NULL;
    if (x->rank != 1 && x->rank != 2)
        return SNI_KERNEL_FAIL(k, "the strings have rank %d, not 1 or 2", x->rank);
    SN_TRY(check_strings(k, x, &most));
    if (most > INT32_MAX) return sni_fail(k->err, SN_LIMIT, "a string has %zu bytes", most);
    SN_TRY(sni_scratch_array(k, (int64_t)p->separators.n + 1, sizeof(sni_regex *), &list));
    SN_TRY(sni_scratch_array(k, (int64_t)most + 2, sizeof(sni_str), &first));
    SN_TRY(sni_scratch_array(k, (int64_t)most + 2, sizeof(sni_str), &second));
    expressions e = {.v = list};
    tokens t = {.v = first}, spare = {.v = second};
    sn_status status = compile(p, &e, k->err);
    if (status == SN_OK) status = run(k, &e, &t, &spare);
    free_expressions(&e);
    return status;
}

#define FIELD(f) offsetof(tokenizer_params, f)

const sni_op sni_op_ms_Tokenizer = {
    .name = "Tokenizer",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "string"}),
    .outputs = SNI_FORMALS({"Y", "string"}),
    .params = SNI_PARAMS({"mark", SNI_ATTR_INT, FIELD(mark), .required = true},
                         {"pad_value", SNI_ATTR_STRING, FIELD(pad), .required = true},
                         {"mincharnum", SNI_ATTR_INT, FIELD(least), .required = true},
                         {"separators", SNI_ATTR_STRINGS, FIELD(separators)},
                         {"tokenexp", SNI_ATTR_STRING, FIELD(expression)}),
    .params_size = sizeof(tokenizer_params),
    .flags = SNI_OP_ALLOCATES,
    .prepare = tokenizer_prepare,
    .infer = tokenizer_infer,
    .ref = tokenizer_ref,
};
