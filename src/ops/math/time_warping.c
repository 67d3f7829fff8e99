/* DynamicTimeWarping of com.microsoft: the cheapest path through a matrix of costs from its first
 * corner to its last, as rows and columns. */
#include "base/checked.h"
#include "ops/core/compute.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <math.h>

enum { DIAGONAL, DOWN, RIGHT };

static sn_status warping_infer(sni_infer *c) {
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank != 2 && (rank != 3 || sni_dim_differ(sni_infer_dim(c, 0, 0), 1)))
        return SNI_INFER_FAIL(c, "the costs have rank %d and are no matrix", rank);
    return sni_infer_set_shape(c, 0, 2, (sni_dim[]){2, sni_dim_fresh(c->symbols)});
}

/* The least of three; of equal ones the last is taken. */
static int step_of(float diagonal, float down, float right) {
    if (diagonal < down && diagonal < right) return DIAGONAL;
    return down < diagonal && down < right ? DOWN : RIGHT;
}

/* Costs of the paths to every place (with one more row and column in front), and their last steps.
 */
static sn_status spread(sni_kernel *k, const float *costs, int64_t rows, int64_t columns,
                        float *sums, uint8_t *steps) {
    int64_t wide = columns + 1;
    for (int64_t i = 0; i < (rows + 1) * wide; i++) sums[i] = INFINITY;
    sums[0] = 0;
    for (int64_t i = 1; i <= rows; i++) {
        for (int64_t j = 1; j <= columns; j++) {
            const float *at = sums + i * wide + j;
            float from[] = {at[-wide - 1], at[-wide], at[-1]};
            int step = step_of(from[DIAGONAL], from[DOWN], from[RIGHT]);
            sums[i * wide + j] = from[step] + costs[(i - 1) * columns + j - 1];
            steps[i * wide + j] = (uint8_t)step;
        }
        SN_TRY(sni_poll(k));
    }
    return SN_OK;
}

/* Follows the steps back; writes places from the end of `path` (2, room). Returns their number. */
static int64_t trace(const uint8_t *steps, int64_t rows, int64_t columns, int32_t *path,
                     int64_t room) {
    int64_t i = rows, j = columns, n = 0;
    while (i > 0 && j > 0) {
        uint8_t step = steps[i * (columns + 1) + j];
        n++;
        path[room - n] = (int32_t)(i - 1);
        path[2 * room - n] = (int32_t)(j - 1);
        if (step != RIGHT) i--;
        if (step != DOWN) j--;
    }
    return n;
}

static sn_status warping_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    void *sums = NULL, *steps = NULL, *path = NULL;
    if (x->rank != 2 && (x->rank != 3 || x->dims[0] != 1))
        return SNI_KERNEL_FAIL(k, "the costs have rank %d and are no matrix", x->rank);
    int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1], room = rows + columns;
    if (rows > INT32_MAX / 2 || columns > INT32_MAX / 2)
        return SNI_KERNEL_FAIL(k, "the matrix of costs is too large");
    SN_TRY(sni_scratch_matrix(k, rows + 1, columns + 1, sizeof(float), &sums));
    SN_TRY(sni_scratch_matrix(k, rows + 1, columns + 1, 1, &steps));
    SN_TRY(sni_scratch_matrix(k, 2, room, sizeof(int32_t), &path));
    SN_TRY(spread(k, x->data, rows, columns, sums, steps));
    int64_t n = trace(steps, rows, columns, path, room);
    SN_TRY(sni_out_alloc(k, 0, SN_INT32, 2, (int64_t[]){2, n}));
    int32_t *y = sni_out(k, 0) ? sni_out(k, 0)->data : NULL;
    for (int64_t i = 0; y && i < 2 * n; i++)
        y[i] = ((const int32_t *)path)[i / n * room + room - n + i % n];
    return SN_OK;
}

const sni_op sni_op_ms_DynamicTimeWarping = {
    .name = "DynamicTimeWarping",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"input", "float32"}),
    .outputs = SNI_FORMALS({"output", "int32"}),
    .flags = SNI_OP_ALLOCATES,
    .infer = warping_infer,
    .ref = warping_ref,
};
