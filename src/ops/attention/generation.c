/* generation.c - running a decoder subgraph token by token, for GreedySearch and BeamSearch. */
#include "ops/attention/generation.h"

#include "base/checked.h"
#include "ops/core/compute.h"
#include "ops/core/seq_util.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <float.h>
#include <inttypes.h>

enum { IDS, POSITIONS, MASK, FIRST_CACHE };

sn_status sni_generation_prepare(void *params, sni_arena *arena, sn_error *err) {
    const sni_generation_params *p = params;
    (void)arena;
    if (p->model != 0)
        return sni_fail(err, SN_UNSUPPORTED, "model_type %" PRId64 ": only decoders (0) are",
                        p->model);
    if (p->eos < 0 || p->pad < 0 || p->eos > INT32_MAX || p->pad > INT32_MAX)
        return sni_fail(err, SN_INVALID_MODEL,
                        "tokens %" PRId64 " for the end, %" PRId64 " for padding", p->eos, p->pad);
    if (p->ngram < 0)
        return sni_fail(err, SN_INVALID_MODEL, "no_repeat_ngram_size is %" PRId64, p->ngram);
    return SN_OK;
}

/* ---- Inference ---- */

/* The declared type of a decoder's input, with dimensions of its own where they are not fixed. */
static sn_status unaligned_type(sni_infer *c, const sni_type *declared, const sni_type **out) {
    sni_type *t = SNI_NEW(c->arena, sni_type);
    sni_dim *dims = SNI_NEW_ARRAY(c->arena, sni_dim, declared->rank);
    if (!t || !dims) return sni_fail_memory(c->err);
    *t = *declared;
    for (int i = 0; i < declared->rank; i++) {
        dims[i] = sni_dim_known(declared->dims[i]) ? declared->dims[i] : sni_dim_fresh(c->symbols);
        if (dims[i] == SNI_DIM_FAIL) return sni_fail_memory(c->err);
    }
    t->dims = dims;
    *out = t;
    return SN_OK;
}

static sn_status check_decoder(sni_infer *c, const sni_graph *g) {
    if (g->n_inputs <= FIRST_CACHE || g->n_outputs != g->n_inputs - 2)
        return SNI_INFER_FAIL(c, "a decoder of %d inputs and %d outputs", g->n_inputs,
                              g->n_outputs);
    for (int i = 0; i < g->n_inputs; i++) {
        const sni_type *t = &sni_graph_value(g, g->inputs[i])->type;
        int rank = i < FIRST_CACHE ? 2 : 5;
        bool fits = t->kind == SN_KIND_TENSOR && t->has_shape && t->rank == rank;
        if (fits && i < FIRST_CACHE) fits = t->dtype == SN_INT32;
        if (fits && i >= FIRST_CACHE)
            fits = (t->dtype == SN_FLOAT32 || t->dtype == SN_FLOAT16) && t->dims[0] == 2 &&
                   sni_dim_known(t->dims[2]) && sni_dim_known(t->dims[4]);
        if (!fits)
            return SNI_INFER_FAIL(c, "input %d of the decoder (kind %d, type %d, rank %d) is no %s",
                                  i, (int)t->kind, (int)t->dtype, t->has_shape ? t->rank : -1,
                                  i < FIRST_CACHE ? "list of tokens" : "cache");
    }
    return SN_OK;
}

static sn_status infer_decoder(sni_infer *c, int32_t index) {
    if (index < 0) return SN_OK;
    const sni_graph *g = c->node->subgraphs[index];
    SN_TRY(check_decoder(c, g));
    if (!c->subgraph) return SN_OK;
    const sni_type **in = SNI_NEW_ARRAY(c->arena, const sni_type *, g->n_inputs);
    const sni_type **out = SNI_NEW_ARRAY(c->arena, const sni_type *, g->n_outputs);
    if (!in || !out) return sni_fail_memory(c->err);
    for (int i = 0; i < g->n_inputs; i++)
        SN_TRY(unaligned_type(c, &sni_graph_value(g, g->inputs[i])->type, &in[i]));
    return c->subgraph(c, index, in, g->n_inputs, out, g->n_outputs);
}

sn_status sni_generation_infer(sni_infer *c) {
    const sni_generation_params *p = c->params;
    if (sni_infer_shaped(c, 0) && sni_infer_rank(c, 0) != 2)
        return SNI_INFER_FAIL(c, "input_ids have rank %d, not 2", sni_infer_rank(c, 0));
    SN_TRY(infer_decoder(c, p->init_decoder));
    return infer_decoder(c, p->decoder);
}

sn_status sni_generation_dim(sni_infer *c, int i, int64_t otherwise, sni_dim *out) {
    sni_list list;
    *out = otherwise;
    if (!sni_infer_given(c, i)) return SN_OK;
    SN_TRY(sni_infer_list(c, i, &list));
    if (list.known && list.count != 1)
        return SNI_INFER_FAIL(c, "input %d has %" PRId64 " elements, not 1", i, list.count);
    *out = sni_list_has_elements(&list) ? sni_list_dim(c, &list, 0) : sni_dim_fresh(c->symbols);
    return SN_OK;
}

/* ---- Settings ---- */

static sn_status read_number(sni_kernel *k, int i, double otherwise, double *out) {
    const sni_tensor *t = sni_in(k, i);
    if (t && t->count != 1)
        return SNI_KERNEL_FAIL(k, "input %d has %" PRId64 " elements, not 1", i, t->count);
    *out = t ? sni_number_at(t, 0) : otherwise;
    return SN_OK;
}

sn_status sni_generation_int(sni_kernel *k, int i, int64_t low, int64_t high, int64_t otherwise,
                             int64_t *out) {
    double v = 0;
    SN_TRY(read_number(k, i, (double)otherwise, &v));
    if (!(v >= (double)low && v <= (double)high))
        return SNI_KERNEL_FAIL(k, "input %d is %g, outside %" PRId64 " to %" PRId64, i, v, low,
                               high);
    *out = (int64_t)v;
    return SN_OK;
}

sn_status sni_generation_float(sni_kernel *k, int i, float otherwise, float *out) {
    double v = 0;
    SN_TRY(read_number(k, i, (double)otherwise, &v));
    *out = (float)v;
    return SN_OK;
}

/* ---- Feeds ---- */

/* A tensor of its own in place of what the feed held. */
static sn_status new_feed(sni_kernel *k, sni_datum *d, sn_dtype dtype, int rank,
                          const int64_t *dims) {
    sni_datum fresh = {.kind = SN_KIND_TENSOR};
    SN_TRY(sni_tensor_new(&fresh.tensor, dtype, rank, dims, k->budget, k->err));
    sni_datum_clear(d);
    *d = fresh;
    return SN_OK;
}

static int32_t *feed_data(const sni_generation *g, int i) {
    return g->in[i].tensor.data;
}

/* Tokens, positions and mask of the prompt: positions count the tokens that are no padding. */
static sn_status feed_prompt(sni_kernel *k, sni_generation *g, const sni_tensor *ids,
                             const sni_tensor *mask) {
    const sni_generation_params *p = k->params;
    int64_t dims[2] = {g->rows, g->length};
    for (int i = IDS; i <= MASK; i++) SN_TRY(new_feed(k, &g->in[i], SN_INT32, 2, dims));
    for (int64_t r = 0; r < g->rows; r++) {
        const int32_t *words = (const int32_t *)ids->data + r / g->beams * g->length;
        const int32_t *given = mask ? (const int32_t *)mask->data + r / g->beams * g->length : NULL;
        int32_t *tokens = feed_data(g, IDS) + r * g->length;
        int32_t *positions = feed_data(g, POSITIONS) + r * g->length;
        int32_t *counts = feed_data(g, MASK) + r * g->length, place = 0;
        for (int64_t i = 0; i < g->length; i++) {
            tokens[i] = g->tokens[r * g->max_length + i] = words[i];
            counts[i] = given ? given[i] : words[i] != p->pad;
            positions[i] = words[i] != p->pad ? place++ : 0;
        }
        g->positions[r] = place;
    }
    return SN_OK;
}

/* Caches without a token. */
static sn_status feed_caches(sni_kernel *k, sni_generation *g, const sni_graph *decoder) {
    for (int i = 0; i < g->n_caches; i++) {
        const sni_type *t = &sni_graph_value(decoder, decoder->inputs[FIRST_CACHE + i])->type;
        int64_t dims[5] = {2, g->rows, t->dims[2], 0, t->dims[4]};
        SN_TRY(new_feed(k, &g->in[FIRST_CACHE + i], t->dtype, 5, dims));
    }
    return SN_OK;
}

sn_status sni_generation_start(sni_kernel *k, sni_generation *g, const sni_tensor *ids,
                               const sni_tensor *mask, int64_t beams, int64_t max_length) {
    const sni_generation_params *p = k->params;
    const sni_graph *decoder = k->node->subgraphs[p->decoder];
    void *feeds = NULL, *tokens = NULL, *positions = NULL, *spare = NULL;
    if (ids->rank != 2 || ids->dims[1] < 1 || ids->dims[1] >= max_length)
        return SNI_KERNEL_FAIL(k, "%" PRId64 " tokens come in, and %" PRId64 " go out",
                               ids->rank == 2 ? ids->dims[1] : 0, max_length);
    if (mask && (mask->rank != 2 || memcmp(mask->dims, ids->dims, 2 * sizeof *ids->dims)))
        return SNI_KERNEL_FAIL(k, "attention_mask has not the shape of input_ids");
    g->batches = ids->dims[0];
    g->beams = beams;
    g->length = ids->dims[1];
    g->max_length = max_length;
    if (!sni_mul_i64(g->batches, beams, &g->rows)) return sni_fail_memory(k->err);
    SN_TRY(sni_scratch_matrix(k, g->rows, max_length, sizeof(int32_t), &tokens));
    SN_TRY(sni_scratch_matrix(k, g->rows, max_length, sizeof(int32_t), &spare));
    SN_TRY(sni_scratch_array(k, g->rows, sizeof(int32_t), &positions));
    g->tokens = tokens;
    g->spare = spare;
    g->positions = positions;
    int caches = decoder->n_inputs - FIRST_CACHE;
    SN_TRY(sni_scratch_array(k, decoder->n_inputs, sizeof *g->feeds, &feeds));
    SN_TRY(sni_datum_array(k, decoder->n_inputs, &g->in));
    SN_TRY(sni_datum_array(k, 1 + caches, &g->out));
    g->n_caches = caches;
    g->feeds = feeds;
    for (int i = 0; i < decoder->n_inputs; i++) g->feeds[i] = &g->in[i];
    SN_TRY(feed_prompt(k, g, ids, mask));
    return feed_caches(k, g, decoder);
}

void sni_generation_free(sni_generation *g) {
    if (g->in) sni_datum_clear_all(g->in, FIRST_CACHE + g->n_caches);
    if (g->out) sni_datum_clear_all(g->out, 1 + g->n_caches);
}

/* ---- Steps ---- */

/* The logits of every row's last token, as float. The decoder may give those of all tokens or of
 * the last. */
static sn_status read_logits(sni_kernel *k, sni_generation *g, int64_t tokens) {
    const sni_generation_params *p = k->params;
    const sni_datum *d = &g->out[0];
    const sni_tensor *t = &d->tensor;
    if (d->kind != SN_KIND_TENSOR || t->rank != 3 || t->dims[0] != g->rows ||
        (t->dims[1] != tokens && t->dims[1] != 1) || t->dims[2] < 1 || t->dims[2] > INT32_MAX ||
        (t->dtype != SN_FLOAT32 && t->dtype != SN_FLOAT16))
        return SNI_KERNEL_FAIL(
            k, "the decoder's logits are not (%" PRId64 ", %" PRId64 ", vocabulary)", g->rows,
            tokens);
    int64_t wide = t->dims[2], n = p->vocabulary > 0 ? p->vocabulary : wide;
    if (n > wide || (g->vocabulary && n != g->vocabulary))
        return SNI_KERNEL_FAIL(k, "a vocabulary of %" PRId64 " where %" PRId64 " are needed", wide,
                               g->vocabulary ? g->vocabulary : n);
    if (!g->vocabulary) {
        void *scores = NULL, *seen = NULL;
        SN_TRY(sni_scratch_matrix(k, g->rows, n, sizeof(float), &scores));
        SN_TRY(sni_scratch_array(k, n, 1, &seen));
        g->scores = scores;
        g->seen = seen;
        g->vocabulary = n;
    }
    size_t width = sni_dtype_width(t->dtype);
    tokens = t->dims[1];
    for (int64_t r = 0; r < g->rows; r++) {
        sni_tensor row = {.dtype = t->dtype, .count = n, .rank = 1, .dims = {n}};
        sni_tensor to = {.dtype = SN_FLOAT32, .count = n, .rank = 1, .dims = {n}};
        row.data = sni_element(t->data, ((r + 1) * tokens - 1) * wide, width);
        to.data = g->scores + r * n;
        if (t->dtype == SN_FLOAT32)
            sni_copy_bytes(to.data, row.data, (size_t)n * sizeof(float));
        else
            sni_out_done(k, &to, row.dtype, row.data);
    }
    return SN_OK;
}

sn_status sni_generation_step(sni_kernel *k, sni_generation *g) {
    const sni_generation_params *p = k->params;
    int32_t graph = !g->started && p->init_decoder >= 0 ? p->init_decoder : p->decoder;
    SN_TRY(sni_poll(k));
    SN_TRY(
        sni_run_subgraph(k, graph, g->feeds, FIRST_CACHE + g->n_caches, g->out, 1 + g->n_caches));
    g->started = true;
    SN_TRY(read_logits(k, g, g->in[IDS].tensor.dims[1]));
    sni_datum_clear(&g->out[0]);
    return SN_OK;
}

/* ---- Rules ---- */

/* Tokens that came before are made less likely, each once. */
static void penalise_repeats(sni_generation *g, int64_t r) {
    uint8_t *seen = g->seen;
    float *scores = g->scores + r * g->vocabulary;
    memset(seen, 0, (size_t)g->vocabulary);
    for (int64_t i = 0; i < g->length; i++) {
        int32_t token = g->tokens[r * g->max_length + i];
        if (token < 0 || token >= g->vocabulary || seen[token]) continue;
        seen[token] = 1;
        scores[token] *= scores[token] < 0 ? g->repetition_penalty : 1 / g->repetition_penalty;
    }
}

/* No token may complete a run of n tokens that came before. */
static void block_ngrams(sni_generation *g, int64_t r, int64_t n) {
    const int32_t *tokens = g->tokens + r * g->max_length;
    const int32_t *last = tokens + g->length - (n - 1);
    for (int64_t i = 0; i + n <= g->length; i++) {
        int32_t token = tokens[i + n - 1];
        if (token < 0 || token >= g->vocabulary) continue;
        if (memcmp(last, tokens + i, (size_t)(n - 1) * sizeof *tokens) == 0)
            g->scores[r * g->vocabulary + token] = -FLT_MAX;
    }
}

static sn_status check_masks(sni_kernel *k, const sni_generation *g) {
    const sni_tensor *m = g->mask, *p = g->prefix_mask;
    if ((m && m->count != g->vocabulary) ||
        (p && (p->rank != 2 || p->dims[0] != g->batches || p->dims[1] != g->vocabulary)))
        return SNI_KERNEL_FAIL(k, "a mask does not fit a vocabulary of %" PRId64, g->vocabulary);
    return SN_OK;
}

static void apply_mask(sni_generation *g, int64_t r, const int32_t *mask) {
    for (int64_t i = 0; i < g->vocabulary; i++)
        if (mask[i] == 0) g->scores[r * g->vocabulary + i] = -FLT_MAX;
}

sn_status sni_generation_rules(sni_kernel *k, sni_generation *g, bool first) {
    const sni_generation_params *p = k->params;
    if (first) SN_TRY(check_masks(k, g));
    bool repeats = g->repetition_penalty < 1 || g->repetition_penalty > 1;
    for (int64_t r = 0; r < g->rows; r++) {
        if (repeats) penalise_repeats(g, r);
        if (p->ngram > 0 && p->ngram <= g->length) block_ngrams(g, r, p->ngram);
        if (g->mask) apply_mask(g, r, g->mask->data);
        if (g->prefix_mask && first)
            apply_mask(g, r, (const int32_t *)g->prefix_mask->data + r / g->beams * g->vocabulary);
        if (g->length < g->min_length && p->eos < g->vocabulary)
            g->scores[r * g->vocabulary + p->eos] = -FLT_MAX;
    }
    return SN_OK;
}

/* ---- New tokens ---- */

/* Rows of a cache (2, rows, ...) in another order. */
static sn_status reorder_cache(sni_kernel *k, const sni_generation *g, const int64_t *from,
                               const sni_datum *made, sni_datum *feed) {
    const sni_tensor *t = &made->tensor;
    if (made->kind != SN_KIND_TENSOR || t->rank != 5 || t->dims[0] != 2 || t->dims[1] != g->rows)
        return SNI_KERNEL_FAIL(k, "the decoder gives something else than a cache");
    SN_TRY(new_feed(k, feed, t->dtype, 5, t->dims));
    size_t bytes = (size_t)sni_tensor_span(t, 2, 5) * sni_dtype_width(t->dtype);
    for (int64_t i = 0; i < 2 * g->rows && bytes; i++) {
        int64_t source = i / g->rows * g->rows + from[i % g->rows];
        memcpy((unsigned char *)feed->tensor.data + (size_t)i * bytes,
               (const unsigned char *)t->data + (size_t)source * bytes, bytes);
    }
    return SN_OK;
}

/* The tokens of every row become those of row from[r] and its next one. */
static void extend_tokens(sni_generation *g, const int32_t *next, const int64_t *from) {
    size_t bytes = (size_t)g->length * sizeof *g->tokens;
    if (from) {
        int32_t *old = g->tokens;
        g->tokens = g->spare;
        g->spare = old;
    }
    for (int64_t r = 0; r < g->rows; r++) {
        int32_t *to = g->tokens + r * g->max_length;
        if (from) memcpy(to, g->spare + from[r] * g->max_length, bytes);
        to[g->length] = next[r];
    }
}

/* The mask with one more token, which counts. */
static sn_status extend_mask(sni_kernel *k, sni_generation *g) {
    sni_datum wider = {0};
    const sni_tensor *old = &g->in[MASK].tensor;
    int64_t n = old->dims[1];
    SN_TRY(new_feed(k, &wider, SN_INT32, 2, (int64_t[]){g->rows, n + 1}));
    for (int64_t r = 0; r < g->rows; r++) {
        int32_t *to = (int32_t *)wider.tensor.data + r * (n + 1);
        memcpy(to, (const int32_t *)old->data + r * n, (size_t)n * sizeof *to);
        to[n] = 1;
    }
    sni_datum_clear(&g->in[MASK]);
    g->in[MASK] = wider;
    return SN_OK;
}

sn_status sni_generation_append(sni_kernel *k, sni_generation *g, const int32_t *next,
                                const int64_t *from) {
    if (g->rows == 0 || g->length >= g->max_length) return SN_OK;
    extend_tokens(g, next, from);
    g->length++;
    int64_t dims[2] = {g->rows, 1};
    SN_TRY(extend_mask(k, g));
    SN_TRY(new_feed(k, &g->in[IDS], SN_INT32, 2, dims));
    SN_TRY(new_feed(k, &g->in[POSITIONS], SN_INT32, 2, dims));
    for (int64_t r = 0; r < g->rows; r++) {
        feed_data(g, IDS)[r] = next[r];
        feed_data(g, POSITIONS)[r] = g->positions[r]++;
    }
    for (int i = 0; i < g->n_caches; i++) {
        sni_datum *made = &g->out[1 + i], *feed = &g->in[FIRST_CACHE + i];
        if (from) {
            SN_TRY(reorder_cache(k, g, from, made, feed));
            sni_datum_clear(made);
            continue;
        }
        sni_datum_clear(feed);
        *feed = *made;
        *made = (sni_datum){0};
    }
    return SN_OK;
}
