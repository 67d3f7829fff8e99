/* NonMaxSuppression: per batch and class, the boxes with the best scores that do not overlap a
 * better one too much. */
#include "ops/nn/nms.h"

#include "base/checked.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <stdlib.h>

typedef struct nms_params {
    int64_t center_point_box;
} nms_params;

typedef struct candidate {
    float score;
    int64_t box;
} candidate;

static int by_score(const void *a, const void *b) { /* best first, then by index */
    const candidate *p = a, *q = b;
    if (p->score != q->score) return p->score > q->score ? -1 : 1;
    return (p->box > q->box) - (p->box < q->box);
}

static bool overlaps(const sni_nms *j, const sni_nms_box *a, const sni_nms_box *b) {
    float height = fminf(a->y2, b->y2) - fmaxf(a->y1, b->y1);
    float width = fminf(a->x2, b->x2) - fmaxf(a->x1, b->x1);
    if (!(height > 0) || !(width > 0) || !(a->area > 0) || !(b->area > 0)) return false;
    float both = height * width, either = a->area + b->area - both;
    return either > 0 && both / either > j->iou_threshold;
}

static size_t plain_room(const sni_nms *j) {
    size_t list, taken, all;
    if (!sni_mul_size((size_t)j->count, sizeof(candidate), &list) ||
        !sni_mul_size((size_t)j->most, sizeof(sni_nms_box), &taken) ||
        !sni_add_size(list, taken, &all))
        return SIZE_MAX;
    return all;
}

static sn_status plain_select(sni_kernel *k, const sni_nms *j, void *buffer, int64_t *selected,
                              int64_t *n_selected) {
    int64_t n = 0, found = 0;
    candidate *list = buffer;
    sni_nms_box *taken = (sni_nms_box *)(list + j->count);
    for (int64_t i = 0; i < j->count; i++)
        if (sni_nms_counts(j, j->scores[i])) list[n++] = (candidate){j->scores[i], i};
    if (n) qsort(list, (size_t)n, sizeof *list, by_score);
    for (int64_t i = 0; i < n && found < j->most; i++) {
        if (i % 256 == 0) SN_TRY(sni_poll(k));
        sni_nms_box b = sni_nms_get(j, list[i].box);
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

/* What was selected so far: batch, class and box of each. */
typedef struct picks {
    int64_t *rows;
    int64_t count, capacity;
} picks;

static sn_status add_picks(sni_kernel *k, picks *p, int64_t batch, int64_t class,
                           const int64_t *boxes, int64_t n) {
    if (p->capacity - p->count < n) {
        int64_t capacity = 2 * p->capacity + n;
        int64_t *rows = realloc(p->rows, (size_t)capacity * 3 * sizeof *rows);
        if (!rows) return sni_fail_memory(k->err);
        p->rows = rows;
        p->capacity = capacity;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t *row = p->rows + 3 * p->count++;
        row[0] = batch;
        row[1] = class;
        row[2] = boxes[i];
    }
    return SN_OK;
}

static sn_status select_all(sni_kernel *k, sni_nms *j, const sni_nms_way *way, picks *p) {
    const sni_tensor *boxes = sni_in(k, 0), *scores = sni_in(k, 1);
    int64_t classes = scores->dims[1];
    size_t bytes = way->bytes(j);
    if (bytes == SIZE_MAX)
        return sni_fail(k->err, SN_LIMIT, "%lld boxes are too many", (long long)j->count);
    void *buffer = sni_scratch(k, bytes), *selected = NULL;
    if (!buffer) return k->err ? k->err->status : SN_NO_MEMORY;
    SN_TRY(sni_scratch_array(k, j->most, sizeof(int64_t), &selected));
    for (int64_t i = 0; i < scores->dims[0] * classes; i++) {
        int64_t n;
        j->boxes = (const float *)boxes->data + i / classes * j->count * 4;
        j->scores = (const float *)scores->data + i * j->count;
        SN_TRY(way->select(k, j, buffer, selected, &n));
        SN_TRY(add_picks(k, p, i / classes, i % classes, selected, n));
    }
    return SN_OK;
}

sn_status sni_nms_run(sni_kernel *k, const sni_nms_way *way) {
    const nms_params *p = k->params;
    const sni_tensor *boxes = sni_in(k, 0), *scores = sni_in(k, 1);
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 ||
        boxes->dims[0] != scores->dims[0] || boxes->dims[1] != scores->dims[2])
        return SNI_KERNEL_FAIL(k, "boxes and scores do not fit each other");
    sni_nms job = {.count = boxes->dims[1], .centered = p->center_point_box != 0};
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
    picks all = {0};
    sn_status status = SN_OK;
    if (job.most && scores->count) status = select_all(k, &job, way, &all);
    if (status == SN_OK) status = sni_out_alloc(k, 0, SN_INT64, 2, (int64_t[]){all.count, 3});
    if (status == SN_OK && all.count)
        memcpy(sni_out(k, 0)->data, all.rows, (size_t)all.count * 3 * sizeof *all.rows);
    free(all.rows);
    return status;
}

static sn_status nms_ref(sni_kernel *k) {
    static const sni_nms_way plain = {plain_room, plain_select};
    return sni_nms_run(k, &plain);
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
