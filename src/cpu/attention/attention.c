/* attention.c - attention in float32 that never stores its scores as a whole matrix (the method of
 * FlashAttention, with online softmax).
 *
 * Queries that share keys (those of one head, or of all heads of a group) are processed nr at a
 * time, as the columns of a panel, and keys in blocks of KEYS. For each block: scores^T (keys, nr)
 * = K Q^T     GEMM tiles of packed keys and the panel weights = e^(scores - max)      in place, one
 * query per lane, with the maximum so far output (nr, size) += weights V  tiles of the weights and
 * packed values When the maximum rises, what was summed before is multiplied by e^(old max - new
 * max). A block's scores stay in the first-level cache.
 *
 * Up to FEW queries (decoding) are processed one at a time over unpacked keys and values: packing
 * would read as much as the products. */
#include "cpu/core/hooks.h"

#include "base/checked.h"
#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/attention/attend.h"
#include "cpu/core/kernels.h"
#include "cpu/elementwise/map.h"

#include <float.h>
#include <math.h>

enum {
    KEYS = 252,           /* of a block: a multiple of every tier's mr */
    FEW = 4,              /* up to so many queries of a group are processed one at a time */
    GRAIN_MACS = 1 << 15, /* multiply-adds that are worth a thread */
    LONG_MACS = 1 << 30   /* some ten milliseconds */
};

typedef struct attend_job {
    const sni_attention *a;
    const sni_cpu_kernels *kernels;
    int64_t group, queries; /* heads that share keys, and their queries */
    int64_t panels;         /* of a group's queries; of single queries: as many */
    int64_t k_columns;      /* of K with padding */
    int64_t v_columns;      /* of V with padding: panels of nr, the last may be half as wide */
    bool biased, same_bias; /* there are masks; they are the same for all queries of a head */
    bool plain_bias;        /* the only mask is one of floats, with a row for each query */
    bool apart;             /* each part has its own groups, and packs them one by one */
    float *k, *v;           /* packed, by batch and group; not if `apart` */
    size_t k_size, v_size;  /* floats of one */
    float *scratch;
    size_t scratch_part;
    int parts;
    const sni_kernel *watch; /* polled for the run's time limit; NULL: the call is short */
} attend_job;

/* The buffers of one part. */
typedef struct workspace {
    float *k, *v;      /* packed keys and values of the current group */
    float *rows;       /* nr x head_size: queries */
    float *packed;     /* head_size x nr */
    float *scores;     /* KEYS x nr */
    float *output;     /* nr x v_columns */
    float *bias;       /* nr x KEYS, a row for each query */
    float *transposed; /* KEYS x nr: the bias of a block */
    float *most, *sum, *fade;
} workspace;

static const float *head_at(const sni_heads *h, int64_t b, int64_t head) {
    return (const float *)h->data + b * h->batch + head * h->head;
}

/* ---- Masks ---- */

/* Query q of batch b sees keys [lo, hi), as far as causality, window and length restrict it. */
static void seen(const sni_attention *a, int64_t b, int64_t q, int64_t *lo, int64_t *hi) {
    int64_t own = q + a->before[b];
    *lo = a->left >= 0 ? sni_max(0, own - a->left) : 0;
    *hi = a->lengths ? sni_min(a->total, a->lengths[b]) : a->total;
    if (a->causal) *hi = sni_min(*hi, own + 1);
    if (a->right >= 0) *hi = sni_min(*hi, own + a->right + 1);
}

static int64_t mask_at(const sni_attention *a, int64_t b, int64_t h, int64_t q) {
    return b * a->mask_stride[0] + h * a->mask_stride[1] + q * a->mask_stride[2];
}

/* out = what is added to the scores of keys [j0, j0 + n) for query q of head h: all masks together.
 */
static void make_bias(const sni_attention *a, int64_t b, int64_t h, int64_t q, int64_t j0,
                      int64_t n, float *out) {
    int64_t at = mask_at(a, b, h, q) + j0, lo, hi;
    int64_t masked = a->mask ? sni_max(0, sni_min(n, a->mask_length - j0)) : 0;
    if (a->mask && a->bool_mask) {
        const uint8_t *m = (const uint8_t *)a->mask + at;
        for (int64_t i = 0; i < masked; i++) out[i] = m[i] ? 0 : -INFINITY;
    } else if (masked) {
        memcpy(out, (const float *)a->mask + at, (size_t)masked * sizeof *out);
    }
    for (int64_t i = masked; i < n; i++) out[i] = a->mask ? -INFINITY : 0;
    if (a->padding) {
        const float *p =
            (const float *)a->padding + b * a->padding_stride[0] + q * a->padding_stride[1] + j0;
        for (int64_t i = 0; i < n; i++) out[i] += p[i];
    }
    const float hidden = a->lowest ? -FLT_MAX : -INFINITY;
    seen(a, b, q, &lo, &hi);
    for (int64_t i = 0; i < sni_min(n, lo - j0); i++) out[i] = hidden;
    for (int64_t i = sni_max(0, hi - j0); i < n; i++) out[i] = hidden;
}

/* The keys [*lo, *hi) that any of the queries [t0, t1) of a group sees, from a block's start on. */
static void range_of(const attend_job *j, int64_t b, int64_t t0, int64_t t1, int64_t *lo,
                     int64_t *hi) {
    const sni_attention *a = j->a;
    *lo = 0;
    *hi = a->total;
    if (a->lowest) return; /* masked keys count when all keys are masked */
    int64_t first = a->total, last = 0;
    for (int64_t t = t0; t < t1; t++) {
        int64_t from, to;
        seen(a, b, t % a->q_length, &from, &to);
        first = sni_min(first, from);
        last = sni_max(last, to);
    }
    *lo = sni_min(first, last) / KEYS * KEYS;
    *hi = last;
}

/* ---- Packed keys and values ---- */

/* Packs the keys of group i as left operands and its values as right operands. */
static void pack_group(const attend_job *j, int64_t i, float *to_k, float *to_v) {
    const sni_attention *a = j->a;
    const sni_cpu_kernels *kernels = j->kernels;
    int mr = kernels->mr, nr = kernels->nr;
    int64_t b = i / a->kv_heads, h = i % a->kv_heads;
    const float *k = head_at(&a->k, b, h), *v = head_at(&a->v, b, h);
    for (int64_t at = 0; at < a->total; at += mr, to_k += mr * j->k_columns)
        kernels->pack_left(k + at * a->k.row, a->k.row, sni_min(mr, a->total - at), a->head_size,
                           to_k);
    for (int64_t at = 0; at < a->total; at += KEYS) {
        int64_t n = sni_min(KEYS, a->total - at);
        for (int64_t c = 0; c < j->v_columns; c += nr) {
            int64_t width = sni_min(nr, j->v_columns - c);
            kernels->pack_straight(v + at * a->v.row + c, a->v.row, sni_min(nr, a->v_size - c),
                                   (int)width, n, to_v);
            to_v += width * n;
        }
    }
}

static void pack_groups(void *ctx, int64_t begin, int64_t end) {
    const attend_job *j = ctx;
    for (int64_t i = begin; i < end; i++)
        pack_group(j, i, j->k + (size_t)i * j->k_size, j->v + (size_t)i * j->v_size);
}

/* ---- Panels of queries ---- */

/* Queries [t0, t1) of group g of batch b, at most nr. A group's queries are those of all its heads,
 * one head after the other. */
typedef struct panel {
    int64_t b, g, t0, t1;
} panel;

/* Gathers the queries and packs them as the columns of a right operand. */
static void pack_queries(const attend_job *j, const workspace *w, const panel *p) {
    const sni_attention *a = j->a;
    int64_t d = a->head_size, b = p->b, g = p->g, t0 = p->t0, t1 = p->t1;
    if (t0 / a->q_length == (t1 - 1) / a->q_length) { /* of one head: read in place */
        const float *q = head_at(&a->q, b, g * j->group + t0 / a->q_length);
        j->kernels->pack_transposed(q + t0 % a->q_length * a->q.row, a->q.row, t1 - t0,
                                    j->kernels->nr, d, w->packed);
        return;
    }
    for (int64_t t = t0; t < t1 && d; t++)
        memcpy(w->rows + (t - t0) * d,
               head_at(&a->q, b, g * j->group + t / a->q_length) + t % a->q_length * a->q.row,
               (size_t)d * sizeof *w->rows);
    j->kernels->pack_transposed(w->rows, d, t1 - t0, j->kernels->nr, d, w->packed);
}

/* Transposes keys [at, at + n) of a float mask, which is the only mask, to w->transposed. */
static void transpose_mask(const attend_job *j, const workspace *w, const panel *p, int64_t at,
                           int64_t n) {
    const sni_attention *a = j->a;
    const int64_t b = p->b, g = p->g, t0 = p->t0;
    for (int64_t t = t0, next; t < p->t1; t = next) {
        next = sni_min(p->t1, (t / a->q_length + 1) * a->q_length); /* to the end of the head */
        int64_t from = mask_at(a, b, g * j->group + t / a->q_length, t % a->q_length) + at;
        j->kernels->transpose_matrix((const float *)a->mask + from, a->mask_stride[2], next - t, n,
                                     w->transposed + (t - t0), j->kernels->nr);
    }
}

/* Sets the biases of a block: the masks of keys [at, at + n) for the panel. */
static void block_bias(const attend_job *j, const workspace *w, const panel *p, int64_t at,
                       int64_t n, sni_attend_block *block) {
    const sni_attention *a = j->a;
    const int64_t b = p->b, g = p->g, t0 = p->t0, t1 = p->t1;
    int nr = j->kernels->nr;
    block->key_bias = block->bias = NULL;
    if (!j->biased) return;
    if (t1 - t0 < nr && !j->same_bias)
        memset(w->transposed, 0, (size_t)(n * nr) * sizeof *w->transposed);
    if (j->plain_bias && at + n <= a->mask_length) {
        transpose_mask(j, w, p, at, n);
        block->bias = w->transposed;
        return;
    }
    int64_t distinct = j->same_bias ? 1 : t1 - t0;
    for (int64_t t = t0; t < t0 + distinct; t++)
        make_bias(a, b, g * j->group + t / a->q_length, t % a->q_length, at, n,
                  w->bias + (t - t0) * KEYS);
    if (j->same_bias) {
        block->key_bias = w->bias;
        return;
    }
    j->kernels->transpose_matrix(w->bias, KEYS, t1 - t0, n, w->transposed, nr);
    block->bias = w->transposed;
}

/* output (rows, size) += weights (n keys) V, after what was there is multiplied by `fade`; without
 * `add` nothing was there. */
static void add_values(const attend_job *j, const workspace *w, const float *v, int64_t n,
                       int64_t rows, bool add) {
    const sni_cpu_kernels *kernels = j->kernels;
    int64_t nr = kernels->nr, lanes = kernels->lanes;
    int64_t tiles = (rows + kernels->mr - 1) / kernels->mr;
    for (int64_t c = 0; c < j->v_columns; c += nr) {
        int64_t width = sni_min(nr, j->v_columns - c);
        for (int64_t t = 0; t < tiles; t++) {
            int64_t i = t * rows / tiles, here = (t + 1) * rows / tiles - i;
            kernels->attend->attend_sum((int)here, (int)(width / lanes), n, w->scores + i, v,
                                        w->output + i * j->v_columns + c, j->v_columns,
                                        add ? w->fade + i : NULL);
        }
        v += width * n;
    }
}

/* One block: keys [at, at + n) against the first `rows` queries of the panel. */
static void run_block(const attend_job *j, const workspace *w, int64_t at, int64_t n, int64_t rows,
                      const sni_attend_block *block, bool add) {
    const sni_attention *a = j->a;
    const sni_cpu_kernels *kernels = j->kernels;
    int mr = kernels->mr, nr = kernels->nr;
    const float *k = w->k + at * j->k_columns;
    for (int64_t q = 0; q < n; q += mr, k += mr * j->k_columns)
        kernels->gemm_tile[sni_min(mr, n - q)](a->head_size, k, w->packed, NULL, w->scores + q * nr,
                                               nr, false, NULL, NULL, 0);
    kernels->attend->attend_weigh(block, w->scores, n, w->most, w->sum, w->fade);
    add_values(j, w, w->v + at * j->v_columns, n, rows, add);
}

/* Divides the panel's results by the sums of weights and stores them; zeros unless `any` key is
 * seen. */
static void store_panel(const attend_job *j, const workspace *w, const panel *p, bool any) {
    const sni_attention *a = j->a;
    const int64_t t0 = p->t0;
    for (int64_t t = t0; t < p->t1; t++) {
        float *y = (float *)(uintptr_t)head_at(&a->y, p->b, p->g * j->group + t / a->q_length);
        float sum = w->sum[t - t0], factor = sum == 0 ? 0 : 1 / sum;
        y += t % a->q_length * a->y.row;
        if (any)
            j->kernels->maps->binary[SNI_BINARY_MUL](w->output + (t - t0) * j->v_columns, &factor,
                                                     y, a->v_size, 1, 0, NULL);

        else
            memset(y, 0, (size_t)a->v_size * sizeof *y);
    }
}

static void run_panel(const attend_job *j, const workspace *w, int64_t item) {
    const sni_attention *a = j->a;
    int nr = j->kernels->nr;
    int64_t i = item / j->panels, b = i / a->kv_heads, g = i % a->kv_heads, lo, hi;
    int64_t t0 = item % j->panels * nr, t1 = sni_min(t0 + nr, j->queries);
    sni_attend_block block = {.scale = (float)a->scale, .cap = (float)a->softcap};
    const panel p = {b, g, t0, t1};
    pack_queries(j, w, &p);
    for (int q = 0; q < nr; q++) {
        int64_t h = g * j->group + sni_min(t0 + q, t1 - 1) / a->q_length;
        w->most[q] = a->sink ? ((const float *)a->sink)[h] : -INFINITY;
        w->sum[q] = a->sink ? 1 : 0;
    }
    range_of(j, b, t0, t1, &lo, &hi);
    for (int64_t at = lo; at < hi; at += KEYS) {
        int64_t n = sni_min(KEYS, a->total - at);
        block_bias(j, w, &p, at, n, &block);
        run_block(j, w, at, n, t1 - t0, &block, at > lo);
    }
    store_panel(j, w, &p, lo < hi);
}

/* ---- Single queries ---- */

static void run_query(const attend_job *j, const workspace *w, int64_t item) {
    const sni_attention *a = j->a;
    const sni_cpu_kernels *kernels = j->kernels;
    int64_t i = item / j->queries, t = item % j->queries, b = i / a->kv_heads, g = i % a->kv_heads;
    int64_t h = g * j->group + t / a->q_length, q = t % a->q_length, lo, hi;
    const float *k = head_at(&a->k, b, g), *v = head_at(&a->v, b, g);
    float *y = (float *)(uintptr_t)head_at(&a->y, b, h) + q * a->y.row;
    float most = a->sink ? ((const float *)a->sink)[h] : -INFINITY, sum = a->sink ? 1 : 0;
    sni_attend_block block = {.scale = (float)a->scale, .cap = (float)a->softcap};
    range_of(j, b, t, t + 1, &lo, &hi);
    int64_t n = sni_max(0, hi - lo);
    if (n == 0) {
        memset(y, 0, (size_t)a->v_size * sizeof *y);
        return;
    }
    if (j->biased) {
        make_bias(a, b, h, q, lo, n, w->bias);
        block.key_bias = w->bias;
    }
    kernels->attend->dot_rows(head_at(&a->q, b, h) + q * a->q.row, k + lo * a->k.row, a->k.row, n,
                              a->head_size, w->scores);
    kernels->attend->attend_row(&block, w->scores, n, &most, &sum);
    kernels->attend->weigh_rows(w->scores, v + lo * a->v.row, a->v.row, n, a->v_size,
                                sum == 0 ? 0 : 1 / sum, y);
}

/* ---- The whole ---- */

static size_t aligned(int64_t floats) {
    return ((size_t)floats + 15) & ~(size_t)15;
}

/* Divides a part's memory at `base` into its buffers and returns its size in floats. base NULL:
 * only the size. */
static size_t lay_out(const attend_job *j, float *base, workspace *w) {
    const sni_attention *a = j->a;
    int64_t nr = j->kernels->nr;
    bool few = j->queries <= FEW;
    const size_t sizes[] = {aligned(j->apart && !few ? (int64_t)j->k_size : 0),
                            aligned(j->apart && !few ? (int64_t)j->v_size : 0),
                            aligned(few ? 0 : nr * a->head_size),
                            aligned(few ? 0 : nr * a->head_size),
                            aligned(few ? a->total : KEYS * nr),
                            aligned(few ? 0 : nr * j->v_columns),
                            aligned(few ? a->total : KEYS * nr),
                            aligned(few ? 0 : KEYS * nr),
                            aligned(nr),
                            aligned(nr),
                            aligned(nr)};
    float **places[] = {&w->k,    &w->v,          &w->rows, &w->packed, &w->scores, &w->output,
                        &w->bias, &w->transposed, &w->most, &w->sum,    &w->fade};
    size_t used = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        *places[i] = base ? base + used : NULL;
        used += sizes[i];
    }
    return used;
}

/* Makes group i's packed keys and values those of the workspace. */
static void take_group(const attend_job *j, workspace *w, int64_t i) {
    if (j->apart) {
        pack_group(j, i, w->k, w->v);
        return;
    }
    w->k = j->k + (size_t)i * j->k_size;
    w->v = j->v + (size_t)i * j->v_size;
}

static void run_parts(void *ctx, int64_t begin, int64_t end) {
    const attend_job *j = ctx;
    int64_t each = j->apart ? j->panels : 1,
            units = j->a->batches * j->a->kv_heads * j->panels / each;
    for (int64_t part = begin; part < end; part++) {
        workspace w;
        int64_t group = -1;
        lay_out(j, j->scratch + (size_t)part * j->scratch_part, &w);
        for (int64_t i = part * units / j->parts * each; i < (part + 1) * units / j->parts * each;
             i++) {
            if (j->watch && sni_stopping(j->watch)) return;
            if (j->queries <= FEW) {
                run_query(j, &w, i);
                continue;
            }
            if (i / j->panels != group) take_group(j, &w, group = i / j->panels);
            run_panel(j, &w, i);
        }
    }
}

static sn_status take_floats(sni_kernel *k, size_t count, size_t each, float **out) {
    size_t bytes;
    if (!sni_mul_size(count, each, &bytes) || !sni_mul_size(bytes, sizeof(float), &bytes))
        return sni_fail(k->err, SN_LIMIT, "%zu times %zu elements are too many", count, each);
    *out = sni_scratch(k, bytes ? bytes : 1);
    return *out ? SN_OK : k->err ? k->err->status : SN_NO_MEMORY;
}

static void plan_job(attend_job *j) {
    const sni_attention *a = j->a;
    int mr = j->kernels->mr, nr = j->kernels->nr, lanes = j->kernels->lanes;
    bool moving = a->causal || a->left >= 0 || a->right >= 0;
    j->group = a->q_heads / a->kv_heads;
    j->queries = j->group * a->q_length;
    j->panels = j->queries <= FEW ? j->queries : (j->queries + nr - 1) / nr;
    j->k_columns = (a->head_size + SNI_LEFT_STEPS - 1) / SNI_LEFT_STEPS * SNI_LEFT_STEPS;
    j->v_columns = (a->v_size + lanes - 1) / lanes * lanes;
    j->biased = a->mask || a->padding || moving || a->lengths;
    j->same_bias = !moving &&
                   !(a->mask && (a->mask_stride[2] || (a->mask_stride[1] && j->group > 1))) &&
                   !(a->padding && a->padding_stride[1]);
    j->plain_bias =
        a->mask && !a->bool_mask && !a->padding && !moving && !a->lengths && !j->same_bias;
    j->k_size = (size_t)((a->total + mr - 1) / mr * mr * j->k_columns);
    j->v_size = (size_t)(a->total * j->v_columns);
}

sn_status sni_cpu_attend(sni_kernel *k, const sni_attention *a, bool *done) {
    attend_job j = {.a = a, .kernels = sni_cpu_kernels_get()};
    int64_t groups = a->batches * a->kv_heads;
    *done = false;
    if (a->kept || a->mods) return SN_OK;
    if (groups == 0 || a->q_length == 0 || a->v_size == 0) {
        *done = true;
        return SN_OK;
    }
    plan_job(&j);
    int threads = k->threads < 1 ? 1 : k->threads;
    double macs =
        (double)a->total * (double)j.queries * (double)groups * (double)(a->head_size + a->v_size);
    if (macs < GRAIN_MACS) threads = 1;
    if (macs > LONG_MACS) j.watch = k;
    j.parts = (int)sni_min(groups * j.panels, threads == 1 ? 1 : 2 * (int64_t)threads);
    j.apart = j.queries > FEW && (groups % j.parts == 0 || groups >= 4 * j.parts);
    if (j.queries > FEW && !j.apart) {
        SN_TRY(take_floats(k, (size_t)groups, j.k_size, &j.k));
        SN_TRY(take_floats(k, (size_t)groups, j.v_size, &j.v));
        sni_parallel_for(threads, groups, 1, pack_groups, &j);
    }
    SN_TRY(sni_poll(k));
    j.scratch_part = lay_out(&j, NULL, &(workspace){0});
    SN_TRY(take_floats(k, (size_t)j.parts, j.scratch_part, &j.scratch));
    sni_parallel_for(threads, j.parts, 1, run_parts, &j);
    *done = true;
    return j.watch ? sni_poll(k) : SN_OK;
}
