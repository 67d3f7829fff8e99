/* ReverseSequence: the first `length` steps of each sample of a batch in reverse order. */
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

typedef struct reverse_params {
    int64_t batch_axis, time_axis;
} reverse_params;

static sn_status reverse_infer(sni_infer *c) {
    const reverse_params *p = c->params;
    SN_TRY(sni_infer_same(c));
    if (p->batch_axis < 0 || p->batch_axis > 1 || p->time_axis != 1 - p->batch_axis)
        return SNI_INFER_FAIL(c, "batch_axis %" PRId64 " and time_axis %" PRId64 " are not 0 and 1",
                              p->batch_axis, p->time_axis);
    if (sni_infer_shaped(c, 1) && sni_infer_rank(c, 1) != 1)
        return SNI_INFER_FAIL(c, "sequence_lens has rank %d, not 1", sni_infer_rank(c, 1));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    if (sni_infer_rank(c, 0) < 2)
        return SNI_INFER_FAIL(c, "the input has rank %d: 2 or more are needed",
                              sni_infer_rank(c, 0));
    sni_dim batch;
    if (!sni_infer_shaped(c, 1)) return SN_OK;
    return sni_infer_join_dim(c, "input and sequence_lens", (int)p->batch_axis,
                              sni_infer_dim(c, 0, (int)p->batch_axis), sni_infer_dim(c, 1, 0),
                              &batch);
}

static sn_status reverse_ref(sni_kernel *k) {
    const reverse_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *lengths = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    int64_t steps = x->dims[p->time_axis], batch = x->dims[p->batch_axis];
    size_t row = (size_t)sni_tensor_span(x, 2, x->rank) * sni_dtype_width(x->dtype);
    size_t step = row * (size_t)(p->time_axis == 0 ? batch : 1);
    size_t sample = row * (size_t)(p->time_axis == 0 ? 1 : steps);
    for (int64_t b = 0; b < batch; b++) {
        int64_t n = sni_index_at(lengths, b);
        if (n < 0 || n > steps)
            return SNI_KERNEL_FAIL(
                k, "length %" PRId64 " of sample %" PRId64 " is outside the %" PRId64 " steps", n,
                b, steps);
        for (int64_t t = 0; row && t < steps; t++) {
            size_t to = (size_t)b * sample + (size_t)t * step;
            size_t from = (size_t)b * sample + (size_t)(t < n ? n - 1 - t : t) * step;
            memcpy((unsigned char *)y->data + to, (const unsigned char *)x->data + from, row);
        }
    }
    return SN_OK;
}

const sni_op sni_op_ReverseSequence = {
    .name = "ReverseSequence",
    .versions = SNI_VERSIONS(10),
    .inputs = SNI_FORMALS({"input", "T"}, {"sequence_lens", "int64"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params =
        SNI_PARAMS({"batch_axis", SNI_ATTR_INT, offsetof(reverse_params, batch_axis), .number = 1},
                   {"time_axis", SNI_ATTR_INT, offsetof(reverse_params, time_axis)}),
    .params_size = sizeof(reverse_params),
    .infer = reverse_infer,
    .ref = reverse_ref,
};
