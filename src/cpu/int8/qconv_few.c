/* qconv_few.c - int8 convolution with few input channels (often 3): a unit of the product holds
 * neighbouring taps of a kernel row instead of neighbouring channels, which would be mostly
 * padding. The input is padded first, so that every unit is a contiguous read. */
#include "base/checked.h"
#include "base/threadpool.h"
#include "cpu/int8/qconv.h"

/* ---- Weights ---- */

typedef struct weight_view {
    const uint8_t *w; /* a group's first channel */
    uint8_t flip;
    int64_t taps, rows, row_span; /* of a row; rows of all channels; elements of a row's units */
} weight_view;

/* Element p of output channel i: positions are ordered by channel and kernel row; each row is
 * padded to whole units. */
static int weight_at(const void *ctx, int64_t i, int64_t p) {
    const weight_view *v = ctx;
    int64_t row = p / v->row_span, tap = p % v->row_span;
    if (row >= v->rows || tap >= v->taps) return 0;
    return (int8_t)(v->w[(i * v->rows + row) * v->taps + tap] ^ v->flip);
}

void sni_qconv_pack_few(sni_qconv *p, const sni_tensor *w) {
    int64_t taps = w->dims[w->rank - 1], rows = p->channels * (p->taps / taps);
    for (int64_t g = 0; g < p->groups; g++) {
        weight_view v = {(const uint8_t *)w->data + g * p->m * rows * taps,
                         sni_int_flip(w->dtype, true), taps, rows,
                         p->row_units * sni_int_kernels_get()->group};
        sni_igemm_pack_a(p->m, p->w.units, weight_at, &v, p->w.panels + (size_t)g * p->w.size);
    }
}

/* ---- The padded input ---- */

typedef struct padded {
    const sni_qconv_call *c;
    const sni_int_kernels *kernels;
    const sni_int_windows_kernels *windows;
    int64_t width, height; /* of a plane */
    const uint8_t *x;      /* an image */
    uint8_t *bytes;        /* its planes, padded */
    const uint8_t *first;  /* of them: the group's */
} padded;

/* Copies rows [begin, end), counted over all planes, with padding. */
static void pad_rows(void *ctx, int64_t begin, int64_t end) {
    const padded *p = ctx;
    const sni_window *w = &p->c->conv.window;
    int64_t inside = p->width - w->begin[1] < w->in[1] ? p->width - w->begin[1] : w->in[1];
    for (int64_t i = begin; i < end; i++) {
        int64_t row = i % p->height - w->begin[0];
        uint8_t *to = p->bytes + i * p->width;
        bool is_inside = row >= 0 && row < w->in[0] && inside > 0;
        if (!is_inside || inside < p->width) memset(to, (uint8_t)p->c->x_zero, (size_t)p->width);
        if (is_inside)
            memcpy(to + w->begin[1], p->x + (i / p->height * w->in[0] + row) * w->in[1],
                   (size_t)inside);
    }
}

/* ---- Products ---- */

static void fill_windows(const void *ctx, int64_t n0, int64_t cols, int32_t *panel) {
    const padded *p = ctx;
    const sni_window *w = &p->c->conv.window;
    const sni_qconv *q = p->c->p;
    uint8_t flip = sni_int_flip(p->c->x->dtype, false);
    int nr = p->kernels->nr, group = p->kernels->group;
    if (cols < nr) memset(panel, 0, (size_t)(q->w.units * nr) * sizeof *panel);
    for (int64_t c = 0; c < q->channels; c++)
        for (int64_t h = 0; h < w->kernel[0]; h++) {
            int64_t row = n0 / w->out[1], at = n0 % w->out[1];
            for (int64_t done = 0; done < cols; row++, at = 0) {
                int64_t n = w->out[1] - at < cols - done ? w->out[1] - at : cols - done;
                int64_t down = row * w->stride[0] + h * w->dilation[0];
                const uint8_t *x = p->first + (c * p->height + down) * p->width + at * w->stride[1];
                for (int64_t u = 0; u < q->row_units; u++)
                    p->windows->window_units(x + u * group, w->stride[1], flip, n,
                                             panel + u * nr + done);
                done += n;
            }
            panel += q->row_units * nr;
        }
}

/* Computes the size of a padded plane and of all planes; false if the padding is out of proportion
 * to the input. */
static bool measure(padded *p, int64_t channels, int64_t *bytes) {
    const sni_window *w = &p->c->conv.window;
    int64_t tall = sni_window_extent(w, 0), plane;
    p->width = (w->out[1] - 1) * w->stride[1] + w->kernel[1];
    if (!sni_mul_i64(w->out[0] - 1, w->stride[0], &p->height) ||
        !sni_add_i64(p->height, tall, &p->height) || !sni_mul_i64(p->width, p->height, &plane) ||
        !sni_mul_i64(plane, channels, bytes))
        return false;
    *bytes += 2 * SNI_INT_SLACK;
    return *bytes < (int64_t)1 << 32 && *bytes / 8 < p->c->x->count + (1 << 16);
}

sn_status sni_qconv_run_few(sni_kernel *k, const sni_qconv_call *c, sni_igemm g) {
    const sni_qconv *q = c->p;
    const sni_window *w = &c->conv.window;
    int64_t channels = q->channels * q->groups, bytes, pixels = w->out[0] * w->out[1];
    size_t width = c->kind == SNI_INT_BYTES ? 1 : sizeof(int32_t);
    padded p = {.c = c, .kernels = sni_int_kernels_get(), .windows = sni_int_windows_kernels_get()};
    if (!measure(&p, channels, &bytes)) return k->node->op->ref(k);
    p.bytes = sni_scratch(k, (size_t)bytes);
    g.fill = fill_windows;
    g.fill_ctx = &p;
    g.packed_a = q->w.panels;
    void *scratch = p.bytes ? sni_scratch(k, sni_igemm_scratch_size(&g, k->threads)) : NULL;
    if (!scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    memset(p.bytes + bytes - 2 * SNI_INT_SLACK, 0, 2 * SNI_INT_SLACK);
    for (int64_t i = 0; i < c->conv.batch; i++) {
        p.x = (const uint8_t *)c->x->data + i * channels * w->in[0] * w->in[1];
        sni_parallel_for(k->threads, channels * p.height, 32768 / p.width + 1, pad_rows, &p);
        for (int64_t group = 0; group < q->groups; group++) {
            p.first = p.bytes + group * q->channels * p.height * p.width;
            g.packed_a = q->w.panels + (size_t)group * q->w.size;
            g.row_add = c->adds + group * q->m;
            if (c->scales) g.row_scale = c->scales + group * q->m;
            g.c = (char *)c->y->data + (size_t)((i * q->groups + group) * q->m * pixels) * width;
            sni_igemm_run(&g, k->threads, scratch);
        }
        SN_TRY(sni_poll(k));
    }
    return SN_OK;
}
