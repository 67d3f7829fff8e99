/* nms.c - NonMaxSuppression. Scores are radix sorted by their bits. Selected boxes are kept in
 * cells along x, so that each box is compared only with the selected ones that can reach it, a
 * vector at a time. */
#include "ops/nn/nms.h"

#include "base/checked.h"
#include "cpu/select/nms.h"
#include "cpu/core/cpu_ep.h"
#include "cpu/select/radix_sort.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_CELLS = 4096,
    BOXES_OF_CELL = 32,
    FEW = 128, /* selected boxes that are compared faster than sorted into cells */
    POLL = 1024
};

/* Cells along x. A box belongs to the cell of its left side; selected boxes are stored cell by
 * cell. */
typedef struct cells {
    double start, scale; /* cell of x: (x - start) * scale */
    double widest;
    int64_t n;
    int64_t *first, *taken; /* where a cell's boxes begin, and their number so far */
    float *fields[5];       /* y1, x1, y2, x2, area */
} cells;

static size_t bytes_of(const sni_nms *j) {
    size_t keys, boxes, all;
    if (j->count > INT32_MAX || !sni_mul_size((size_t)j->count, 2 * sizeof(uint64_t), &keys) ||
        !sni_mul_size((size_t)j->count + SNI_NMS_PAD, 5 * sizeof(float), &boxes) ||
        !sni_add_size(keys, boxes, &all) ||
        !sni_add_size(all, (2 * MOST_CELLS + 2) * sizeof(int64_t), &all))
        return SIZE_MAX;
    return all;
}

/* ---- Cells ---- */

static int64_t cell_of(const cells *c, double x) {
    double at = (x - c->start) * c->scale;
    if (!(at > 0)) return 0;
    return at < (double)(c->n - 1) ? (int64_t)at : c->n - 1;
}

/* False for empty boxes, which are left out of the cells. */
static bool can_overlap(const sni_nms_box *b) {
    return b->area > 0;
}

static void measure(const sni_nms *j, const uint64_t *keys, int64_t n, cells *c) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        sni_nms_box b = sni_nms_get(j, (int64_t)(uint32_t)keys[i]);
        if (!can_overlap(&b)) continue;
        double x1 = (double)b.x1, wide = (double)b.x2 - x1;
        low = x1 < low ? x1 : low;
        high = x1 > high ? x1 : high;
        c->widest = wide > c->widest ? wide : c->widest;
    }
    c->n = n / BOXES_OF_CELL < MOST_CELLS ? n / BOXES_OF_CELL : MOST_CELLS;
    c->start = low;
    c->scale = (double)c->n / (high - low);
    if (c->n < 1 || !isfinite(c->scale) || !isfinite(c->widest)) {
        c->n = 1;
        c->scale = c->start = 0;
    }
}

/* One cell for `most` boxes. */
static void lay_out_one(int64_t most, cells *c) {
    c->n = 1;
    c->first[0] = c->taken[0] = 0;
    for (int f = 0; f < 5; f++)
        memset(c->fields[f], 0, (size_t)(most + SNI_NMS_PAD) * sizeof(float));
}

/* Reserves places in every cell for all boxes that may be selected. */
static void lay_out(const sni_nms *j, const uint64_t *keys, int64_t n, cells *c) {
    int64_t at = 0;
    memset(c->first, 0, (size_t)(c->n + 1) * sizeof *c->first);
    memset(c->taken, 0, (size_t)c->n * sizeof *c->taken);
    for (int64_t i = 0; i < n; i++) {
        sni_nms_box b = sni_nms_get(j, (int64_t)(uint32_t)keys[i]);
        if (can_overlap(&b)) c->first[cell_of(c, (double)b.x1)]++;
    }
    for (int64_t i = 0; i <= c->n; i++) {
        int64_t count = c->first[i];
        c->first[i] = at;
        at += count;
    }
    for (int f = 0; f < 5; f++) memset(c->fields[f], 0, (size_t)(n + SNI_NMS_PAD) * sizeof(float));
}

static void take(cells *c, const sni_nms_box *b) {
    int64_t cell = cell_of(c, (double)b->x1), at = c->first[cell] + c->taken[cell]++;
    const float fields[] = {b->y1, b->x1, b->y2, b->x2, b->area};
    for (int f = 0; f < 5; f++) c->fields[f][at] = fields[f];
}

/* Whether a selected box overlaps b too much. One more cell on either side covers rounding. */
static bool is_covered(const sni_nms *j, const cells *c, const sni_nms_kernels *kernels,
                       const sni_nms_box *b) {
    const float box[] = {b->y1, b->x1, b->y2, b->x2, b->area};
    sni_nms_taken t = {c->fields[0], c->fields[1], c->fields[2], c->fields[3], c->fields[4]};
    int64_t low = cell_of(c, (double)b->x1 - c->widest) - 1, high = cell_of(c, (double)b->x2) + 1;
    if (low < 0) low = 0;
    if (high >= c->n) high = c->n - 1;
    for (int64_t i = low; i <= high; i++) {
        if (!c->taken[i]) continue;
        if (kernels->overlaps(&t, c->first[i], c->first[i] + c->taken[i], box, j->iou_threshold))
            return true;
    }
    return false;
}

/* ---- Selection ---- */

static sn_status select_boxes(sni_kernel *k, const sni_nms *j, void *memory, int64_t *selected,
                              int64_t *n_selected) {
    uint64_t *keys = memory, *other = keys + j->count;
    cells c = {.first = (int64_t *)(other + j->count)};
    c.taken = c.first + MOST_CELLS + 1;
    float *fields = (float *)(c.taken + MOST_CELLS + 1);
    for (int f = 0; f < 5; f++) c.fields[f] = fields + f * (j->count + SNI_NMS_PAD);
    int64_t n = 0, found = 0;
    for (int64_t i = 0; i < j->count; i++)
        if (sni_nms_counts(j, j->scores[i]))
            keys[n++] = (uint64_t)sni_falling_key(j->scores[i]) << 32 | (uint64_t)i;
    keys = sni_radix_sort(keys, other, n);
    if (j->most <= FEW) {
        lay_out_one(j->most, &c);
    } else {
        measure(j, keys, n, &c);
        lay_out(j, keys, n, &c);
    }
    const sni_nms_kernels *kernels = sni_cpu_kernels_get()->nms;
    for (int64_t i = 0; i < n && found < j->most; i++) {
        if (i % POLL == 0) SN_TRY(sni_poll(k));
        int64_t at = (int64_t)(uint32_t)keys[i];
        sni_nms_box b = sni_nms_get(j, at);
        bool matters = can_overlap(&b);
        if (matters && is_covered(j, &c, kernels, &b)) continue;
        if (matters) take(&c, &b);
        selected[found++] = at;
    }
    *n_selected = found;
    return SN_OK;
}

static bool accepts(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32) && sni_choice_is(c, 1, SN_FLOAT32);
}

static sn_status run(sni_kernel *k) {
    static const sni_nms_way way = {bytes_of, select_boxes};
    return sni_nms_run(k, &way);
}

const sni_impl sni_cpu_nms = {
    .name = "nms_f32",
    .op = "NonMaxSuppression",
    .accepts = accepts,
    .run = run,
};
