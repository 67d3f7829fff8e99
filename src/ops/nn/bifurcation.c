/* BifurcationDetector of com.microsoft, for speculative decoding: accepts the predicted tokens up
 * to the first that differs from the source, and finds where in the source the text continues. */
#include "ops/core/op.h"
#include "ops/core/tensor_util.h"

typedef struct ngram_params {
    int64_t least, most; /* sizes of the n-grams that are looked for */
} ngram_params;

static sn_status bifurcation_prepare(void *params, sni_arena *arena, sn_error *err) {
    const ngram_params *p = params;
    (void)arena;
    if (p->least < 1 || p->most < p->least)
        return sni_fail(err, SN_INVALID_MODEL, "n-grams of %lld to %lld tokens",
                        (long long)p->least, (long long)p->most);
    return SN_OK;
}

static sn_status bifurcation_infer(sni_infer *c) {
    for (int i = 0; i < 4; i++)
        if (i != 2 && sni_infer_shaped(c, i) && sni_infer_rank(c, i) != 1)
            return SNI_INFER_FAIL(c, "input %d has rank %d, not 1", i, sni_infer_rank(c, i));
    SN_TRY(sni_infer_set_shape(c, 0, 1, (sni_dim[]){sni_dim_fresh(c->symbols)}));
    if (!sni_infer_shaped(c, 2)) return SN_OK;
    return sni_infer_set_shape(c, 1, sni_infer_rank(c, 2), c->in[2]->dims);
}

/* First place from `from` on where the n tokens at `what` stand in `source`; -1: none. */
static int64_t find(const sni_tensor *source, int64_t from, const int64_t *what, int64_t n) {
    const int64_t *v = source->data;
    for (int64_t i = from; i <= source->count - n; i++)
        if (memcmp(v + i, what, (size_t)n * sizeof *v) == 0) return i;
    return -1;
}

/* Where the source goes on after its one n-gram that ends `tokens`: of the sizes that are tried the
 * last one with a single match counts. */
static int64_t suffix_match(const ngram_params *p, const sni_tensor *source, const int64_t *tokens,
                            int64_t count) {
    int64_t after = -1;
    for (int64_t n = p->least; n <= p->most && n <= count; n++) {
        const int64_t *last = tokens + count - n;
        int64_t at = find(source, 0, last, n);
        if (at < 0) break;
        after = at + n;
        if (after >= source->count) break;
        if (find(source, at + 1, last, n) >= 0) after = -1;
    }
    return after;
}

/* How many predicted tokens are taken: up to and with the first that differs. */
static sn_status accepted(sni_kernel *k, int64_t *count) {
    const sni_tensor *source = sni_in(k, 0), *start = sni_in(k, 2), *predicted = sni_in(k, 3);
    *count = 0;
    if (start->count != 1)
        return SNI_KERNEL_FAIL(k, "%lld indices, not 1", (long long)start->count);
    if (!predicted) return SN_OK;
    int64_t from = *(const int64_t *)start->data;
    if (from < 0 || from > source->count || predicted->count != source->count + 1 - from)
        return SNI_KERNEL_FAIL(k, "%lld predicted tokens from index %lld of %lld",
                               (long long)predicted->count, (long long)from,
                               (long long)source->count);
    const int64_t *v = predicted->data, *s = source->data;
    int64_t n = 0;
    while (from + n < source->count && v[n] == s[from + n]) n++;
    *count = n + 1;
    return SN_OK;
}

static sn_status bifurcation_ref(sni_kernel *k) {
    const sni_tensor *current = sni_in(k, 1), *start = sni_in(k, 2), *predicted = sni_in(k, 3);
    int64_t taken = 0;
    SN_TRY(accepted(k, &taken));
    int64_t count = current->count + taken;
    int64_t *tokens = NULL;
    SN_TRY(sni_scratch_i64(k, count, &tokens));
    sni_copy_bytes(tokens, current->data, (size_t)current->count * sizeof *tokens);
    if (taken)
        sni_copy_bytes(tokens + current->count, predicted->data, (size_t)taken * sizeof *tokens);
    if (sni_out(k, 0)) {
        SN_TRY(sni_out_alloc(k, 0, SN_INT64, 1, &count));
        sni_copy_bytes(sni_out(k, 0)->data, tokens, (size_t)count * sizeof *tokens);
    }
    if (!sni_out(k, 1)) return SN_OK;
    SN_TRY(sni_out_alloc(k, 1, SN_INT64, start->rank, start->dims));
    *(int64_t *)sni_out(k, 1)->data = suffix_match(k->params, sni_in(k, 0), tokens, count);
    return SN_OK;
}

const sni_op sni_op_ms_BifurcationDetector = {
    .name = "BifurcationDetector",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs =
        SNI_FORMALS({"src_tokens", "int64"}, {"cur_tokens", "int64"},
                    {"prev_suffix_match_idx", "int64"}, {"pred_tokens", "int64", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"tokens", "int64"}, {"suffix_match_idx", "int64"}),
    .params =
        SNI_PARAMS({"min_ngram_size", SNI_ATTR_INT, offsetof(ngram_params, least), .number = 1},
                   {"max_ngram_size", SNI_ATTR_INT, offsetof(ngram_params, most), .number = 3}),
    .params_size = sizeof(ngram_params),
    .flags = SNI_OP_ALLOCATES,
    .prepare = bifurcation_prepare,
    .infer = bifurcation_infer,
    .ref = bifurcation_ref,
};
