/* Maxima over the bins of a region for one type. */

/* Bin i of n over a span of `length` elements from `start`, cut to [0, most]. */
static void FN(bin)(int64_t start, int64_t length, int64_t i, int64_t n, int64_t most,
                    int64_t *from, int64_t *to) {
    double size = (double)length / (double)n;
    *from = start + (int64_t)floor((double)i * size);
    *to = start + (int64_t)ceil((double)(i + 1) * size);
    *from = *from < 0 ? 0 : *from > most ? most : *from;
    *to = *to < 0 ? 0 : *to > most ? most : *to;
}

static void FN(pool_region)(const roi_pool *p, int64_t r) {
    const T *roi = (const T *)p->rois + 5 * r;
    int64_t image = (int64_t)roi[0];
    int64_t x0 = near_element((double)roi[1] * p->scale),
            y0 = near_element((double)roi[2] * p->scale);
    int64_t x1 = near_element((double)roi[3] * p->scale),
            y1 = near_element((double)roi[4] * p->scale);
    int64_t wide = x1 - x0 + 1 > 1 ? x1 - x0 + 1 : 1, tall = y1 - y0 + 1 > 1 ? y1 - y0 + 1 : 1;
    for (int64_t c = 0; c < p->channels; c++) {
        const T *plane = (const T *)p->x + (image * p->channels + c) * p->h * p->w;
        T *dst = (T *)p->y + (r * p->channels + c) * p->out_h * p->out_w;
        for (int64_t i = 0; i < p->out_h * p->out_w; i++) {
            int64_t top, bottom, left, right;
            FN(bin)(y0, tall, i / p->out_w, p->out_h, p->h, &top, &bottom);
            FN(bin)(x0, wide, i % p->out_w, p->out_w, p->w, &left, &right);
            bool empty = top >= bottom || left >= right;
            T most = empty ? 0 : plane[top * p->w + left];
            for (int64_t y = top; y < bottom && !empty; y++)
                for (int64_t x = left; x < right; x++)
                    most = plane[y * p->w + x] > most ? plane[y * p->w + x] : most;
            dst[i] = most;
        }
    }
}

static bool FN(image_ok)(const roi_pool *p, int64_t r) {
    T image = ((const T *)p->rois)[5 * r];
    return image >= 0 && image < (T)p->images;
}
