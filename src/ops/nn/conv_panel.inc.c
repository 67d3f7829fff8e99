/* conv_panel.inc.c - template: gathers a panel of the im2col matrix of a convolution: rows
 * (channel, tap) and columns (output position). S         the element type of the input T the
 * element type of the panel LOAD(v)   the T of an element v of the input; it may use `zero`, the
 * input's zero point Instances: conv_core.c, for float, double, and int8_t and uint8_t with int32_t
 * panels. */

static void FN(gather_run)(const sni_window *w, const S *row, int64_t tap, int64_t o0, int64_t n,
                           int32_t zero, T *dst) {
    int64_t lo, hi, shift, stride = w->stride[w->rank - 1];
    sni_window_span(w, tap, &lo, &hi, &shift);
    lo = lo < o0 ? o0 : lo > o0 + n ? o0 + n : lo;
    hi = hi > o0 + n ? o0 + n : hi < lo ? lo : hi;
    (void)zero;
    int64_t o = o0;
    for (; o < lo; o++) dst[o - o0] = 0;
    if (stride == 1)
        for (; o < hi; o++) dst[o - o0] = LOAD(row[o + shift]);
    else
        for (; o < hi; o++) dst[o - o0] = LOAD(row[o * stride + shift]);
    for (; o < o0 + n; o++) dst[o - o0] = 0;
}

static void FN(gather)(const void *ctx, int64_t product, int64_t k0, int64_t rows, int64_t n0,
                       int64_t cols, void *panel, int64_t panel_stride) {
    const sni_conv *conv = ctx;
    const sni_window *w = &conv->window;
    int last = w->rank - 1;
    int64_t in_w = w->in[last], plane = sni_window_in_rows(w) * in_w, kw = w->kernel[last];
    int64_t taps = sni_window_tap_rows(w) * kw;
    int64_t group_channels = conv->in_channels / conv->groups;
    const S *x = (const S *)conv->x + product * group_channels * plane;
    for (int64_t col = 0; col < cols;) {
        int64_t out_row = (n0 + col) / w->out[last], o0 = (n0 + col) % w->out[last];
        int64_t n = w->out[last] - o0 < cols - col ? w->out[last] - o0 : cols - col;
        int64_t origin[SN_MAX_RANK], tap[SN_MAX_RANK];
        sni_window_origin(w, out_row, origin);
        int64_t channel = k0 / taps, kx = k0 % kw;
        decode_tap(w, k0 % taps / kw, tap);
        int64_t in_row = sni_window_in_row(w, origin, tap);
        for (int64_t p = 0; p < rows; p++) {
            T *dst = (T *)panel + p * panel_stride + col;
            if (in_row < 0)
                for (int64_t j = 0; j < n; j++) dst[j] = 0;
            else
                FN(gather_run)
            (w, x + channel * plane + in_row * in_w, kx, o0, n, conv->x_zero, dst);
            if (++kx < kw) continue;
            kx = 0;
            sni_window_next_tap(w, tap);
            if ((k0 + p + 1) % taps == 0) channel++;
            in_row = sni_window_in_row(w, origin, tap);
        }
        col += n;
    }
}
