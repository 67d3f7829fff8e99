/* max_roi_pool.inc.c - template by type (typed.h): MaxRoiPool. Instances: max_roi_pool.c, for
 * float and double. */

/* Maxima over the bins of a region for one type. A NaN counts only where there is nothing else. */

/* line[i] = max(line[i], x[i]). */
static void FN(raise)(T *restrict line, const T *restrict x, int64_t n) {
    int64_t i = 0;
    for (; i + LINE_STEP <= n; i += LINE_STEP)
        for (int j = 0; j < LINE_STEP; j++)
            line[i + j] = x[i + j] > line[i + j] ? x[i + j] : line[i + j];
    for (; i < n; i++) line[i] = x[i] > line[i] ? x[i] : line[i];
}

static T FN(most_of)(const T *plane, int64_t w, roi_span rows, roi_span columns) {
    T most = -(T)INFINITY;
    bool numbers = false;
    for (int64_t y = rows.from; y < rows.to; y++)
        for (int64_t x = columns.from; x < columns.to; x++) {
            T v = plane[y * w + x];
            numbers |= v == v;
            most = v > most ? v : most;
        }
    return numbers ? most : (T)NAN;
}

/* One row of bins: the largest of each column first. */
static void FN(pool_bins)(const roi_pool *p, const T *plane, roi_span rows, const roi_span *columns,
                          T *dst) {
    T line[LINE_MOST];
    int64_t from = columns[0].from, n = columns[p->out_w - 1].to - from;
    bool joined = n > 0 && n <= LINE_MOST;
    for (int64_t i = 0; joined && i < n; i++) line[i] = -(T)INFINITY;
    for (int64_t y = rows.from; joined && y < rows.to; y++)
        FN(raise)(line, plane + y * p->w + from, n);
    for (int64_t i = 0; i < p->out_w; i++) {
        roi_span c = columns[i];
        if (rows.from >= rows.to || c.from >= c.to) {
            dst[i] = 0;
            continue;
        }
        T most = -(T)INFINITY;
        for (int64_t x = c.from; joined && x < c.to; x++)
            most = line[x - from] > most ? line[x - from] : most;
        dst[i] = most > -(T)INFINITY ? most : FN(most_of)(plane, p->w, rows, c);
    }
}

/* Items are channels of regions. */
static void FN(pool_items)(void *ctx, int64_t begin, int64_t end) {
    const roi_pool *p = ctx;
    for (int64_t i = begin; i < end; i++) {
        int64_t region = i / p->channels, channel = i % p->channels;
        int64_t image = (int64_t)((const T *)p->rois)[5 * region];
        const T *plane = (const T *)p->x + (image * p->channels + channel) * p->h * p->w;
        const roi_span *rows = p->spans + region * (p->out_h + p->out_w);
        T *dst = (T *)p->y + i * p->out_h * p->out_w;
        for (int64_t r = 0; r < p->out_h; r++)
            FN(pool_bins)(p, plane, rows[r], rows + p->out_h, dst + r * p->out_w);
    }
}

/* Where the bins of a region are; false: it is of no image. */
static bool FN(place_region)(const roi_pool *p, int64_t r) {
    const T *roi = (const T *)p->rois + 5 * r;
    if (!(roi[0] >= 0 && roi[0] < (T)p->images)) return false;
    roi_span *rows = p->spans + r * (p->out_h + p->out_w);
    place_bins((double)roi[2] * p->scale, (double)roi[4] * p->scale, p->out_h, p->h, rows);
    place_bins((double)roi[1] * p->scale, (double)roi[3] * p->scale, p->out_w, p->w,
               rows + p->out_h);
    return true;
}
