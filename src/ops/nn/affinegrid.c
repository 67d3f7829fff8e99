/* AffineGrid: the coordinates at which GridSample reads an image or volume moved by theta. */
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

typedef struct affine_params {
    int64_t align_corners;
} affine_params;

/* Position i of n, in [-1, 1]: corners or centres of the elements at the ends. */
static double place(int64_t i, int64_t n, bool align_corners) {
    if (align_corners) return n > 1 ? -1 + 2 * (double)i / (double)(n - 1) : 0;
    return (2 * (double)i + 1) / (double)n - 1;
}

/* theta is (N, r, r + 1), size (N, C, D1, ..., Dr), the grid (N, D1, ..., Dr, r). */
static sn_status affine_ref(sni_kernel *k) {
    const affine_params *p = k->params;
    const sni_tensor *theta = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    int r = y->rank - 2;
    if (r < 2 || r > 3 || theta->rank != 3 || theta->dims[0] != y->dims[0] || theta->dims[1] != r ||
        theta->dims[2] != r + 1)
        return SNI_KERNEL_FAIL(k, "theta does not fit a grid of rank %d", y->rank);
    const double *matrix = NULL;
    void *memory = NULL;
    SN_TRY(sni_as_f64(k, theta, &matrix));
    SN_TRY(sni_scratch_array(k, y->count, sizeof(double), &memory));
    double *out = memory;
    for (int64_t i = 0; i < y->count / r; i++) {
        int64_t rest = i;
        double at[4]; /* x, y, (z,) 1: last axis first */
        for (int d = 0; d < r; d++) {
            int64_t size = y->dims[r - d];
            at[d] = place(rest % size, size, p->align_corners != 0);
            rest /= size;
        }
        at[r] = 1;
        const double *m = matrix + rest * r * (r + 1);
        for (int row = 0; row < r; row++) {
            double sum = 0;
            for (int d = 0; d <= r; d++) sum += m[row * (r + 1) + d] * at[d];
            out[i * r + row] = sum;
        }
    }
    sni_store_numbers(y, SN_FLOAT64, out, false);
    return SN_OK;
}

static sn_status affine_infer(sni_infer *c) {
    const sni_dim *size;
    int32_t count;
    SN_TRY(sni_infer_dims(c, 1, &size, &count));
    if (!size) return SN_OK;
    if (count != 4 && count != 5)
        return SNI_INFER_FAIL(c, "size has %d elements, not 4 or 5", (int)count);
    if (sni_infer_shaped(c, 0)) {
        const sni_type *t = c->in[0];
        bool fits = t->rank == 3 && (!sni_dim_known(t->dims[1]) || t->dims[1] == count - 2) &&
                    (!sni_dim_known(t->dims[2]) || t->dims[2] == count - 1);
        if (!fits) return SNI_INFER_FAIL(c, "theta does not fit a size of %d elements", (int)count);
    }
    sni_dim dims[5] = {size[0]};
    for (int i = 2; i < count; i++) dims[i - 1] = size[i];
    dims[count - 1] = count - 2;
    return sni_infer_set_shape(c, 0, count, dims);
}

const sni_op sni_op_AffineGrid = {
    .name = "AffineGrid",
    .versions = SNI_VERSIONS(20),
    .inputs = SNI_FORMALS({"theta", "T1"}, {"size", "int64"}),
    .outputs = SNI_FORMALS({"grid", "T1"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"align_corners", SNI_ATTR_INT, offsetof(affine_params, align_corners)}),
    .params_size = sizeof(affine_params),
    .infer = affine_infer,
    .ref = affine_ref,
};
