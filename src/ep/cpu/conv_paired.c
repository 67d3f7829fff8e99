/* conv_paired.c - blocked convolution as a matrix product by pairs of terms (cpu/paired.h): rows
 * are pixels of the output, and their terms are the channels of one tap after the other. */
#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/gemm.h"
#include "cpu/paired.h"
#include "ep/cpu/blocked.h"
#include "ops/compute.h"

#include <stdlib.h>

typedef struct paired_weights {
    sni_paired_b b;
    float *bias, *slopes; /* may be NULL */
} paired_weights;

/* Terms of a sum. */
static int64_t terms_of(const sni_conv_geometry *g) {
    return g->in_channels * g->kernel_h * g->kernel_w;
}

static bool geometry_of(const sni_choice *c, sni_conv_geometry *g) {
    bool plain;
    return sni_blocked_geometry(c, g, &plain) && !plain && g->groups == 1 &&
           g->kernel_h * g->kernel_w == 1 && g->in_channels % SNI_LEFT_STEPS == 0;
}

static bool paired_accepts(const sni_choice *c) {
    const sni_blocked_conv_params *p = c->params;
    sni_conv_geometry g;
    return p->paired && sni_paired_pays() && c->node->n_out == 1 && !sni_choice_given(c, 5) &&
           geometry_of(c, &g);
}

static bool paired_pays(const sni_choice *c) {
    sni_conv_geometry g;
    return geometry_of(c, &g) && g.out_h > 0 && g.out_w > 0 &&
           sni_paired_suits(g.out_h * g.out_w, g.out_channels, terms_of(&g));
}

static sn_status pack_weights(const sni_choice *c, const sni_conv_geometry *g, sni_paired_b *b,
                              sn_error *err) {
    size_t sizes[3] = {sni_gemm_packed_b_size(b->k, b->n) * sizeof(float),
                       sni_paired_numbers(b->k, b->n, true) * sizeof(float),
                       sni_paired_flags(b->n)};
    void *pieces[3];
    bool filled;
    const sni_loose_float *w;
    SN_TRY(sni_pack_alloc_all(c, 3, sizes, pieces, &filled, err));
    b->panels = pieces[0];
    b->numbers = pieces[1];
    b->tame = pieces[2];
    if (filled) return SN_OK;
    SN_TRY(sni_cpu_loose(c, 1, &w, err));
    sni_gemm_pack_b(w, 1, g->in_channels, b->k, b->n, pieces[0]);
    sni_paired_measure(pieces[0], b->k, b->n, true, pieces[1], pieces[2]);
    return SN_OK;
}

static sn_status paired_prepare(const sni_choice *c, void **state, sn_error *err) {
    sni_conv_geometry g;
    paired_weights made = {0};
    if (!geometry_of(c, &g)) return sni_fail(err, SN_INTERNAL, "no convolution by pairs");
    made.b = (sni_paired_b){.k = terms_of(&g), .n = g.out_channels, .scaled = true};
    SN_TRY(pack_weights(c, &g, &made.b, err));
    SN_TRY(sni_blocked_bias(c, &made.bias, err));
    SN_TRY(sni_blocked_slopes(c, &made.slopes, err));
    return sni_cpu_keep(&made, sizeof made, state, err);
}

/* ---- Runs ---- */

typedef struct conv_job {
    sni_conv_geometry g;
    const sni_blocked_call *call;
    bool onto;                       /* the output has what is added to the sums */
    int64_t pixels, panels;          /* of an image's output; panels of rows that they make */
    int64_t block, x_plane, y_plane; /* elements of a plane of one block of channels */
} conv_job;

static int64_t first_pixel(const conv_job *j, int64_t in_image) {
    return j->pixels / j->panels * in_image + sni_smaller(in_image, j->pixels % j->panels);
}

static sni_paired_rows rows_of(const void *ctx, int64_t panel) {
    const conv_job *j = ctx;
    int64_t image = panel / j->panels, in_image = panel % j->panels;
    int64_t first = first_pixel(j, in_image);
    return (sni_paired_rows){.count = (int)(first_pixel(j, in_image + 1) - first),
                             .at = image * sni_blocks(j->g.out_channels, j->block) * j->y_plane +
                                   first * j->block};
}

/* Where the lines of a tap begin for each row of a panel: in the picture, or at zeros. */
static void place_tap(const conv_job *j, int64_t panel, int64_t tap, int64_t block,
                      sni_paired_part *part) {
    static const float zeros[SNI_LEFT_STEPS] = {0};
    const sni_conv_geometry *g = &j->g;
    const float *x =
        j->call->x +
        (panel / j->panels * sni_blocks(g->in_channels, j->block) + block) * j->x_plane;
    int64_t pixel = first_pixel(j, panel % j->panels), rows = rows_of(j, panel).count;
    int64_t out_h = pixel / g->out_w, out_w = pixel % g->out_w;
    int64_t down = tap / g->kernel_w * g->dilation_h - g->pad_top,
            right = tap % g->kernel_w * g->dilation_w - g->pad_left;
    for (int64_t i = 0; i < rows; i++) {
        int64_t h = out_h * g->stride_h + down, w = out_w * g->stride_w + right;
        bool inside = h >= 0 && h < g->in_h && w >= 0 && w < g->in_w;
        part->from[i] = inside ? x + (h * g->in_w + w) * j->block : zeros;
        part->step[i] = inside ? j->x_plane : 0;
        if (++out_w < g->out_w) continue;
        out_w = 0;
        out_h++;
    }
}

static int left_of(const void *ctx, int64_t panel, int64_t line, int64_t lines,
                   sni_paired_part *parts) {
    const conv_job *j = ctx;
    int64_t blocks = sni_blocks(j->g.in_channels, j->block);
    int count = 0;
    for (int64_t end = line + lines; line < end; line += parts[count++].lines) {
        parts[count].lines = sni_smaller(blocks - line % blocks, end - line);
        place_tap(j, panel, line / blocks, line % blocks, &parts[count]);
    }
    return count;
}

static const float *ahead_of(const void *ctx, int64_t panel, int64_t line, int64_t *step) {
    const conv_job *j = ctx;
    *step = j->x_plane;
    return j->call->x +
           (panel / j->panels * sni_blocks(j->g.in_channels, j->block) + line) * j->x_plane +
           first_pixel(j, panel % j->panels) * j->block;
}

/* Element of the output with which a tile begins. */
static int64_t output_at(const conv_job *j, const sni_paired_place *p) {
    return p->rows.at + p->column / j->block * j->y_plane;
}

static bool end_of(const void *ctx, const sni_paired_place *p, sni_paired_end *end) {
    const conv_job *j = ctx;
    const sni_conv_epilogue *e = &j->call->epilogue;
    int64_t at = output_at(j, p);
    *end = (sni_paired_end){
        .y = j->call->y + at, .row = j->block, .vector = j->y_plane, .add = !p->first || j->onto};
    if (!p->last) return false;
    if (e->bias) end->bias = e->bias + p->column;
    if (e->residual && !j->onto) end->residual = e->residual + at;
    end->residual_row = j->block;
    end->residual_vector = j->y_plane;
    return e->slopes || !sni_paired_bound(e->act, e->p0, e->p1, end);
}

static void finish(const void *ctx, const sni_paired_place *p, const float *sums) {
    const conv_job *j = ctx;
    const sni_conv_epilogue *all = &j->call->epilogue;
    for (int64_t c = 0; c < p->columns; c += j->block) {
        int64_t at = output_at(j, p) + c / j->block * j->y_plane, channel = p->column + c;
        sni_epilogue e = {.residual_row = j->block};
        if (p->last) {
            e.act = all->act;
            e.p0 = all->p0;
            e.p1 = all->p1;
            if (all->slopes) e.column_slopes = all->slopes + channel;
            if (all->bias && sums) e.column_bias = all->bias + channel;
            if (all->residual && sums && !j->onto) e.residual = all->residual + at;
        }
        sni_cpu_kernels_get()->finish_tile(&e, sums ? sums + c : NULL, !p->first || j->onto,
                                           j->call->y + at, j->block, 0, p->rows.count, 0,
                                           j->block);
    }
}

static bool stopping(const void *kernel) {
    return sni_stopping(kernel);
}

/* A picture in which every output pixel sees its own input pixel alone. */
static bool is_flat(const sni_conv_geometry *g) {
    return g->kernel_h * g->kernel_w * g->stride_h * g->stride_w == 1 && g->in_h == g->out_h &&
           g->in_w == g->out_w && !g->pad_top && !g->pad_left;
}

static sn_status paired_run(sni_kernel *k) {
    const paired_weights *w = k->state;
    sni_blocked_call call;
    if (sni_out(k, 0)->count == 0) return SN_OK;
    SN_TRY(sni_blocked_call_init(k, w->bias, w->slopes, &call));
    const sni_conv_geometry *g = &call.geometry;
    conv_job j = {.g = *g, .call = &call, .block = sni_cpu_kernels_get()->block};
    j.onto = call.epilogue.residual == call.y;
    j.pixels = g->out_h * g->out_w;
    j.panels = sni_ceil_div(j.pixels, sni_paired_most());
    j.x_plane = g->in_h * g->in_w * j.block;
    j.y_plane = j.pixels * j.block;
    sni_paired product = {.b = &w->b,
                          .panels = g->n * j.panels,
                          .ctx = &j,
                          .rows = rows_of,
                          .left = left_of,
                          .ahead = is_flat(g) ? ahead_of : NULL,
                          .end = end_of,
                          .finish = finish,
                          .stop = stopping,
                          .stop_ctx = k};
    size_t size = sni_paired_scratch_size(&product, k->threads);
    float *scratch = sni_scratch(k, size * sizeof *scratch);
    if (!scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    sni_paired_run(&product, k->threads, scratch);
    return sni_poll(k);
}

const sni_impl sni_cpu_conv_paired = {
    .name = "conv_paired_f32",
    .op = "BlockedConv",
    .domain = SNI_SINTER_DOMAIN,
    .accepts = paired_accepts,
    .pays = paired_pays,
    .by_shape = true,
    .prepare = paired_prepare,
    .release = free,
    .packs = 1u << 1 | 1u << 2 | 1u << 4,
    .run = paired_run,
};
