/* attention_core.h - softmax(scale * Q K^T + masks) V for every operator of the attention family.
 */
#ifndef SNI_OPS_ATTENTION_ATTENTION_CORE_H
#define SNI_OPS_ATTENTION_ATTENTION_CORE_H

#include "ops/attention/heads.h"

/* What the scores are kept for the caller as, after which step. */
typedef enum sni_attention_step {
    SNI_SCORES_SCALED,
    SNI_SCORES_CAPPED,
    SNI_SCORES_MASKED,
    SNI_SCORES_PROBABILITIES
} sni_attention_step;

/* Subgraphs (-1: none) that change all scores before the softmax and all probabilities after it,
 * and the element type that they are given. */
typedef struct sni_score_mods {
    int32_t score, prob;
    sn_dtype dtype;
} sni_score_mods;

typedef struct sni_attention {
    int64_t batches, q_heads, kv_heads; /* q_heads is a multiple of kv_heads */
    int64_t q_length, total;            /* queries, and keys at the most */
    int64_t head_size, v_size;
    double scale, softcap; /* softcap 0: none */
    int64_t left, right;   /* keys seen before and after the query's own; below 0: all */
    bool causal;
    bool lowest;    /* keys that are not seen get the lowest score there is, not none: a query that
                       sees padding alone, scored no better, then takes the mean of all */
    sn_dtype dtype; /* of all elements: FLOAT32 or FLOAT64 */
    sni_heads q, k,
        v;       /* (batches, heads, length, size); only k and v may be stored in other types */
    sni_heads y; /* written: (batches, q_heads, q_length, v_size) */
    const void *mask; /* added to the scores, or bools that tell who is seen; NULL: none */
    bool bool_mask;
    int64_t mask_stride[3], mask_length; /* of batch, head and query; keys beyond are not seen */
    const void *padding;                 /* added to the scores, (., ., total); NULL: none */
    int64_t padding_stride[2];           /* of batch and query */
    const int64_t *before;               /* keys before the first query's own, by batch */
    const int64_t *lengths;              /* keys of a batch that count; NULL: all */
    const void *sink;                    /* (q_heads): score of a key without a value; NULL: none */
    void *kept;                          /* (batches, q_heads, q_length, total); NULL: not wanted */
    sni_attention_step keep;
    const sni_score_mods *mods; /* NULL: none */
    /* Set by sni_attend(): buffers for a chunk of heads, the first head of the chunk over all
     * batches, and what is done with its rows. */
    void *scores, *bias;
    int64_t first;
    int stages;
} sni_attention;

sn_status sni_attend(sni_kernel *k, sni_attention *a);

/* Sets a->mask from a tensor of rank 1 to 4 that is broadcast to (batches, heads, queries, total).
 * Its last axis is not repeated: where it ends no key is seen. NULL: none. */
sn_status sni_attention_mask(sni_kernel *k, sni_attention *a, const sni_tensor *mask);

/* The same for inference: fails if input i cannot be broadcast to `scores`. With `shorter` its last
 * axis may be shorter, otherwise it must be as long. */
sn_status sni_infer_attention_mask(sni_infer *c, int i, const sni_dim scores[4], bool shorter);

/* ---- Masks of padding, as the attention operators of com.microsoft take them ----
 *
 * int32 tensors that tell which keys are padding, for which `filter` is added to the scores:
 * (B): number of keys; (2 B): their ends, then their starts; (3 B + 2): their number, then what
 * is not needed here; (B, 1) or (1, 1): none is; (B, T), (B, S, T): 0 for padding;
 * (B, 1, M, M): the same, rows and columns counted from the first key. */
sn_status sni_infer_padding(sni_infer *c, int i, const sni_dim scores[4]);
sn_status sni_attention_padding(sni_kernel *k, sni_attention *a, const sni_tensor *mask,
                                float filter);

#endif
