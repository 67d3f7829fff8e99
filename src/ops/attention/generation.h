/* generation.h - what operators that generate text share: running a decoder subgraph token by token
 * over a number of sequences, and the rules that change its scores.
 *
 * The decoder takes input_ids, position_ids and attention_mask (all int32), then the caches (2,
 * sequences, heads, length, size), and gives logits (sequences, tokens, vocabulary) and the caches
 * with the new tokens. */
#ifndef SNI_OPS_ATTENTION_GENERATION_H
#define SNI_OPS_ATTENTION_GENERATION_H

#include "ops/core/op.h"

enum { SNI_GENERATE_LENGTH = 4096, SNI_GENERATE_BEAMS = 128 }; /* at the most */

typedef struct sni_generation_params {
    int64_t eos, pad, start, ngram, early_stopping, model, vocabulary;
    int32_t encoder, init_decoder, decoder;
} sni_generation_params;

/* The attributes; the caller's struct starts with sni_generation_params. */
#define SNI_GENERATION_FIELD(f) offsetof(sni_generation_params, f)
#define SNI_GENERATION_PARAMS                                                                \
    {"eos_token_id", SNI_ATTR_INT, SNI_GENERATION_FIELD(eos), .required = true},             \
        {"pad_token_id", SNI_ATTR_INT, SNI_GENERATION_FIELD(pad), .required = true},         \
        {"decoder_start_token_id", SNI_ATTR_INT, SNI_GENERATION_FIELD(start), .number = -1}, \
        {"no_repeat_ngram_size", SNI_ATTR_INT, SNI_GENERATION_FIELD(ngram)},                 \
        {"model_type", SNI_ATTR_INT, SNI_GENERATION_FIELD(model)},                           \
        {"vocab_size", SNI_ATTR_INT, SNI_GENERATION_FIELD(vocabulary), .number = -1},        \
        {"encoder", SNI_ATTR_GRAPH, SNI_GENERATION_FIELD(encoder)},                          \
        {"init_decoder", SNI_ATTR_GRAPH, SNI_GENERATION_FIELD(init_decoder)}, {              \
        "decoder", SNI_ATTR_GRAPH, SNI_GENERATION_FIELD(decoder), .required = true           \
    }

sn_status sni_generation_prepare(void *params, sni_arena *arena, sn_error *err);

/* Infers the decoder subgraphs, and checks their inputs and outputs. */
sn_status sni_generation_infer(sni_infer *c);

/* The one element of integer input i as a dimension; `otherwise` if it is left out. */
sn_status sni_generation_dim(sni_infer *c, int i, int64_t otherwise, sni_dim *out);

/* The one element of input i as a number in [low, high]; `otherwise` if it is left out. */
sn_status sni_generation_int(sni_kernel *k, int i, int64_t low, int64_t high, int64_t otherwise,
                             int64_t *out);
sn_status sni_generation_float(sni_kernel *k, int i, float otherwise, float *out);

/* Sequences under way. Memory is the kernel's scratch but for what the feeds hold. */
typedef struct sni_generation {
    int64_t batches, beams, rows; /* rows: sequences; the beams of a batch are consecutive */
    int64_t length, max_length;   /* tokens so far, and at the most */
    int64_t vocabulary;           /* tokens to choose from; 0 before the first step */
    int32_t *tokens;              /* (rows, max_length) */
    float *scores;                /* (rows, vocabulary) of the next token; NULL before */
    /* Rules: */
    float repetition_penalty;
    int64_t min_length;
    const sni_tensor *mask;        /* int32 (vocabulary): 0 for tokens that may not come, or NULL */
    const sni_tensor *prefix_mask; /* (batches, vocabulary): the same for the first step */
    /* The decoder's: */
    int n_caches;
    sni_datum *in, *out; /* 3 + n_caches, 1 + n_caches */
    const sni_datum **feeds;
    int32_t *positions; /* (rows) of the next token */
    int32_t *spare;     /* (rows, max_length) */
    uint8_t *seen;      /* (vocabulary); made with `scores` */
    bool started;
} sni_generation;

/* Sets up `beams` sequences for each row of `ids` (batches, length). `mask` (as ids; NULL: tokens
 * that are no padding) tells which tokens count. sni_generation_free() in any case. */
sn_status sni_generation_start(sni_kernel *k, sni_generation *g, const sni_tensor *ids,
                               const sni_tensor *mask, int64_t beams, int64_t max_length);
void sni_generation_free(sni_generation *g);

/* Runs the decoder on the tokens it has not seen: g->scores become the logits of the next token. */
sn_status sni_generation_step(sni_kernel *k, sni_generation *g);

/* Applies the rules to g->scores; `first`: the step that follows the prompt. */
sn_status sni_generation_rules(sni_kernel *k, sni_generation *g, bool first);

/* Gives every row a token: row r goes on from row from[r] (NULL: itself). */
sn_status sni_generation_append(sni_kernel *k, sni_generation *g, const int32_t *next,
                                const int64_t *from);

/* ---- One sequence for each prompt (greedy_search.c) ---- */

/* Chooses the next token of every row from g->scores. */
typedef sn_status (*sni_pick_fn)(sni_kernel *k, sni_generation *g, void *ctx, int32_t *next);

/* Inference and kernel of operators with GreedySearch's inputs, of which further ones may follow.
 * `g` is zero and freed by the caller with sni_generation_free(). */
sn_status sni_greedy_infer(sni_infer *c);
sn_status sni_greedy_run(sni_kernel *k, sni_generation *g, sni_pick_fn pick, void *ctx);

#endif
