/* conv_line.c - convolution of plain lines with few weights, of pictures with few channels and of
 * groups of few, in float32: rows of several output channels at once are sums of the input's own
 * rows, one for each tap, with neighbouring pixels along the vectors. Nothing is packed but the
 * weights, and the input is copied only where it has pads or strides. */
#include "base/checked.h"
#include "base/threadpool.h"
#include "cpu/conv/conv_algorithms.h"
#include "cpu/conv/conv_plane.h"
#include "cpu/core/loops.h"
#include "ops/core/compute.h"
#include "ops/core/long_work.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"
#include "ops/sinter/conv_limits.h"

#include <inttypes.h>
#include <string.h>

enum {
    LINE_TAPS = 16,      /* of a channel by itself, at least */
    LINE_CHUNK = 1536,   /* pixels of a row that one item takes at most ... */
    LINE_LEAST = 192,    /* ... and at least */
    LINE_ITEMS = 4,      /* for each thread, if pixels suffice */
    LINE_WORK = 1 << 16, /* products worth a thread */
    LINE_BLOCK = 32,     /* channels of the output that one item takes, whole rows_of() */
    GROUP_CHANNELS = 16, /* of a group of pictures or volumes, of input and output, */
    GROUP_WEIGHTS = 1 << 18,
    LINE_LANES = 16,      /* products at once */
    LINE_STRIDE = 64,     /* at most, ... */
    LINE_REACH = 1 << 16, /* ... and pads and extents of windows: laid out, a line stays small */
    LAID_TIMES = 8,       /* pictures and volumes are laid out in so many times their size, */
    LAID_LEAST = 1 << 12  /* or so many numbers */
};

static bool reach_is_small(const sni_choice *c) {
    const sni_conv_params *p = c->params;
    const sni_tensor *w = &c->constants[1]->tensor;
    sni_window window;
    if (sni_window_init(&window, &p->window, w->rank - 2, w->dims + 2, NULL) != SN_OK) return false;
    for (int i = 0; i < window.rank; i++)
        if (window.stride[i] > LINE_STRIDE || window.dilation[i] > LINE_REACH ||
            sni_window_extent(&window, i) > LINE_REACH || window.begin[i] < 0 ||
            window.begin[i] > LINE_REACH || window.end[i] < 0 || window.end[i] > LINE_REACH)
            return false;
    return true;
}

/* Whether a picture or volume with its pads is not much larger than what it is made of and what is
 * made of it: strides and dilations may be wide along all axes. */
static bool laid_is_small(const sni_choice *c) {
    const sni_conv_params *p = c->params;
    const sni_tensor *w = &c->constants[1]->tensor;
    double laid = 1, in = 1, out = 1;
    sni_window window;
    int64_t sizes[SN_MAX_RANK];
    if (sni_plain_conv_pixels(c) < 0 ||
        sni_window_init(&window, &p->window, w->rank - 2, w->dims + 2, NULL) != SN_OK ||
        sni_window_sizes(&window, &p->window, c->in[0]->dims + 2, sizes, NULL, NULL) != SN_OK)
        return false;
    for (int i = 0; i < window.rank; i++) {
        laid *= (double)(sizes[i] * window.stride[i] + sni_window_extent(&window, i));
        in *= (double)c->in[0]->dims[2 + i];
        out *= (double)sizes[i];
    }
    return laid <= LAID_LEAST + LAID_TIMES * (in + out);
}

bool sni_conv_line_supports(const sni_choice *c) {
    return sni_plain_conv_supports(c) || sni_plain_conv_is_volume(c);
}

/* A line whose weights are few; a picture, which has other ways, of few channels; groups of few
 * channels of pictures and volumes. */
bool sni_conv_line_suits(const sni_choice *c) {
    const sni_conv_params *p = c->params;
    const sni_tensor *w = &c->constants[1]->tensor;
    int64_t pixels = sni_plain_conv_pixels(c), m = w->dims[0] / p->group;
    int64_t depth = sni_tensor_span(w, 1, w->rank);
    if (!reach_is_small(c) || (w->rank > 3 && !laid_is_small(c))) return false;
    /* Passes over a row for each tap cost less than laying it out with pads, if they are few. */
    if (w->rank == 3)
        return sni_rows_take(w->dims[0], depth) && pixels >= SNI_ROWS_MIN_WIDTH &&
               (p->group == 1 || depth >= LINE_TAPS);
    if (w->rank == 5 || p->group > 1)
        return p->group > 1 && depth <= SNI_ROWS_MAX_TAPS && depth > w->dims[1] &&
               m <= GROUP_CHANNELS && w->dims[1] <= GROUP_CHANNELS &&
               w->dims[0] * depth <= GROUP_WEIGHTS;
    int64_t width = sni_choice_rank(c, 0) == 4 ? c->in[0]->dims[3] : 0;
    return w->dims[1] <= SNI_ROWS_MAX_IN && m <= SNI_ROWS_MAX_OUT &&
           sni_rows_take(w->dims[0], depth) && width >= SNI_ROWS_MIN_WIDTH &&
           pixels >= SNI_ROWS_MIN_WIDTH;
}

typedef struct line_job {
    sni_depth d;
    sni_plane p; /* the other axes */
    const sni_cpu_kernels *kernels;
    const sni_loops *loops;
    const float *x, *bias, *added; /* the last two may be NULL */
    float *y, *laid; /* laid: the input with its pads, as many phases as strides; NULL: as it is */
    float *w;        /* blocks of rows, by tap */
    int64_t *at;     /* taps' places from that of the first */
    int64_t batch, groups, channels, m, depth, chunk, chunks, blocks;
    int64_t length, height, planes; /* of what is laid out: of a row, rows, and planes */
    sni_epilogue epilogue;
} line_job;

static int64_t rows_of(const line_job *j, int64_t left) {
    int64_t rows = j->loops->line_rows;
    while (rows > left) rows /= 2;
    return rows;
}

/* Row `r` of a plane, or of pads around it (NULL), by phases. */
static float *lay_row(const line_job *j, const float *plane, int64_t r, float *to) {
    const sni_plane *p = &j->p;
    int64_t row = r - p->pad_h;
    for (int64_t phase = 0; phase < p->stride_w; phase++, to += j->length)
        if (plane && row >= 0 && row < p->h)
            sni_plane_row(plane + row * p->w, p->w, phase - p->pad_w, p->stride_w, j->length, to);
        else
            memset(to, 0, (size_t)j->length * sizeof *to);
    return to;
}

/* Channels of all images. */
static void lay_channels(void *ctx, int64_t begin, int64_t end) {
    const line_job *j = ctx;
    const sni_plane *p = &j->p;
    for (int64_t i = begin; i < end; i++) {
        const float *x = j->x + i * j->d.in * p->h * p->w;
        float *to = j->laid + i * j->planes * j->height * p->stride_w * j->length;
        for (int64_t s = 0; s < j->planes; s++) {
            int64_t plane = s - j->d.pad;
            bool there = plane >= 0 && plane < j->d.in;
            for (int64_t r = 0; r < j->height; r++)
                to = lay_row(j, there ? x + plane * p->h * p->w : NULL, r, to);
        }
    }
}

static void pack_lines(const line_job *j, const float *from) {
    float *to = j->w;
    for (int64_t g = 0; g < j->groups; g++)
        for (int64_t first = 0, rows; first < j->m; first += rows) {
            rows = rows_of(j, j->m - first);
            const float *row = from + (g * j->m + first) * j->depth;
            for (int64_t t = 0; t < j->depth; t++)
                for (int64_t r = 0; r < rows; r++) *to++ = row[r * j->depth + t];
        }
}

static void place_taps(const line_job *j) {
    const sni_plane *p = &j->p;
    int64_t *at = j->at;
    int64_t taps = p->kernel_h * p->kernel_w;
    for (int64_t i = 0; i < j->channels * j->d.kernel * taps; i++) {
        int64_t c = i / taps / j->d.kernel, d = i / taps % j->d.kernel, tap = i % taps;
        int64_t row =
            (c * j->planes + d * j->d.dilation) * j->height + tap / p->kernel_w * p->dilation_h;
        int64_t step = tap % p->kernel_w * p->dilation_w;
        *at++ = (row * p->stride_w + step % p->stride_w) * j->length + step / p->stride_w;
    }
}

/* The end of `rows` results from y on, of channel `channel` and those after it. */
static void finish_lines(const line_job *j, const sni_line *l, int64_t channel) {
    if (j->epilogue.act == SNI_ACT_NONE && !j->added) return;
    for (int64_t r = 0; r < l->rows; r++) {
        float *y = l->y + r * l->y_row;
        sni_epilogue e = j->epilogue;
        if (e.row_slopes) e.p0 = e.row_slopes[channel + r];
        j->kernels->finish_row(&e, y, 0, NULL, j->added ? j->added + (y - j->y) : NULL, l->n);
    }
}

/* Chunks of output rows of blocks of channels of groups of images, so that threads that take one
 * half each write halves that are apart. */
static void line_items(void *ctx, int64_t begin, int64_t end) {
    const line_job *j = ctx;
    const sni_plane *p = &j->p;
    int64_t lines = j->d.out * p->out_h, pixels = lines * p->out_w;
    int64_t group_size = j->channels * j->planes * j->height * p->stride_w;
    const float *x = j->laid ? j->laid : j->x;
    for (int64_t i = begin; i < end; i++) {
        int64_t column = i % j->chunks * j->chunk, line = i / j->chunks % lines;
        int64_t block = i / j->chunks / lines, image = block / j->blocks; /* a group's image */
        int64_t row = line / p->out_h * j->d.stride * j->height + line % p->out_h * p->stride_h;
        int64_t group = image % j->groups, m = block % j->blocks * LINE_BLOCK;
        int64_t last = m + LINE_BLOCK < j->m ? m + LINE_BLOCK : j->m;
        int64_t n = p->out_w - column < j->chunk ? p->out_w - column : j->chunk;
        sni_line l = {.at = j->at, .count = j->depth, .n = n, .y_row = pixels};
        l.x = x + (image * group_size + row * p->stride_w) * j->length + column;
        for (; m < last; m += l.rows) {
            l.rows = (int)rows_of(j, j->m - m);
            l.w = j->w + (group * j->m + m) * j->depth;
            l.bias = j->bias ? j->bias + group * j->m + m : NULL;
            l.y = j->y + (image * j->m + m) * pixels + line * p->out_w + column;
            j->loops->line(&l);
            finish_lines(j, &l, group * j->m + m);
        }
    }
}

static void cut_lines(const sni_kernel *k, line_job *j) {
    int64_t threads = k->threads > 0 ? k->threads : sni_threads_available();
    int64_t rows = j->batch * j->groups * j->blocks * j->d.out * j->p.out_h;
    for (j->chunk = LINE_CHUNK;; j->chunk /= 2) {
        j->chunks = (j->p.out_w + j->chunk - 1) / j->chunk;
        if (threads < 2 || rows * j->chunks >= LINE_ITEMS * threads || j->chunk <= LINE_LEAST)
            return;
    }
}

static sn_status line_init(sni_kernel *k, line_job *j) {
    const sni_tensor *x = sni_in(k, 0), *w = sni_in(k, 1), *bias = sni_in(k, 2);
    const sni_tensor *added = sni_in(k, 3);
    const sni_conv_params *params = k->params;
    sni_conv conv = {0};
    SN_TRY(sni_conv_init(k, &conv, x, w, sni_out(k, 0)));
    sni_plane *p = &j->p;
    *p = sni_plane_of(&conv.window);
    j->d = sni_depth_of(&conv.window);
    j->kernels = sni_cpu_kernels_get();
    j->loops = sni_loops_get();
    j->x = x->data;
    j->bias = bias ? bias->data : NULL;
    j->added = added ? added->data : NULL;
    j->y = sni_out(k, 0)->data;
    j->batch = conv.batch;
    j->groups = params->group;
    j->channels = w->dims[1];
    j->m = w->dims[0] / j->groups;
    j->depth = sni_tensor_span(w, 1, w->rank);
    j->blocks = (j->m + LINE_BLOCK - 1) / LINE_BLOCK;
    cut_lines(k, j);
    int64_t wide = (p->kernel_w - 1) * p->dilation_w, high = (p->kernel_h - 1) * p->dilation_h;
    int64_t deep = (j->d.out - 1) * j->d.stride + (j->d.kernel - 1) * j->d.dilation;
    bool plain = p->stride_w == 1 && p->pad_w == 0 && p->pad_h == 0 && j->d.pad == 0 &&
                 p->out_w + wide <= p->w && (p->out_h - 1) * p->stride_h + high < p->h &&
                 deep < j->d.in;
    j->length = plain ? p->w : p->out_w + wide / p->stride_w + 1;
    j->height = plain ? p->h : (p->out_h - 1) * p->stride_h + high + 1;
    j->planes = plain ? j->d.in : deep + 1;
    void *buffer = NULL;
    SN_TRY(sni_scratch_matrix(k, j->groups * j->m, j->depth, sizeof(float), &buffer));
    j->w = buffer;
    SN_TRY(sni_scratch_i64(k, j->depth, &j->at));
    if (plain) return SN_OK;
    int64_t row = j->length * p->stride_w, channels = conv.batch * conv.in_channels, all;
    if (!sni_mul_i64(row, j->height, &all) || !sni_mul_i64(all, j->planes, &all))
        return sni_fail(k->err, SN_LIMIT,
                        "an input of %" PRId64 " by %" PRId64 " by %" PRId64 " is too large",
                        j->planes, j->height, row);
    SN_TRY(sni_scratch_matrix(k, channels, all, sizeof(float), &buffer));
    j->laid = buffer;
    return SN_OK;
}

sn_status sni_conv_line_run(sni_kernel *k) {
    line_job j = {.epilogue = sni_plain_conv_epilogue(k)};
    if (sni_out(k, 0)->count == 0) return SN_OK;
    SN_TRY(line_init(k, &j));
    const sni_plane *p = &j.p;
    int64_t size = j.planes * j.height * p->stride_w * j.length;
    pack_lines(&j, sni_in(k, 1)->data);
    place_taps(&j);
    if (j.laid)
        sni_parallel_for(k->threads, j.batch * j.groups * j.channels, LINE_WORK / size + 1,
                         lay_channels, &j);
    int64_t rows = j.m < LINE_BLOCK ? j.m : LINE_BLOCK;
    int64_t products = (p->out_w < j.chunk ? p->out_w : j.chunk) * rows * j.depth;
    return sni_long_for(k, j.batch * j.groups * j.blocks * j.d.out * p->out_h * j.chunks,
                        LINE_WORK / products + 1, (double)products / LINE_LANES, line_items, &j);
}
