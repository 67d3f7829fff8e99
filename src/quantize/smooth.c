/* smooth.c - scales moved from activations to weights: where a few channels of a product's input
 * are much larger than the others, one scale for all of them leaves the others few steps. Dividing
 * each channel by a number and multiplying the weights' row by it changes nothing in floats. The
 * number is that of SmoothQuant, sqrt(largest input / largest weight). */
#include "quantize/quantize.h"

#include <math.h>
#include <stdlib.h>

/* The layers that read one value, all of them products. */
typedef struct sharing {
    const sni_quantizer *q;
    int32_t x;
    int64_t k;
    float *scales;
} sharing;

static bool shares(const sharing *s, const sni_qlayer *l) {
    return l->kind == SNI_Q_PRODUCT && l->x == s->x && l->k == s->k &&
           (l->can & 1u << SN_QUANTIZE_TO_INT8);
}

/* Whether channels differ enough to be worth an operator. */
static bool differs(const sni_observer *o, int64_t k) {
    double mean = 0, most = 0;
    for (int64_t i = 0; i < k; i++) {
        mean += (double)o->largest[i] / (double)k;
        most = fmax(most, (double)o->largest[i]);
    }
    return most > 4 * mean;
}

static bool choose_scales(sharing *s) {
    const sni_quantizer *q = s->q;
    const sni_observer *o = q->seen[s->x];
    if (!o || o->channels != s->k || !o->per_channel || !differs(o, s->k)) return false;
    for (int64_t i = 0; i < s->k; i++) s->scales[i] = 0;
    for (size_t j = 0; j < q->n_layers; j++) {
        const sni_qlayer *l = &q->layers[j];
        if (!shares(s, l)) continue;
        const float *w = sni_q_floats(q, l->w, NULL);
        if (!w) return false;
        for (int64_t i = 0; i < s->k; i++)
            for (int64_t r = 0; r < l->n; r++) {
                float v = fabsf(w[l->by_rows ? i * l->n + r : r * l->k + i]);
                s->scales[i] = fmaxf(s->scales[i], v);
            }
    }
    for (int64_t i = 0; i < s->k; i++) {
        float v = sqrtf(fmaxf(o->largest[i], 1e-5f) / fmaxf(s->scales[i], 1e-5f));
        s->scales[i] = fminf(fmaxf(v, 1e-3f), 1e3f);
    }
    return true;
}

static sn_status scale_weights(const sharing *s, sni_graph *g, const sni_qlayer *l, sn_error *err) {
    const sni_tensor *shape = NULL;
    const float *w = sni_q_floats(s->q, l->w, &shape);
    int64_t dims[] = {l->reads_rows ? l->k : l->n, l->reads_rows ? l->n : l->k};
    sni_const *c;
    int32_t id;
    if (!w) return sni_fail(err, SN_IO, "layer '%s': its weights cannot be read", l->name);
    SN_TRY(sni_const_new(g->store, SN_FLOAT32, 2, dims, &c, err));
    float *to = c->tensor.data;
    for (int64_t i = 0; i < l->k; i++)
        for (int64_t r = 0; r < l->n; r++)
            to[l->reads_rows ? i * l->n + r : r * l->k + i] =
                w[l->by_rows ? i * l->n + r : r * l->k + i] * s->scales[i];
    SN_TRY(sni_q_add_const(g, c, &id, err));
    return sni_node_set_input(g, g->nodes[l->node], 1, id, err);
}

static sn_status move_scales(const sharing *s, sni_graph *g, sn_error *err) {
    float *inverse = malloc((size_t)s->k * sizeof *inverse);
    if (!inverse) return sni_fail_memory(err);
    for (int64_t i = 0; i < s->k; i++) inverse[i] = 1 / s->scales[i];
    int32_t in[2] = {s->x}, x;
    sn_status status = sni_q_add_floats(g, 1, &s->k, inverse, &in[1], err);
    free(inverse);
    if (status != SN_OK) return status;
    SN_TRY(sni_q_add_node(g, sni_q_after(g, g->values[s->x]->producer),
                          &(sni_qnode){"", "Mul", in, 2}, &x, err));
    for (size_t j = 0; j < s->q->n_layers; j++) {
        const sni_qlayer *l = &s->q->layers[j];
        if (!shares(s, l)) continue;
        SN_TRY(scale_weights(s, g, l, err));
        SN_TRY(sni_node_set_input(g, g->nodes[l->node], 0, x, err));
    }
    return SN_OK;
}

static sn_status smooth_all(const sni_quantizer *q, sni_graph *g, bool *any, sn_error *err) {
    bool *done = calloc((size_t)q->base->value_count + 1, sizeof *done);
    sn_status status = done ? SN_OK : sni_fail_memory(err);
    for (size_t j = 0; j < q->n_layers && status == SN_OK; j++) {
        const sni_qlayer *l = &q->layers[j];
        sharing s = {q, l->x, l->k, NULL};
        if (!shares(&s, l) || done[l->x]) continue;
        done[l->x] = true;
        s.scales = malloc((size_t)l->k * sizeof *s.scales);
        if (!s.scales) status = sni_fail_memory(err);
        if (status == SN_OK && choose_scales(&s)) {
            status = move_scales(&s, g, err);
            *any = true;
        }
        free(s.scales);
    }
    free(done);
    return status;
}

sn_status sni_q_smooth(const sni_quantizer *q, sn_model **out, sn_error *err) {
    sni_graph *g;
    bool any = false;
    SN_TRY(sni_q_copy(q, &g, err));
    sn_status status = smooth_all(q, g, &any, err);
    if (status == SN_OK && any) return sni_q_model(q, g, out, err);
    if (status == SN_OK) *out = NULL;
    sni_store_release(g->store);
    return status;
}
