/* kv_rows.h - reading keys or values of one head as floats, whatever they are stored as. */
#ifndef SNI_CPU_ATTENTION_KV_ROWS_H
#define SNI_CPU_ATTENTION_KV_ROWS_H

#include "ops/attention/heads.h"

typedef struct sni_kv_rows {
    const sni_heads *heads;
    int64_t size;    /* elements of a row */
    int64_t b, head; /* batch, and head of it */
    float *room;     /* for the rows of a call; NULL if sni_heads_plain() */
} sni_kv_rows;

/* Rows [at, at + n), *step elements apart: where they stand, or in `room`. */
const float *sni_cpu_kv_rows(const sni_kv_rows *r, int64_t at, int64_t n, int64_t *step);

#endif
