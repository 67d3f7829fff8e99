/* attention.c - attention in float32 that never stores its scores as a whole matrix (the method of
 * FlashAttention, with online softmax).
 *
 * Queries that share keys (those of one head, or of all heads of a group) are processed nr at a
 * time, as the columns of a panel, and keys in blocks of SNI_ATTEND_KEYS. For each block: scores^T
 * (keys, nr) = K Q^T     GEMM tiles of packed keys and the panel weights = e^(scores - max)      in
 * place, one query per lane, with the maximum so far output (nr, size) += weights V  tiles of the
 * weights and packed values When the maximum rises, what was summed before is multiplied by e^(old
 * max - new max). A block's scores stay in the first-level cache.
 *
 * Up to SNI_ATTEND_FEW queries (decoding) are processed one at a time over unpacked keys and
 * values: packing would read as much as the products. */
#include "cpu/core/hooks.h"

#include "base/checked.h"
#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/attention/attend.h"
#include "cpu/attention/attend_job.h"
#include "cpu/attention/kv_rows.h"
#include "cpu/core/kernels.h"
#include "cpu/elementwise/map.h"

#include <float.h>
#include <math.h>

enum {
    GRAIN_MACS = 1 << 15, /* multiply-adds that are worth a thread */
    LONG_MACS = 1 << 30   /* some ten milliseconds */
};

/* ---- Packed keys and values ---- */

/* Packs the keys of group i as left operands and its values as right operands. */
static void pack_group(const sni_attend_job *j, int64_t i, float *room, float *to_k, float *to_v) {
    const sni_attention *a = j->a;
    const sni_cpu_kernels *kernels = j->kernels;
    int mr = kernels->mr, nr = kernels->nr;
    int64_t b = i / a->kv_heads, h = i % a->kv_heads, step;
    const sni_kv_rows keys = {&a->k, a->head_size, b, h, room};
    const sni_kv_rows values = {&a->v, a->v_size, b, h, room};
    for (int64_t at = 0; at < a->total; at += mr, to_k += mr * j->k_columns) {
        int64_t n = sni_min(mr, a->total - at);
        const float *k = sni_cpu_kv_rows(&keys, at, n, &step);
        kernels->pack_left(k, step, n, a->head_size, to_k);
    }
    for (int64_t at = 0; at < a->total; at += SNI_ATTEND_KEYS) {
        int64_t n = sni_min(SNI_ATTEND_KEYS, a->total - at);
        const float *v = sni_cpu_kv_rows(&values, at, n, &step);
        for (int64_t c = 0; c < j->v_columns; c += nr) {
            int64_t width = sni_min(nr, j->v_columns - c);
            kernels->pack_straight(v + c, step, sni_min(nr, a->v_size - c), (int)width, n, to_v);
            to_v += width * n;
        }
    }
}

static void pack_groups(void *ctx, int64_t begin, int64_t end) {
    const sni_attend_job *j = ctx;
    for (int64_t i = begin; i < end; i++)
        pack_group(j, i, j->room + (size_t)i * j->room_size, j->k + (size_t)i * j->k_size,
                   j->v + (size_t)i * j->v_size);
}

/* ---- Panels of queries ---- */

/* Queries [t0, t1) of group g of batch b, at most nr. A group's queries are those of all its heads,
 * one head after the other. */
typedef struct panel {
    int64_t b, g, t0, t1;
} panel;

/* Gathers the queries and packs them as the columns of a right operand. */
static void pack_queries(const sni_attend_job *j, const sni_attend_workspace *w, const panel *p) {
    const sni_attention *a = j->a;
    int64_t d = a->head_size, b = p->b, g = p->g, t0 = p->t0, t1 = p->t1;
    if (t0 / a->q_length == (t1 - 1) / a->q_length) { /* of one head: read in place */
        const float *q = sni_attend_head(&a->q, b, g * j->group + t0 / a->q_length);
        j->kernels->pack_transposed(q + t0 % a->q_length * a->q.row, a->q.row, t1 - t0,
                                    j->kernels->nr, d, w->packed);
        return;
    }
    for (int64_t t = t0; t < t1 && d; t++)
        memcpy(w->rows + (t - t0) * d,
               sni_attend_head(&a->q, b, g * j->group + t / a->q_length) +
                   t % a->q_length * a->q.row,
               (size_t)d * sizeof *w->rows);
    j->kernels->pack_transposed(w->rows, d, t1 - t0, j->kernels->nr, d, w->packed);
}

/* Transposes keys [at, at + n) of a float mask, which is the only mask, to w->transposed. */
static void transpose_mask(const sni_attend_job *j, const sni_attend_workspace *w, const panel *p,
                           int64_t at, int64_t n) {
    const sni_attention *a = j->a;
    const int64_t b = p->b, g = p->g, t0 = p->t0;
    for (int64_t t = t0, next; t < p->t1; t = next) {
        next = sni_min(p->t1, (t / a->q_length + 1) * a->q_length); /* to the end of the head */
        int64_t from =
            sni_attend_mask_at(a, b, g * j->group + t / a->q_length, t % a->q_length) + at;
        j->kernels->transpose_matrix((const float *)a->mask + from, a->mask_stride[2], next - t, n,
                                     w->transposed + (t - t0), j->kernels->nr);
    }
}

/* Sets the biases of a block: the masks of keys [at, at + n) for the panel. */
static void block_bias(const sni_attend_job *j, const sni_attend_workspace *w, const panel *p,
                       int64_t at, int64_t n, sni_attend_block *block) {
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
        sni_attend_bias(a, b, g * j->group + t / a->q_length, t % a->q_length, at, n,
                        w->bias + (t - t0) * SNI_ATTEND_KEYS);
    if (j->same_bias) {
        block->key_bias = w->bias;
        return;
    }
    j->kernels->transpose_matrix(w->bias, SNI_ATTEND_KEYS, t1 - t0, n, w->transposed, nr);
    block->bias = w->transposed;
}

/* output (rows, size) += weights (n keys) V, after what was there is multiplied by `fade`; without
 * `add` nothing was there. */
static void add_values(const sni_attend_job *j, const sni_attend_workspace *w, const float *v,
                       int64_t n, int64_t rows, bool add) {
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
static void run_block(const sni_attend_job *j, const sni_attend_workspace *w, int64_t at, int64_t n,
                      int64_t rows, const sni_attend_block *block, bool add) {
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
static void store_panel(const sni_attend_job *j, const sni_attend_workspace *w, const panel *p,
                        bool any) {
    const sni_attention *a = j->a;
    const int64_t t0 = p->t0;
    for (int64_t t = t0; t < p->t1; t++) {
        float *y =
            (float *)(uintptr_t)sni_attend_head(&a->y, p->b, p->g * j->group + t / a->q_length);
        float sum = w->sum[t - t0], factor = sum == 0 ? 0 : 1 / sum;
        y += t % a->q_length * a->y.row;
        if (any)
            j->kernels->maps->binary[SNI_BINARY_MUL](w->output + (t - t0) * j->v_columns, &factor,
                                                     y, a->v_size, 1, 0, NULL);

        else
            memset(y, 0, (size_t)a->v_size * sizeof *y);
    }
}

static void run_panel(const sni_attend_job *j, const sni_attend_workspace *w, int64_t item) {
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
    sni_attend_range(j, b, t0, t1, &lo, &hi);
    for (int64_t at = lo; at < hi; at += SNI_ATTEND_KEYS) {
        int64_t n = sni_min(SNI_ATTEND_KEYS, a->total - at);
        block_bias(j, w, &p, at, n, &block);
        run_block(j, w, at, n, t1 - t0, &block, at > lo);
    }
    store_panel(j, w, &p, lo < hi);
}

/* ---- The whole ---- */

static size_t aligned(int64_t floats) {
    return ((size_t)floats + 15) & ~(size_t)15;
}

/* Divides a part's memory at `base` into its buffers and returns its size in floats. base NULL:
 * only the size. */
static size_t lay_out(const sni_attend_job *j, float *base, sni_attend_workspace *w) {
    const sni_attention *a = j->a;
    int64_t nr = j->kernels->nr;
    bool few = j->queries <= SNI_ATTEND_FEW;
    const size_t sizes[] = {
        aligned(j->apart && !few ? (int64_t)j->k_size : 0),
        aligned(j->apart && !few ? (int64_t)j->v_size : 0),
        aligned(few ? 0 : nr * a->head_size),
        aligned(few ? 0 : nr * a->head_size),
        aligned(few ? a->total * (j->stored ? j->queries : 1) : SNI_ATTEND_KEYS * nr),
        aligned(few ? a->v_size : nr * j->v_columns),
        aligned(few ? a->total : SNI_ATTEND_KEYS * nr),
        aligned(few ? 0 : SNI_ATTEND_KEYS * nr),
        aligned(nr),
        aligned(nr),
        aligned(nr),
        aligned(few || j->apart ? (int64_t)j->room_size : 0)};
    float **places[] = {&w->k,    &w->v,          &w->rows, &w->packed, &w->scores, &w->output,
                        &w->bias, &w->transposed, &w->most, &w->sum,    &w->fade,   &w->room};
    size_t used = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        *places[i] = base ? base + used : NULL;
        used += sizes[i];
    }
    return used;
}

/* Makes group i's packed keys and values those of the workspace. */
static void take_group(const sni_attend_job *j, sni_attend_workspace *w, int64_t i) {
    if (j->apart) {
        pack_group(j, i, w->room, w->k, w->v);
        return;
    }
    w->k = j->k + (size_t)i * j->k_size;
    w->v = j->v + (size_t)i * j->v_size;
}

static void run_parts(void *ctx, int64_t begin, int64_t end) {
    const sni_attend_job *j = ctx;
    int64_t each = j->apart ? j->panels : 1,
            units = j->a->batches * j->a->kv_heads * j->panels / each;
    for (int64_t part = begin; part < end; part++) {
        sni_attend_workspace w;
        int64_t group = -1;
        lay_out(j, j->scratch + (size_t)part * j->scratch_part, &w);
        for (int64_t i = part * units / j->parts * each; i < (part + 1) * units / j->parts * each;
             i++) {
            if (j->watch && sni_stopping(j->watch)) return;
            if (j->queries <= SNI_ATTEND_FEW) {
                sni_attend_few(j, &w, i);
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

static void plan_job(sni_attend_job *j) {
    const sni_attention *a = j->a;
    int mr = j->kernels->mr, nr = j->kernels->nr, lanes = j->kernels->lanes;
    bool moving = a->causal || a->left >= 0 || a->right >= 0;
    j->group = a->q_heads / a->kv_heads;
    j->queries = j->group * a->q_length;
    j->stored = !sni_heads_plain(&a->k) || !sni_heads_plain(&a->v);
    j->room_size = j->stored ? (size_t)(SNI_ATTEND_KEYS * sni_max(a->head_size, a->v_size)) : 0;
    j->panels = j->queries > SNI_ATTEND_FEW ? (j->queries + nr - 1) / nr
                : j->stored                 ? 1
                                            : j->queries;
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
    sni_attend_job j = {.a = a, .kernels = sni_cpu_kernels_get()};
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
    j.apart = j.queries > SNI_ATTEND_FEW && (groups % j.parts == 0 || groups >= 4 * j.parts);
    if (j.queries > SNI_ATTEND_FEW && !j.apart) {
        SN_TRY(take_floats(k, (size_t)groups, j.k_size, &j.k));
        SN_TRY(take_floats(k, (size_t)groups, j.v_size, &j.v));
        SN_TRY(take_floats(k, (size_t)groups, j.room_size, &j.room));
        sni_parallel_for(threads, groups, 1, pack_groups, &j);
    }
    SN_TRY(sni_poll(k));
    j.scratch_part = lay_out(&j, NULL, &(sni_attend_workspace){0});
    SN_TRY(take_floats(k, (size_t)j.parts, j.scratch_part, &j.scratch));
    sni_parallel_for(threads, j.parts, 1, run_parts, &j);
    *done = true;
    return j.watch ? sni_poll(k) : SN_OK;
}
