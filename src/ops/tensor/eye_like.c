/* EyeLike: a matrix of the input's shape with ones on diagonal number k and zeros elsewhere. */
#include "ops/core/convert.h"
#include "ops/core/op.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

#define EYE_TYPES (SNI_T_NUMBERS | SNI_T(SN_BOOL))

typedef struct eye_params {
    int64_t dtype; /* 0: that of the input */
    int64_t k;     /* 0: the main diagonal; above 0: to the right of it */
} eye_params;

static sn_status eye_infer(sni_infer *c) {
    const eye_params *p = c->params;
    int64_t dtype = p->dtype ? p->dtype : (int64_t)c->in[0]->dtype;
    if (dtype < 0 || dtype >= SNI_DTYPE_COUNT || (dtype && !(SNI_T(dtype) & EYE_TYPES)))
        return SNI_INFER_FAIL(c, "EyeLike does not make type %" PRId64, dtype);
    if (dtype) SN_TRY(sni_infer_set_type(c, 0, (sn_dtype)dtype));
    if (sni_infer_shaped(c, 0) && sni_infer_rank(c, 0) != 2)
        return SNI_INFER_FAIL(c, "the input has rank %d, not 2", sni_infer_rank(c, 0));
    return sni_infer_same(c);
}

static sn_status eye_ref(sni_kernel *k) {
    const eye_params *p = k->params;
    sni_tensor *y = sni_out(k, 0);
    size_t width = sni_dtype_width(y->dtype);
    int64_t rows = y->dims[0], columns = y->dims[1];
    if (y->count == 0) return SN_OK;
    memset(y->data, 0, sni_tensor_bytes(y));
    unsigned char one[8];
    sni_convert(SN_FLOAT64, &(double){1}, y->dtype, one, 1, NULL);
    if (p->k >= columns || p->k <= -rows) return SN_OK;
    for (int64_t row = p->k < 0 ? -p->k : 0; row < rows && row + p->k < columns; row++)
        memcpy(sni_element(y->data, row * columns + row + p->k, width), one, width);
    return SN_OK;
}

const sni_op sni_op_EyeLike = {
    .name = "EyeLike",
    .versions = SNI_VERSIONS(9, 22),
    .inputs = SNI_FORMALS({"input", "T1"}),
    .outputs = SNI_FORMALS({"output", "T2"}),
    .types = SNI_TYPE_VARS({"T1", EYE_TYPES}, {"T2", EYE_TYPES}),
    .params = SNI_PARAMS({"dtype", SNI_ATTR_INT, offsetof(eye_params, dtype)},
                         {"k", SNI_ATTR_INT, offsetof(eye_params, k)}),
    .params_size = sizeof(eye_params),
    .infer = eye_infer,
    .ref = eye_ref,
};
