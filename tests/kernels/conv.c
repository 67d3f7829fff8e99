/* conv.c - kernels of convolutions of blocked tensors: direct, depthwise, Winograd. */
#include "check.h"

#include "cpu/conv/depthwise/depthwise.h"
#include "cpu/conv/winograd/winograd.h"

#include <math.h>
#include <string.h>

/* ---- Direct tiles ---- */

/* Sums of a tile as conv.h defines them. */
static void plain_tile(const sni_conv_tile *t, int64_t blocks, int64_t pixels, int64_t lanes,
                       double *want) {
    for (int64_t o = 0; o < blocks; o++)
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t l = 0; l < lanes; l++) {
                int64_t at = o * t->y_block + p * lanes + l;
                double sum = t->add ? (double)t->y[at] : 0;
                for (int64_t b = 0; b < t->blocks; b++)
                    for (int64_t r = 0; r < t->rows; r++)
                        for (int64_t tap = 0; tap < t->taps; tap++) {
                            int64_t n = tap == t->taps - 1 ? t->last : t->channels;
                            const float *x = t->x + b * t->x_block + r * t->x_row + tap * t->x_tap +
                                             p * t->x_pixel;
                            const float *w = t->w + o * t->w_out + b * t->w_block + r * t->w_row +
                                             tap * t->w_tap + l;
                            for (int64_t ch = 0; ch < n; ch++)
                                sum += (double)x[ch] * (double)w[ch * lanes];
                        }
                if (t->finish) {
                    if (t->epilogue->bias) sum += (double)t->epilogue->bias[o * lanes + l];
                    if (t->epilogue->residual) sum += (double)t->epilogue->residual[at];
                    if (t->epilogue->act == SNI_ACT_RELU) sum = fmax(sum, 0);
                }
                want[at] = sum;
            }
}

static void conv_tile(check *c, sni_conv_step step, int64_t stride) {
    const sni_conv_kernels *k = c->k->conv;
    int64_t lanes = c->k->block, width = 1;
    int most = step >= SNI_CONV_PLAIN_1 ? 2 : SNI_CONV_MOST_WIDTH;
    while (width < most && k->pixels[width + 1]) width++;
    if (!c->bench) width = between(c, 1, width);
    int64_t pixels = size_of(c, 1, k->pixels[width], k->pixels[width]);
    sni_conv_tile_fn fn = k->tile[step][width][pixels];
    if (!fn) return;
    bool blocked = step == SNI_CONV_BLOCKED_1 || step == SNI_CONV_BLOCKED_2;
    int64_t channels = blocked ? lanes : size_of(c, 1, 7, 7);
    int64_t in = size_of(c, 1, 4, blocked ? 4 : 3), rows = size_of(c, 1, 3, 3);
    int64_t taps = blocked ? size_of(c, 1, 3, 3) : 1, unit = blocked ? lanes : 1;
    sni_conv_tile t = {.blocks = in,
                       .channels = channels,
                       .last = blocked ? size_of(c, 1, lanes, lanes) : channels,
                       .rows = rows,
                       .taps = taps,
                       .x_pixel = stride * unit,
                       .x_tap = unit,
                       .add = !c->bench && below(c, 2),
                       .finish = !c->bench && below(c, 2)};
    t.x_row = (pixels * stride + taps) * unit + channels;
    t.x_block = rows * t.x_row;
    t.w_tap = channels * lanes;
    t.w_row = taps * t.w_tap;
    t.w_block = rows * t.w_row;
    t.w_out = in * t.w_block;
    t.y_block = pixels * lanes + lanes * below(c, 3);
    float *y = random_floats(c, width * t.y_block);
    double *want = zero_doubles(c, width * t.y_block);
    sni_conv_epilogue e = {.act = below(c, 2) ? SNI_ACT_RELU : SNI_ACT_NONE,
                           .bias = random_floats(c, width * lanes),
                           .residual = below(c, 2) ? random_floats(c, width * t.y_block) : NULL};
    t.x = random_floats(c, in * t.x_block);
    t.w = random_floats(c, width * t.w_out);
    t.y = y;
    t.epilogue = &e;
    t.prefetch = t.x_prefetch = (uintptr_t)t.w;
    for (int64_t i = 0; i < width * t.y_block; i++) want[i] = (double)y[i];
    if (!c->bench) plain_tile(&t, width, pixels, lanes, want);
    double macs =
        (double)(width * lanes * pixels * rows * in) * (double)((taps - 1) * channels + t.last);
    CALL(c, 2 * macs, 0) fn(&t);
    expect(c, "y", y, want, width * t.y_block, 1e-4);
}

/* Tiles of one tap side by side; listed channels are found where blocks have them. */
static void conv_strip(check *c) {
    const sni_conv_kernels *k = c->k->conv;
    enum { MOST = 64 };
    int64_t lanes = c->k->block, width = 1;
    while (width < SNI_CONV_MOST_WIDTH && k->pixels[width + 1]) width++;
    width = c->bench ? k->pixels[2] ? 2 : 1 : between(c, 1, width);
    int64_t pixels = size_of(c, 1, k->pixels[width], k->pixels[width]), tiles = size_of(c, 1, 5, 4);
    int64_t in = size_of(c, 1, 4, 4), last = size_of(c, 1, lanes, lanes), all = pixels * tiles;
    sni_conv_tile t = {.blocks = 1,
                       .channels = lanes,
                       .last = last,
                       .rows = 1,
                       .taps = in,
                       .x_pixel = lanes,
                       .x_tap = all * lanes,
                       .w_tap = lanes * lanes,
                       .w_out = in * lanes * lanes,
                       .y_block = all * lanes + lanes * below(c, 3),
                       .finish = true};
    int64_t count = width * t.y_block, channels = (in - 1) * lanes + last;
    static const sni_act acts[] = {SNI_ACT_RELU, SNI_ACT_NONE, SNI_ACT_CLIP, SNI_ACT_AFFINE};
    sni_conv_epilogue e = {.act = acts[c->bench ? 0 : below(c, 4)],
                           .p0 = 0.5f,
                           .p1 = 2,
                           .bias = below(c, 2) ? random_floats(c, width * lanes) : NULL,
                           .residual = below(c, 2) ? random_floats(c, count) : NULL};
    const float *list[MOST], *x = random_floats(c, in * t.x_tap);
    float *y = random_floats(c, count);
    double *want = zero_doubles(c, count);
    for (int64_t i = 0; i < channels; i++) list[i] = x + i / lanes * t.x_tap + i % lanes;
    t.x = x;
    t.w = random_floats(c, width * t.w_out);
    t.y = y;
    t.epilogue = &e;
    t.prefetch = (uintptr_t)t.w;
    for (int64_t i = 0; i < count; i++) want[i] = (double)y[i];
    if (!c->bench) plain_tile(&t, width, all, lanes, want);
    for (int64_t i = 0; i < count; i++) {
        if (i % t.y_block >= all * lanes) continue;
        if (e.act == SNI_ACT_CLIP) want[i] = fmin(fmax(want[i], 0.5), 2);
        if (e.act == SNI_ACT_AFFINE) want[i] = want[i] * 0.5 + 2;
    }
    bool indirect = !c->bench && below(c, 2);
    if (indirect) t.channels = channels;
    t.list = list;
    CALL(c, 2 * (double)(width * lanes * all * channels), 0)
    k->strips->strip[indirect][width][pixels](&t, tiles);
    expect(c, "y", y, want, count, 1e-4);
    if (indirect || width > 1 || !k->strips->half || c->bench || e.act == SNI_ACT_CLIP) return;
    k->strips->half[pixels](&t, tiles);
    for (int64_t i = 0; i < all * lanes; i++)
        if (i % lanes >= lanes / 2) want[i] = e.act == SNI_ACT_AFFINE ? 2 : 0;
    expect(c, "y of half a block", y, want, count, 1e-4);
}

/* Channels that lie anywhere: every one has pixels of its own, in blocks. */
static void conv_indirect(check *c) {
    const sni_conv_kernels *k = c->k->conv;
    int64_t lanes = c->k->block, width = 1;
    while (width < SNI_CONV_MOST_WIDTH && k->pixels[width + 1]) width++;
    if (!c->bench) width = between(c, 1, width);
    enum { MOST = 40 };
    int64_t pixels = size_of(c, 1, k->pixels[width], k->pixels[width]);
    int64_t channels = size_of(c, 1, MOST, MOST), rows = size_of(c, 1, 3, 1);
    int64_t taps = size_of(c, 1, 3, 1), each = (rows * (pixels + taps) + 2) * lanes;
    const float *list[MOST], *x = random_floats(c, channels * each);
    for (int64_t i = 0; i < channels; i++)
        list[i] = x + (i * 7 % channels) * each + below(c, lanes);
    sni_conv_tile t = {.list = list,
                       .x_at = lanes,
                       .channels = channels,
                       .rows = rows,
                       .taps = taps,
                       .x_row = (pixels + taps) * lanes,
                       .x_tap = lanes,
                       .w_tap = channels * lanes,
                       .w_row = taps * channels * lanes,
                       .w_out = rows * taps * channels * lanes,
                       .y_block = pixels * lanes + lanes * below(c, 3),
                       .add = !c->bench && below(c, 2),
                       .finish = !c->bench && below(c, 2)};
    int64_t count = width * t.y_block;
    float *y = random_floats(c, count);
    double *want = zero_doubles(c, count);
    sni_conv_epilogue e = {.act = SNI_ACT_RELU, .bias = random_floats(c, width * lanes)};
    t.w = random_floats(c, width * t.w_out);
    t.y = y;
    t.epilogue = &e;
    t.prefetch = t.x_prefetch = (uintptr_t)t.w;
    for (int64_t i = 0; i < count; i++) want[i] = (double)y[i];
    for (int64_t i = 0; i < width * pixels * lanes && !c->bench; i++) {
        int64_t o = i / (pixels * lanes), p = i / lanes % pixels, l = i % lanes;
        double *sum = want + o * t.y_block + p * lanes + l;
        if (!t.add) *sum = 0;
        for (int64_t r = 0; r < rows * taps * channels; r++) {
            int64_t at = (p + r / channels % taps) * lanes + r / channels / taps * t.x_row;
            *sum +=
                (double)list[r % channels][lanes + at] * (double)t.w[o * t.w_out + r * lanes + l];
        }
        if (t.finish) *sum = fmax(*sum + (double)e.bias[o * lanes + l], 0);
    }
    CALL(c, 2 * (double)(width * lanes * pixels * rows * taps * channels), 0)
    k->tile[SNI_CONV_INDIRECT][width][pixels](&t);
    expect(c, "y", y, want, count, 1e-4);
}

static void conv_blocked_1(check *c) {
    conv_tile(c, SNI_CONV_BLOCKED_1, 1);
}

static void conv_blocked_2(check *c) {
    conv_tile(c, SNI_CONV_BLOCKED_2, 2);
}

static void conv_plain_1(check *c) {
    conv_tile(c, SNI_CONV_PLAIN_1, 1);
}

static void conv_plain_2(check *c) {
    conv_tile(c, SNI_CONV_PLAIN_2, 2);
}

static void conv_any(check *c) {
    conv_tile(c, SNI_CONV_ANY, between(c, 1, 4));
}

/* ---- Depthwise rows ---- */

/* Rows one after another, with padding on all sides. */
static double depthwise_sum(const sni_depthwise_rows *r, int64_t lanes, int64_t n, int64_t p,
                            int64_t l) {
    double sum = r->bias ? (double)r->bias[l] : 0;
    for (int64_t i = 0; i < r->rows; i++)
        for (int64_t t = 0; t < r->taps; t++) {
            int64_t row = r->top + n * r->stride_h + i * r->dilation_h;
            int64_t column = r->left + p * r->stride_w + t * r->dilation_w;
            if (row < 0 || row >= r->in_h || column < 0 || column >= r->in_w) continue;
            int64_t at = (row - r->x_first) * r->x_line + column * lanes;
            int64_t last = r->channels - 1, out = r->channel + l < last ? r->channel + l : last;
            for (int64_t j = 0; j < r->few; j++) {
                int64_t seen = r->few == 1 && r->shares == 1 ? l : out / r->shares * r->few + j;
                sum += (double)r->x[seen / lanes * r->x_block + at + seen % lanes] *
                       (double)r->w[((i * r->few + j) * r->taps + t) * lanes + l];
            }
        }
    if (r->residual) sum += (double)r->residual[n * r->y_line + p * lanes + l];
    return fmax(sum, (double)r->least);
}

/* Groups of `few` input and `shares` output channels. */
static void grouped_rows(check *c, int64_t few, int64_t shares) {
    int64_t lanes = c->k->block, rows = size_of(c, 1, 5, 3), taps = size_of(c, 1, 7, 3);
    int64_t pixels = size_of(c, 1, 40, 56), count = size_of(c, 1, 3, 4);
    int64_t stride_h = size_of(c, 1, 3, 1), stride_w = size_of(c, 1, 3, 1);
    int64_t dilation_h = size_of(c, 1, 2, 1), dilation_w = size_of(c, 1, 2, 1);
    int64_t above = size_of(c, 0, 6, 1), below_it = size_of(c, 0, 6, 1);
    int64_t left = size_of(c, 0, 4, 1), right = size_of(c, 0, 4, 1);
    int64_t first = size_of(c, 0, 3, 0); /* rows of the picture that are not there */
    int64_t high = first + (count - 1) * stride_h + (rows - 1) * dilation_h + 1 - above;
    int64_t wide = (pixels - 1) * stride_w + (taps - 1) * dilation_w + 1 - left;
    int64_t in_h = high - below_it > first ? high - below_it : first + 1;
    int64_t in_w = wide - right > 1 ? wide - right : 1, line = in_w * lanes;
    int64_t outputs = count * pixels * lanes, plane = (in_h - first) * line;
    int64_t groups = shares == 1 ? lanes : size_of(c, 1, 4, 4);
    int64_t blocks = sni_blocks(groups * few, lanes);
    sni_depthwise_rows r = {.x = random_floats(c, blocks * plane),
                            .x_first = first,
                            .in_h = in_h,
                            .in_w = in_w,
                            .x_line = line,
                            .y_line = pixels * lanes,
                            .top = first ? first : -above,
                            .left = -left,
                            .count = count,
                            .pixels = pixels,
                            .rows = rows,
                            .taps = taps,
                            .stride_h = stride_h,
                            .stride_w = stride_w,
                            .dilation_h = dilation_h,
                            .dilation_w = dilation_w,
                            .few = few,
                            .shares = shares,
                            .channel = below(c, sni_blocks(groups * shares, lanes)) * lanes,
                            .channels = groups * shares,
                            .x_block = plane,
                            .w = random_floats(c, rows * few * taps * lanes),
                            .bias = below(c, 2) ? random_floats(c, lanes) : NULL,
                            .residual = below(c, 2) ? random_floats(c, outputs) : NULL,
                            .least = below(c, 2) ? 0.0f : -INFINITY,
                            .most = INFINITY,
                            .y = unset_floats(c, outputs)};
    double *want = zero_doubles(c, outputs);
    for (int64_t i = 0; i < outputs; i++)
        want[i] = depthwise_sum(&r, lanes, i / r.y_line, i % r.y_line / lanes, i % lanes);
    CALL(c, 2 * rows * few * taps * outputs, 0) c->k->depthwise->rows(&r);
    expect(c, "y", r.y, want, outputs, 1e-5 * sqrt((double)few));
}

static void depthwise_rows(check *c) {
    grouped_rows(c, 1, 1);
}

static void few_rows(check *c) {
    int64_t few = c->k->block >> size_of(c, 1, 2, 1);
    grouped_rows(c, few, few);
}

static void block_rows(check *c) {
    grouped_rows(c, c->k->block, c->k->block);
}

/* Groups that lie across blocks. */
static void across_rows(check *c) {
    int64_t few = c->k->block + size_of(c, 1, 24, 8);
    grouped_rows(c, few, few);
}

/* More outputs than inputs. */
static void more_rows(check *c) {
    int64_t few = size_of(c, 1, 8, 1);
    grouped_rows(c, few, few * 2);
}

/* ---- Winograd ---- */

static void wino_product(check *c) {
    const sni_wino_kernels *k = c->k->wino;
    int64_t lanes = c->k->block, channels = size_of(c, 1, 3 * lanes, 8 * lanes);
    int64_t phases = size_of(c, 1, 4, 1), in = sni_blocks(channels, lanes);
    int rows = k->rows, nv = (int)size_of(c, 1, 2, 2);
    int64_t a_step = rows * lanes + lanes * below(c, 3),
            c_step = rows * lanes + lanes * below(c, 3);
    float *a = random_floats(c, phases * in * a_step);
    float *b = random_floats(c, phases * channels * nv * lanes);
    float *y = random_floats(c, nv * c_step);
    double *want = zero_doubles(c, nv * c_step);
    for (int64_t i = 0; i < nv * c_step; i++) want[i] = (double)y[i];
    for (int64_t v = 0; v < nv; v++)
        for (int64_t t = 0; t < rows; t++)
            for (int64_t l = 0; l < lanes; l++) {
                double sum = 0;
                for (int64_t i = 0; i < phases * channels; i++) {
                    int64_t at = i / channels * in + i % channels / lanes;
                    sum += (double)a[at * a_step + t * lanes + i % channels % lanes] *
                           (double)b[(i * nv + v) * lanes + l];
                }
                want[v * c_step + t * lanes + l] = sum;
            }
    CALL(c, 2.0 * (double)(rows * nv) * (double)(lanes * phases * channels), 0)
    k->product(rows, nv, phases, channels, a, a_step, b, y, c_step, b, nv * lanes, 0);
    expect(c, "c", y, want, nv * c_step, 1e-4);
}

/* The element of a blocked tensor (channel blocks, h, w, block). */
static int64_t blocked_at(const sni_conv_geometry *g, int64_t h, int64_t w, int64_t lanes,
                          int64_t ch, int64_t y, int64_t x) {
    (void)g;
    return ((ch / lanes * h + y) * w + x) * lanes + ch % lanes;
}

static void plain_conv(const sni_conv_geometry *g, int64_t lanes, const float *x, const float *w,
                       double *want) {
    for (int64_t o = 0; o < g->out_channels; o++)
        for (int64_t i = 0; i < g->out_h; i++)
            for (int64_t j = 0; j < g->out_w; j++) {
                double sum = 0;
                for (int64_t ch = 0; ch < g->in_channels; ch++)
                    for (int64_t a = 0; a < g->kernel_h; a++)
                        for (int64_t b = 0; b < g->kernel_w; b++) {
                            int64_t y = i * g->stride_h + a - g->pad_top;
                            int64_t z = j * g->stride_w + b - g->pad_left;
                            if (y < 0 || z < 0 || y >= g->in_h || z >= g->in_w) continue;
                            sum +=
                                (double)x[blocked_at(g, g->in_h, g->in_w, lanes, ch, y, z)] *
                                (double)
                                    w[((o * g->in_channels + ch) * g->kernel_h + a) * g->kernel_w +
                                      b];
                        }
                want[blocked_at(g, g->out_h, g->out_w, lanes, o, i, j)] = sum;
            }
}

/* All parts of a transformed convolution together: weights, input, products, output. */
static void wino_whole(check *c, int points, int taps, int stride) {
    int64_t lanes = c->k->block, side = size_of(c, 3, 21, 56), wide = size_of(c, 3, 21, 56);
    int64_t in = size_of(c, 1, 20, 64), out = size_of(c, 1, 20, 64);
    int64_t rows = (side - 1) / stride + 1, columns = (wide - 1) / stride + 1;
    sni_conv_geometry g = {.n = 1,
                           .groups = 1,
                           .in_channels = in,
                           .in_h = side,
                           .in_w = wide,
                           .out_channels = out,
                           .out_h = rows,
                           .out_w = columns,
                           .kernel_h = taps,
                           .kernel_w = taps,
                           .stride_h = stride,
                           .stride_w = stride,
                           .dilation_h = 1,
                           .dilation_w = 1,
                           .pad_top = 1,
                           .pad_left = 1,
                           .pad_bottom = taps - 2,
                           .pad_right = taps - 2};
    sni_wino_variant variant;
    if (!sni_wino_variant_of(&g, points, points, &variant)) return;
    int64_t in_size = sni_blocks(in, lanes) * lanes * side * wide;
    int64_t out_size = sni_blocks(out, lanes) * lanes * rows * columns;
    float *x = random_floats(c, in_size), *w = random_floats(c, out * in * taps * taps);
    float *y = unset_floats(c, out_size);
    float *packed = unset_floats(c, (int64_t)sni_wino_packed_size(&g, &variant));
    size_t scratch_floats = sni_wino_scratch_size(&g, &variant, 1);
    double *want = zero_doubles(c, out_size);
    sni_wino_call call = {.g = &g,
                          .variant = &variant,
                          .packed = packed,
                          .x = x,
                          .y = y,
                          .threads = 1,
                          .scratch = unset_floats(c, (int64_t)scratch_floats),
                          .scratch_floats = scratch_floats};
    sni_wino_pack(&g, &variant, w, packed, 1);
    if (!c->bench) plain_conv(&g, lanes, x, w, want);
    CALL(c, 2.0 * taps * taps * (double)(in * out) * (double)(rows * columns), 0)
    sni_wino_run(&call);
    expect(c, "y", y, want, out_size, 1e-3);
}

static void wino_4(check *c) {
    wino_whole(c, 4, 3, 1);
}

static void wino_6(check *c) {
    wino_whole(c, 6, 3, 1);
}

static void wino_8(check *c) {
    wino_whole(c, 8, 3, 1);
}

static void wino_two(check *c) {
    wino_whole(c, c->bench ? 8 : 4 + 2 * (int)below(c, 3), 2, 1);
}

static void wino_strided(check *c) {
    wino_whole(c, c->bench ? 6 : 4 + 2 * (int)below(c, 2), 3, 2);
}

const kernel_test conv_tests[] = {
    {"conv blocked, stride 1", conv_blocked_1},
    {"conv blocked, stride 2", conv_blocked_2},
    {"conv plain, stride 1", conv_plain_1},
    {"conv plain, stride 2", conv_plain_2},
    {"conv plain, any stride", conv_any},
    {"conv of listed channels", conv_indirect},
    {"conv strip", conv_strip},
    {"depthwise row", depthwise_rows},
    {"row of few channels", few_rows},
    {"row of groups of a block", block_rows},
    {"row of groups across blocks", across_rows},
    {"row of more outputs", more_rows},
    {"winograd product", wino_product},
    {"winograd F(2,3) 64x56x56", wino_4},
    {"winograd F(4,3) 64x56x56", wino_6},
    {"winograd F(6,3) 64x56x56", wino_8},
    {"winograd, 2x2 taps", wino_two},
    {"winograd, stride 2", wino_strided},
    {0},
};
