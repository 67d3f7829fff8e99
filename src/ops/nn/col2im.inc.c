/* col2im.inc.c - template by type (typed.h): Col2Im: overlapping windows added to an image.
 * Instances: col2im.c, for float, double, the unsigned integers, float _Complex, double _Complex
 * and bool. */

/* image += columns for one type. */
static void FN(scatter)(const sni_window *w, const void *columns, void *image) {
    const T *src = columns;
    T *dst = image;
    int last = w->rank - 1;
    int64_t positions = w->out[last], stride = w->stride[last];
    int64_t out_rows = sni_window_out_rows(w), tap_rows = sni_window_tap_rows(w);
    int64_t tap[SN_MAX_RANK] = {0}, origin[SN_MAX_RANK];
    for (int64_t t = 0; t < tap_rows; t++, sni_window_next_tap(w, tap)) {
        for (int64_t r = 0; r < out_rows; r++) {
            sni_window_origin(w, r, origin);
            int64_t in_row = sni_window_in_row(w, origin, tap);
            if (in_row < 0) continue;
            T *row = dst + in_row * w->in[last];
            for (int64_t kx = 0; kx < w->kernel[last]; kx++) {
                int64_t lo, hi, shift;
                sni_window_span(w, kx, &lo, &hi, &shift);
                const T *from = src + ((t * w->kernel[last] + kx) * out_rows + r) * positions;
                for (int64_t o = lo; o < hi; o++)
                    row[o * stride + shift] = (T)(row[o * stride + shift] + from[o]);
            }
        }
    }
}
