/* prune.c - weights that become 0: those that matter least, by their size or by what their inputs
 * are. */
#include "quantize/second_order.h"

#include "base/threadpool.h"

#include <math.h>
#include <stdlib.h>

typedef struct pruning {
    sni_quantizer *q;
    sn_prune_options o;
    sni_qlayer *l;
    float *rows;          /* n rows of k */
    const float *weight;  /* of a change in each input, squared; NULL: 1 */
    const sni_qfactor *f; /* NULL: what stays does not change */
} pruning;

/* ---- One row ---- */

typedef struct candidate {
    float score;
    int32_t at;
} candidate;

static int by_score(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

/* Marks the `drop` of `count` weights from `from` on that matter least. */
static void mark(const pruning *p, const float *row, int64_t from, int64_t count, int64_t drop,
                 candidate *list, bool *gone) {
    for (int64_t i = 0; i < count; i++) {
        float w = row[from + i];
        list[i] = (candidate){w * w * (p->weight ? p->weight[from + i] : 1), (int32_t)i};
    }
    qsort(list, (size_t)count, sizeof *list, by_score);
    for (int64_t i = 0; i < drop; i++) gone[from + list[i].at] = true;
}

/* Neighbours among which weights are compared: what stays then makes up for what goes. */
static int64_t group_of(const pruning *p) {
    enum { BLOCK = 128 };
    if (p->o.pattern == SN_PRUNE_2_4) return 4;
    return p->f ? BLOCK : p->l->k;
}

static void prune_row(const pruning *p, float *row, candidate *list, bool *gone) {
    int64_t k = p->l->k, group = group_of(p);
    memset(gone, 0, (size_t)k);
    for (int64_t at = 0; at < k; at += group) {
        int64_t count = k - at < group ? k - at : group;
        double part = p->o.pattern == SN_PRUNE_2_4 ? 0.5 : p->o.sparsity;
        mark(p, row, at, count, (int64_t)((double)count * part + 0.5), list, gone);
        for (int64_t i = at; i < at + count; i++) {
            if (p->f)
                sni_q_compensate(p->f, row, i, gone[i] ? 0 : row[i]);
            else if (gone[i])
                row[i] = 0;
        }
    }
}

/* Scratch of a piece of rows. */
typedef struct scratch {
    candidate *list;
    bool *gone;
} scratch;

static void prune_rows(void *ctx, int64_t begin, int64_t end) {
    const pruning *p = ctx;
    scratch s = {malloc((size_t)p->l->k * sizeof *s.list), malloc((size_t)p->l->k)};
    for (int64_t r = begin; s.list && s.gone && r < end; r++)
        prune_row(p, p->rows + r * p->l->k, s.list, s.gone);
    free(s.list);
    free(s.gone);
}

/* ---- One layer ---- */

/* Keeps the rows as the layer's new weights, as its node reads them. */
static sn_status keep_rows(sni_quantizer *q, sni_qlayer *l, const float *rows, sn_error *err) {
    const sni_tensor *shape = &q->base->values[l->w]->constant->tensor;
    bool turn = l->kind == SNI_Q_PRODUCT && l->reads_rows;
    const int64_t turned[] = {turn ? l->k : l->n, turn ? l->n : l->k};
    sni_const *c;
    SN_TRY(sni_const_new(q->store, SN_FLOAT32, shape->rank,
                         l->kind == SNI_Q_CONV ? shape->dims : turned, &c, err));
    float *to = c->tensor.data;
    int64_t zeros = 0;
    for (int64_t r = 0; r < l->n; r++)
        for (int64_t i = 0; i < l->k; i++) {
            float v = rows[r * l->k + i];
            to[turn ? i * l->n + r : r * l->k + i] = v;
            zeros += v == 0;
        }
    l->sparsity = (double)zeros / (double)(l->n * l->k);
    l->made[SNI_PRUNED] = (sni_qweights){.data = c};
    l->made[SNI_PRUNED].bytes = (uint64_t)((double)l->bytes * (1 - l->sparsity));
    return SN_OK;
}

/* The mean square of each weight's input, by the channels seen; NULL: not known. The caller frees.
 */
static float *squares_of(const sni_quantizer *q, const sni_qlayer *l) {
    const sni_observer *o = l->x >= 0 ? q->seen[l->x] : NULL;
    const sni_tensor *shape = &q->base->values[l->w]->constant->tensor;
    int64_t taps = l->kind == SNI_Q_CONV ? l->k / shape->dims[1] : 1, in = l->k / taps;
    if (!o || o->channels != in || !o->per_channel) return NULL; /* groups see different ones */
    float *out = malloc((size_t)l->k * sizeof *out);
    for (int64_t i = 0; out && i < l->k; i++)
        out[i] = (float)(o->square[i / taps] / (double)o->per_channel);
    return out;
}

static sn_status prune_layer(const pruning *given, sni_qlayer *l, const sni_qfactor *f,
                             sn_error *err) {
    pruning p = *given;
    float *weight = NULL;
    p.l = l;
    p.f = f;
    SN_TRY(sni_q_rows(p.q, l, &p.rows, err));
    if (f) {
        weight = malloc((size_t)l->k * sizeof *weight);
        for (int64_t i = 0; weight && i < l->k; i++)
            weight[i] = 1 / (f->u[i * f->k + i] * f->u[i * f->k + i]);
    } else {
        weight = squares_of(p.q, l);
    }
    p.weight = weight;
    sni_parallel_for(p.q->o.threads, l->n, 4, prune_rows, &p);
    sn_status status = keep_rows(p.q, l, p.rows, err);
    free(weight);
    free(p.rows);
    return status;
}

/* ---- All layers ---- */

static bool is_product(const void *ctx, const sni_qlayer *l) {
    (void)ctx;
    return l->can & 1u << SNI_PRUNED;
}

static sn_status prune_product(void *ctx, sni_qlayer *l, const sni_qfactor *f, sn_error *err) {
    return prune_layer(ctx, l, f, err);
}

static sn_status prune_all(pruning *p) {
    sni_quantizer *q = p->q;
    if (q->samples.count) {
        SN_TRY(sni_q_calibrate(q));
        SN_TRY(sni_q_moments(q, &(sni_qmoments){is_product, prune_product, p}));
    }
    for (size_t i = 0; i < q->n_layers; i++) {
        sni_qlayer *l = &q->layers[i];
        if (!(l->can & 1u << SNI_PRUNED)) continue;
        if (!l->made[SNI_PRUNED].data) SN_TRY(prune_layer(p, l, NULL, q->err));
        l->precision = (sn_quantize_to)SNI_PRUNED;
    }
    return SN_OK;
}

/* Layers whose weights may go; the others say why not. */
static size_t choose_layers(sni_quantizer *q) {
    size_t count = 0;
    for (size_t i = 0; i < q->n_layers; i++) {
        sni_qlayer *l = &q->layers[i];
        bool can = l->kind != SNI_Q_GATHER && l->k >= 4 && strcmp(l->note, "kept as asked") != 0;
        l->can = 1u | (can ? 1u << SNI_PRUNED : 0);
        if (!can && !l->note[0])
            l->note = l->kind == SNI_Q_GATHER ? "tables are not pruned" : "it has few inputs";
        if (can) l->note = "";
        count += can;
    }
    return count;
}

sn_status sni_q_pruned(sni_quantizer *q, sni_graph *g, sn_error *err) {
    for (size_t i = 0; i < q->n_layers; i++) {
        const sni_qlayer *l = &q->layers[i];
        int32_t w;
        if (l->precision != (sn_quantize_to)SNI_PRUNED) continue;
        SN_TRY(sni_q_add_const(g, l->made[SNI_PRUNED].data, &w, err));
        SN_TRY(sni_node_set_input(g, g->nodes[l->node], 1, w, err));
    }
    return SN_OK;
}

static sn_status make(pruning *p, sn_model **out) {
    sni_quantizer *q = p->q;
    if (!choose_layers(q))
        return sni_fail(q->err, SN_INVALID_MODEL, "the model has no layer that can be pruned");
    SN_TRY(prune_all(p));
    sn_status status = q->samples.count ? sni_q_judge(q, 1u << SNI_PRUNED, false, out)
                                        : sni_q_build(q, out, q->err);
    for (size_t i = 0; i < q->n_layers; i++)
        if (q->layers[i].precision == SN_QUANTIZE_TO_FLOAT) q->layers[i].sparsity = 0;
    return status;
}

void sn_prune_options_init(sn_prune_options *options, size_t size) {
    const sn_prune_options defaults = {.size = sizeof defaults, .sparsity = 0.5};
    sni_options_init(options, size, &defaults, sizeof defaults);
}

sn_status sn_prune(const sn_model *model, const sn_prune_options *options, sn_model **out,
                   sn_quantize_report **report, sn_error *err) {
    if (!model || !out) return sni_fail(err, SN_INVALID_ARGUMENT, "model or out is NULL");
    pruning p = {0};
    sni_quantizer q;
    sn_model *made = NULL;
    sn_prune_options_init(&p.o, sizeof p.o);
    SN_TRY(sni_options_read(options, &p.o, sizeof p.o, "sn_prune_options_init", err));
    if (!(p.o.sparsity > 0 && p.o.sparsity < 1) || (unsigned)p.o.pattern > SN_PRUNE_2_4)
        return sni_fail(err, SN_INVALID_ARGUMENT, "a sparsity of %g, or no such pattern",
                        p.o.sparsity);
    sn_status status = sni_q_begin(&q, model, p.o.common, err);
    q.pruning = true;
    p.q = &q;
    status = status == SN_OK ? make(&p, &made) : status;
    return sni_q_finish(&q, status, made, out, report);
}
