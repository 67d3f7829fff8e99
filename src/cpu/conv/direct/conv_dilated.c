/* conv_dilated.c - which taps of a kernel, dilated ones above all, meet the picture, and in which
 * order rows share what they read. */
#include "base/lengths.h"
#include "cpu/conv/direct/conv_direct.h"

sni_stretch sni_dilated_trim(int64_t in, int64_t out, int64_t stride, int64_t dilation,
                             int64_t *kernel, int64_t *pad) {
    int64_t before = *pad - (out - 1) * stride;
    sni_stretch live = {
        .from = before > 0 ? sni_min(sni_ceil_div(before, dilation), *pad / dilation) : 0,
        .to = sni_min(*kernel, (in - 1 + *pad) / dilation + 1)};
    if (live.from >= live.to) return (sni_stretch){.to = *kernel};
    *kernel = live.to - live.from;
    *pad -= live.from * dilation;
    return live;
}

int64_t sni_dilated_band(const sni_conv_geometry *g, int64_t from, int64_t to) {
    for (int64_t tap = 0; tap < g->kernel_w; tap++) {
        int64_t at = g->pad_left - tap * g->dilation_w;
        int64_t enters = sni_ceil_div(sni_max(at, 0), g->stride_w);
        int64_t leaves = sni_ceil_div(sni_max(at + g->in_w, 0), g->stride_w);
        if (enters > from) to = sni_min(to, enters);
        if (leaves > from) to = sni_min(to, leaves);
    }
    return to;
}

int64_t sni_dilated_row(const sni_conv_geometry *g, int64_t place) {
    if (g->stride_h > 1) return place;
    int64_t each = g->out_h / g->dilation_h, longer = g->out_h % g->dilation_h;
    int64_t rest = place - longer * (each + 1);
    if (rest < 0) return place % (each + 1) * g->dilation_h + place / (each + 1);
    return rest % each * g->dilation_h + longer + rest / each;
}

sni_stretch sni_kernel_rows(const sni_conv_geometry *g, int64_t row) {
    int64_t top = row * g->stride_h - g->pad_top;
    sni_stretch s = {.from = top >= 0 ? 0 : sni_ceil_div(-top, g->dilation_h)};
    s.to = top >= g->in_h ? 0 : sni_min(g->kernel_h, sni_ceil_div(g->in_h - top, g->dilation_h));
    s.to = sni_max(s.from, s.to);
    return s;
}

int64_t sni_dilated_below(const sni_conv_geometry *g, int64_t span) {
    if (span + 1 >= g->out_h) return 0;
    int64_t row = sni_dilated_row(g, span), next = sni_dilated_row(g, span + 1);
    int64_t taps = sni_kernel_rows(g, next).to - sni_kernel_rows(g, row).to;
    return (next - row) * g->stride_h + taps * g->dilation_h;
}
