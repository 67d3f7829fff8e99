/* qconv_taps.c - depthwise convolution of bytes.
 *
 * The general way: a band of rows of the padded input is widened to floats, which represent sums of
 * this size exactly. Elements that are a stride apart, in both directions, are stored side by side
 * (a phase). Then the elements under a tap are contiguous within one phase, even from row to row,
 * and all outputs of a band are one long row; a few at the row ends are unused.
 *
 * Without zero points of weights and dilation, windows of the padded rows are multiplied as bytes
 * (sni_int_windows), without phases. */
#include "base/checked.h"
#include "base/threadpool.h"
#include "cpu/int8/qconv.h"

enum {
    BAND = 4096,   /* floats of a band of several rows: it stays in the first-level cache */
    MOST = 1 << 24 /* floats of a band with a single row; larger ones go to the reference kernel */
};

typedef struct bands {
    const sni_qconv_call *c;
    const sni_int_kernels *kernels;
    const sni_int_windows_kernels *windows;
    const sni_requantize_kernels *requantize;
    int64_t down, across;  /* number of phases in each direction: the strides */
    int64_t width, height; /* of a phase */
    int64_t phase;         /* floats of one */
    int64_t rows;          /* output rows of a band */
    int64_t floats, sums;  /* sizes for a band, with slack; its bytes take a fourth of `floats` */
    int64_t sum_step;      /* from row to row */
    int parts;
    char *scratch;
    size_t part_bytes;
} bands;

/* Computes the sizes of bands with phases; false if they are too large. */
static bool measure_phases(bands *b) {
    const sni_window *w = &b->c->conv.window;
    int64_t tall = sni_window_extent(w, 0), wide = sni_window_extent(w, 1), phases;
    if (wide > MOST || tall > MOST || w->stride[0] > MOST || w->stride[1] > MOST) return false;
    b->width = w->out[1] + (wide - 1) / w->stride[1];
    if (!sni_mul_i64(w->stride[0], w->stride[1], &phases)) return false;
    b->down = w->stride[0];
    b->across = w->stride[1];
    int64_t extra = (tall - 1) / w->stride[0], row;
    if (!sni_mul_i64(b->width, phases, &row) || row > MOST) return false;
    b->rows = BAND / row - extra;
    if (b->rows < extra) b->rows = extra;
    if (b->rows < 1) b->rows = 1;
    if (b->rows > w->out[0]) b->rows = w->out[0];
    b->height = b->rows + extra;
    if (!sni_mul_i64(row, b->height, &b->floats) || b->floats > MOST) return false;
    b->phase = b->width * b->height;
    b->floats += 2 * SNI_INT_SLACK;
    b->sums = b->rows * b->width + 2 * SNI_INT_SLACK;
    b->sum_step = b->width;
    return true;
}

/* The same for windows: rows of the padded input without phases. */
static bool measure_windows(bands *b) {
    const sni_window *w = &b->c->conv.window;
    b->down = b->across = 1;
    b->width = (w->out[1] - 1) * w->stride[1] + w->kernel[1];
    if (b->width > MOST || w->stride[0] > MOST) return false;
    int64_t rows = BAND / b->width;
    b->rows = rows > w->kernel[0] ? (rows - w->kernel[0]) / w->stride[0] + 1 : 1;
    b->rows = (b->rows + 3) / 4 * 4;
    if (b->rows > w->out[0]) b->rows = w->out[0];
    b->height = (b->rows - 1) * w->stride[0] + w->kernel[0];
    if (!sni_mul_i64(b->width, b->height, &b->phase) || b->phase > MOST) return false;
    b->sum_step = (w->out[1] + 15) / 16 * 16;
    b->sums = b->rows * b->sum_step;
    b->floats = b->phase / 4 + 3 * SNI_INT_SLACK;
    return true;
}

/* Gathers the rows of the padded input from `top` on, phase by phase, as bytes. */
static void gather(const bands *b, const uint8_t *x, int64_t top, uint8_t *to) {
    const sni_window *w = &b->c->conv.window;
    int64_t down = b->down, across = b->across;
    memset(to, (uint8_t)b->c->x_zero, (size_t)(b->phase * down * across));
    for (int64_t v = 0; v < down; v++) {
        int64_t first = top + v < 0 ? (-top - v + down - 1) / down : 0;
        int64_t row = top + v + first * down;
        int64_t rows = row < w->in[0] ? (w->in[0] - row + down - 1) / down : 0;
        if (rows > b->height - first) rows = b->height - first;
        for (int64_t h = 0; h < across; h++) {
            /* Element i of the phase is column i * across + h - begin of the input. */
            int64_t start = w->begin[1] > h ? (w->begin[1] - h + across - 1) / across : 0;
            int64_t column = start * across + h - w->begin[1];
            int64_t n = column < w->in[1] ? (w->in[1] - column + across - 1) / across : 0;
            if (n > b->width - start) n = b->width - start;
            if (rows > 0 && n > 0)
                b->kernels->copy_rows(x + row * w->in[1] + column, down * w->in[1], across, rows, n,
                                      to + (v * across + h) * b->phase + first * b->width + start,
                                      b->width);
        }
    }
}

/* x[tap] = where the elements under each tap begin. */
static void place_taps(const bands *b, const float *from, const float **x) {
    const sni_window *w = &b->c->conv.window;
    for (int64_t h = 0; h < w->kernel[0]; h++)
        for (int64_t t = 0; t < w->kernel[1]; t++) {
            int64_t v = h * w->dilation[0], u = t * w->dilation[1];
            int64_t phase = v % w->stride[0] * w->stride[1] + u % w->stride[1];
            *x++ = from + phase * b->phase + v / w->stride[0] * b->width + u / w->stride[1];
        }
}

/* The sums of `rows` output rows from the gathered bytes. */
static void sum_band(const bands *b, int64_t channel, int64_t rows, const uint8_t *bytes,
                     float *floats, const float *const *taps, int32_t *sums) {
    const sni_qconv *p = b->c->p;
    const sni_window *w = &b->c->conv.window;
    bool is_signed = b->c->x->dtype == SN_INT8;
    if (p->rows_w) {
        sni_int_windows v = {.x = bytes,
                             .x_row = b->width,
                             .flip = sni_int_flip(b->c->x->dtype, false),
                             .w = p->rows_w + channel * w->kernel[0] * p->row_units,
                             .kernel = w->kernel[0],
                             .units = p->row_units,
                             .down = w->stride[0],
                             .across = w->stride[1],
                             .rows = rows,
                             .n = w->out[1],
                             .y = sums,
                             .y_step = b->sum_step};
        b->windows->windows(&v);
        return;
    }
    b->requantize->widen(bytes, b->phase * b->down * b->across, is_signed, (float)b->c->x_zero,
                         floats);
    b->windows->taps(&(sni_int_taps){taps, p->taps_w + channel * p->taps, p->taps,
                                     (rows - 1) * b->width + w->out[1], sums});
}

static void run_plane(const bands *b, int64_t plane, float *floats, int32_t *sums, uint8_t *bytes) {
    const sni_qconv_call *c = b->c;
    const sni_qconv *p = c->p;
    const sni_window *w = &c->conv.window;
    int64_t channel = plane % p->w.n, image = plane / p->w.n;
    size_t width = c->kind == SNI_INT_BYTES ? 1 : sizeof(int32_t);
    const float *taps[SNI_INT_TAPS];
    const uint8_t *x =
        (const uint8_t *)c->x->data + (image * p->groups + channel / p->m) * w->in[0] * w->in[1];
    char *y = (char *)c->y->data + (size_t)(plane * w->out[0] * w->out[1]) * width;
    sni_int_block block = {.n = w->out[1],
                           .acc = sums,
                           .acc_step = b->sum_step,
                           .add_m = c->adds + channel,
                           .scale_m = c->scales ? c->scales + channel : NULL,
                           .zero = c->zero,
                           .low = c->low,
                           .y_step = w->out[1]};
    if (p->taps_w) place_taps(b, floats, taps);
    for (int64_t row = 0; row < w->out[0]; row += b->rows) {
        block.rows = w->out[0] - row < b->rows ? w->out[0] - row : b->rows;
        gather(b, x, row * w->stride[0] - w->begin[0], bytes);
        sum_band(b, channel, block.rows, bytes, floats, taps, sums);
        block.y = y + (size_t)(row * w->out[1]) * width;
        b->requantize->finish[c->kind](&block);
    }
}

static void run_planes(void *ctx, int64_t begin, int64_t end) {
    const bands *b = ctx;
    int64_t planes = b->c->conv.batch * b->c->p->w.n;
    for (int64_t part = begin; part < end; part++) {
        float *floats = (float *)(void *)(b->scratch + (size_t)part * b->part_bytes);
        int32_t *sums = (int32_t *)(floats + b->floats);
        uint8_t *bytes = (uint8_t *)(sums + b->sums);
        memset(floats, 0, (size_t)b->floats * sizeof *floats);
        if (b->c->p->rows_w) bytes = (uint8_t *)floats;
        int64_t to = (part + 1) * planes / b->parts;
        for (int64_t i = part * planes / b->parts; i < to; i++)
            run_plane(b, i, floats, sums, bytes);
    }
}

sn_status sni_qconv_run_taps(sni_kernel *k, const sni_qconv_call *c) {
    const sni_window *w = &c->conv.window;
    int64_t planes = c->conv.batch * c->p->w.n;
    int64_t parts = k->threads < 1 ? 1 : k->threads;
    bands b = {.c = c,
               .kernels = sni_int_kernels_get(),
               .windows = sni_int_windows_kernels_get(),
               .requantize = sni_requantize_kernels_get()};
    if (!(c->p->rows_w ? measure_windows(&b) : measure_phases(&b))) return k->node->op->ref(k);
    if (planes * w->out[0] * w->out[1] * c->p->taps < 1 << 15) parts = 1;
    b.parts = (int)(parts < planes ? parts : planes);
    size_t words = (size_t)(b.floats + b.sums) + (size_t)b.floats / 4;
    b.part_bytes = (words * sizeof(float) + 63) / 64 * 64;
    b.scratch = sni_scratch(k, b.part_bytes * (size_t)b.parts);
    if (!b.scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    sni_parallel_for(b.parts, b.parts, 1, run_planes, &b);
    return SN_OK;
}
