/* GridSample: reads an image or volume at the coordinates that a grid gives. */
#include "ops/core/kernel_hooks.h"
#include "ops/nn/resize.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include "base/threadpool.h"

#include <math.h>

enum {
    DIMS = 3,     /* spatial axes at most */
    TAPS = 64,    /* of one point at most: cubic in three dimensions */
    GRAIN = 4096, /* taps read that are worth a thread */
    FAR = 8       /* a coordinate this far outside sees nothing but padding */
};

enum { LINEAR, NEAREST, CUBIC };
enum { ZEROS, BORDER, REFLECTION };

typedef struct grid_params {
    int32_t mode, padding;
    int64_t align_corners;
} grid_params;

typedef struct grid_job {
    const grid_params *p;
    const sni_tensor *x;
    sni_tensor *y;
    const void *src, *grid; /* x and the grid in their wide types */
    void *dst;
    sn_dtype type;  /* of src and dst, unless the mode is NEAREST */
    bool wide_grid; /* double */
    int r;          /* spatial axes */
    int64_t size[DIMS], stride[DIMS];
    int64_t channels, volume, points; /* elements of a channel of x; points of a channel of y */
    const sni_resize_hooks *hooks;    /* NULL: none */
} grid_job;

/* The elements that one point is the weighted sum of. */
typedef struct taps {
    int count;
    int64_t offset[TAPS]; /* in a channel */
    double weight[TAPS];
} taps;

/* ---- Coordinates ---- */

/* Folds x into [low, high] by reflection at both. */
static double reflect(double x, double low, double high) {
    double range = high - low;
    if (!(range > 0)) return low;
    double d = x < low ? low - x : x > high ? x - high : -1;
    if (d < 0) return x;
    double folds = floor(d / range), rest = d - folds * range;
    bool from_low = (x < low) == (fmod(folds, 2) == 0);
    return from_low ? low + rest : high - rest;
}

/* From [-1, 1] to elements of an axis, in the precision of the grid as the definition has it. */
static double denormalise(const grid_job *j, int64_t at, int64_t size) {
    if (j->wide_grid) {
        double v = ((const double *)j->grid)[at], n = (double)size;
        return j->p->align_corners ? (v + 1) / 2 * (n - 1) : ((v + 1) * n - 1) / 2;
    }
    float v = ((const float *)j->grid)[at], n = (float)size;
    return (double)(j->p->align_corners ? (v + 1) / 2 * (n - 1) : ((v + 1) * n - 1) / 2);
}

static void borders(const grid_job *j, int64_t size, double *low, double *high) {
    double half = j->p->align_corners ? 0 : 0.5;
    *low = -half;
    *high = (double)size - 1 + half;
}

/* The coordinate along axis d of a point, moved as the padding mode says, and never further from
 * the image than FAR. NaN counts as far outside. */
static double coordinate(const grid_job *j, int64_t at, int d) {
    double size = (double)j->size[d], low, high;
    double x = denormalise(j, at, j->size[d]);
    borders(j, j->size[d], &low, &high);
    if (j->p->mode == NEAREST) x = rint(x);
    if (x < low || x > high) {
        /* The pixels that a cubic curve goes through are moved each, not the point. */
        if (j->p->padding == BORDER && j->p->mode != CUBIC)
            x = x < 0 ? 0 : size - 1;
        else if (j->p->padding == REFLECTION)
            x = isfinite(x) ? reflect(x, low, high) : 0;
    }
    if (!(x > -FAR)) return -FAR;
    return x < size + FAR ? x : size + FAR;
}

/* The index that stands for i; -1: a zero. */
static int64_t pixel(const grid_job *j, int64_t i, int64_t size) {
    if (i >= 0 && i < size) return i;
    if (j->p->padding == ZEROS) return -1;
    double low, high, x = (double)i;
    borders(j, size, &low, &high);
    if (j->p->padding == REFLECTION) x = reflect(x, low, high);
    return x > 0 ? (x < (double)(size - 1) ? (int64_t)x : size - 1) : 0;
}

static int axis_weights(int mode, double t, double w[4]) {
    const double a = -0.75;
    switch (mode) {
    case NEAREST:
        w[0] = 1;
        return 1;
    case LINEAR:
        w[0] = 1 - t;
        w[1] = t;
        return 2;
    default:
        w[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
        w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
        w[2] = ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1;
        w[3] = ((a * (2 - t) - 5 * a) * (2 - t) + 8 * a) * (2 - t) - 4 * a;
        return 4;
    }
}

/* The taps of the point whose coordinates start at grid element `at`, last axis first. Those of
 * weight 0 are left out: a point on a pixel is that pixel, whatever its neighbours are. */
static void find_taps(const grid_job *j, int64_t at, taps *t) {
    t->count = 1;
    t->offset[0] = 0;
    t->weight[0] = 1;
    for (int d = j->r - 1; d >= 0; d--) {
        double x = coordinate(j, at + j->r - 1 - d, d), base = floor(x), w[4];
        int n = axis_weights(j->p->mode, x - base, w), before = t->count, found = 0;
        int64_t first = (int64_t)base - (n == 4 ? 1 : 0), offset[4];
        for (int m = 0; m < n; m++) {
            int64_t index = w[m] == 0 ? -1 : pixel(j, first + m, j->size[d]);
            if (index < 0) continue;
            offset[found] = index * j->stride[d];
            w[found++] = w[m];
        }
        /* From the last one on, so that none is overwritten before it is used. */
        for (int m = found - 1; m >= 0; m--)
            for (int i = 0; i < before; i++) {
                t->offset[m * before + i] = t->offset[i] + offset[m];
                t->weight[m * before + i] = t->weight[i] * w[m];
            }
        t->count = before * found;
    }
}

/* ---- Reading ---- */

#define BODY "ops/nn/gridsample.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

static void copy_point(const grid_job *j, const taps *t, int64_t image, int64_t point) {
    size_t width = sni_dtype_width(j->x->dtype);
    for (int64_t c = 0; c < j->channels; c++) {
        int64_t channel = image * j->channels + c;
        unsigned char *dst =
            (unsigned char *)j->y->data + (size_t)(channel * j->points + point) * width;
        const unsigned char *src = j->x->data;
        if (t->count)
            memcpy(dst, src + (size_t)(channel * j->volume + t->offset[0]) * width, width);
        else
            memset(dst, 0, width);
    }
}

/* ---- Many points of float32, by a kernel hook ---- */

enum { BLOCK = 128, FEW = 16 }; /* points at a time, and taps of each at most */

/* n points of an image from `point` on. Taps that are not there have weight 0. */
static void blend_block(const grid_job *j, int64_t image, int64_t point, int64_t n) {
    int32_t at[FEW * BLOCK];
    float weight[FEW * BLOCK];
    int most = 0;
    taps t;
    for (int64_t i = 0; i < BLOCK; i++) {
        t.count = 0;
        if (i < n) find_taps(j, (image * j->points + point + i) * j->r, &t);
        for (int m = most; m < t.count; m++) /* points before had fewer */
            for (int64_t e = 0; e < i; e++) {
                at[m * BLOCK + e] = 0;
                weight[m * BLOCK + e] = 0;
            }
        if (t.count > most) most = t.count;
        for (int m = 0; m < most; m++) {
            at[m * BLOCK + i] = m < t.count ? (int32_t)t.offset[m] : 0;
            weight[m * BLOCK + i] = m < t.count ? (float)t.weight[m] : 0;
        }
    }
    for (int64_t c = image * j->channels; c < (image + 1) * j->channels; c++)
        j->hooks->sample((const float *)j->src + c * j->volume, j->volume, at, weight, most, BLOCK,
                         n, (float *)j->dst + c * j->points + point);
}

/* True if the taps of a point are two times two neighbours, or not there. */
static bool are_pairs(const grid_job *j) {
    return j->p->mode == LINEAR && j->p->padding != REFLECTION && j->r == 2 && j->size[0] > 1 &&
           j->size[1] > 1;
}

/* Along axis d, the first of two neighbours that the taps of a coordinate are among, and the
 * weights of both. */
static int64_t find_neighbours(const grid_job *j, int64_t at, int d, double w[2]) {
    int64_t last = j->size[d] - 1;
    double x = coordinate(j, at, d);
    if (j->p->padding == BORDER) x = x < 0 ? 0 : x < (double)last ? x : (double)last;
    double base = floor(x);
    int64_t first = (int64_t)base;
    w[0] = 1 - (x - base);
    w[1] = x - base;
    if (first >= 0 && first < last) return first;
    w[1] = first == last ? w[0] : 0;
    w[0] = first == -1 ? x - base : 0;
    return first == last ? last - 1 : 0;
}

/* As blend_block, for taps that are pairs. */
static void blend_pairs(const grid_job *j, int64_t image, int64_t point, int64_t n) {
    int32_t at[2 * BLOCK] = {0};
    float weight[4 * BLOCK] = {0};
    for (int64_t i = 0; i < n; i++) {
        int64_t from = (image * j->points + point + i) * 2;
        double wx[2], wy[2];
        int64_t x = find_neighbours(j, from, 1, wx), y = find_neighbours(j, from + 1, 0, wy);
        for (int r = 0; r < 2; r++) {
            at[r * BLOCK + i] = (int32_t)((y + r) * j->stride[0] + x);
            weight[2 * r * BLOCK + i] = (float)(wx[0] * wy[r]);
            weight[(2 * r + 1) * BLOCK + i] = (float)(wx[1] * wy[r]);
        }
    }
    for (int64_t c = image * j->channels; c < (image + 1) * j->channels; c++)
        j->hooks->sample_pairs((const float *)j->src + c * j->volume, at, weight, BLOCK, n,
                               (float *)j->dst + c * j->points + point);
}

/* Blocks [begin, end) of all images. */
static void grid_blocks(void *ctx, int64_t begin, int64_t end) {
    const grid_job *j = ctx;
    int64_t blocks = (j->points + BLOCK - 1) / BLOCK;
    bool pairs = are_pairs(j);
    for (int64_t b = begin; b < end; b++) {
        int64_t first = b % blocks * BLOCK, left = j->points - first;
        (pairs ? blend_pairs : blend_block)(j, b / blocks, first, left < BLOCK ? left : BLOCK);
    }
}

/* Points [begin, end) of all images. */
static void grid_piece(void *ctx, int64_t begin, int64_t end) {
    const grid_job *j = ctx;
    taps t;
    for (int64_t i = begin; i < end; i++) {
        find_taps(j, i * j->r, &t);
        if (j->p->mode == NEAREST)
            copy_point(j, &t, i / j->points, i % j->points);
        else if (j->type == SN_FLOAT64)
            blend_point_f64(j, &t, i / j->points, i % j->points);
        else
            blend_point_f32(j, &t, i / j->points, i % j->points);
    }
}

static sn_status check_shapes(sni_kernel *k, const sni_tensor *x, const sni_tensor *grid,
                              const sni_tensor *y) {
    int r = x->rank - 2;
    bool ok = r >= 1 && r <= DIMS && grid->rank == x->rank && y->rank == x->rank &&
              grid->dims[0] == x->dims[0] && grid->dims[r + 1] == r && y->dims[0] == x->dims[0] &&
              y->dims[1] == x->dims[1];
    for (int i = 0; ok && i < r; i++) ok = y->dims[i + 2] == grid->dims[i + 1];
    if (ok) return SN_OK;
    return SNI_KERNEL_FAIL(k, "the grid does not fit an input of rank %d", x->rank);
}

static sn_status gridsample_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0), *grid = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    SN_TRY(check_shapes(k, x, grid, y));
    if (y->count == 0) return SN_OK;
    grid_job job = {.p = k->params, .x = x, .y = y, .r = x->rank - 2};
    if (x->count == 0) return SNI_KERNEL_FAIL(k, "an empty input has nothing to sample");
    int64_t strides[SN_MAX_RANK];
    sni_strides(x->rank, x->dims, strides);
    for (int d = 0; d < job.r; d++) {
        job.size[d] = x->dims[d + 2];
        job.stride[d] = strides[d + 2];
    }
    job.channels = x->dims[1];
    job.volume = strides[1];
    job.points = y->count / (y->dims[0] * y->dims[1]);
    job.wide_grid = grid->dtype == SN_FLOAT64;
    SN_TRY(sni_wide_in(k, grid, &job.grid));
    if (job.p->mode != NEAREST) SN_TRY(sni_blend_in(k, x, &job.type, &job.src));
    if (job.p->mode != NEAREST) SN_TRY(sni_blend_out(k, y, job.type, &job.dst));
    int64_t taps_of = job.p->mode == CUBIC ? 16 : 4, grain = GRAIN / (job.channels * taps_of);
    bool few = job.p->mode == LINEAR || (job.p->mode == CUBIC && job.r <= 2);
    if (few && job.type == SN_FLOAT32 && job.volume <= INT32_MAX && k->hooks)
        job.hooks = k->hooks->resize;
    if (job.hooks)
        sni_parallel_for(k->threads, (job.points + BLOCK - 1) / BLOCK * x->dims[0], 1, grid_blocks,
                         &job);
    else
        sni_parallel_for(k->threads, job.points * x->dims[0], grain > 0 ? grain : 1, grid_piece,
                         &job);
    if (job.p->mode != NEAREST && job.dst != y->data)
        sni_store_numbers(y, job.type, job.dst, false);
    return SN_OK;
}

static sn_status gridsample_infer(sni_infer *c) {
    const grid_params *p = c->params;
    const sni_types numbers = SNI_T_NUMBERS;
    if (p->mode != NEAREST && c->in[0]->dtype && !(SNI_T(c->in[0]->dtype) & numbers))
        return SNI_INFER_FAIL(c, "%s elements can only be sampled by mode nearest",
                              sn_dtype_name(c->in[0]->dtype));
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank < 3 || rank > DIMS + 2)
        return sni_fail(c->err, SN_UNSUPPORTED, "an input of rank %d has no 1 to 3 spatial axes",
                        rank);
    sni_dim last = sni_infer_rank(c, 1) == rank ? sni_infer_dim(c, 1, rank - 1) : 0;
    if (sni_infer_rank(c, 1) != rank || (sni_dim_known(last) && last != rank - 2))
        return SNI_INFER_FAIL(c, "the grid does not fit an input of rank %d", rank);
    sni_dim dims[DIMS + 2] = {sni_infer_dim(c, 0, 0), sni_infer_dim(c, 0, 1)};
    for (int i = 2; i < rank; i++) dims[i] = sni_infer_dim(c, 1, i - 1);
    return sni_infer_set_shape(c, 0, rank, dims);
}

/* Modes were called bilinear and bicubic before opset 20. */
static sn_status gridsample_upgrade(sni_upgrade *u) {
    const sni_attr *mode = sni_node_attr(u->node, "mode");
    if (u->from >= 20 || !mode || mode->kind != SNI_ATTR_STRING) return SN_OK;
    if (mode->u.s.n < 2 || memcmp(mode->u.s.p, "bi", 2) != 0) return SN_OK;
    sni_attr renamed =
        sni_attr_of_string("mode", sni_str_is(mode->u.s, "bicubic") ? "cubic" : "linear");
    return sni_node_set_attr(u->graph, u->node, &renamed, u->err);
}

const sni_op sni_op_GridSample = {
    .name = "GridSample",
    .versions = SNI_VERSIONS(16, 20, 22),
    .inputs = SNI_FORMALS({"X", "T1"}, {"grid", "T2"}),
    .outputs = SNI_FORMALS({"Y", "T1"}),
    .types =
        SNI_TYPE_VARS({"T1", SNI_T_NUMBERS | SNI_T_COMPLEX | SNI_T(SN_BOOL) | SNI_T(SN_STRING)},
                      {"T2", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"mode", SNI_ATTR_STRING, offsetof(grid_params, mode), .text = "linear",
                          .choices = "linear|nearest|cubic"},
                         {"padding_mode", SNI_ATTR_STRING, offsetof(grid_params, padding),
                          .text = "zeros", .choices = "zeros|border|reflection"},
                         {"align_corners", SNI_ATTR_INT, offsetof(grid_params, align_corners)}),
    .params_size = sizeof(grid_params),
    .upgrade = gridsample_upgrade,
    .infer = gridsample_infer,
    .ref = gridsample_ref,
};
