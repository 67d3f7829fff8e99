/* affine.c - scales and shifts by channel, folded into the weights and bias before them. */
#include "base/floats.h"
#include "ops/nn/scale.h"
#include "opt/rules/rules.h"

#include <math.h>

bool sni_is_channels(const sni_match *m, const char *name, int64_t channels, int from_end) {
    const sni_const *c = sni_value_const(m->g, sni_match_value(m, name));
    if (!c || c->tensor.dtype != SN_FLOAT32) return false;
    if (c->tensor.count == 1) return true;
    int axis = c->tensor.rank - 1 - from_end;
    return axis >= 0 && c->tensor.dims[axis] == channels && c->tensor.count == channels;
}

sn_status sni_bind_flat(sni_match *m, const char *name, const char *to) {
    const sni_tensor *t = sni_match_const(m, name);
    float *data;
    if (!t) return sni_fail(m->r->err, SN_INTERNAL, "a constant is no longer there");
    SN_TRY(sni_match_new_floats(m, to, 1, &t->count, &data));
    if (t->count) memcpy(data, t->data, (size_t)t->count * sizeof *data);
    return SN_OK;
}

bool sni_is_foldable(const sni_match *m, const char *name) {
    const sni_tensor *t = sni_match_const(m, name);
    bool divides = sni_str_is(m->root->type, "Div");
    if (!t || t->dtype != SN_FLOAT32) return false;
    for (int64_t i = 0; i < t->count; i++) {
        float v = ((const float *)t->data)[i];
        if (!isfinite(v) || (divides && !isfinite(1 / v))) return false;
    }
    return true;
}

static sn_status new_affine(sni_match *m, int64_t channels, sni_affine *out) {
    *out = (sni_affine){.channels = channels};
    out->k = SNI_NEW_ARRAY(&m->r->store->arena, float, channels);
    out->s = SNI_NEW_ARRAY(&m->r->store->arena, float, channels);
    return out->k && out->s ? SN_OK : sni_fail_memory(m->r->err);
}

static sn_status load(sni_match *m, const char *name, const float **data, int64_t *step) {
    sni_const *c = sni_value_const(m->g, sni_match_value(m, name));
    const sni_tensor *t;
    *data = NULL;
    *step = 0;
    if (!c) return SN_OK;
    SN_TRY(sni_const_load(c, &t, m->r->err));
    *data = t->data;
    *step = t->count > 1;
    return SN_OK;
}

sn_status sni_affine_of_norm(sni_match *m, int64_t channels, sni_affine *out) {
    const float *scale, *bias, *mean, *var;
    int64_t step;
    const sni_attr *eps = sni_match_attr(m, "eps");
    SN_TRY(new_affine(m, channels, out));
    SN_TRY(load(m, "scale", &scale, &step));
    SN_TRY(load(m, "bias", &bias, &step));
    SN_TRY(load(m, "mean", &mean, &step));
    SN_TRY(load(m, "var", &var, &step));
    if (!scale || !bias || !mean || !var || !eps)
        return sni_fail(m->r->err, SN_INTERNAL, "a normalisation without its constants");
    for (int64_t c = 0; c < channels; c++) {
        double k = (double)scale[c * step] / sqrt((double)var[c * step] + (double)eps->u.f);
        out->k[c] = (float)k;
        out->s[c] = (float)((double)bias[c * step] - (double)mean[c * step] * k);
    }
    return SN_OK;
}

sn_status sni_affine_of_root(sni_match *m, const char *name, int64_t channels, sni_affine *out) {
    const float *v;
    int64_t step;
    sni_str type = m->root->type;
    SN_TRY(new_affine(m, channels, out));
    SN_TRY(load(m, name, &v, &step));
    if (!v) return sni_fail(m->r->err, SN_INTERNAL, "a constant is no longer there");
    for (int64_t c = 0; c < channels; c++) {
        float x = v[c * step];
        out->k[c] = sni_str_is(type, "Mul") ? x : sni_str_is(type, "Div") ? 1 / x : 1;
        out->s[c] = sni_str_is(type, "Add") ? x : sni_str_is(type, "Sub") ? -x : 0;
    }
    return SN_OK;
}

/* Weights times the factors of their channels. */
typedef struct scaled {
    sni_const *weights;
    const float *k;
    int64_t channels, inner;
} scaled;

static sn_status decode_scaled(sni_const *c, sn_error *err) {
    const scaled *s = c->source;
    sni_borrow borrow;
    SN_TRY(sni_const_borrow(s->weights, true, &borrow, err));
    sn_status status = sni_const_own_memory(c, err);
    if (status == SN_OK)
        sni_scale_channels(borrow.tensor.data, c->tensor.count, s->k, s->channels, s->inner,
                           c->tensor.data);
    sni_borrow_end(&borrow);
    return status;
}

sn_status sni_affine_fold(sni_match *m, const sni_affine *a, int64_t inner) {
    const float *b;
    float *b2;
    int64_t b_step;
    sni_const *w = sni_value_const(m->g, sni_match_value(m, "w"));
    if (!w) return sni_fail(m->r->err, SN_INTERNAL, "the weights are no longer there");
    const sni_tensor *t; /* what is scaled twice has memory in between: no chains of calls */
    if (w->decode == decode_scaled) SN_TRY(sni_const_load(w, &t, m->r->err));
    scaled *s = SNI_NEW(&m->r->store->arena, scaled);
    if (!s) return sni_fail_memory(m->r->err);
    *s = (scaled){.weights = w, .k = a->k, .channels = a->channels, .inner = inner};
    SN_TRY(load(m, "b", &b, &b_step));
    SN_TRY(sni_match_new_lazy(m, "w2", &w->tensor, decode_scaled, s));
    SN_TRY(sni_match_new_floats(m, "b2", 1, &a->channels, &b2));
    for (int64_t c = 0; c < a->channels; c++)
        b2[c] = (float)((b ? (double)b[c * b_step] : 0.0) * (double)a->k[c] + (double)a->s[c]);
    return SN_OK;
}
