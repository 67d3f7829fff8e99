/* BeamSearch of com.microsoft: text from a decoder that is a subgraph. The most likely sequences of
 * every batch are continued together; finished ones are kept, and the best of all are returned. */
#include "base/checked.h"
#include "ops/core/compute.h"
#include "ops/attention/generation.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>
#include <math.h>

enum {
    INPUT,
    MAX_LENGTH,
    MIN_LENGTH,
    BEAMS,
    RETURNED,
    LENGTH_PENALTY,
    REPETITION,
    VOCAB_MASK,
    PREFIX_MASK,
    ATTENTION_MASK,
    DECODER_IDS,
    PROCESSOR
};

static sn_status beam_infer(sni_infer *c) {
    sni_dim length, beams, returned, dims[4];
    SN_TRY(sni_generation_infer(c));
    SN_TRY(sni_generation_dim(c, MAX_LENGTH, SNI_GENERATE_LENGTH, &length));
    SN_TRY(sni_generation_dim(c, BEAMS, 1, &beams));
    SN_TRY(sni_generation_dim(c, RETURNED, 1, &returned));
    for (int i = 1; i < c->n_out; i++)
        if (!c->out[i].dtype) SN_TRY(sni_infer_set_type(c, i, SN_FLOAT32));
    if (!sni_infer_shaped(c, INPUT)) return SN_OK;
    dims[0] = sni_infer_dim(c, INPUT, 0);
    dims[1] = returned;
    dims[2] = length;
    SN_TRY(sni_infer_set_shape(c, 1, 2, dims));
    return sni_infer_set_shape(c, 0, 3, dims);
}

/* A sequence that has ended. */
typedef struct hypothesis {
    float score; /* sum of logarithms over length ^ penalty */
    int64_t length;
    int32_t *tokens; /* room for max_length */
} hypothesis;

typedef struct beam_search {
    sni_generation g;
    int64_t returned;
    float length_penalty;
    float *sums;          /* (rows) logarithms of the sequences under way */
    hypothesis *ended;    /* (batches, beams), the best ones, in any order */
    int64_t *ended_count; /* (batches) */
    uint8_t *done;        /* (batches) */
    int64_t *best;        /* (2 beams) positions in a batch's scores, best first */
    int32_t *next;        /* (rows) */
    int64_t *from;        /* (rows) */
    float *new_sums;      /* (rows) */
    int64_t steps;
    float *kept; /* (max_length - length, rows, vocabulary); NULL: not wanted */
    sn_dtype score_type;
} beam_search;

/* ---- What has ended ---- */

static float final_score(const beam_search *b, float sum, int64_t length) {
    return sum / powf((float)length, b->length_penalty);
}

static hypothesis *worst_ended(const beam_search *b, int64_t batch) {
    hypothesis *all = b->ended + batch * b->g.beams, *worst = all;
    for (int64_t i = 1; i < b->ended_count[batch]; i++)
        if (all[i].score < worst->score) worst = &all[i];
    return worst;
}

/* Keeps the sequence of a row if it is among the best `beams`. */
static void add_ended(beam_search *b, int64_t batch, int64_t row, float sum) {
    const sni_generation *g = &b->g;
    float score = final_score(b, sum, g->length);
    hypothesis *h = b->ended + batch * g->beams + b->ended_count[batch];
    if (b->ended_count[batch] == g->beams) {
        h = worst_ended(b, batch);
        if (!(score > h->score)) return;
    } else {
        b->ended_count[batch]++;
    }
    h->score = score;
    h->length = g->length;
    memcpy(h->tokens, g->tokens + row * g->max_length, (size_t)g->length * sizeof *h->tokens);
}

/* Whether nothing under way, `best` being the best of it, can still win. */
static bool is_done(const beam_search *b, const sni_generation_params *p, int64_t batch,
                    float best) {
    if (b->ended_count[batch] < b->g.beams) return false;
    if (p->early_stopping) return true;
    return worst_ended(b, batch)->score >= final_score(b, best, b->g.length);
}

/* ---- One step ---- */

/* Scores of every row to logarithms of probabilities. */
static void log_softmax(sni_generation *g) {
    for (int64_t r = 0; r < g->rows; r++) {
        float *s = g->scores + r * g->vocabulary, most = -INFINITY;
        double sum = 0;
        for (int64_t i = 0; i < g->vocabulary; i++) most = s[i] > most ? s[i] : most;
        for (int64_t i = 0; i < g->vocabulary; i++) sum += exp((double)(s[i] - most));
        float offset = most + (float)log(sum);
        for (int64_t i = 0; i < g->vocabulary; i++) s[i] -= offset;
    }
}

/* Positions of the n largest of `count` scores, largest first, of equal ones the first. */
static void find_best(const float *scores, int64_t count, int64_t n, int64_t *best) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        if (found == n && !(scores[i] > scores[best[n - 1]])) continue;
        int64_t at = found < n ? found++ : n - 1;
        for (; at > 0 && scores[i] > scores[best[at - 1]]; at--) best[at] = best[at - 1];
        best[at] = i;
    }
}

/* Chooses how the sequences of one batch go on. */
static sn_status choose(sni_kernel *k, beam_search *b, int64_t batch) {
    const sni_generation_params *p = k->params;
    sni_generation *g = &b->g;
    int64_t first = batch * g->beams, chosen = 0, n = 2 * g->beams;
    const float *scores = g->scores + first * g->vocabulary;
    find_best(scores, g->beams * g->vocabulary, n, b->best);
    for (int64_t j = 0; j < n && chosen < g->beams; j++) {
        int64_t row = first + b->best[j] / g->vocabulary;
        int32_t token = (int32_t)(b->best[j] % g->vocabulary);
        float sum = scores[b->best[j]];
        if (token == p->eos) {
            if (j < g->beams) add_ended(b, batch, row, sum);
            continue;
        }
        b->next[first + chosen] = token;
        b->from[first + chosen] = row;
        b->new_sums[first + chosen] = sum;
        chosen++;
    }
    if (chosen < g->beams)
        return SNI_KERNEL_FAIL(k, "%" PRId64 " tokens do not fill %" PRId64 " beams", g->vocabulary,
                               g->beams);
    b->done[batch] = is_done(b, p, batch, scores[b->best[0]]);
    return SN_OK;
}

/* A batch that is finished goes on with padding, which is never read. */
static void pad_batch(beam_search *b, int64_t batch, int32_t pad) {
    for (int64_t r = batch * b->g.beams; r < (batch + 1) * b->g.beams; r++) {
        b->next[r] = pad;
        b->from[r] = r;
        b->new_sums[r] = 0;
    }
}

static sn_status advance(sni_kernel *k, beam_search *b, bool *done) {
    const sni_generation_params *p = k->params;
    sni_generation *g = &b->g;
    log_softmax(g);
    SN_TRY(sni_generation_rules(k, g, b->steps == 0));
    for (int64_t i = 0; i < g->rows * g->vocabulary; i++)
        g->scores[i] += b->sums[i / g->vocabulary];
    if (b->kept)
        memcpy(b->kept + b->steps * g->rows * g->vocabulary, g->scores,
               (size_t)(g->rows * g->vocabulary) * sizeof(float));
    b->steps++;
    *done = true;
    for (int64_t batch = 0; batch < g->batches; batch++) {
        if (b->done[batch])
            pad_batch(b, batch, (int32_t)p->pad);
        else
            SN_TRY(choose(k, b, batch));
        *done = *done && b->done[batch];
    }
    memcpy(b->sums, b->new_sums, (size_t)g->rows * sizeof *b->sums);
    return sni_generation_append(k, g, b->next, b->from);
}

/* ---- The whole ---- */

static sn_status search_room(sni_kernel *k, beam_search *b) {
    const sni_generation *g = &b->g;
    int64_t rows = g->rows;
    void *buffers[6] = {0};
    SN_TRY(sni_scratch_array(k, rows, sizeof *b->sums, &buffers[0]));
    SN_TRY(sni_scratch_array(k, rows, sizeof *b->new_sums, &buffers[1]));
    SN_TRY(sni_scratch_array(k, rows, sizeof *b->next, &buffers[2]));
    SN_TRY(sni_scratch_array(k, rows, sizeof *b->ended, &buffers[3]));
    SN_TRY(sni_scratch_matrix(k, rows, g->max_length, sizeof(int32_t), &buffers[4]));
    SN_TRY(sni_scratch_array(k, g->batches, 1, &buffers[5]));
    SN_TRY(sni_scratch_i64(k, rows, &b->from));
    SN_TRY(sni_scratch_i64(k, g->batches, &b->ended_count));
    SN_TRY(sni_scratch_i64(k, 2 * g->beams, &b->best));
    b->sums = buffers[0];
    b->new_sums = buffers[1];
    b->next = buffers[2];
    b->ended = buffers[3];
    b->done = buffers[5];
    for (int64_t r = 0; r < rows; r++) {
        b->ended[r] = (hypothesis){.tokens = (int32_t *)buffers[4] + r * g->max_length};
        /* The beams of a batch start alike: only the first one counts at first. */
        b->sums[r] = r % g->beams ? -1e9f : 0;
    }
    for (int64_t i = 0; i < g->batches; i++) {
        b->ended_count[i] = 0;
        b->done[i] = 0;
    }
    return SN_OK;
}

static sn_status read_settings(sni_kernel *k, beam_search *b) {
    sni_generation *g = &b->g;
    int64_t most, beams, processor;
    SN_TRY(sni_generation_int(k, MAX_LENGTH, 1, SNI_GENERATE_LENGTH, SNI_GENERATE_LENGTH, &most));
    SN_TRY(sni_generation_int(k, MIN_LENGTH, 0, INT32_MAX, 0, &g->min_length));
    SN_TRY(sni_generation_int(k, BEAMS, 1, SNI_GENERATE_BEAMS, 1, &beams));
    SN_TRY(sni_generation_int(k, RETURNED, 1, beams, 1, &b->returned));
    SN_TRY(sni_generation_int(k, PROCESSOR, 0, 0, 0, &processor));
    SN_TRY(sni_generation_float(k, LENGTH_PENALTY, 1, &b->length_penalty));
    SN_TRY(sni_generation_float(k, REPETITION, 1, &g->repetition_penalty));
    if (!(g->repetition_penalty > 0))
        return SNI_KERNEL_FAIL(k, "repetition_penalty is %g", (double)g->repetition_penalty);
    g->mask = sni_in(k, VOCAB_MASK);
    g->prefix_mask = sni_in(k, PREFIX_MASK);
    b->score_type = SN_FLOAT32;
    for (int i = LENGTH_PENALTY; i <= REPETITION; i++)
        if (sni_in(k, i)) b->score_type = sni_in(k, i)->dtype;
    return sni_generation_start(k, g, sni_in(k, INPUT), sni_in(k, ATTENTION_MASK), beams, most);
}

/* Room for the scores of all steps, 0 where there is none. */
static sn_status keep_scores(sni_kernel *k, beam_search *b) {
    const sni_generation *g = &b->g;
    int64_t steps = g->max_length - g->length, rows;
    int64_t dims[4] = {steps, g->batches, g->beams, g->vocabulary};
    void *kept = NULL;
    SN_TRY(sni_out_alloc(k, 2, b->score_type, 4, dims));
    if (!sni_out(k, 2)) return SN_OK;
    if (!sni_mul_i64(steps, g->rows, &rows)) return sni_fail_memory(k->err);
    SN_TRY(sni_scratch_matrix(k, rows, g->vocabulary, sizeof(float), &kept));
    memset(kept, 0, (size_t)(rows * g->vocabulary) * sizeof(float));
    b->kept = kept;
    return SN_OK;
}

/* The best that have ended, best first, padded to their full length. */
static void write_best(beam_search *b, int32_t pad, int32_t *out, float *scores) {
    const sni_generation *g = &b->g;
    for (int64_t batch = 0; batch < g->batches; batch++) {
        while (b->ended_count[batch] > b->returned) {
            hypothesis *worst = worst_ended(b, batch);
            *worst = b->ended[batch * g->beams + --b->ended_count[batch]];
        }
        for (int64_t i = b->ended_count[batch] - 1; i >= 0; i--) {
            hypothesis *worst = worst_ended(b, batch), h = *worst;
            *worst = b->ended[batch * g->beams + --b->ended_count[batch]];
            int64_t at = batch * b->returned + i;
            if (scores) scores[at] = h.score;
            for (int64_t j = 0; out && j < g->max_length; j++)
                out[at * g->max_length + j] = j < h.length ? h.tokens[j] : pad;
        }
    }
}

static sn_status write_outputs(sni_kernel *k, beam_search *b) {
    const sni_generation_params *p = k->params;
    const sni_generation *g = &b->g;
    int64_t dims[3] = {g->batches, b->returned, g->max_length};
    void *scores = NULL;
    SN_TRY(sni_out_alloc(k, 0, SN_INT32, 3, dims));
    SN_TRY(sni_out_alloc(k, 1, b->score_type, 2, dims));
    SN_TRY(sni_out_as(k, sni_out(k, 1), SN_FLOAT32, &scores));
    for (int64_t r = 0; r < g->rows; r++)
        if (!b->done[r / g->beams]) add_ended(b, r / g->beams, r, b->sums[r]);
    write_best(b, (int32_t)p->pad, sni_out(k, 0) ? sni_out(k, 0)->data : NULL, scores);
    sni_out_done(k, sni_out(k, 1), SN_FLOAT32, scores);
    sni_tensor *all = sni_out(k, 2);
    if (all && all->dtype == SN_FLOAT32)
        sni_copy_bytes(all->data, b->kept, sni_tensor_bytes(all));
    else
        sni_out_done(k, all, SN_FLOAT32, b->kept);
    return SN_OK;
}

static sn_status run_beams(sni_kernel *k, beam_search *b) {
    sni_generation *g = &b->g;
    bool done = false;
    SN_TRY(read_settings(k, b));
    SN_TRY(search_room(k, b));
    if (g->rows == 0) return SNI_KERNEL_FAIL(k, "input_ids have no batch");
    while (g->length < g->max_length && !done) {
        SN_TRY(sni_generation_step(k, g));
        if (b->steps == 0) SN_TRY(keep_scores(k, b));
        SN_TRY(advance(k, b, &done));
    }
    return write_outputs(k, b);
}

static sn_status beam_ref(sni_kernel *k) {
    beam_search b = {0};
    sn_status status = run_beams(k, &b);
    sni_generation_free(&b.g);
    return status;
}

const sni_op sni_op_ms_BeamSearch = {
    .name = "BeamSearch",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS(
        {"input_ids", "int32"}, {"max_length", "int32"}, {"min_length", "int32", SNI_OPTIONAL},
        {"num_beams", "int32"}, {"num_return_sequences", "int32"},
        {"length_penalty", "T", SNI_OPTIONAL}, {"repetition_penalty", "T", SNI_OPTIONAL},
        {"vocab_mask", "int32", SNI_OPTIONAL}, {"prefix_vocab_mask", "int32", SNI_OPTIONAL},
        {"attention_mask", "int32", SNI_OPTIONAL}, {"decoder_input_ids", "int32", SNI_OPTIONAL},
        {"logits_processor", "int32", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"sequences", "int32"}, {"sequences_scores", "T", SNI_OPTIONAL},
                           {"scores", "T", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT16)}),
    .params = SNI_PARAMS(SNI_GENERATION_PARAMS,
                         {"early_stopping", SNI_ATTR_INT, SNI_GENERATION_FIELD(early_stopping)}),
    .params_size = sizeof(sni_generation_params),
    .flags = SNI_OP_ALLOCATES | SNI_OP_SUBGRAPHS | SNI_OP_DECLARES,
    .prepare = sni_generation_prepare,
    .infer = beam_infer,
    .ref = beam_ref,
};
