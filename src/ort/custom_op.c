/* custom_op.c - operators of a client's own. */
#include "ort/ort.h"

void ort_ReleaseCustomOpDomain(OrtCustomOpDomain *input) {
    (void)input;
}

void ort_ReleaseOpAttr(OrtOpAttr *input) {
    (void)input;
}

void ort_ReleaseOp(OrtOp *input) {
    (void)input;
}

void ort_ReleaseKernelInfo(OrtKernelInfo *input) {
    (void)input;
}
