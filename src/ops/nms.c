/* NonMaxSuppression: per batch and class, the boxes with the best scores that do not overlap a
 * better one too much. */
#include "ops/tensor_util.h"
#include "ops/wide.h"

#include <math.h>
#include <stdlib.h>

typedef struct nms_params {
    int64_t center_point_box;
} nms_params;

typedef struct nms_job {
    const float *boxes, *scores; /* of one batch; of one class */
    int64_t count;               /* boxes of a batch */
    int64_t most;                /* boxes to select of a class */
    float iou_threshold, score_threshold;
    bool has_score_threshold, centered;
} nms_job;

typedef struct candidate {
    float score;
    int64_t box;
} candidate;

typedef struct box {
    float y1, x1, y2, x2, area;
} box;

static int by_score(const void *a, const void *b) { /* best first, then by index */
    const candidate *p = a, *q = b;
    if (p->score != q->score) return p->score > q->score ? -1 : 1;
    return (p->box > q->box) - (p->box < q->box);
}

static box get_box(const nms_job *j, int64_t i) {
    const float *b = j->boxes + 4 * i;
    box r;
    if (j->centered) { /* x center, y center, width, height */
        r = (box){b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2, 0};
    } else { /* two opposite corners, y first */
        r = (box){fminf(b[0], b[2]), fminf(b[1], b[3]), fmaxf(b[0], b[2]), fmaxf(b[1], b[3]), 0};
    }
    r.area = (r.y2 - r.y1) * (r.x2 - r.x1);
    return r;
}

static bool overlaps(const nms_job *j, const box *a, const box *b) {
    float height = fminf(a->y2, b->y2) - fmaxf(a->y1, b->y1);
    float width = fminf(a->x2, b->x2) - fmaxf(a->x1, b->x1);
    if (!(height > 0) || !(width > 0) || !(a->area > 0) || !(b->area > 0)) return false;
    float both = height * width, either = a->area + b->area - both;
    return either > 0 && both / either > j->iou_threshold;
}

/* Writes the indices selected of one class to `selected` (room for `most`). */
static sn_status select_boxes(sni_kernel *k, const nms_job *j, candidate *list, box *taken,
                              int64_t *selected, int64_t *n_selected) {
    int64_t n = 0, found = 0;
    for (int64_t i = 0; i < j->count; i++) {
        float s = j->scores[i];
        if (s != s || (j->has_score_threshold && !(s > j->score_threshold))) continue;
        list[n++] = (candidate){s, i};
    }
    if (n) qsort(list, (size_t)n, sizeof *list, by_score);
    for (int64_t i = 0; i < n && found < j->most; i++) {
        if (i % 256 == 0) SN_TRY(sni_poll(k));
        box b = get_box(j, list[i].box);
        bool keep = true;
        for (int64_t s = 0; keep && s < found; s++) keep = !overlaps(j, &b, &taken[s]);
        if (!keep) continue;
        taken[found] = b;
        selected[found++] = list[i].box;
    }
    *n_selected = found;
    return SN_OK;
}

static bool scalar(sni_kernel *k, int i, double *v) {
    const sni_tensor *t = sni_in(k, i);
    if (!t || t->count < 1) return false;
    *v = sni_number_at(t, 0);
    return true;
}

typedef struct picks {
    int64_t *box;
    int64_t count;
} picks;

static sn_status select_all(sni_kernel *k, nms_job *j, picks *all, int64_t *total) {
    const sni_tensor *boxes = sni_in(k, 0), *scores = sni_in(k, 1);
    int64_t classes = scores->dims[1];
    void *list = NULL, *taken = NULL, *selected = NULL;
    SN_TRY(sni_scratch_array(k, j->count, sizeof(candidate), &list));
    SN_TRY(sni_scratch_array(k, j->most, sizeof(box), &taken));
    SN_TRY(sni_scratch_array(k, j->most, sizeof(int64_t), &selected));
    *total = 0;
    for (int64_t i = 0; i < scores->dims[0] * classes; i++) {
        j->boxes = (const float *)boxes->data + i / classes * j->count * 4;
        j->scores = (const float *)scores->data + i * j->count;
        SN_TRY(select_boxes(k, j, list, taken, selected, &all[i].count));
        void *copy = NULL;
        SN_TRY(sni_scratch_array(k, all[i].count, sizeof(int64_t), &copy));
        all[i].box = copy;
        memcpy(copy, selected, (size_t)all[i].count * sizeof(int64_t));
        *total += all[i].count;
    }
    return SN_OK;
}

static sn_status nms_ref(sni_kernel *k) {
    const nms_params *p = k->params;
    const sni_tensor *boxes = sni_in(k, 0), *scores = sni_in(k, 1);
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 ||
        boxes->dims[0] != scores->dims[0] || boxes->dims[1] != scores->dims[2])
        return SNI_KERNEL_FAIL(k, "boxes and scores do not fit each other");
    nms_job job = {.count = boxes->dims[1], .centered = p->center_point_box != 0};
    double iou = 0, score = 0;
    const sni_tensor *most = sni_in(k, 2);
    job.most = most && most->count > 0 ? sni_index_at(most, 0) : 0;
    if (job.most < 0) job.most = 0;
    if (job.most > job.count) job.most = job.count;
    if (scalar(k, 3, &iou) && !(iou >= 0 && iou <= 1))
        return SNI_KERNEL_FAIL(k, "iou_threshold is %g, not within [0, 1]", iou);
    job.has_score_threshold = scalar(k, 4, &score);
    job.iou_threshold = (float)iou;
    job.score_threshold = (float)score;
    int64_t total = 0, groups = job.most && scores->count ? scores->dims[0] * scores->dims[1] : 0;
    void *memory = NULL;
    SN_TRY(sni_scratch_array(k, groups, sizeof(picks), &memory));
    picks *all = memory;
    if (groups) SN_TRY(select_all(k, &job, all, &total));
    SN_TRY(sni_out_alloc(k, 0, SN_INT64, 2, (int64_t[]){total, 3}));
    int64_t *out = sni_out(k, 0)->data;
    for (int64_t i = 0; i < groups; i++) {
        for (int64_t s = 0; s < all[i].count; s++, out += 3) {
            out[0] = i / scores->dims[1];
            out[1] = i % scores->dims[1];
            out[2] = all[i].box[s];
        }
    }
    return SN_OK;
}

static sn_status nms_infer(sni_infer *c) {
    for (int i = 0; i < 2; i++)
        if (sni_infer_shaped(c, i) && sni_infer_rank(c, i) != 3)
            return SNI_INFER_FAIL(c, "input %d has rank %d, not 3", i, sni_infer_rank(c, i));
    return sni_infer_set_shape(c, 0, 2, (sni_dim[]){sni_dim_fresh(c->symbols), 3});
}

const sni_op sni_op_NonMaxSuppression = {
    .name = "NonMaxSuppression",
    .versions = SNI_VERSIONS(10, 11),
    .inputs = SNI_FORMALS({"boxes", "float"}, {"scores", "float"},
                          {"max_output_boxes_per_class", "int64", SNI_OPTIONAL},
                          {"iou_threshold", "float", SNI_OPTIONAL},
                          {"score_threshold", "float", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"selected_indices", "int64"}),
    .params =
        SNI_PARAMS({"center_point_box", SNI_ATTR_INT, offsetof(nms_params, center_point_box)}),
    .params_size = sizeof(nms_params),
    .flags = SNI_OP_ALLOCATES,
    .infer = nms_infer,
    .ref = nms_ref,
};
