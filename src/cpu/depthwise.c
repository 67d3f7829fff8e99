/* depthwise.c - cutting, padding and threads of depthwise convolution.
 *
 * A small plane (one channel block of one image) is copied into a frame of zeros. In others rows of
 * the input are copied, as they are needed, into a ring of rows with zeros to the left and right.
 * From either rows of output come without a thought of padding. Where the ring would grow too
 * large, outputs that see padding are computed from copies of the few columns they need, all others
 * from the input where it is. */
#include "cpu/depthwise.h"

#include "base/threadpool.h"

#include <math.h>
#include <string.h>

enum {
    FRAME = 6144,   /* floats of a small plane with its padding */
    RING = 16384,   /* floats of the ring, or of the columns of an edge in all rows of the kernel */
    PIECE = 1 << 15 /* products of blocks that are worth a thread's while */
};

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

bool sni_depthwise_fits(const sni_conv_geometry *g) {
    return g->groups == g->in_channels && g->in_channels == g->out_channels &&
           g->kernel_h <= SNI_DEPTHWISE_TAPS &&
           g->kernel_w * g->dilation_w <= RING / sni_cpu_kernels_get()->block / g->kernel_h;
}

/* ---- Weights ---- */

size_t sni_depthwise_packed_size(const sni_conv_geometry *g) {
    int64_t block = sni_cpu_kernels_get()->block;
    return (size_t)(sni_blocks(g->out_channels, block) * block * g->kernel_h * g->kernel_w);
}

void sni_depthwise_pack(const sni_conv_geometry *g, const float *w, float *to) {
    int64_t block = sni_cpu_kernels_get()->block, taps = g->kernel_h * g->kernel_w;
    memset(to, 0, sni_depthwise_packed_size(g) * sizeof *to);
    for (int64_t c = 0; c < g->out_channels; c++)
        for (int64_t tap = 0; tap < taps; tap++)
            to[(c / block * taps + tap) * block + c % block] = w[c * taps + tap];
}

/* ---- One plane ---- */

typedef struct job {
    const sni_conv_geometry *g;
    const sni_cpu_kernels *kernels;
    const float *packed, *x;
    float *y;
    const sni_conv_epilogue *e;
    float least, most;
    bool framed, ring;
    bool finish;                   /* an activation that rows have not got follows */
    int64_t blocks, piece, pieces; /* rows of a piece of a plane, pieces of one */
    int64_t left, right;           /* outputs of a row before and from which on padding is seen */
} job;

/* Columns that `pixels` outputs see. */
static int64_t columns_of(const sni_conv_geometry *g, int64_t pixels) {
    return (pixels - 1) * g->stride_w + (g->kernel_w - 1) * g->dilation_w + 1;
}

/* Columns [at, at + count) of a row of the input, zeros outside, to `to`. */
static void copy_columns(const sni_conv_geometry *g, int64_t block, const float *row, int64_t at,
                         int64_t count, float *to) {
    int64_t from = smaller(larger(-at, 0), count), end = larger(smaller(g->in_w - at, count), from);
    memset(to, 0, (size_t)(from * block) * sizeof *to);
    if (end > from)
        memcpy(to + from * block, row + (at + from) * block,
               (size_t)((end - from) * block) * sizeof *to);
    memset(to + end * block, 0, (size_t)((count - end) * block) * sizeof *to);
}

/* Where one row of output stands. */
typedef struct place {
    const float *plane; /* of the input */
    int64_t at;         /* of its first output in y */
    int64_t top;        /* row of the input under the kernel's first used row */
    sni_depthwise_row row;
} place;

/* Outputs [from, to) of a row, without padding or with copies of what they see. */
static void run_outputs(const job *j, place *p, int64_t from, int64_t to, bool edge) {
    const sni_conv_geometry *g = j->g;
    int64_t block = j->kernels->block, at = from * g->stride_w - g->pad_left;
    float copies[RING] __attribute__((aligned(64)));
    sni_depthwise_row *r = &p->row;
    if (from >= to) return;
    r->pixels = to - from;
    int64_t columns = columns_of(g, r->pixels);
    for (int64_t i = 0; i < r->rows; i++) {
        const float *row = p->plane + (p->top + i * g->dilation_h) * g->in_w * block;
        if (edge) {
            copy_columns(g, block, row, at, columns, copies + i * columns * block);
            r->x[i] = copies + i * columns * block;
        } else {
            r->x[i] = row + at * block;
        }
    }
    r->y = j->y + p->at + from * block;
    r->residual = j->e->residual ? j->e->residual + p->at + from * block : NULL;
    j->kernels->depthwise->row(r);
}

/* Outputs [from, to) that see padding, as many at once as copies have room for. */
static void run_edge(const job *j, place *p, int64_t from, int64_t to) {
    const sni_conv_geometry *g = j->g;
    int64_t room = RING / j->kernels->block / larger(p->row.rows, 1);
    int64_t once = larger((room - (g->kernel_w - 1) * g->dilation_w - 1) / g->stride_w + 1, 1);
    for (; from < to; from += once) run_outputs(j, p, from, smaller(from + once, to), true);
}

static void finish_row(const job *j, int64_t at) {
    sni_epilogue e = {.act = j->e->act, .p0 = j->e->p0, .p1 = j->e->p1};
    if (j->finish)
        j->kernels->finish_row(&e, j->y + at, 0, NULL, NULL, j->g->out_w * j->kernels->block);
}

static sni_depthwise_row row_of(const job *j, int64_t channels) {
    const sni_conv_geometry *g = j->g;
    int64_t block = j->kernels->block;
    return (sni_depthwise_row){.count = 1,
                               .taps = g->kernel_w,
                               .stride = g->stride_w,
                               .dilation = g->dilation_w,
                               .bias = j->e->bias ? j->e->bias + channels * block : NULL,
                               .least = j->least,
                               .most = j->most};
}

/* Rows of the kernel that begin within `height` rows of the input. */
static int64_t rows_of(const sni_conv_geometry *g, int64_t height) {
    return g->dilation_h == 1 ? height : ceil_div(height, g->dilation_h);
}

/* Sets the rows of the kernel that lie in the picture for a row of output, and their weights. */
static void place_row(const job *j, place *p, int64_t plane, int64_t row) {
    const sni_conv_geometry *g = j->g;
    int64_t block = j->kernels->block, top = row * g->stride_h - g->pad_top;
    int64_t first = top >= 0 ? 0 : rows_of(g, -top);
    int64_t end = top >= g->in_h ? 0 : rows_of(g, g->in_h - top);
    p->row.rows = larger(smaller(end, g->kernel_h) - first, 0);
    if (!p->row.rows) first = 0;
    p->row.w = j->packed + (plane % j->blocks * g->kernel_h + first) * g->kernel_w * block;
    p->top = top + first * g->dilation_h;
    p->at = (plane * g->out_h + row) * g->out_w * block;
}

/* Rows [from, to) of a plane without the ring. */
static void run_rows(const job *j, int64_t plane, int64_t from, int64_t to) {
    const sni_conv_geometry *g = j->g;
    int64_t block = j->kernels->block;
    place p = {.plane = j->x + plane * g->in_h * g->in_w * block,
               .row = row_of(j, plane % j->blocks)};
    for (int64_t row = from; row < to; row++) {
        place_row(j, &p, plane, row);
        run_edge(j, &p, 0, j->left);
        run_outputs(j, &p, j->left, j->right, false);
        run_edge(j, &p, j->right, g->out_w);
        finish_row(j, p.at);
    }
}

/* ---- The ring ---- */

static int64_t ring_w(const sni_conv_geometry *g) {
    return larger(g->in_w + g->pad_left, columns_of(g, g->out_w));
}

static int64_t ring_h(const sni_conv_geometry *g) {
    return (g->kernel_h - 1) * g->dilation_h + 1;
}

/* Zeros to the left and right of `lines` rows of memory, and columns that inputs take in them. */
static int64_t clear_sides(const sni_conv_geometry *g, int64_t block, int64_t lines, float *to) {
    int64_t width = ring_w(g), inside = smaller(g->in_w, width - g->pad_left);
    int64_t after = g->pad_left + inside;
    for (int64_t i = 0; i < lines; i++, to += width * block) {
        memset(to, 0, (size_t)(g->pad_left * block) * sizeof *to);
        memset(to + after * block, 0, (size_t)((width - after) * block) * sizeof *to);
    }
    return inside;
}

static void run_ring(const job *j, int64_t plane, int64_t from, int64_t to) {
    const sni_conv_geometry *g = j->g;
    float ring[RING] __attribute__((aligned(64)));
    int64_t block = j->kernels->block, lines = ring_h(g), line = ring_w(g) * block;
    const float *x = j->x + plane * g->in_h * g->in_w * block;
    place p = {.row = row_of(j, plane % j->blocks)};
    int64_t inside = clear_sides(g, block, lines, ring);
    int64_t next = 0; /* row of the input that is copied next */
    for (int64_t row = from; row < to; row++) {
        int64_t top = row * g->stride_h - g->pad_top;
        for (next = larger(next, top); next < smaller(top + lines, g->in_h); next++)
            memcpy(ring + (int32_t)next % (int32_t)lines * line + g->pad_left * block,
                   x + next * g->in_w * block, (size_t)(inside * block) * sizeof *x);
        place_row(j, &p, plane, row);
        int64_t at = p.row.rows ? (int32_t)p.top % (int32_t)lines : 0;
        for (int64_t i = 0; i < p.row.rows; i++) {
            p.row.x[i] = ring + at * line;
            at += g->dilation_h;
            if (at >= lines) at -= lines;
        }
        p.row.pixels = g->out_w;
        p.row.y = j->y + p.at;
        p.row.residual = j->e->residual ? j->e->residual + p.at : NULL;
        j->kernels->depthwise->row(&p.row);
        finish_row(j, p.at);
    }
}

/* ---- Small planes: all of it in a frame of zeros ---- */

static int64_t frame_h(const sni_conv_geometry *g) {
    return larger(g->in_h + g->pad_top, (g->out_h - 1) * g->stride_h + ring_h(g));
}

static void run_framed(const job *j, int64_t plane) {
    const sni_conv_geometry *g = j->g;
    float frame[FRAME] __attribute__((aligned(64)));
    int64_t block = j->kernels->block, line = ring_w(g) * block, height = frame_h(g);
    const float *x = j->x + plane * g->in_h * g->in_w * block;
    memset(frame, 0, (size_t)(height * line) * sizeof *frame);
    int64_t inside = smaller(g->in_w, ring_w(g) - g->pad_left);
    for (int64_t h = 0; h < g->in_h; h++)
        memcpy(frame + (h + g->pad_top) * line + g->pad_left * block, x + h * g->in_w * block,
               (size_t)(inside * block) * sizeof *x);
    sni_depthwise_row r = row_of(j, plane % j->blocks);
    int64_t at = plane * g->out_h * g->out_w * block;
    r.w = j->packed + plane % j->blocks * g->kernel_h * g->kernel_w * block;
    r.rows = g->kernel_h;
    for (int64_t i = 0; i < g->kernel_h; i++) r.x[i] = frame + i * g->dilation_h * line;
    r.count = g->out_h;
    r.x_next = g->stride_h * line;
    r.y_next = g->out_w * block;
    r.pixels = g->out_w;
    r.y = j->y + at;
    r.residual = j->e->residual ? j->e->residual + at : NULL;
    j->kernels->depthwise->row(&r);
    for (int64_t i = 0; j->finish && i < g->out_h; i++) finish_row(j, at + i * r.y_next);
}

/* ---- Threads ---- */

static void run_pieces(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    for (int64_t i = begin; i < end; i++) {
        int64_t from = i % j->pieces * j->piece, to = smaller(from + j->piece, j->g->out_h);
        if (j->framed)
            run_framed(j, i);
        else if (j->ring)
            run_ring(j, i / j->pieces, from, to);
        else
            run_rows(j, i / j->pieces, from, to);
    }
}

/* Cycles that padding costs for a row of output: copying rows, or outputs at the edges. */
static int64_t ring_cost(const sni_conv_geometry *g) {
    return 3 * g->in_w * smaller(g->stride_h, ring_h(g));
}

static int64_t edge_cost(const sni_conv_geometry *g) {
    return 2 * (5 * g->kernel_h * g->kernel_w + 60);
}

static void set_clamp(job *j) {
    const sni_conv_epilogue *e = j->e;
    j->least = e->act == SNI_ACT_CLIP ? e->p0 : e->act == SNI_ACT_RELU ? 0 : -INFINITY;
    j->most = e->act == SNI_ACT_CLIP ? e->p1 : INFINITY;
    j->finish = e->act != SNI_ACT_NONE && e->act != SNI_ACT_RELU && e->act != SNI_ACT_CLIP;
}

void sni_depthwise_run(const sni_conv_geometry *g, const float *packed, const float *x, float *y,
                       const sni_conv_epilogue *e, int threads) {
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    job j = {.g = g, .kernels = k, .packed = packed, .x = x, .y = y, .e = e};
    set_clamp(&j);
    j.blocks = sni_blocks(g->out_channels, k->block);
    int64_t reach = (g->kernel_w - 1) * g->dilation_w;
    j.left = smaller(ceil_div(g->pad_left, g->stride_w), g->out_w);
    int64_t inside = g->in_w + g->pad_left - reach;
    j.right = inside > 0 ? smaller(ceil_div(inside, g->stride_w), g->out_w) : 0;
    j.right = larger(j.right, j.left);
    j.ring = (j.left > 0 || j.right < g->out_w) && ring_w(g) <= RING / k->block / ring_h(g) &&
             ring_cost(g) < edge_cost(g);
    int64_t row = g->out_w * g->kernel_h * g->kernel_w;
    j.framed = j.ring && frame_h(g) <= FRAME / k->block / ring_w(g);
    j.piece = j.framed ? g->out_h : smaller(larger(PIECE / row, 1), g->out_h);
    j.pieces = ceil_div(g->out_h, j.piece);
    sni_parallel_for(threads, g->n * j.blocks * j.pieces, larger(PIECE / (j.piece * row), 1),
                     run_pieces, &j);
}
