/* attend_job.h - one call of attention on the vector kernels: what its parts share. */
#ifndef SNI_CPU_ATTENTION_ATTEND_JOB_H
#define SNI_CPU_ATTENTION_ATTEND_JOB_H

#include "cpu/core/kernels.h"
#include "ops/attention/attention_core.h"

#include <stdbool.h>

enum {
    SNI_ATTEND_KEYS = 252, /* of a block: a multiple of every tier's mr */
    SNI_ATTEND_FEW = 4     /* up to so many queries of a group are processed over keys in place */
};

typedef struct sni_attend_job {
    const sni_attention *a;
    const sni_cpu_kernels *kernels;
    int64_t group, queries; /* heads that share keys, and their queries */
    int64_t panels;         /* of a group's queries; of single queries: as many */
    int64_t k_columns;      /* of K with padding */
    int64_t v_columns;      /* of V with padding: panels of nr, the last may be half as wide */
    bool stored;            /* keys or values have to be brought into floats */
    bool biased, same_bias; /* there are masks; they are the same for all queries of a head */
    bool plain_bias;        /* the only mask is one of floats, with a row for each query */
    bool apart;             /* each part has its own groups, and packs them one by one */
    float *k, *v;           /* packed, by batch and group; not if `apart` */
    float *room;            /* by batch and group: for rows in floats before they are packed */
    size_t room_size;
    size_t k_size, v_size; /* floats of one */
    float *scratch;
    size_t scratch_part;
    int parts;
    const sni_kernel *watch; /* polled for the run's time limit; NULL: the call is short */
} sni_attend_job;

/* The buffers of one part. */
typedef struct sni_attend_workspace {
    float *k, *v;      /* packed keys and values of the current group */
    float *room;       /* rows of those in floats */
    float *rows;       /* nr x head_size: queries */
    float *packed;     /* head_size x nr */
    float *scores;     /* keys x nr */
    float *output;     /* nr x v_columns */
    float *bias;       /* nr x keys, a row for each query */
    float *transposed; /* keys x nr: the bias of a block */
    float *most, *sum, *fade;
} sni_attend_workspace;

static inline const float *sni_attend_head(const sni_heads *h, int64_t b, int64_t head) {
    return (const float *)h->data + b * h->batch + head * h->head;
}

/* out = what is added to the scores of keys [j0, j0 + n) for query q of head h: all masks together.
 */
void sni_attend_bias(const sni_attention *a, int64_t b, int64_t h, int64_t q, int64_t j0, int64_t n,
                     float *out);

/* Position of a query's row in the mask. */
int64_t sni_attend_mask_at(const sni_attention *a, int64_t b, int64_t h, int64_t q);

/* The keys [*lo, *hi) that any of the queries [t0, t1) of a group sees, from a block's start on. */
void sni_attend_range(const sni_attend_job *j, int64_t b, int64_t t0, int64_t t1, int64_t *lo,
                      int64_t *hi);

/* Item `item` of a job whose groups have up to SNI_ATTEND_FEW queries. */
void sni_attend_few(const sni_attend_job *j, const sni_attend_workspace *w, int64_t item);

#endif
