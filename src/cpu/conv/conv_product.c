/* conv_product.c - blocked convolution as a matrix product by pairs of terms
 * (cpu/gemm/inner_product.h) or emulated on int8 tiles (cpu/gemm/emulated.h): rows are pixels of
 * the output, and their terms are the channels of one tap after the other. */
#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/conv/conv_algorithms.h"
#include "cpu/gemm/emulated.h"
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/inner_product.h"
#include "cpu/conv/blocked.h"
#include "cpu/gemm/dense.h"
#include "ops/core/compute.h"

#include <stdlib.h>

/* Neighbouring blocks of channels of one of the tensors that they are picked from. */
typedef struct run {
    int32_t tensor;
    int64_t block, count;
} run;

typedef struct product_weights {
    sni_inner_product_b b;   /* by pairs, or */
    sni_emulated_b emulated; /* on int8 tiles */
    float *bias, *slopes;    /* may be NULL */
    int64_t count;           /* of runs */
    run runs[];
} product_weights;

/* ---- Weights ---- */

/* Terms of a sum. */
static int64_t terms_of(const sni_conv_geometry *g) {
    return g->in_channels * g->kernel_h * g->kernel_w;
}

/* Where block b of the input's channels lies, if it is a block there as well. */
static bool find_block(const sni_indirect *p, int64_t b, int64_t block, sni_origin *first) {
    *first = (sni_origin){.channel = (int32_t)(b * block)};
    if (!p->indices.n) return true;
    *first = sni_indirect_origin(p, b * block);
    for (int64_t i = 1; i < block; i++) {
        sni_origin at = sni_indirect_origin(p, b * block + i);
        if (at.tensor != first->tensor || at.channel != first->channel + i) return false;
    }
    return first->channel % block == 0;
}

/* The runs of all channels, as many as there is room for; their number, or 0 if there are none. */
static int64_t find_runs(const sni_indirect *p, int64_t channels, int64_t block, run *runs) {
    int64_t count = 0;
    for (int64_t b = 0; b < channels / block; b++) {
        sni_origin at;
        if (!find_block(p, b, block, &at)) return 0;
        run *last = count ? &runs[count - 1] : NULL;
        if (last && last->tensor == at.tensor && last->block + last->count == at.channel / block)
            last->count++;
        else
            runs[count++] = (run){at.tensor, at.channel / block, 1};
    }
    return count;
}

/* A line of a row is a block of channels. */
static bool geometry_of(const sni_choice *c, sni_conv_geometry *g) {
    const sni_blocked_conv_params *p = c->params;
    int64_t block = sni_cpu_kernels_get()->block;
    sni_origin at;
    if (block != SNI_LEFT_STEPS || !sni_blocked_any_geometry(c, g) || g->groups != 1 ||
        g->in_channels % block != 0)
        return false;
    for (int64_t b = 0; b < g->in_channels / block; b++)
        if (!find_block(&p->indirect, b, block, &at)) return false;
    return true;
}

/* Whether the convolution can be described as a product. */
static bool can_be_product(const sni_choice *c) {
    sni_conv_geometry g;
    return c->node->n_out == 1 && geometry_of(c, &g) &&
           (!sni_choice_given(c, 5) || g.kernel_h * g.kernel_w == 1);
}

bool sni_conv_inner_product_supports(const sni_choice *c) {
    return sni_inner_product_is_quicker() && can_be_product(c) && !c->constants[1]->narrow;
}

bool sni_conv_emulated_supports(const sni_choice *c) {
    sni_conv_geometry g;
    return can_be_product(c) && geometry_of(c, &g) &&
           sni_emulated_can(terms_of(&g), g.out_channels);
}

/* Part of the taps along an axis that lie in the picture, over all outputs. */
static double inside(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                     int64_t pad) {
    int64_t count = 0;
    for (int64_t tap = 0; tap < kernel; tap++) {
        int64_t first = sni_max(0, sni_ceil_div(sni_max(0, pad - tap * dilation), stride));
        int64_t room = in - 1 + pad - tap * dilation;
        int64_t last = room < 0 ? -1 : sni_min(out - 1, room / stride);
        count += sni_max(0, last - first + 1);
    }
    return (double)count / (double)(out * kernel);
}

/* Direct sums leave out taps that lie beside the picture; products sum zeros in their place. */
static bool is_inside(const sni_conv_geometry *g) {
    static const double LEAST_INSIDE = 0.75;
    return inside(g->in_h, g->out_h, g->kernel_h, g->stride_h, g->dilation_h, g->pad_top) *
               inside(g->in_w, g->out_w, g->kernel_w, g->stride_w, g->dilation_w, g->pad_left) >=
           LEAST_INSIDE;
}

bool sni_conv_inner_product_suits(const sni_choice *c) {
    sni_conv_geometry g;
    return geometry_of(c, &g) && g.out_h > 0 && g.out_w > 0 &&
           sni_inner_product_suits(g.out_h * g.out_w, g.out_channels, terms_of(&g)) &&
           is_inside(&g);
}

bool sni_conv_emulated_suits(const sni_choice *c) {
    sni_conv_geometry g;
    return geometry_of(c, &g) && g.out_h > 0 && g.out_w > 0 &&
           sni_emulated_suits(g.out_h * g.out_w, g.out_channels, terms_of(&g)) && is_inside(&g);
}

typedef struct filters {
    const sni_unaligned_float *w; /* (out, in, taps) */
    int64_t in, taps;
} filters;

/* Taps after taps, each over all channels. */
static void fill_filters(const void *ctx, int64_t k0, int64_t rows, int64_t n0, int64_t cols,
                         int nr, float *panel) {
    const filters *f = ctx;
    for (int64_t r = 0; r < rows; r++, panel += nr) {
        int64_t tap = (k0 + r) / f->in, channel = (k0 + r) % f->in;
        const sni_unaligned_float *from = f->w + (n0 * f->in + channel) * f->taps + tap;
        for (int64_t i = 0; i < cols; i++) panel[i] = from[i * f->in * f->taps];
        for (int64_t i = cols; i < nr; i++) panel[i] = 0;
    }
}

static sn_status pack_inner_product(const sni_choice *c, const sni_conv_geometry *g,
                                    product_weights *w, sn_error *err) {
    sni_inner_product_b *b = &w->b;
    *b = (sni_inner_product_b){.k = terms_of(g), .n = g->out_channels, .scaled = true};
    size_t sizes[3] = {sni_gemm_packed_b_size(b->k, b->n) * sizeof(float),
                       sni_inner_product_numbers(b->k, b->n, true) * sizeof(float),
                       sni_inner_product_flags(b->n)};
    void *blobs[3];
    bool filled;
    filters f = {.in = g->in_channels, .taps = g->kernel_h * g->kernel_w};
    SN_TRY(sni_pack_alloc_all(c, 3, sizes, blobs, &filled, err));
    b->panels = blobs[0];
    b->numbers = blobs[1];
    b->tame = blobs[2];
    if (filled) return SN_OK;
    SN_TRY(sni_cpu_unaligned(c, 1, &f.w, err));
    if (f.taps == 1)
        sni_gemm_pack_b(f.w, 1, f.in, b->k, b->n, blobs[0]);
    else
        sni_gemm_make_b(fill_filters, &f, b->k, b->n, blobs[0]);
    sni_inner_product_measure(blobs[0], b->k, b->n, true, blobs[1], blobs[2]);
    return SN_OK;
}

/* Filters of a choice that are asked for. */
typedef struct filters_asked {
    const sni_choice *c;
    filters f;
} filters_asked;

static sn_status open_filters(void *ctx, sni_emulated_source *s, sn_error *err) {
    filters_asked *a = ctx;
    s->fill = fill_filters;
    s->ctx = &a->f;
    return sni_cpu_unaligned(a->c, 1, &a->f.w, err);
}

static sn_status pack_emulated(const sni_choice *c, const sni_conv_geometry *g, product_weights *w,
                               sn_error *err) {
    filters_asked a = {c, {.in = g->in_channels, .taps = g->kernel_h * g->kernel_w}};
    sni_dense_origin from = {terms_of(g), g->out_channels, open_filters, &a};
    return sni_dense_emulated(c, &from, &w->emulated, err);
}

typedef sn_status (*pack_fn)(const sni_choice *c, const sni_conv_geometry *g, product_weights *w,
                             sn_error *err);

static sn_status fill(const sni_choice *c, const sni_conv_geometry *g, pack_fn pack,
                      product_weights *w, sn_error *err) {
    const sni_blocked_conv_params *p = c->params;
    w->count = find_runs(&p->indirect, g->in_channels, SNI_LEFT_STEPS, w->runs);
    SN_TRY(pack(c, g, w, err));
    SN_TRY(sni_blocked_bias(c, &w->bias, err));
    return sni_blocked_slopes(c, &w->slopes, err);
}

static sn_status prepare(const sni_choice *c, pack_fn pack, void **state, sn_error *err) {
    sni_conv_geometry g;
    if (!geometry_of(c, &g)) return sni_fail(err, SN_INTERNAL, "no convolution as a product");
    size_t most = (size_t)(g.in_channels / SNI_LEFT_STEPS);
    product_weights *w = calloc(1, sizeof *w + most * sizeof *w->runs);
    if (!w) return sni_fail_memory(err);
    sn_status status = fill(c, &g, pack, w, err);
    if (status == SN_OK)
        *state = w;
    else
        free(w);
    return status;
}

sn_status sni_conv_inner_product_prepare(const sni_choice *c, void **state, sn_error *err) {
    return prepare(c, pack_inner_product, state, err);
}

sn_status sni_conv_emulated_prepare(const sni_choice *c, void **state, sn_error *err) {
    return prepare(c, pack_emulated, state, err);
}

/* ---- Runs ---- */

typedef struct conv_job {
    const sni_kernel *kernel;
    const product_weights *weights;
    sni_conv_geometry g;
    const sni_blocked_call *call;
    const float *factors;            /* of input channels; NULL: none */
    int64_t image_factors;           /* from an image's to the next one's */
    bool onto;                       /* the output has what is added to the sums */
    int64_t pixels, panels;          /* of an image's output; panels of rows that they make */
    int64_t block, x_plane, y_plane; /* elements of a plane of one block of channels */
} conv_job;

static int64_t first_pixel(const conv_job *j, int64_t in_image) {
    return j->pixels / j->panels * in_image + sni_min(in_image, j->pixels % j->panels);
}

static sni_product_rows rows_of(const void *ctx, int64_t panel) {
    const conv_job *j = ctx;
    int64_t image = panel / j->panels, in_image = panel % j->panels;
    int64_t first = first_pixel(j, in_image);
    return (sni_product_rows){.count = (int)(first_pixel(j, in_image + 1) - first),
                              .at = image * sni_blocks(j->g.out_channels, j->block) * j->y_plane +
                                    first * j->block};
}

/* The plane of block `b` of a run, of one image. */
static const float *plane_of(const conv_job *j, const run *r, int64_t image, int64_t b) {
    const sni_tensor *x = sni_in(j->kernel, r->tensor ? SNI_BLOCKED_CONV_MORE + r->tensor - 1 : 0);
    return (const float *)x->data + (image * x->dims[1] + r->block + b) * j->x_plane;
}

/* Pixels of the input that a panel's rows see by one tap: elements of a plane; -1: none. */
static void place_rows(const conv_job *j, int64_t panel, int64_t tap,
                       int64_t at[SNI_PRODUCT_ROWS]) {
    const sni_conv_geometry *g = &j->g;
    int64_t pixel = first_pixel(j, panel % j->panels);
    int64_t rows = first_pixel(j, panel % j->panels + 1) - pixel;
    int64_t out_h = pixel / g->out_w, out_w = pixel % g->out_w;
    int64_t down = tap / g->kernel_w * g->dilation_h - g->pad_top,
            right = tap % g->kernel_w * g->dilation_w - g->pad_left;
    for (int64_t i = 0; i < rows; i++) {
        int64_t h = out_h * g->stride_h + down, w = out_w * g->stride_w + right;
        bool inside = h >= 0 && h < g->in_h && w >= 0 && w < g->in_w;
        at[i] = inside ? (h * g->in_w + w) * j->block : -1;
        if (++out_w < g->out_w) continue;
        out_w = 0;
        out_h++;
    }
}

/* Where rows of a panel see the input; below 0: nowhere. */
typedef struct sights {
    int rows;
    int64_t at[SNI_PRODUCT_ROWS];
} sights;

/* Blocks [b, b + count) of a run for rows at these places; rows that see nothing have zeros. */
static void place_run(const conv_job *j, int64_t image, const run *r, int64_t b, int64_t count,
                      const sights *s, sni_product_part *part) {
    static const float zeros[SNI_LEFT_STEPS] = {0};
    const float *x = plane_of(j, r, image, b);
    part->lines = count;
    part->factors = NULL;
    for (int i = 0; i < s->rows; i++) {
        part->from[i] = s->at[i] < 0 ? zeros : x + s->at[i];
        part->step[i] = s->at[i] < 0 ? 0 : j->x_plane;
    }
    if (j->factors)
        part->factors = j->factors + image * j->image_factors + (r->block + b) * j->block;
}

/* Lines [from, to) of one tap. Returns the number of parts. */
static int place_tap(const conv_job *j, int64_t panel, int64_t tap, int64_t from, int64_t to,
                     sni_product_part *parts) {
    const product_weights *w = j->weights;
    int64_t begin = 0;
    int count = 0;
    sights s = {.rows = rows_of(j, panel).count};
    place_rows(j, panel, tap, s.at);
    for (const run *r = w->runs; r < w->runs + w->count; begin += r++->count) {
        int64_t first = sni_max(from, begin), last = sni_min(to, begin + r->count);
        if (first < last)
            place_run(j, panel / j->panels, r, first - begin, last - first, &s, &parts[count++]);
    }
    return count;
}

static int left_of(const void *ctx, int64_t panel, int64_t line, int64_t lines,
                   sni_product_part *parts) {
    const conv_job *j = ctx;
    int64_t blocks = j->g.in_channels / j->block;
    int count = 0;
    for (int64_t end = line + lines, next; line < end; line = next) {
        int64_t tap = line / blocks, first = line % blocks;
        next = sni_min((tap + 1) * blocks, end);
        count += place_tap(j, panel, tap, first, first + next - line, parts + count);
    }
    return count;
}

static const float *prefetch_of(const void *ctx, int64_t panel, int64_t line, int64_t *step) {
    const conv_job *j = ctx;
    *step = j->x_plane;
    return plane_of(j, j->weights->runs, panel / j->panels, line) +
           first_pixel(j, panel % j->panels) * j->block;
}

/* Element of the output with which a tile begins. */
static int64_t output_at(const conv_job *j, const sni_product_place *p) {
    return p->rows.at + p->column / j->block * j->y_plane;
}

static bool end_of(const void *ctx, const sni_product_place *p, sni_product_end *end) {
    const conv_job *j = ctx;
    const sni_conv_epilogue *e = &j->call->epilogue;
    int64_t at = output_at(j, p);
    *end = (sni_product_end){
        .y = j->call->y + at, .row = j->block, .vector = j->y_plane, .add = !p->first || j->onto};
    if (!p->last) return false;
    if (e->bias) end->bias = e->bias + p->column;
    if (e->residual && !j->onto) end->residual = e->residual + at;
    end->residual_row = j->block;
    end->residual_vector = j->y_plane;
    return e->slopes || !sni_product_bound(e->act, e->p0, e->p1, end);
}

static void finish(const void *ctx, const sni_product_place *p, const float *sums) {
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

/* Fills `j` and describes the product, with rows in panels of at most `most`. */
static sn_status describe(sni_kernel *k, int64_t most, sni_blocked_call *call, conv_job *j,
                          sni_product *product) {
    const product_weights *w = k->state;
    SN_TRY(sni_blocked_call_init(k, w->bias, w->slopes, call));
    const sni_conv_geometry *g = &call->geometry;
    *j = (conv_job){
        .kernel = k, .weights = w, .g = *g, .call = call, .block = sni_cpu_kernels_get()->block};
    const sni_tensor *factors = sni_in(k, 5);
    if (factors) {
        j->factors = factors->data;
        j->image_factors = factors->dims[0] > 1 ? factors->dims[1] * factors->dims[4] : 0;
    }
    j->onto = call->epilogue.residual == call->y;
    j->pixels = g->out_h * g->out_w;
    j->panels = sni_ceil_div(j->pixels, most);
    j->x_plane = g->in_h * g->in_w * j->block;
    j->y_plane = j->pixels * j->block;
    *product = (sni_product){.panels = g->n * j->panels,
                             .ctx = j,
                             .rows = rows_of,
                             .left = left_of,
                             .prefetch = sni_conv_is_flat(g) && w->count == 1 ? prefetch_of : NULL,
                             .end = end_of,
                             .finish = finish,
                             .stop = stopping,
                             .stop_ctx = k};
    return SN_OK;
}

sn_status sni_conv_inner_product_run(sni_kernel *k) {
    const product_weights *w = k->state;
    sni_blocked_call call;
    conv_job j;
    sni_product product;
    if (sni_out(k, 0)->count == 0) return SN_OK;
    SN_TRY(describe(k, sni_inner_product_most(), &call, &j, &product));
    size_t size = sni_inner_product_scratch_size(&product, &w->b, k->threads);
    float *scratch = sni_scratch(k, size * sizeof *scratch);
    if (!scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    sni_inner_product_run(&product, &w->b, k->threads, scratch);
    return sni_poll(k);
}

sn_status sni_conv_emulated_run(sni_kernel *k) {
    const product_weights *w = k->state;
    sni_blocked_call call;
    conv_job j;
    sni_product product;
    if (sni_out(k, 0)->count == 0) return SN_OK;
    SN_TRY(describe(k, SNI_EMULATED_ROWS, &call, &j, &product));
    void *scratch = sni_scratch(k, sni_emulated_scratch_size(&product, &w->emulated, k->threads));
    if (!scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    sni_emulated_run(&product, &w->emulated, k->threads, scratch);
    return sni_poll(k);
}
