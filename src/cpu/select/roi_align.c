/* roi_align.c - RoiAlign of float32. Images are transposed so that a pixel's channels are
 * contiguous; a sample is then a weighted sum, or the maximum, of four rows of channels. */
#include "ops/nn/roi_align.h"

#include "base/threadpool.h"
#include "cpu/core/cpu_ep.h"
#include "cpu/core/loops.h"
#include "ops/core/compute.h"
#include "ops/core/long_work.h"

#include <math.h>

enum {
    CHANNELS = 64, /* channels at a time */
    PIXELS = 64,   /* results at a time, before they are transposed back */
    TAPS = 256     /* taps at a time; a multiple of 4 */
};

typedef struct roi_job {
    const sni_cpu_kernels *kernels;
    const sni_loops *loops;
    const float *x; /* (images, h * w, channels) */
    const float *plain;
    float *transposed;
    const float *rois;
    const int64_t *batch;
    float *y;
    int64_t channels, h, w, out_h, out_w, ratio, blocks;
    float scale;
    bool half, largest;      /* half-pixel coordinates; max pooling */
    const sni_kernel *watch; /* NULL unless a region takes long */
} roi_job;

/* A region's origin and step per result, in pixels of the image. */
typedef struct region {
    float x0, y0, step_x, step_y;
    int64_t nx, ny; /* samples of one result */
} region;

typedef struct taps {
    int64_t at[TAPS];
    float weight[TAPS];
    int count;
} taps;

/* False if the region cannot be sampled. */
static bool find_region(const roi_job *j, int64_t r, region *out) {
    const float *roi = j->rois + 4 * r;
    float shift = j->half ? 0.5f : 0;
    float x0 = roi[0] * j->scale - shift, y0 = roi[1] * j->scale - shift;
    float wide = roi[2] * j->scale - shift - x0, tall = roi[3] * j->scale - shift - y0;
    if (!j->half) wide = wide > 1 ? wide : 1, tall = tall > 1 ? tall : 1;
    *out = (region){x0, y0, wide / (float)j->out_w, tall / (float)j->out_h, j->ratio, j->ratio};
    if (!(fabsf(out->step_x) < SNI_ROI_SAMPLES && fabsf(out->step_y) < SNI_ROI_SAMPLES))
        return false;
    if (j->ratio > 0) return true;
    out->nx = (int64_t)ceilf(out->step_x);
    out->ny = (int64_t)ceilf(out->step_y);
    return true;
}

/* The two elements around a coordinate and the weight of the second; false if it is outside the
 * image. */
static bool around(float v, int64_t n, int64_t *low, int64_t *high, float *part) {
    if (!(v >= -1 && v <= (float)n)) return false;
    if (v < 0) v = 0;
    *low = (int64_t)v;
    *high = *low + 1;
    *part = v - (float)*low;
    if (*low >= n - 1) {
        *low = *high = n - 1;
        *part = 0;
    }
    return true;
}

/* Adds the taps collected so far to the sums. */
static void flush(const roi_job *j, taps *t, const float *image, int64_t n, float *sums,
                  bool *add) {
    (j->largest ? j->loops->most_places : j->loops->weigh_places)(t->weight, t->at, t->count, image,
                                                                  n, sums, *add);
    *add = true;
    t->count = 0;
}

/* One result for the n channels from `image` on. */
static void pool_pixel(const roi_job *j, const region *g, int64_t pixel, const float *image,
                       int64_t n, float *sums) {
    taps t = {.count = 0};
    bool add = false, some = g->nx > 0 && g->ny > 0;
    int64_t inside = 0; /* samples inside the image; the others count as 0 */
    float top = g->y0 + (float)(pixel / j->out_w) * g->step_y;
    float left = g->x0 + (float)(pixel % j->out_w) * g->step_x;
    float share = j->largest || !some ? 1 : 1 / (float)(g->nx * g->ny);
    for (int64_t sy = 0; sy < g->ny; sy++) {
        int64_t y[2], x[2];
        float fy, fx;
        float v = top + ((float)sy + 0.5f) * g->step_y / (float)g->ny;
        if (!around(v, j->h, &y[0], &y[1], &fy)) continue;
        if (j->watch && sni_stopping(j->watch)) return;
        for (int64_t sx = 0; sx < g->nx; sx++) {
            float u = left + ((float)sx + 0.5f) * g->step_x / (float)g->nx;
            if (!around(u, j->w, &x[0], &x[1], &fx)) continue;
            inside++;
            for (int i = 0; i < 4; i++) {
                float wy = i < 2 ? 1 - fy : fy, wx = i % 2 ? fx : 1 - fx;
                t.weight[t.count] = wy * wx * share;
                t.at[t.count++] = (y[i / 2] * j->w + x[i % 2]) * j->channels;
            }
            if (t.count == TAPS) flush(j, &t, image, n, sums, &add);
        }
    }
    flush(j, &t, image, n, sums, &add);
    if (!j->largest || (some && inside == g->nx * g->ny)) return;
    for (int64_t i = 0; i < n; i++) sums[i] = some && sums[i] > 0 ? sums[i] : 0;
}

/* Items are (region, block of channels). */
static void pool_piece(void *ctx, int64_t begin, int64_t end) {
    const roi_job *j = ctx;
    _Alignas(SNI_ALIGN) float sums[PIXELS * CHANNELS];
    int64_t pixels = j->out_h * j->out_w;
    for (int64_t item = begin; item < end; item++) {
        int64_t r = item / j->blocks, c = item % j->blocks * CHANNELS;
        int64_t n = j->channels - c < CHANNELS ? j->channels - c : CHANNELS;
        const float *image = j->x + j->batch[r] * j->h * j->w * j->channels + c;
        float *out = j->y + (r * j->channels + c) * pixels;
        region g;
        if (!find_region(j, r, &g)) continue; /* roi_run() has checked it */
        for (int64_t at = 0; at < pixels; at += PIXELS) {
            int64_t m = pixels - at < PIXELS ? pixels - at : PIXELS;
            for (int64_t i = 0; i < m; i++)
                pool_pixel(j, &g, at + i, image, n, sums + i * CHANNELS);
            j->kernels->transpose_matrix(sums, CHANNELS, m, n, out + at, pixels);
        }
    }
}

/* Items are (image, run of PIXELS pixels). */
static void transpose_piece(void *ctx, int64_t begin, int64_t end) {
    const roi_job *j = ctx;
    int64_t plane = j->h * j->w, runs = (plane + PIXELS - 1) / PIXELS;
    for (int64_t item = begin; item < end; item++) {
        int64_t image = item / runs * plane * j->channels, at = item % runs * PIXELS;
        int64_t n = plane - at < PIXELS ? plane - at : PIXELS;
        j->kernels->transpose_matrix(j->plain + image + at, plane, j->channels, n,
                                     j->transposed + image + at * j->channels, j->channels);
    }
}

static sn_status roi_run(sni_kernel *k) {
    const sni_roi_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *rois = sni_in(k, 1), *batch = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    if (y->count == 0 || x->count == 0) return k->node->op->ref(k);
    roi_job j = {.kernels = sni_cpu_kernels_get(),
                 .loops = sni_loops_get(),
                 .plain = x->data,
                 .rois = rois->data,
                 .batch = batch->data,
                 .y = y->data,
                 .channels = x->dims[1],
                 .h = x->dims[2],
                 .w = x->dims[3],
                 .out_h = p->output_height,
                 .out_w = p->output_width,
                 .ratio = p->sampling_ratio,
                 .scale = p->spatial_scale,
                 .half = p->half_pixel == 0,
                 .largest = p->mode != 0};
    region g;
    double most = 0;                              /* samples of one result */
    for (int64_t r = 0; r < rois->dims[0]; r++) { /* the reference says what is wrong */
        if (j.batch[r] < 0 || j.batch[r] >= x->dims[0] || !find_region(&j, r, &g))
            return k->node->op->ref(k);
        double samples = g.nx > 0 && g.ny > 0 ? (double)g.nx * (double)g.ny : 0;
        most = samples > most ? samples : most;
    }
    void *transposed = NULL;
    SN_TRY(sni_scratch_matrix(k, 1, x->count, sizeof(float), &transposed));
    j.transposed = transposed;
    j.x = transposed;
    j.blocks = (j.channels + CHANNELS - 1) / CHANNELS;
    int64_t runs = (j.h * j.w + PIXELS - 1) / PIXELS;
    sni_parallel_for(k->threads, x->dims[0] * runs, sni_cpu_grain(PIXELS * j.channels),
                     transpose_piece, &j);
    SN_TRY(sni_poll(k));
    double work = most * (double)(j.out_h * j.out_w) * CHANNELS;
    if (sni_long_work(work)) j.watch = k;
    return sni_long_for(k, rois->dims[0] * j.blocks, 1, work, pool_piece, &j);
}

static bool roi_accepts(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32);
}

const sni_impl sni_cpu_roi_align = {
    .name = "roi_align_f32",
    .op = "RoiAlign",
    .accepts = roi_accepts,
    .run = roi_run,
};
