/* knapsack.c - precisions of all layers by what each alone loses and gains. Losses of layers add up
 * about; so a budget for their sum is searched whose choice, measured as a whole, is within the
 * loss asked for. */
#include "quantize/quantize.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 512, ROUNDS = 9 };

/* What a layer gains by: nanoseconds or bytes. */
static double price(const sni_qlayer *l, sn_quantize_to p, bool by_time) {
    if (by_time) return (double)l->ns[p];
    if (p == SN_QUANTIZE_TO_FLOAT) return (double)l->bytes;
    if (p == SN_QUANTIZE_TO_INT8_DYNAMIC) p = SN_QUANTIZE_TO_INT8;
    return l->made[p].bytes ? (double)l->made[p].bytes : (double)l->bytes;
}

static double loss_of(const sni_qlayer *l, int p) {
    return p == SN_QUANTIZE_TO_FLOAT || l->losses[p] < 0 ? 0 : l->losses[p];
}

typedef struct choosing {
    sni_quantizer *q;
    uint32_t bits;
    bool by_time;
    double *least; /* by budget used: the least price of the layers so far */
    double *next;
    uint8_t *taken;        /* by layer and budget: the precision */
    sn_quantize_to *tried; /* by layer: what was built last, if any_tried */
    bool any_tried;
} choosing;

/* Steps of the budget that a loss takes; more than STEPS: too much. */
static int steps_of(double loss, double budget) {
    double steps = budget > 0 ? ceil(loss / budget * STEPS - 1e-9) : loss > 0 ? STEPS + 1 : 0;
    return steps > STEPS ? STEPS + 1 : (int)steps;
}

static void add_layer(choosing *c, size_t i, double budget) {
    const sni_qlayer *l = &c->q->layers[i];
    for (int at = 0; at <= STEPS; at++) c->next[at] = INFINITY;
    for (int p = 0; p < SNI_PRECISIONS; p++) {
        if (!((l->can & (c->bits | 1)) >> p & 1)) continue;
        int steps = steps_of(loss_of(l, p), budget);
        double cost = price(l, (sn_quantize_to)p, c->by_time);
        for (int at = steps; at <= STEPS; at++) {
            if (!(c->least[at - steps] + cost < c->next[at])) continue;
            c->next[at] = c->least[at - steps] + cost;
            c->taken[i * (STEPS + 1) + (size_t)at] = (uint8_t)p;
        }
    }
    double *swap = c->least;
    c->least = c->next;
    c->next = swap;
}

/* Sets the layers' precisions to the cheapest whose losses add up to at most `budget`. */
static void choose(choosing *c, double budget) {
    sni_quantizer *q = c->q;
    for (int at = 0; at <= STEPS; at++) c->least[at] = 0;
    for (size_t i = 0; i < q->n_layers; i++) add_layer(c, i, budget);
    int at = STEPS;
    for (size_t i = q->n_layers; i-- > 0;) {
        sni_qlayer *l = &q->layers[i];
        l->precision = (sn_quantize_to)c->taken[i * (STEPS + 1) + (size_t)at];
        at -= steps_of(loss_of(l, (int)l->precision), budget);
    }
}

static size_t count_changed(const sni_quantizer *q) {
    size_t count = 0;
    for (size_t i = 0; i < q->n_layers; i++)
        count += q->layers[i].precision != SN_QUANTIZE_TO_FLOAT;
    return count;
}

/* The losses of all layers in all precisions, one after the other. */
static sn_status measure_losses(sni_quantizer *q, uint32_t bits, double *most) {
    *most = 0;
    for (size_t i = 0; i < q->n_layers; i++) {
        sni_qlayer *l = &q->layers[i];
        double worst = 0;
        SN_TRY(sni_q_progress(q, "measuring layers", i, q->n_layers));
        for (int p = 1; p < SNI_PRECISIONS; p++) {
            if (!((l->can & bits) >> p & 1)) continue;
            SN_TRY(sni_q_layer_loss(q, l, (sn_quantize_to)p));
            worst = fmax(worst, l->losses[p]);
        }
        *most += worst;
    }
    return SN_OK;
}

/* Keeps the precisions of the best model so far. */
static void keep(const sni_quantizer *q, sn_quantize_to *to) {
    for (size_t i = 0; i < q->n_layers; i++) to[i] = q->layers[i].precision;
}

/* Whether the precisions are those tried last, which are remembered. */
static bool is_again(choosing *c) {
    const sni_quantizer *q = c->q;
    bool same = c->any_tried;
    for (size_t i = 0; i < q->n_layers && same; i++) same = c->tried[i] == q->layers[i].precision;
    keep(q, c->tried);
    c->any_tried = true;
    return same;
}

/* Builds and measures what is chosen now; *good: it is within the loss, and *out and `best` are
 * it. */
static sn_status try_choice(choosing *c, size_t changed, bool *good, sn_quantize_to *best,
                            sn_model **out) {
    sni_quantizer *q = c->q;
    char what[64];
    sni_qloss loss;
    sn_model *model = NULL;
    snprintf(what, sizeof what, "%zu of %zu layers", changed, q->n_layers);
    SN_TRY(sni_q_try(q, what, &loss, &model));
    *good = q->o.max_loss < 0 || loss.asked <= q->o.max_loss;
    if (!*good) {
        sn_model_destroy(model);
        return SN_OK;
    }
    sn_model_destroy(*out);
    *out = model;
    keep(q, best);
    return SN_OK;
}

static sn_status search(choosing *c, double most, sn_quantize_to *best, sn_model **out) {
    double low = most * 1e-5, high = most * 1.001 + 1e-300, budget = high;
    bool good = false;
    for (int round = 0; round < ROUNDS && high / low > 1.05; round++) {
        choose(c, budget);
        size_t changed = count_changed(c->q);
        if (!is_again(c)) {
            good = false;
            if (changed) SN_TRY(try_choice(c, changed, &good, best, out));
        }
        if (good && round == 0) break;
        if (good || !changed)
            low = budget;
        else
            high = budget;
        budget = sqrt(low * high);
    }
    return SN_OK;
}

sn_status sni_q_knapsack(sni_quantizer *q, uint32_t bits, bool by_time, sn_model **out) {
    choosing c = {.q = q, .bits = bits, .by_time = by_time};
    sn_quantize_to *best = calloc(q->n_layers + 1, sizeof *best);
    double most;
    sn_model *found = NULL;
    c.least = calloc(STEPS + 1, sizeof *c.least);
    c.next = calloc(STEPS + 1, sizeof *c.next);
    c.tried = calloc(q->n_layers + 1, sizeof *c.tried);
    c.taken = calloc((q->n_layers + 1) * (STEPS + 1), 1);
    sn_status status =
        best && c.least && c.next && c.taken && c.tried ? SN_OK : sni_fail_memory(q->err);
    if (status == SN_OK) status = measure_losses(q, bits, &most);
    if (status == SN_OK && by_time) status = sni_q_layer_times(q, bits | 1);
    if (status == SN_OK) status = search(&c, most, best, &found);
    for (size_t i = 0; status == SN_OK && i < q->n_layers; i++) q->layers[i].precision = best[i];
    free(c.least);
    free(c.next);
    free(c.taken);
    free(c.tried);
    free(best);
    if (status == SN_OK)
        *out = found;
    else
        sn_model_destroy(found);
    return status;
}
