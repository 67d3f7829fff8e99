/* StringConcat, StringSplit, StringNormalizer and RegexFullMatch. */
#include "ops/text/regex.h"
#include "ops/core/tensor_util.h"
#include "ops/text/unicode.h"
#include "ops/core/wide.h"

#include "base/checked.h"

/* The status of a failed sni_text(). */
static sn_status no_text(sni_kernel *k) {
    sn_status status = k->err ? k->err->status : SN_NO_MEMORY;
    return status != SN_OK ? status : SN_NO_MEMORY;
}

/* ---- StringConcat ---- */

static sn_status concat_ref(sni_kernel *k) {
    const sni_tensor *a = sni_in(k, 0), *b = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    if (y->count == 0) return SN_OK;
    int64_t sa[SN_MAX_RANK], sb[SN_MAX_RANK];
    sni_broadcast_strides(a, y->rank, y->dims, sa);
    sni_broadcast_strides(b, y->rank, y->dims, sb);
    sni_walk w;
    sni_walk_init(&w, y->rank, y->dims, 2, (const int64_t *[]){sa, sb});
    sni_str *dst = y->data;
    do {
        sni_str p = ((const sni_str *)a->data)[w.offset[0]];
        sni_str q = ((const sni_str *)b->data)[w.offset[1]];
        char *text = sni_text(k, p.n + q.n + 1);
        if (!text) return no_text(k);
        if (p.n) memcpy(text, p.p, p.n);
        if (q.n) memcpy(text + p.n, q.p, q.n);
        text[p.n + q.n] = '\0';
        *dst++ = (sni_str){text, p.n + q.n};
    } while (sni_walk_next(&w));
    return SN_OK;
}

const sni_op sni_op_StringConcat = {
    .name = "StringConcat",
    .versions = SNI_VERSIONS(20),
    .inputs = SNI_FORMALS({"X", "T"}, {"Y", "T"}),
    .outputs = SNI_FORMALS({"Z", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_STRING)}),
    .infer = sni_infer_broadcast,
    .ref = concat_ref,
};

/* ---- StringSplit ---- */

typedef struct split_params {
    sni_str delimiter;
    int64_t maxsplit; /* below 0: no limit */
} split_params;

static bool blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Takes the next part off `rest`. False when there is none. `left` is the number of splits that are
 * still allowed (negative: any). */
static bool next_piece(const split_params *p, sni_str *rest, bool *ended, int64_t left,
                       sni_str *piece) {
    if (*ended) return false;
    const char *s = rest->p;
    size_t n = rest->n, at = 0, skip = p->delimiter.n;
    if (skip == 0) { /* runs of white space */
        while (n && blank(*s)) s++, n--;
        if (n == 0) return false;
        while (at < n && !blank(s[at])) at++;
    } else {
        while (at + skip <= n && memcmp(s + at, p->delimiter.p, skip) != 0) at++;
        if (at + skip > n) at = n;
    }
    *ended = at == n || left == 0;
    *piece = (sni_str){s, *ended ? n : at};
    if (!*ended) *rest = (sni_str){s + at + skip, n - at - skip};
    return true;
}

/* Splits one string; its parts are written to `out` unless NULL. */
static int64_t split(const split_params *p, sni_str text, sni_str *out) {
    int64_t count = 0;
    bool ended = false;
    sni_str piece;
    while (next_piece(p, &text, &ended, p->maxsplit < 0 ? -1 : p->maxsplit - count, &piece)) {
        if (out) out[count] = piece;
        count++;
    }
    return count;
}

static sn_status split_ref(sni_kernel *k) {
    const split_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    const sni_str *src = x->data;
    int64_t dims[SN_MAX_RANK], widest = 0;
    if (x->rank >= SN_MAX_RANK)
        return sni_fail(k->err, SN_UNSUPPORTED, "an input of rank %d gives too many axes", x->rank);
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    SN_TRY(sni_out_alloc(k, 1, SN_INT64, x->rank, dims));
    sni_tensor *counts = sni_out(k, 1);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t n = split(p, src[i], NULL);
        if (n > widest) widest = n;
        if (counts) ((int64_t *)counts->data)[i] = n;
    }
    dims[x->rank] = widest;
    SN_TRY(sni_out_alloc(k, 0, SN_STRING, x->rank + 1, dims));
    sni_tensor *y = sni_out(k, 0);
    for (int64_t i = 0; y && i < x->count; i++) split(p, src[i], (sni_str *)y->data + i * widest);
    return SN_OK;
}

static sn_status split_infer(sni_infer *c) {
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    sni_dim dims[SN_MAX_RANK + 1];
    for (int i = 0; i < rank; i++) dims[i] = sni_infer_dim(c, 0, i);
    dims[rank] = sni_dim_fresh(c->symbols);
    SN_TRY(sni_infer_set_shape(c, 0, rank + 1, dims));
    return sni_infer_set_shape(c, 1, rank, dims);
}

const sni_op sni_op_StringSplit = {
    .name = "StringSplit",
    .versions = SNI_VERSIONS(20),
    .inputs = SNI_FORMALS({"X", "T1"}),
    .outputs = SNI_FORMALS({"Y", "T2"}, {"Z", "T3"}),
    .types =
        SNI_TYPE_VARS({"T1", SNI_T(SN_STRING)}, {"T2", SNI_T(SN_STRING)}, {"T3", SNI_T(SN_INT64)}),
    .params =
        SNI_PARAMS({"delimiter", SNI_ATTR_STRING, offsetof(split_params, delimiter)},
                   {"maxsplit", SNI_ATTR_INT, offsetof(split_params, maxsplit), .number = -1}),
    .params_size = sizeof(split_params),
    .flags = SNI_OP_ALLOCATES,
    .infer = split_infer,
    .ref = split_ref,
};

/* ---- StringNormalizer ---- */

typedef struct normalize_params {
    int32_t action;
    int64_t is_case_sensitive;
    sni_strings stopwords;
    sni_str locale; /* not used: the mappings are those that hold in every language */
} normalize_params;

enum { LOWER, UPPER, UNCHANGED };

static int32_t map_case(int32_t c, int32_t action) {
    return action == LOWER ? sni_lower(c) : action == UPPER ? sni_upper(c) : c;
}

/* s in another case, as new text. Bytes that are no UTF-8 are kept. */
static sn_status change_case(sni_kernel *k, sni_str s, int32_t action, sni_str *out) {
    size_t bytes;
    if (!sni_mul_size(s.n + 1, 2, &bytes)) return sni_fail_memory(k->err); /* no letter doubles */
    char *text = sni_text(k, bytes);
    if (!text) return no_text(k);
    size_t n = 0, length;
    for (size_t at = 0; at < s.n; at += length) {
        int32_t c = sni_utf8_decode(s, at, &length);
        if (c < 0)
            text[n++] = s.p[at];
        else
            n += sni_utf8_encode(map_case(c, action), text + n);
    }
    text[n] = '\0';
    *out = (sni_str){text, n};
    return SN_OK;
}

static bool same_folded(sni_str a, sni_str b) {
    size_t i = 0, j = 0, la, lb;
    for (; i < a.n && j < b.n; i += la, j += lb) {
        int32_t ca = sni_utf8_decode(a, i, &la), cb = sni_utf8_decode(b, j, &lb);
        if (ca < 0 || cb < 0 ? a.p[i] != b.p[j] : sni_lower(ca) != sni_lower(cb)) return false;
    }
    return i == a.n && j == b.n;
}

static bool is_stopword(const normalize_params *p, sni_str s) {
    for (size_t i = 0; i < p->stopwords.n; i++)
        if (p->is_case_sensitive ? sni_str_eq(s, p->stopwords.v[i])
                                 : same_folded(s, p->stopwords.v[i]))
            return true;
    return false;
}

static sn_status normalizer_ref(sni_kernel *k) {
    const normalize_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    if (x->rank != 1 && !(x->rank == 2 && x->dims[0] == 1))
        return SNI_KERNEL_FAIL(k, "the input is neither [C] nor [1, C]");
    void *memory = NULL;
    SN_TRY(sni_scratch_array(k, x->count, sizeof(sni_str), &memory));
    sni_str *kept = memory;
    int64_t n = 0;
    for (int64_t i = 0; i < x->count; i++) {
        sni_str s = ((const sni_str *)x->data)[i];
        if (!is_stopword(p, s)) kept[n++] = s;
    }
    int64_t size = n ? n : 1; /* one empty string if nothing is left */
    SN_TRY(sni_out_alloc(k, 0, SN_STRING, x->rank,
                         x->rank == 1 ? (int64_t[]){size, 0} : (int64_t[]){1, size}));
    sni_str *dst = sni_out(k, 0)->data;
    for (int64_t i = 0; i < n; i++) {
        if (p->action == UNCHANGED)
            dst[i] = kept[i];
        else
            SN_TRY(change_case(k, kept[i], p->action, &dst[i]));
    }
    return SN_OK;
}

static sn_status normalizer_infer(sni_infer *c) {
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank != 1 && rank != 2) return SNI_INFER_FAIL(c, "the input has rank %d, not 1 or 2", rank);
    sni_dim n = sni_dim_fresh(c->symbols);
    return sni_infer_set_shape(c, 0, rank, rank == 1 ? (sni_dim[]){n, 0} : (sni_dim[]){1, n});
}

const sni_op sni_op_StringNormalizer = {
    .name = "StringNormalizer",
    .versions = SNI_VERSIONS(10),
    .inputs = SNI_FORMALS({"X", "string"}),
    .outputs = SNI_FORMALS({"Y", "string"}),
    .params = SNI_PARAMS(
        {"case_change_action", SNI_ATTR_STRING, offsetof(normalize_params, action), .text = "NONE",
         .choices = "LOWER|UPPER|NONE"},
        {"is_case_sensitive", SNI_ATTR_INT, offsetof(normalize_params, is_case_sensitive)},
        {"stopwords", SNI_ATTR_STRINGS, offsetof(normalize_params, stopwords)},
        {"locale", SNI_ATTR_STRING, offsetof(normalize_params, locale)}),
    .params_size = sizeof(normalize_params),
    .flags = SNI_OP_ALLOCATES,
    .infer = normalizer_infer,
    .ref = normalizer_ref,
};

/* ---- RegexFullMatch ---- */

typedef struct regex_params {
    sni_str pattern;
} regex_params;

static sn_status regex_ref(sni_kernel *k) {
    const regex_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sni_regex *regex = NULL;
    SN_TRY(sni_regex_new(p->pattern, &regex, k->err));
    sn_status status = SN_OK;
    for (int64_t i = 0; i < x->count && status == SN_OK; i++) {
        ((uint8_t *)y->data)[i] = sni_regex_full_match(regex, ((const sni_str *)x->data)[i]);
        status = sni_poll(k);
    }
    sni_regex_free(regex);
    return status;
}

static sn_status regex_infer(sni_infer *c) {
    const regex_params *p = c->params;
    sni_regex *regex;
    SN_TRY(sni_regex_new(p->pattern, &regex, c->err));
    sni_regex_free(regex);
    return sni_infer_same(c);
}

const sni_op sni_op_RegexFullMatch = {
    .name = "RegexFullMatch",
    .versions = SNI_VERSIONS(20),
    .inputs = SNI_FORMALS({"X", "string"}),
    .outputs = SNI_FORMALS({"Y", "bool"}),
    .params = SNI_PARAMS({"pattern", SNI_ATTR_STRING, offsetof(regex_params, pattern)}),
    .params_size = sizeof(regex_params),
    .infer = regex_infer,
    .ref = regex_ref,
};
