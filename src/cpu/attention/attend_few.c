/* attend_few.c - attention of few queries, as when tokens are decoded: over keys and values where
 * they are, because packing them would read as much as the products. Rows of a cache that stores
 * them in another type are brought into floats some at a time, for all queries of the group. */
#include "cpu/attention/attend_job.h"

#include "base/lengths.h"
#include "cpu/attention/attend.h"
#include "cpu/attention/kv_rows.h"

#include <math.h>
#include <string.h>

enum { STORED_KEYS = 64 }; /* brought into floats at a time */

/* Queries [t0, t1) of a group, and the keys [lo, hi) that any of them sees. */
typedef struct few {
    int64_t b, g, t0, t1, lo, hi;
} few;

static float *output_of(const sni_attend_job *j, const few *f, int64_t t) {
    const sni_attention *a = j->a;
    float *y = (float *)(uintptr_t)sni_attend_head(&a->y, f->b, f->g * j->group + t / a->q_length);
    return y + t % a->q_length * a->y.row;
}

/* Scores of all keys for each query, in its row of w->scores. */
static void score_keys(const sni_attend_job *j, const sni_attend_workspace *w, const few *f) {
    const sni_attention *a = j->a;
    const sni_kv_rows rows = {&a->k, a->head_size, f->b, f->g, w->room};
    const int64_t most = j->stored ? STORED_KEYS : f->hi - f->lo;
    for (int64_t at = f->lo, n, step; at < f->hi; at += n) {
        n = sni_min(most, f->hi - at);
        const float *k = sni_cpu_kv_rows(&rows, at, n, &step);
        for (int64_t t = f->t0; t < f->t1; t++) {
            const float *q = sni_attend_head(&a->q, f->b, f->g * j->group + t / a->q_length);
            j->kernels->attend->dot_rows(q + t % a->q_length * a->q.row, k, step, n, a->head_size,
                                         w->scores + (t - f->t0) * a->total + at - f->lo);
        }
    }
}

/* Scores to weights; w->fade[.] is what each query's sums of values are multiplied by. */
static void weigh_keys(const sni_attend_job *j, const sni_attend_workspace *w, const few *f) {
    const sni_attention *a = j->a;
    sni_attend_block block = {.scale = (float)a->scale, .cap = (float)a->softcap};
    for (int64_t t = f->t0; t < f->t1; t++) {
        int64_t h = f->g * j->group + t / a->q_length, i = t - f->t0;
        float most = a->sink ? ((const float *)a->sink)[h] : -INFINITY, sum = a->sink ? 1 : 0;
        if (j->biased) {
            sni_attend_bias(a, f->b, h, t % a->q_length, f->lo, f->hi - f->lo, w->bias);
            block.key_bias = w->bias;
        }
        j->kernels->attend->attend_row(&block, w->scores + i * a->total, f->hi - f->lo, &most,
                                       &sum);
        w->fade[i] = sum == 0 ? 0 : 1 / sum;
    }
}

static void sum_values(const sni_attend_job *j, const sni_attend_workspace *w, const few *f) {
    const sni_attention *a = j->a;
    const sni_kv_rows rows = {&a->v, a->v_size, f->b, f->g, w->room};
    const int64_t most = j->stored ? STORED_KEYS : f->hi - f->lo;
    for (int64_t at = f->lo, n, step; at < f->hi; at += n) {
        n = sni_min(most, f->hi - at);
        const float *v = sni_cpu_kv_rows(&rows, at, n, &step);
        for (int64_t t = f->t0; t < f->t1; t++) {
            const float *weights = w->scores + (t - f->t0) * a->total + at - f->lo;
            float *y = output_of(j, f, t), *to = at == f->lo ? y : w->output;
            j->kernels->attend->weigh_rows(weights, v, step, n, a->v_size, w->fade[t - f->t0], to);
            for (int64_t i = 0; to != y && i < a->v_size; i++) y[i] += to[i];
        }
    }
}

/* One query; all of a group's if its keys have to be brought into floats first. */
void sni_attend_few(const sni_attend_job *j, const sni_attend_workspace *w, int64_t item) {
    const sni_attention *a = j->a;
    int64_t i = item / j->panels, t0 = j->stored ? 0 : item % j->panels;
    few f = {.b = i / a->kv_heads, .g = i % a->kv_heads, .t0 = t0};
    f.t1 = j->stored ? j->queries : t0 + 1;
    sni_attend_range(j, f.b, f.t0, f.t1, &f.lo, &f.hi);
    if (f.hi <= f.lo) {
        for (int64_t t = f.t0; t < f.t1; t++)
            memset(output_of(j, &f, t), 0, (size_t)a->v_size * sizeof(float));
        return;
    }
    score_keys(j, w, &f);
    weigh_keys(j, w, &f);
    sum_values(j, w, &f);
}
