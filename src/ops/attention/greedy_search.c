/* GreedySearch of com.microsoft: text from a decoder that is a subgraph, with the most likely token
 * at every step. */
#include "ops/attention/generation.h"
#include "ops/core/wide.h"

#include <inttypes.h>

enum { INPUT, MAX_LENGTH, MIN_LENGTH, REPETITION, VOCAB_MASK, PREFIX_MASK, ATTENTION_MASK };

sn_status sni_greedy_infer(sni_infer *c) {
    sni_dim length;
    SN_TRY(sni_generation_infer(c));
    SN_TRY(sni_generation_dim(c, MAX_LENGTH, SNI_GENERATE_LENGTH, &length));
    if (!sni_infer_shaped(c, INPUT)) return SN_OK;
    return sni_infer_set_shape(c, 0, 2, (sni_dim[]){sni_infer_dim(c, INPUT, 0), length});
}

/* The first of the largest scores of every row. */
static sn_status pick_best(sni_kernel *k, sni_generation *g, void *ctx, int32_t *next) {
    (void)k, (void)ctx;
    for (int64_t r = 0; r < g->rows; r++) {
        const float *scores = g->scores + r * g->vocabulary;
        int64_t best = 0;
        for (int64_t i = 1; i < g->vocabulary; i++)
            if (scores[i] > scores[best]) best = i;
        next[r] = (int32_t)best;
    }
    return SN_OK;
}

/* Steps until every sequence has ended or has its full length. */
static sn_status search(sni_kernel *k, sni_generation *g, sni_pick_fn pick, void *ctx) {
    const sni_generation_params *p = k->params;
    void *next = NULL, *ended = NULL;
    SN_TRY(sni_scratch_array(k, g->rows, sizeof(int32_t), &next));
    SN_TRY(sni_scratch_array(k, g->rows, 1, &ended));
    memset(ended, 0, (size_t)g->rows);
    for (bool first = true; g->length < g->max_length; first = false) {
        int64_t open = 0;
        SN_TRY(sni_generation_step(k, g));
        SN_TRY(sni_generation_rules(k, g, first));
        SN_TRY(pick(k, g, ctx, next));
        for (int64_t r = 0; r < g->rows; r++) {
            int32_t token = ((const int32_t *)next)[r];
            if (token == p->eos) ((uint8_t *)ended)[r] = 1;
            ((int32_t *)next)[r] = ((uint8_t *)ended)[r] ? (int32_t)p->pad : token;
            open += !((uint8_t *)ended)[r];
        }
        SN_TRY(sni_generation_append(k, g, next, NULL));
        if (open == 0) break;
    }
    return SN_OK;
}

sn_status sni_greedy_run(sni_kernel *k, sni_generation *g, sni_pick_fn pick, void *ctx) {
    const sni_generation_params *p = k->params;
    const sni_tensor *ids = sni_in(k, INPUT);
    int64_t most;
    SN_TRY(sni_generation_int(k, MAX_LENGTH, 1, SNI_GENERATE_LENGTH, SNI_GENERATE_LENGTH, &most));
    SN_TRY(sni_generation_int(k, MIN_LENGTH, 0, INT32_MAX, 0, &g->min_length));
    SN_TRY(sni_generation_float(k, REPETITION, 1, &g->repetition_penalty));
    if (!(g->repetition_penalty > 0))
        return SNI_KERNEL_FAIL(k, "repetition_penalty is %g", (double)g->repetition_penalty);
    g->mask = sni_in(k, VOCAB_MASK);
    g->prefix_mask = sni_in(k, PREFIX_MASK);
    SN_TRY(sni_generation_start(k, g, ids, sni_in(k, ATTENTION_MASK), 1, most));
    SN_TRY(sni_out_alloc(k, 0, SN_INT32, 2, (int64_t[]){g->batches, most}));
    if (g->rows > 0) SN_TRY(search(k, g, pick, ctx));
    int32_t *out = sni_out(k, 0) ? sni_out(k, 0)->data : NULL;
    for (int64_t i = 0; out && i < g->rows * most; i++)
        out[i] = i % most < g->length ? g->tokens[i] : (int32_t)p->pad;
    return SN_OK;
}

static sn_status greedy_ref(sni_kernel *k) {
    sni_generation g = {0};
    sn_status status = sni_greedy_run(k, &g, pick_best, NULL);
    sni_generation_free(&g);
    return status;
}

const sni_op sni_op_ms_GreedySearch = {
    .name = "GreedySearch",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS(
        {"input_ids", "int32"}, {"max_length", "int32"}, {"min_length", "int32", SNI_OPTIONAL},
        {"repetition_penalty", "T", SNI_OPTIONAL}, {"vocab_mask", "int32", SNI_OPTIONAL},
        {"prefix_vocab_mask", "int32", SNI_OPTIONAL}, {"attention_mask", "int32", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"sequences", "int32"}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT16)}),
    .params = SNI_PARAMS(SNI_GENERATION_PARAMS),
    .params_size = sizeof(sni_generation_params),
    .flags = SNI_OP_ALLOCATES | SNI_OP_SUBGRAPHS | SNI_OP_DECLARES,
    .prepare = sni_generation_prepare,
    .infer = sni_greedy_infer,
    .ref = greedy_ref,
};
