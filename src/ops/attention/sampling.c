/* Sampling of com.microsoft: text from a decoder that is a subgraph, each token drawn by its
 * probability among the most likely ones. The same seed draws the tokens that ONNX Runtime draws.
 */
#include "ops/attention/generation.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { PRESENCE = 7, SEED };

typedef struct sampling_params {
    sni_generation_params shared;
    float temperature, top_p, filter_value, presence_penalty;
    int64_t keep, custom;
} sampling_params;

static sn_status sampling_prepare(void *params, sni_arena *arena, sn_error *err) {
    const sampling_params *p = params;
    if (p->keep < 0)
        return sni_fail(err, SN_INVALID_MODEL, "min_tokens_to_keep is %" PRId64, p->keep);
    if (!(p->temperature > 0))
        return sni_fail(err, SN_INVALID_MODEL, "temperature is %g", (double)p->temperature);
    return sni_generation_prepare(params, arena, err);
}

static sn_status sampling_infer(sni_infer *c) {
    if (c->n_out > 1 && !c->out[1].dtype) SN_TRY(sni_infer_set_type(c, 1, SN_FLOAT32));
    return sni_greedy_infer(c);
}

/* ---- Random numbers ---- */

/* The generator of Lewis, Goodman and Miller: multiplication by 7^5 modulo 2^31 - 1. */
typedef struct generator {
    uint64_t state; /* 1 to 2^31 - 2 */
} generator;

static const double STATES = 2147483646;

static double next_state(generator *g) {
    g->state = g->state * 16807 % 2147483647;
    return (double)(g->state - 1);
}

/* In [0, 1), of two states. */
static double draw(generator *g) {
    double low = next_state(g), high = next_state(g);
    double v = (low + high * STATES) / (STATES * STATES);
    return v < 1 ? v : nextafter(1, 0);
}

/* ---- Choosing ---- */

typedef struct scored {
    float score;
    int32_t token;
} scored;

typedef struct sampler {
    generator random;
    scored *order;   /* (vocabulary) */
    double *sums;    /* (vocabulary) */
    float *filtered; /* (rows, vocabulary): scores of the last step */
} sampler;

static int by_rising_score(const void *a, const void *b) {
    const scored *x = a, *y = b;
    if (x->score < y->score || x->score > y->score) return x->score < y->score ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

static int by_falling_score(const void *a, const void *b) {
    const scored *x = a, *y = b;
    if (x->score < y->score || x->score > y->score) return x->score > y->score ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

/* Probabilities of the scores in order, into `p`. */
static void softmax(const scored *order, int64_t n, double *p) {
    float most = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) most = order[i].score > most ? order[i].score : most;
    for (int64_t i = 0; i < n; i++) sum += p[i] = exp((double)(order[i].score - most));
    for (int64_t i = 0; i < n; i++) p[i] /= sum;
}

/* Tokens that are together less likely than what top_p leaves get the filter's score. The `keep`
 * likeliest ones stay. */
static void filter(const sampling_params *p, sampler *s, float *scores, int64_t n) {
    for (int64_t i = 0; i < n; i++) s->order[i] = (scored){scores[i], (int32_t)i};
    qsort(s->order, (size_t)n, sizeof *s->order, p->custom ? by_falling_score : by_rising_score);
    softmax(s->order, n, s->sums);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += s->sums[i];
        if (p->custom) {
            if (sum > (double)p->top_p && i + 1 < n)
                scores[s->order[i + 1].token] = p->filter_value;
        } else if (sum <= (double)(1 - p->top_p) && (i == 0 || i < n - p->keep)) {
            scores[s->order[i].token] = p->filter_value;
        }
    }
}

/* A token by its probability. */
static int32_t choose(sampler *s, const float *scores, int64_t n) {
    float most = -FLT_MAX;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(scores[i]) && scores[i] > most) most = scores[i];
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(scores[i])) sum += exp((double)scores[i] - (double)most);
        s->sums[i] = sum;
    }
    double wanted = draw(&s->random) * sum;
    int64_t found = 0;
    while (found < n - 1 && !(s->sums[found] > wanted)) found++;
    return (int32_t)found;
}

static void adjust(const sampling_params *p, const sni_tensor *presence, int64_t row, float *scores,
                   int64_t n) {
    const int32_t *seen = presence ? (const int32_t *)presence->data + row * n : NULL;
    for (int64_t i = 0; i < n; i++) {
        scores[i] /= p->temperature;
        if (seen) scores[i] -= (float)seen[i] * p->presence_penalty;
    }
}

static sn_status pick_sample(sni_kernel *k, sni_generation *g, void *ctx, int32_t *next) {
    const sampling_params *p = k->params;
    const sni_tensor *presence = sni_in(k, PRESENCE);
    sampler *s = ctx;
    int64_t n = g->vocabulary;
    if (p->keep >= n)
        return SNI_KERNEL_FAIL(k, "min_tokens_to_keep is %" PRId64 " of %" PRId64 " tokens",
                               p->keep, n);
    if (presence && presence->count != g->rows * n)
        return SNI_KERNEL_FAIL(k, "presence_mask does not fit a vocabulary of %" PRId64, n);
    if (!s->order) {
        void *order = NULL, *sums = NULL;
        SN_TRY(sni_scratch_array(k, n, sizeof *s->order, &order));
        SN_TRY(sni_scratch_array(k, n, sizeof *s->sums, &sums));
        s->order = order;
        s->sums = sums;
    }
    for (int64_t r = 0; r < g->rows; r++) {
        float *scores = g->scores + r * n;
        adjust(p, presence, r, scores, n);
        filter(p, s, scores, n);
        next[r] = choose(s, scores, n);
    }
    s->filtered = g->scores;
    return SN_OK;
}

/* ---- The kernel ---- */

/* The scores that the last tokens were drawn from. */
static sn_status write_filtered(sni_kernel *k, const sni_generation *g, const sampler *s) {
    int64_t dims[2] = {g->rows, g->vocabulary};
    void *to = NULL;
    SN_TRY(sni_out_alloc(k, 1, SN_FLOAT32, 2, dims));
    if (!sni_out(k, 1)) return SN_OK;
    to = sni_out(k, 1)->data;
    if (s->filtered) sni_copy_bytes(to, s->filtered, sni_tensor_bytes(sni_out(k, 1)));
    return SN_OK;
}

static sn_status sampling_ref(sni_kernel *k) {
    sni_generation g = {0};
    sampler s = {0};
    int64_t seed = 0;
    sn_status status = sni_generation_int(k, SEED, 0, INT32_MAX, 0, &seed);
    s.random.state = (uint64_t)seed % 2147483647;
    if (s.random.state == 0) s.random.state = 1;
    if (status == SN_OK) status = sni_greedy_run(k, &g, pick_sample, &s);
    if (status == SN_OK) status = write_filtered(k, &g, &s);
    sni_generation_free(&g);
    return status;
}

#define FIELD(f) offsetof(sampling_params, f)

const sni_op sni_op_ms_Sampling = {
    .name = "Sampling",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS(
        {"input_ids", "int32"}, {"max_length", "int32"}, {"min_length", "int32", SNI_OPTIONAL},
        {"repetition_penalty", "T", SNI_OPTIONAL}, {"vocab_mask", "int32", SNI_OPTIONAL},
        {"prefix_vocab_mask", "int32", SNI_OPTIONAL}, {"attention_mask", "int32", SNI_OPTIONAL},
        {"presence_mask", "int32", SNI_OPTIONAL}, {"seed", "int32", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"sequences", "int32"}, {"filtered_logits", "float32", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT16)}),
    .params = SNI_PARAMS(
        SNI_GENERATION_PARAMS, {"temperature", SNI_ATTR_FLOAT, FIELD(temperature), .number = 1},
        {"top_p", SNI_ATTR_FLOAT, FIELD(top_p)},
        {"filter_value", SNI_ATTR_FLOAT, FIELD(filter_value), .number = -1e20},
        {"presence_penalty", SNI_ATTR_FLOAT, FIELD(presence_penalty)},
        {"min_tokens_to_keep", SNI_ATTR_INT, FIELD(keep)}, {"custom", SNI_ATTR_INT, FIELD(custom)}),
    .params_size = sizeof(sampling_params),
    .flags = SNI_OP_ALLOCATES | SNI_OP_SUBGRAPHS | SNI_OP_DECLARES,
    .prepare = sampling_prepare,
    .infer = sampling_infer,
    .ref = sampling_ref,
};
