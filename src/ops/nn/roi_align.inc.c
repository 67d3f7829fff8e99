/* roi_align.inc.c - template by type (typed.h): samples of RoiAlign. Instances: roi_align.c, for
 * float and double. */

/* Regions sampled for one type. */

/* One coordinate of a sample: the two elements around it and the weight of the second. False if it
 * is outside the image. */
static bool FN(split)(T v, int64_t n, int64_t *low, int64_t *high, T *part) {
    if (!(v >= -1 && v <= (T)n)) return false;
    if (v < 0) v = 0;
    *low = (int64_t)v;
    if (*low >= n - 1) {
        *low = *high = n - 1;
        *part = 0;
    } else {
        *high = *low + 1;
        *part = v - (T)*low;
    }
    return true;
}

/* A sample between elements: their weighted sum or, in max mode, the largest weighted one (ONNX has
 * it so). Outside the image it is 0. */
static T FN(sample)(const align *a, const T *plane, T y, T x) {
    int64_t y0, y1, x0, x1;
    T fy, fx;
    if (!FN(split)(y, a->h, &y0, &y1, &fy) || !FN(split)(x, a->w, &x0, &x1, &fx)) return 0;
    T v[4] = {(1 - fy) * (1 - fx) * plane[y0 * a->w + x0], (1 - fy) * fx * plane[y0 * a->w + x1],
              fy * (1 - fx) * plane[y1 * a->w + x0], fy * fx * plane[y1 * a->w + x1]};
    if (!a->max) return v[0] + v[1] + v[2] + v[3];
    T most = v[0];
    for (int i = 1; i < 4; i++) most = v[i] > most ? v[i] : most;
    return most;
}

/* Region r of (regions, channels, out_h, out_w). False if it cannot be sampled. Leaves it when the
 * run should stop. */
static bool FN(region)(const align *a, int64_t r) {
    const T *roi = (const T *)a->rois + 4 * r;
    T shift = a->half ? (T)0.5 : 0, scale = (T)a->scale;
    T x0 = roi[0] * scale - shift, y0 = roi[1] * scale - shift;
    T wide = roi[2] * scale - shift - x0, tall = roi[3] * scale - shift - y0;
    if (!a->half) wide = wide > 1 ? wide : 1, tall = tall > 1 ? tall : 1;
    T step_x = wide / (T)a->out_w, step_y = tall / (T)a->out_h;
    if (!(MATH(fabs)(step_x) < SNI_ROI_SAMPLES && MATH(fabs)(step_y) < SNI_ROI_SAMPLES))
        return false;
    int64_t nx = a->ratio > 0 ? a->ratio : (int64_t)MATH(ceil)(step_x);
    int64_t ny = a->ratio > 0 ? a->ratio : (int64_t)MATH(ceil)(step_y);
    T count = (T)(nx > 0 && ny > 0 ? nx * ny : 1);
    bool slow = sni_long_work((double)nx * (double)ny * (double)(a->out_h * a->out_w) * 16);
    for (int64_t c = 0; c < a->channels; c++) {
        const T *plane = (const T *)a->x + (a->batch[r] * a->channels + c) * a->h * a->w;
        T *dst = (T *)a->y + (r * a->channels + c) * a->out_h * a->out_w;
        for (int64_t i = 0; i < a->out_h * a->out_w; i++) {
            T sum = 0, most = -(T)INFINITY;
            T top = y0 + (T)(i / a->out_w) * step_y, left = x0 + (T)(i % a->out_w) * step_x;
            for (int64_t sy = 0; sy < ny; sy++) {
                if (slow && sni_stopping(a->kernel)) return true;
                for (int64_t sx = 0; sx < nx; sx++) {
                    T v = FN(sample)(a, plane, top + ((T)sy + (T)0.5) * step_y / (T)ny,
                                     left + ((T)sx + (T)0.5) * step_x / (T)nx);
                    sum += v;
                    most = v > most ? v : most;
                }
            }
            dst[i] = !a->max ? sum / count : nx > 0 && ny > 0 ? most : 0;
        }
    }
    return true;
}
