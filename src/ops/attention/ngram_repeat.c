/* NGramRepeatBlock of com.microsoft: scores of tokens, where one that would complete a run of
 * tokens that came before gets the lowest. */
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <inttypes.h>
#include <math.h>

typedef struct ngram_params {
    int64_t size;
} ngram_params;

static sn_status ngram_prepare(void *params, sni_arena *arena, sn_error *err) {
    const ngram_params *p = params;
    (void)arena;
    if (p->size < 1) return sni_fail(err, SN_INVALID_MODEL, "ngram_size is %" PRId64, p->size);
    return SN_OK;
}

static sn_status ngram_infer(sni_infer *c) {
    for (int i = 0; i < 2; i++)
        if (sni_infer_shaped(c, i) && sni_infer_rank(c, i) != 2)
            return SNI_INFER_FAIL(c, "input %d has rank %d, not 2", i, sni_infer_rank(c, i));
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    if (sni_dim_differ(sni_infer_dim(c, 0, 0), sni_infer_dim(c, 1, 0)))
        return SNI_INFER_FAIL(c, "tokens and scores are of different numbers of sequences");
    return sni_infer_set_shape(c, 0, 2, c->in[1]->dims);
}

static sn_status ngram_ref(sni_kernel *k) {
    const ngram_params *p = k->params;
    const sni_tensor *ids = sni_in(k, 0), *scores = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    int64_t length = ids->dims[1], vocabulary = scores->dims[1], n = p->size;
    sni_copy_bytes(y->data, scores->data, sni_tensor_bytes(scores));
    for (int64_t b = 0; b < ids->dims[0]; b++) {
        const int64_t *tokens = (const int64_t *)ids->data + b * length;
        for (int64_t i = 0; i + n <= length; i++) {
            int64_t token = tokens[i + n - 1];
            const int64_t *last = tokens + length - (n - 1);
            if (memcmp(last, tokens + i, (size_t)(n - 1) * sizeof *tokens) != 0) continue;
            if (token < 0 || token >= vocabulary)
                return SNI_KERNEL_FAIL(k, "token %" PRId64 " of %" PRId64, token, vocabulary);
            ((float *)y->data)[b * vocabulary + token] = -INFINITY;
        }
        SN_TRY(sni_poll(k));
    }
    return SN_OK;
}

const sni_op sni_op_ms_NGramRepeatBlock = {
    .name = "NGramRepeatBlock",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"input_ids", "int64"}, {"scores", "float32"}),
    .outputs = SNI_FORMALS({"scores_out", "float32"}),
    .params =
        SNI_PARAMS({"ngram_size", SNI_ATTR_INT, offsetof(ngram_params, size), .required = true}),
    .params_size = sizeof(ngram_params),
    .prepare = ngram_prepare,
    .infer = ngram_infer,
    .ref = ngram_ref,
};
