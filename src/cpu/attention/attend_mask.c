/* attend_mask.c - who sees whom: masks, padding, causality and windows. */
#include "cpu/attention/attend_job.h"

#include "base/lengths.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Query q of batch b sees keys [lo, hi), as far as causality, window and length restrict it. */
static void seen(const sni_attention *a, int64_t b, int64_t q, int64_t *lo, int64_t *hi) {
    int64_t own = q + a->before[b];
    *lo = a->left >= 0 ? sni_max(0, own - a->left) : 0;
    *hi = a->lengths ? sni_min(a->total, a->lengths[b]) : a->total;
    if (a->causal) *hi = sni_min(*hi, own + 1);
    if (a->right >= 0) *hi = sni_min(*hi, own + a->right + 1);
}

int64_t sni_attend_mask_at(const sni_attention *a, int64_t b, int64_t h, int64_t q) {
    return b * a->mask_stride[0] + h * a->mask_stride[1] + q * a->mask_stride[2];
}

void sni_attend_bias(const sni_attention *a, int64_t b, int64_t h, int64_t q, int64_t j0, int64_t n,
                     float *out) {
    int64_t at = sni_attend_mask_at(a, b, h, q) + j0, lo, hi;
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

void sni_attend_range(const sni_attend_job *j, int64_t b, int64_t t0, int64_t t1, int64_t *lo,
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
    *lo = sni_min(first, last) / SNI_ATTEND_KEYS * SNI_ATTEND_KEYS;
    *hi = last;
}
