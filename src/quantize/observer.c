/* observer.c - histograms that grow with what they see, and the ranges that follow from them. */
#include "quantize/observer.h"

#include <math.h>
#include <stdlib.h>

enum { BINS = SNI_OBSERVER_BINS, LEVELS = 256, TRIES = 64 };

sni_observer *sni_observer_new(int64_t channels, int channel_axis) {
    sni_observer *o = calloc(1, sizeof *o);
    if (!o) return NULL;
    o->low = INFINITY;
    o->high = -INFINITY;
    o->channels = channels;
    o->channel_axis = channel_axis;
    if (channels <= 0) return o;
    o->sum = calloc((size_t)channels, sizeof *o->sum);
    o->square = calloc((size_t)channels, sizeof *o->square);
    o->largest = calloc((size_t)channels, sizeof *o->largest);
    if (o->sum && o->square && o->largest) return o;
    sni_observer_free(o);
    return NULL;
}

void sni_observer_free(sni_observer *o) {
    if (!o) return;
    free(o->sum);
    free(o->square);
    free(o->largest);
    free(o);
}

/* ---- Adding ---- */

/* Two bins become one; what there is moves to the lower or the upper half. */
static void widen(sni_observer *o, bool down) {
    uint64_t pairs[BINS / 2];
    for (int i = 0; i < BINS / 2; i++) pairs[i] = o->bins[2 * i] + o->bins[2 * i + 1];
    memset(o->bins, 0, sizeof o->bins);
    memcpy(o->bins + (down ? BINS / 2 : 0), pairs, sizeof pairs);
    if (down) o->from -= o->width * BINS;
    o->width *= 2;
}

/* Makes the histogram reach from low to high. */
static void reach(sni_observer *o, float low, float high) {
    if (o->width == 0) {
        double span = fmax((double)high, 0) - fmin((double)low, 0);
        o->from = fmin((double)low, 0);
        o->width = fmax(span * 1.0001, 1e-30) / BINS;
    }
    while ((double)low < o->from) widen(o, true);
    while ((double)high >= o->from + o->width * BINS) widen(o, false);
}

static void add_channels(sni_observer *o, const float *x, int rank, const int64_t *dims,
                         int64_t count) {
    int axis = o->channel_axis < 0 ? rank + o->channel_axis : o->channel_axis;
    if (o->channels <= 0 || axis < 0 || axis >= rank || dims[axis] != o->channels) return;
    int64_t inner = 1, c = o->channels;
    for (int i = axis + 1; i < rank; i++) inner *= dims[i];
    if (inner < 1 || c < 1) return;
    for (int64_t at = 0; at < count; at += inner) {
        int64_t channel = at / inner % c;
        for (int64_t i = 0; i < inner; i++) {
            double v = (double)x[at + i];
            o->sum[channel] += v;
            o->square[channel] += v * v;
            if (fabsf(x[at + i]) > o->largest[channel]) o->largest[channel] = fabsf(x[at + i]);
        }
    }
    o->per_channel += (uint64_t)(count / c);
}

sn_status sni_observer_add(sni_observer *o, const float *x, int rank, const int64_t *dims,
                           sn_error *err) {
    int64_t count = 1, bad = 0;
    float low = INFINITY, high = -INFINITY;
    for (int i = 0; i < rank; i++) count *= dims[i];
    for (int64_t i = 0; i < count; i++) {
        bad += !isfinite(x[i]);
        if (x[i] < low) low = x[i];
        if (x[i] > high) high = x[i];
    }
    if (bad)
        return sni_fail(err, SN_BAD_DATA, "%lld of its %lld numbers are NaN or infinite",
                        (long long)bad, (long long)count);
    if (!count) return SN_OK;
    reach(o, low, high);
    for (int64_t i = 0; i < count; i++) {
        double at = ((double)x[i] - o->from) / o->width;
        int bin = at < 0 ? 0 : at >= BINS ? BINS - 1 : (int)at;
        o->bins[bin]++;
    }
    o->count += (uint64_t)count;
    if (low < o->low) o->low = low;
    if (high > o->high) o->high = high;
    add_channels(o, x, rank, dims, count);
    return SN_OK;
}

/* ---- Ranges ---- */

static double middle_of(const sni_observer *o, int bin) {
    return o->from + (bin + 0.5) * o->width;
}

/* The range without the rarest `outside` of the numbers, half of them at each end. */
static void percentile(const sni_observer *o, double outside, double *low, double *high) {
    uint64_t skip = (uint64_t)((double)o->count * outside / 2), seen = 0;
    int first = 0, last = BINS - 1;
    while (first < BINS - 1 && (seen += o->bins[first]) <= skip) first++;
    seen = 0;
    while (last > 0 && (seen += o->bins[last]) <= skip) last--;
    *low = fmax(o->from + first * o->width, (double)o->low);
    *high = fmin(o->from + (last + 1) * o->width, (double)o->high);
}

/* Mean square error of the numbers when they are held in LEVELS steps from low to high. */
static double square_error(const sni_observer *o, double low, double high) {
    double step = (high - low) / (LEVELS - 1), error = 0;
    if (!(step > 0)) return INFINITY;
    for (int i = 0; i < BINS; i++) {
        if (!o->bins[i]) continue;
        double v = middle_of(o, i), d = v < low ? low - v : v > high ? v - high : 0;
        /* Inside a step the error is spread evenly, as the numbers of a bin are. */
        error += (double)o->bins[i] * (d > 0 ? d * d : step * step / 12);
    }
    return error;
}

/* Divergence of the histogram from itself in LEVELS steps, with what lies outside moved to the
 * ends. The bin of 0, which a Relu fills and every range holds exactly, does not count. */
static double divergence(const sni_observer *o, double low, double high) {
    double mass[LEVELS] = {0}, held[LEVELS] = {0}, clipped[2] = {0}, sum = 0;
    int filled[LEVELS] = {0};
    double step = (high - low) / LEVELS;
    if (!(step > 0)) return INFINITY;
    int first = BINS, last = -1, zero = (int)fmin(fmax(-o->from / o->width, 0), BINS - 1);
    for (int i = 0; i < BINS; i++) {
        double at = (middle_of(o, i) - low) / step;
        double n = i == zero ? 0 : (double)o->bins[i];
        if (at < 0 || at >= LEVELS) {
            clipped[at >= LEVELS] += n;
            continue;
        }
        if (i < first) first = i;
        last = i;
        mass[(int)at] += n;
        filled[(int)at] += n > 0;
    }
    for (int l = 0; l < LEVELS; l++) held[l] = filled[l] ? mass[l] / filled[l] : 0;
    for (int i = first; i <= last; i++) {
        double p = i == zero ? 0 : (double)o->bins[i];
        double q = p > 0 ? held[(int)((middle_of(o, i) - low) / step)] : 0;
        if (i == first) p += clipped[0];
        if (i == last) p += clipped[1];
        if (p > 0) sum += p * log(p / fmax(q, 1e-3));
    }
    return sum;
}

/* The range with the least of `cost` among those that clip both ends by the same part. */
static void search(const sni_observer *o, double (*cost)(const sni_observer *, double, double),
                   double *low, double *high) {
    double best = INFINITY, full_low = *low, full_high = *high;
    for (int i = 0; i < TRIES; i++) {
        double part = 1 - 0.8 * i / TRIES;
        double c = cost(o, full_low * part, full_high * part);
        if (c >= best) continue;
        best = c;
        *low = full_low * part;
        *high = full_high * part;
    }
}

void sni_observer_range(const sni_observer *o, sn_calibration method, float *low, float *high) {
    double from = 0, to = 0;
    if (o->count) {
        from = fmin((double)o->low, 0);
        to = fmax((double)o->high, 0);
        if (method == SN_CALIBRATE_PERCENTILE) percentile(o, 1e-4, &from, &to);
        from = fmin(from, 0);
        to = fmax(to, 0);
        if (method == SN_CALIBRATE_ENTROPY) search(o, divergence, &from, &to);
        if (method == SN_CALIBRATE_MSE) search(o, square_error, &from, &to);
    }
    *low = (float)from;
    *high = (float)to;
}
