/* second_order.c - second moments of inputs, their factors, and GPTQ. */
#include "quantize/second_order.h"

#include "base/threadpool.h"
#include "quantize/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Gathering ---- */

/* Moments of one value, which several layers may read. */
typedef struct moments {
    int32_t x;
    int64_t k;
    double *sums;       /* k by k */
    sn_session *square; /* x^T x */
} moments;

typedef struct gathering {
    sni_quantizer *q;
    moments *list;
    size_t count;
} gathering;

static sn_status open_square(const sni_quantizer *q, int64_t k, sn_session **out, sn_error *err) {
    char text[256];
    sn_model *model;
    int n = snprintf(text, sizeof text,
                     "<ir_version: 8, opset_import: [\"\": 17]>\n"
                     "g (float[T,%lld] x) => (float[%lld,%lld] y) { y = Gemm<transA = 1>(x, x) }",
                     (long long)k, (long long)k, (long long)k);
    SN_TRY(sn_model_load_text(text, (size_t)n, &model, err));
    sn_status status = sni_q_session(q, model, out, err);
    sn_model_destroy(model);
    return status;
}

static sn_status add_moments(const moments *m, const sn_value *v, sn_error *err) {
    size_t count = sn_tensor_count(v), rows = count / (size_t)m->k;
    if (sn_tensor_dtype(v) != SN_FLOAT32 || !rows || count % (size_t)m->k) return SN_OK;
    const float *x = sn_tensor_const_data(v);
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return sni_fail(err, SN_BAD_DATA, "an input is NaN or infinite");
    int64_t dims[] = {(int64_t)rows, m->k};
    sn_value *flat = NULL;
    SN_TRY(
        sn_tensor_wrap(SN_FLOAT32, 2, dims, (void *)(uintptr_t)x, count * sizeof *x, &flat, err));
    sn_binding in = {"x", flat}, out = {"y", NULL};
    sn_status status = sn_session_run(m->square, NULL, &in, 1, &out, 1, err);
    const float *y = status == SN_OK ? sn_tensor_const_data(out.value) : NULL;
    for (int64_t i = 0; y && i < m->k * m->k; i++) m->sums[i] += (double)y[i];
    sn_value_destroy(out.value);
    sn_value_destroy(flat);
    return status;
}

static sn_status gather(void *ctx, size_t sample, sn_value *const *values, size_t count,
                        sn_error *err) {
    const gathering *g = ctx;
    for (size_t i = 0; i < count; i++) {
        sn_status status = add_moments(&g->list[i], values[i], err);
        if (status != SN_OK) return sni_fail_context(err, status, "sample %zu", sample);
    }
    return SN_OK;
}

/* ---- The factor ---- */

typedef struct factoring {
    double *r;   /* H, then R with H = R R^T, upper */
    double *inv; /* the inverse of R, transposed */
    int64_t k, column;
} factoring;

/* Sums in eight parts, so that compilers can use vectors. */
static double dot(const double *a, const double *b, int64_t n) {
    double s[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) s[j] += a[i + j] * b[i + j];
    for (; i < n; i++) s[0] += a[i] * b[i];
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

static void factor_column(void *ctx, int64_t begin, int64_t end) {
    const factoring *f = ctx;
    int64_t k = f->k, j = f->column, rest = k - j - 1;
    const double *row = f->r + j * k;
    for (int64_t i = begin; i < end; i++) {
        double *at = f->r + i * k;
        at[j] = (at[j] - dot(at + j + 1, row + j + 1, rest)) / row[j];
    }
}

/* R with H = R R^T from the last column to the first; false if H is not positive. */
static bool factor(factoring *f, int threads) {
    for (int64_t j = f->k; j-- > 0;) {
        double *row = f->r + j * f->k;
        double d = row[j] - dot(row + j + 1, row + j + 1, f->k - j - 1);
        if (!(d > 0)) return false;
        row[j] = sqrt(d);
        f->column = j;
        sni_parallel_for(threads, j, 64, factor_column, f);
    }
    return true;
}

static void invert_columns(void *ctx, int64_t begin, int64_t end) {
    const factoring *f = ctx;
    int64_t k = f->k;
    for (int64_t j = begin; j < end; j++) {
        double *column = f->inv + j * k;
        column[j] = 1 / f->r[j * k + j];
        for (int64_t i = j; i-- > 0;)
            column[i] = -dot(f->r + i * k + i + 1, column + i + 1, j - i) / f->r[i * k + i];
    }
}

/* U of the moments, which are overwritten. Inputs that are always 0 count a little, as all do. */
static sn_status make_factor(const sni_quantizer *q, moments *m, float **out, sn_error *err) {
    int64_t k = m->k;
    size_t size = (size_t)(k * k);
    factoring f = {m->sums, NULL, k, 0};
    double mean = 0;
    float *u = malloc(size * sizeof *u);
    double *kept = malloc(size * sizeof *kept);
    f.inv = calloc(size, sizeof *f.inv);
    sn_status status = u && kept && f.inv ? SN_OK : sni_fail_memory(err);
    if (status != SN_OK) goto done;
    for (int64_t i = 0; i < k; i++) mean += m->sums[i * k + i] / (double)k;
    if (!(mean > 0)) mean = 1;
    memcpy(kept, m->sums, size * sizeof *kept);
    status = sni_fail(err, SN_BAD_DATA, "the inputs' second moments cannot be inverted");
    for (double damp = 0.01; damp < 100 && status != SN_OK; damp *= 10) {
        memcpy(f.r, kept, size * sizeof *kept);
        for (int64_t i = 0; i < k; i++) f.r[i * k + i] += damp * mean;
        if (factor(&f, q->o.threads)) status = SN_OK;
    }
    if (status != SN_OK) goto done;
    sni_parallel_for(q->o.threads, k, 8, invert_columns, &f);
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < k; j++) u[i * k + j] = j >= i ? (float)f.inv[j * k + i] : 0;
done:
    free(f.inv);
    free(kept);
    if (status == SN_OK)
        *out = u;
    else
        free(u);
    return status;
}

/* ---- All layers ---- */

static bool is_listed(const gathering *g, int32_t x) {
    for (size_t i = 0; i < g->count; i++)
        if (g->list[i].x == x) return true;
    return false;
}

/* The values that the next pass looks at: as many as the limit allows, at least one. */
static sn_status choose_values(gathering *g, const sni_qmoments *m, const bool *done,
                               sn_error *err) {
    sni_quantizer *q = g->q;
    uint64_t limit = q->o.memory_limit ? q->o.memory_limit : 512u << 20, used = 0;
    g->count = 0;
    for (size_t i = 0; i < q->n_layers; i++) {
        const sni_qlayer *l = &q->layers[i];
        if (l->kind != SNI_Q_PRODUCT || done[i] || !m->wants(m->ctx, l) || is_listed(g, l->x))
            continue;
        uint64_t bytes = (uint64_t)(l->k * l->k) * sizeof(double);
        if (g->count && used + bytes > limit) continue;
        used += bytes;
        moments *made = &g->list[g->count];
        *made = (moments){.x = l->x, .k = l->k};
        g->count++;
        made->sums = calloc((size_t)(l->k * l->k), sizeof(double));
        if (!made->sums) return sni_fail_memory(err);
        SN_TRY(open_square(q, l->k, &made->square, err));
    }
    return SN_OK;
}

static sn_status use_moments(gathering *g, const sni_qmoments *m, bool *done, sn_error *err) {
    sni_quantizer *q = g->q;
    for (size_t j = 0; j < g->count; j++) {
        float *u = NULL;
        SN_TRY(make_factor(q, &g->list[j], &u, err));
        sni_qfactor f = {g->list[j].k, u};
        sn_status status = SN_OK;
        for (size_t i = 0; i < q->n_layers && status == SN_OK; i++) {
            sni_qlayer *l = &q->layers[i];
            if (l->kind != SNI_Q_PRODUCT || l->x != g->list[j].x || l->k != f.k || done[i] ||
                !m->wants(m->ctx, l))
                continue;
            status = sni_q_progress(q, "fitting weights", i, q->n_layers);
            if (status == SN_OK) status = m->fn(m->ctx, l, &f, err);
            done[i] = true;
        }
        free(u);
        if (status != SN_OK) return status;
    }
    return SN_OK;
}

static sn_status one_pass(gathering *g, const sni_qmoments *m, bool *done, sn_error *err) {
    const char **names = calloc(g->q->n_layers + 1, sizeof *names);
    sn_status status = names ? choose_values(g, m, done, err) : sni_fail_memory(err);
    for (size_t i = 0; status == SN_OK && i < g->count; i++)
        names[i] = g->q->base->values[g->list[i].x]->name.p;
    sni_qwatch watch = {names, g->count, "gathering second moments", gather, g};
    if (status == SN_OK) status = sni_q_watch(g->q, &watch, err);
    for (size_t i = 0; i < g->count; i++) sn_session_destroy(g->list[i].square);
    if (status == SN_OK) status = use_moments(g, m, done, err);
    for (size_t i = 0; i < g->count; i++) free(g->list[i].sums);
    free(names);
    return status;
}

sn_status sni_q_moments(sni_quantizer *q, const sni_qmoments *m) {
    gathering g = {q, calloc(q->n_layers + 1, sizeof *g.list), 0};
    bool *done = calloc(q->n_layers + 1, sizeof *done);
    sn_status status = g.list && done ? SN_OK : sni_fail_memory(q->err);
    do {
        if (status == SN_OK) status = one_pass(&g, m, done, q->err);
    } while (status == SN_OK && g.count);
    free(g.list);
    free(done);
    return status;
}

/* ---- GPTQ ---- */

void sni_q_compensate(const sni_qfactor *f, float *row, int64_t i, float v) {
    const float *u = f->u + i * f->k;
    float part = (row[i] - v) / u[i];
    row[i] = v;
    for (int64_t j = i + 1; j < f->k; j++) row[j] -= part * u[j];
}

typedef struct gptq {
    sni_quantizer *q;
    sn_quantize_to precision;
    const sni_qfactor *f;
    const sni_qblocks *b;
    float *rows;
    const float *weight; /* of an error in each input */
} gptq;

static void fit_rows(void *ctx, int64_t begin, int64_t end) {
    const gptq *t = ctx;
    const sni_qblocks *b = t->b;
    int64_t k = t->f->k;
    for (int64_t r = begin; r < end; r++) {
        float *row = t->rows + r * k, scale = 1;
        int zero = 0;
        for (int64_t i = 0; i < k; i++) {
            if (i % b->size == 0) {
                int64_t count = k - i < b->size ? k - i : b->size;
                sni_q_fit_block(row + i, t->weight + i, count, 1 << b->bits, &scale, &zero);
                sni_q_blocks_set(b, r, i / b->size, scale, zero);
            }
            float v = sni_q_blocks_put(b, r, i, row[i] / scale + (float)zero);
            sni_q_compensate(t->f, row, i, (v - (float)zero) * scale);
        }
    }
}

static sn_status fit_layer(void *ctx, sni_qlayer *l, const sni_qfactor *f, sn_error *err) {
    gptq t = *(const gptq *)ctx;
    sni_qblocks b;
    sni_qweights made;
    float *original = NULL, *weight = malloc((size_t)f->k * sizeof *weight);
    if (!weight) return sni_fail_memory(err);
    for (int64_t i = 0; i < f->k; i++) weight[i] = 1 / (f->u[i * f->k + i] * f->u[i * f->k + i]);
    sn_status status = sni_q_rows(t.q, l, &t.rows, err);
    if (status == SN_OK) status = sni_q_rows(t.q, l, &original, err);
    if (status == SN_OK) status = sni_q_blocks_new(t.q, l, t.precision, &b, &made, err);
    if (status == SN_OK) {
        t.f = f;
        t.b = &b;
        t.weight = weight;
        sni_parallel_for(t.q->o.threads, l->n, 1, fit_rows, &t);
        made.error = sni_q_blocks_error(&b, l, original);
        l->made[t.precision] = made;
    }
    free(t.rows);
    free(original);
    free(weight);
    return status;
}

static bool wants(const void *ctx, const sni_qlayer *l) {
    const gptq *t = ctx;
    return (l->can & 1u << t->precision) && !l->made[t->precision].data;
}

sn_status sni_q_second_order(sni_quantizer *q, sn_quantize_to precision) {
    gptq t = {.q = q, .precision = precision};
    return sni_q_moments(q, &(sni_qmoments){wants, fit_layer, &t});
}
