/* resize_run.c - interpolation along axes: a table of taps per axis, applied to one axis after the
 * other. */
#include "ops/nn/resize.h"

#include "base/checked.h"
#include "base/threadpool.h"
#include "ops/core/kernel_hooks.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <math.h>

enum { GRAIN = 16384 }; /* elements worth a thread */

/* For each of `out` positions, `taps` source indices within [0, in) and their weights, which add
 * up to 1. `outside` marks positions that take the extrapolation value. */
typedef struct tap_table {
    int64_t in, out, taps;
    int64_t *index; /* (out, taps) */
    double *weight; /* (out, taps) */
    bool *outside;  /* (out); NULL: none */
} tap_table;

/* The coordinate in the input of output position i. */
static double source(const sni_resize_params *p, const sni_resize_axis *a, int64_t i) {
    double x = (double)i, in = (double)a->in;
    double length = a->scale * in; /* of the output, not rounded */
    switch ((sni_resize_coord)p->coord) {
    case SNI_RESIZE_ASYMMETRIC:
        return x / a->scale;
    case SNI_RESIZE_ALIGN_CORNERS:
        return a->out == 1 || length == 1 ? 0 : x * (in - 1) / (length - 1);
    case SNI_RESIZE_PYTORCH_HALF_PIXEL:
        return a->out == 1 ? 0 : (x + 0.5) / a->scale - 0.5;
    case SNI_RESIZE_HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - (double)a->out / length) + (x + 0.5) / a->scale - 0.5;
    case SNI_RESIZE_HALF_PIXEL_NN:
        return (x + 0.5) / a->scale;
    case SNI_RESIZE_CROP:
        if (a->out == 1 || length == 1) return 0.5 * (a->start + a->end) * (in - 1);
        return a->start * (in - 1) + x * (a->end - a->start) * (in - 1) / (length - 1);
    case SNI_RESIZE_HALF_PIXEL:
        break;
    }
    return (x + 0.5) / a->scale - 0.5;
}

static double to_range(double x, double low, double high) {
    return x > low ? (x < high ? x : high) : low;
}

/* Coordinates that are computed with a float scale are rounded to float first, so that 1 / (1/3) is
 * 3. */
static int64_t nearest(const sni_resize_params *p, const sni_resize_axis *a, double exact) {
    double x = (double)(float)exact;
    switch ((sni_resize_round)p->round) {
    case SNI_RESIZE_PREFER_FLOOR:
        x = ceil(x - 0.5);
        break;
    case SNI_RESIZE_PREFER_CEIL:
        x = floor(x + 0.5);
        break;
    case SNI_RESIZE_FLOOR:
        x = floor(x);
        break;
    case SNI_RESIZE_CEIL:
        x = ceil(x);
        break;
    case SNI_RESIZE_SIMPLE:
        x = a->scale < 1 ? ceil(x) : floor(x);
        break;
    }
    return (int64_t)to_range(x, 0, (double)(a->in - 1));
}

static double cubic(double x, double a) {
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return ((x - 5) * x + 8) * x * a - 4 * a;
    return 0;
}

/* How far the filter reaches on each side, and how much it is stretched. */
static void filter(const sni_resize_params *p, const sni_resize_axis *a, double *stretch,
                   int64_t *reach) {
    double radius = p->mode == SNI_RESIZE_CUBIC ? 2 : 1;
    *stretch = p->antialias && a->scale < 1 ? a->scale : 1;
    *reach = (int64_t)ceil(radius / *stretch);
}

static void fill_taps(const sni_resize_params *p, const sni_resize_axis *a, tap_table *t, int64_t i,
                      double x) {
    int64_t *index = t->index + i * t->taps;
    double *weight = t->weight + i * t->taps;
    double stretch, sum = 0;
    int64_t reach;
    filter(p, a, &stretch, &reach);
    /* Positions far outside all see the border alone. */
    x = to_range(x, -(double)reach - 1, (double)a->in + (double)reach);
    int64_t base = (int64_t)floor(x);
    for (int64_t j = 0; j < t->taps; j++) {
        int64_t at = base - reach + 1 + j;
        double d = (x - (double)at) * stretch;
        double w =
            p->mode == SNI_RESIZE_CUBIC ? cubic(d, (double)p->cubic_coeff_a) : fmax(0, 1 - fabs(d));
        if (p->exclude_outside && (at < 0 || at >= a->in)) w = 0;
        index[j] = at < 0 ? 0 : at >= a->in ? a->in - 1 : at;
        weight[j] = w;
        sum += w;
    }
    bool normalise = (p->antialias || p->exclude_outside) && sum != 0;
    for (int64_t j = 0; normalise && j < t->taps; j++) weight[j] /= sum;
}

static sn_status make_table(sni_kernel *k, const sni_resize_params *p, const sni_resize_axis *a,
                            tap_table *t) {
    double stretch;
    int64_t reach, cells;
    filter(p, a, &stretch, &reach);
    *t = (tap_table){.in = a->in, .out = a->out};
    t->taps = p->mode == SNI_RESIZE_NEAREST ? 1 : 2 * reach;
    if (!sni_mul_i64(t->out, t->taps, &cells))
        return sni_fail(k->err, SN_LIMIT, "an axis of %lld positions is too long",
                        (long long)a->out);
    void *memory;
    SN_TRY(sni_scratch_array(k, cells, sizeof *t->index, &memory));
    t->index = memory;
    if (p->mode != SNI_RESIZE_NEAREST) {
        SN_TRY(sni_scratch_array(k, cells, sizeof *t->weight, &memory));
        t->weight = memory;
    }
    if (p->coord == SNI_RESIZE_CROP) {
        SN_TRY(sni_scratch_array(k, t->out, sizeof *t->outside, &memory));
        t->outside = memory;
    }
    for (int64_t i = 0; i < t->out; i++) {
        double x = source(p, a, i);
        if (t->outside) t->outside[i] = !(x >= 0 && x <= (double)(a->in - 1));
        if (p->mode == SNI_RESIZE_NEAREST)
            t->index[i] = nearest(p, a, x);
        else
            fill_taps(p, a, t, i, x);
    }
    return SN_OK;
}

/* ---- Tables for kernel hooks ---- */

/* A table by taps: rows of `step` positions, whole vectors. */
typedef struct lane_table {
    const sni_resize_hooks *hooks; /* NULL: there is none */
    int64_t step;
    const int32_t *at;   /* (taps, step) */
    const float *weight; /* (taps, step); NULL for NEAREST */
} lane_table;

static sn_status make_lanes(sni_kernel *k, const tap_table *t, lane_table *out) {
    const sni_resize_hooks *hooks = k->hooks ? k->hooks->resize : NULL;
    int64_t step, cells;
    void *memory;
    *out = (lane_table){0};
    if (!hooks || t->in > INT32_MAX) return SN_OK;
    step = (t->out + hooks->lanes - 1) / hooks->lanes * hooks->lanes;
    if (!sni_mul_i64(step, t->taps, &cells)) return SN_OK;
    SN_TRY(sni_scratch_array(k, cells, sizeof *out->at, &memory));
    int32_t *at = memory;
    float *weight = NULL;
    if (t->weight) {
        SN_TRY(sni_scratch_array(k, cells, sizeof *out->weight, &memory));
        weight = memory;
    }
    for (int64_t j = 0; j < t->taps; j++)
        for (int64_t i = 0; i < step; i++) {
            int64_t from = (i < t->out ? i : t->out - 1) * t->taps + j;
            at[j * step + i] = (int32_t)t->index[from];
            if (weight) weight[j * step + i] = i < t->out ? (float)t->weight[from] : 0;
        }
    *out = (lane_table){.hooks = hooks, .step = step, .at = at, .weight = weight};
    return SN_OK;
}

/* ---- Nearest: a gather of elements of any width ---- */

typedef struct gather_job {
    const sni_tensor *x;
    sni_tensor *y;
    const tap_table *tables; /* one per axis */
    int64_t strides[SN_MAX_RANK];
    bool identity;    /* the last axis is copied as it is */
    lane_table lanes; /* of the last axis, for elements of four bytes */
} gather_job;

static void gather_row(const gather_job *j, const unsigned char *src, unsigned char *dst) {
    const tap_table *last = &j->tables[j->x->rank - 1];
    size_t width = sni_dtype_width(j->x->dtype);
    const int64_t *index = last->index;
    if (j->lanes.hooks) {
        j->lanes.hooks->pick((const float *)(const void *)src, last->in, j->lanes.at, last->out,
                             (float *)(void *)dst);
    } else if (width == 4) {
        for (int64_t i = 0; i < last->out; i++) memcpy(dst + 4 * i, src + 4 * index[i], 4);
    } else if (width == 1) {
        for (int64_t i = 0; i < last->out; i++) dst[i] = src[index[i]];
    } else {
        for (int64_t i = 0; i < last->out; i++)
            memcpy(dst + (size_t)i * width, src + (size_t)index[i] * width, width);
    }
}

/* Copies `count` rows of so many bytes: row i from src + index[i] * bytes. */
static void copy_rows(const unsigned char *src, const int64_t *index, int64_t count, size_t bytes,
                      unsigned char *dst) {
    if (bytes == 64) /* channels side by side */
        for (int64_t i = 0; i < count; i++) memcpy(dst + i * 64, src + index[i] * 64, 64);
    else if (bytes == 32)
        for (int64_t i = 0; i < count; i++) memcpy(dst + i * 32, src + index[i] * 32, 32);
    else
        for (int64_t i = 0; i < count; i++)
            memcpy(dst + (size_t)i * bytes, src + (size_t)index[i] * bytes, bytes);
}

/* Output rows [begin, end). */
static void gather_piece(void *ctx, int64_t begin, int64_t end) {
    const gather_job *j = ctx;
    size_t width = sni_dtype_width(j->x->dtype);
    int rank = j->x->rank;
    int64_t row = j->tables[rank - 1].out, before = -1;
    const tap_table *lines = rank > 1 ? &j->tables[rank - 2] : NULL;
    int64_t many = lines ? lines->out : 1;
    size_t bytes = (size_t)row * width;
    for (int64_t r = begin; r < end;) {
        int64_t rest = r / many, offset = 0, at = r % many;
        for (int d = rank - 3; d >= 0; d--) {
            offset += j->tables[d].index[rest % j->tables[d].out] * j->strides[d];
            rest /= j->tables[d].out;
        }
        const unsigned char *src = (const unsigned char *)j->x->data + (size_t)offset * width;
        unsigned char *dst = (unsigned char *)j->y->data + (size_t)r * bytes;
        int64_t count = many - at < end - r ? many - at : end - r;
        if (offset == before && at == 0 && r - many >= begin) { /* the rows before these again */
            memcpy(dst, dst - (size_t)many * bytes, (size_t)count * bytes);
        } else if (j->identity && lines) {
            copy_rows(src, lines->index + at, count, bytes, dst);
        } else {
            for (int64_t i = 0; i < count; i++, dst += bytes) {
                int64_t from = lines ? lines->index[at + i] * j->strides[rank - 2] : 0;
                if (i > 0 && lines->index[at + i] == lines->index[at + i - 1])
                    memcpy(dst, dst - bytes, bytes);
                else
                    gather_row(j, src + (size_t)from * width, dst);
            }
        }
        before = offset;
        r += count;
    }
}

static sn_status run_nearest(sni_kernel *k, const tap_table *tables) {
    gather_job job = {.x = sni_in(k, 0), .y = sni_out(k, 0), .tables = tables};
    const tap_table *last = &tables[job.x->rank - 1];
    sni_strides(job.x->rank, job.x->dims, job.strides);
    job.identity = last->in == last->out;
    for (int64_t i = 0; job.identity && i < last->out; i++) job.identity = last->index[i] == i;
    if (!job.identity && sni_dtype_width(job.x->dtype) == sizeof(float))
        SN_TRY(make_lanes(k, last, &job.lanes));
    int64_t grain = GRAIN / last->out;
    sni_parallel_for(k->threads, job.y->count / last->out, grain > 0 ? grain : 1, gather_piece,
                     &job);
    return SN_OK;
}

/* ---- Linear and cubic: weighted sums, axis by axis ---- */

typedef struct blend_job {
    const void *src; /* (outer, in, inner) */
    void *dst;       /* (outer, out, inner) */
    const tap_table *table;
    int64_t inner;
    lane_table lanes;
} blend_job;

#define BODY "ops/nn/resize.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

/* The same for float32 by kernel hooks, for one or many inner elements. */
static void blend_lanes(void *ctx, int64_t begin, int64_t end) {
    enum { FEW = 32 };
    const blend_job *j = ctx;
    const tap_table *t = j->table;
    const sni_resize_hooks *hooks = j->lanes.hooks;
    for (int64_t r = begin; r < end; r++) {
        if (j->inner == 1) { /* whole lanes at a time */
            hooks->spread((const float *)j->src + r * t->in, t->in, j->lanes.at, j->lanes.weight,
                          t->taps, j->lanes.step, t->out, (float *)j->dst + r * t->out);
            continue;
        }
        const float *src = (const float *)j->src + r / t->out * t->in * j->inner;
        const int64_t *index = t->index + r % t->out * t->taps;
        const double *weight = t->weight + r % t->out * t->taps;
        bool add = false;
        for (int64_t i = 0; i < t->taps || !add;) {
            float w[FEW];
            int64_t at[FEW], n = 0;
            for (; i < t->taps && n < FEW; i++) {
                if ((float)weight[i] == 0) continue;
                w[n] = (float)weight[i];
                at[n++] = index[i] * j->inner;
            }
            hooks->weigh(w, at, n, src, j->inner, (float *)j->dst + r * j->inner, add);
            add = true;
        }
    }
}

static bool identical(const sni_resize_params *p, const sni_resize_axis *a) {
    return a->in == a->out && a->scale == 1 && p->coord != SNI_RESIZE_CROP &&
           p->coord != SNI_RESIZE_HALF_PIXEL_NN;
}

static sn_status blend_axes(sni_kernel *k, const sni_resize_params *p, const sni_resize_axis *axes,
                            const tap_table *tables, sn_dtype type, const void *src, void *dst) {
    const sni_tensor *x = sni_in(k, 0);
    int64_t dims[SN_MAX_RANK];
    for (int d = 0; d < x->rank; d++) dims[d] = x->dims[d];
    int left = 0;
    for (int d = 0; d < x->rank; d++) left += !identical(p, &axes[d]);
    if (left == 0) memcpy(dst, src, (size_t)x->count * sni_dtype_width(type));
    for (int d = x->rank - 1; d >= 0; d--) {
        if (identical(p, &axes[d])) continue;
        blend_job job = {.src = src, .dst = dst, .table = &tables[d], .inner = 1};
        int64_t outer = 1, count;
        for (int i = d + 1; i < x->rank; i++) job.inner *= dims[i];
        for (int i = 0; i < d; i++) outer *= dims[i];
        dims[d] = axes[d].out;
        if (--left > 0) {
            if (!sni_shape_count(x->rank, dims, &count))
                return sni_fail(k->err, SN_LIMIT, "an intermediate result is too large");
            SN_TRY(sni_scratch_array(k, count, sni_dtype_width(type), &job.dst));
        }
        if (type == SN_FLOAT32) SN_TRY(make_lanes(k, job.table, &job.lanes));
        bool hooked = job.lanes.hooks != NULL, lanes = hooked && job.inner == 1;
        int64_t work = (lanes ? axes[d].out : job.inner) * job.table->taps;
        int64_t grain = GRAIN / (work > 0 ? work : 1);
        sni_parallel_for(k->threads, lanes ? outer : outer * axes[d].out, grain > 0 ? grain : 1,
                         hooked               ? blend_lanes
                         : type == SN_FLOAT64 ? blend_f64
                                              : blend_f32,
                         &job);
        src = job.dst;
        SN_TRY(sni_poll(k));
    }
    return SN_OK;
}

static sn_status run_blend(sni_kernel *k, const sni_resize_params *p, const sni_resize_axis *axes,
                           const tap_table *tables) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype type = SN_FLOAT32;
    const void *src = NULL;
    void *dst = NULL;
    SN_TRY(sni_blend_in(k, x, &type, &src));
    SN_TRY(sni_blend_out(k, y, type, &dst));
    SN_TRY(blend_axes(k, p, axes, tables, type, src, dst));
    if (dst != y->data) sni_store_numbers(y, type, dst, p->antialias != 0);
    return SN_OK;
}

/* ---- Both ---- */

/* Overwrites all positions that are outside along any axis. */
static void extrapolate(const sni_resize_params *p, sni_tensor *y, const tap_table *tables) {
    _Alignas(16) unsigned char element[16] = {0}; /* of a string: empty */
    sni_tensor one = {.dtype = y->dtype, .count = 1, .data = element};
    sni_store_numbers(&one, SN_FLOAT32, &p->extrapolation_value, false);
    size_t width = sni_dtype_width(y->dtype);
    int64_t inner = y->count, outer = 1;
    for (int d = 0; d < y->rank; d++) {
        inner /= y->dims[d];
        for (int64_t o = 0; o < outer * y->dims[d]; o++) {
            if (!tables[d].outside[o % y->dims[d]]) continue;
            unsigned char *at = (unsigned char *)y->data + (size_t)(o * inner) * width;
            for (int64_t i = 0; i < inner; i++) memcpy(at + (size_t)i * width, element, width);
        }
        outer *= y->dims[d];
    }
}

sn_status sni_resize_run(sni_kernel *k, const sni_resize_params *p, const sni_resize_axis *axes) {
    sni_tensor *y = sni_out(k, 0);
    tap_table tables[SN_MAX_RANK];
    if (y->rank == 0) {
        memcpy(y->data, sni_in(k, 0)->data, sni_dtype_width(y->dtype));
        return SN_OK;
    }
    for (int d = 0; d < y->rank; d++) SN_TRY(make_table(k, p, &axes[d], &tables[d]));
    if (p->mode == SNI_RESIZE_NEAREST)
        SN_TRY(run_nearest(k, tables));
    else
        SN_TRY(run_blend(k, p, axes, tables));
    if (p->coord == SNI_RESIZE_CROP) extrapolate(p, y, tables);
    return SN_OK;
}
