/* numerics.c - see numerics.h. */
#include "ops/core/numerics.h"

static const sni_numerics_family families[] = {
    {"winograd", SNI_NUMERICS_WINOGRAD, 3},
    {"strassen", SNI_NUMERICS_STRASSEN, 3},
    {"inner-product", SNI_NUMERICS_INNER_PRODUCT, 3},
    {"emulated-gemm", SNI_NUMERICS_EMULATED, 3},
    {"exponent-compression", SNI_NUMERICS_COMPRESSED, 0},
    {"bf16-products", SNI_NUMERICS_BF16, 3},
    {"weights-to-tf32", SNI_NUMERICS_TO_TF32, SNI_NUMERICS_NO_LEVEL},
    {"weights-to-fp16", SNI_NUMERICS_TO_FP16, SNI_NUMERICS_NO_LEVEL},
    {"weights-to-bf16", SNI_NUMERICS_TO_BF16, SNI_NUMERICS_NO_LEVEL},
};

const sni_numerics_family *sni_numerics_get(size_t index) {
    return index < sizeof families / sizeof *families ? &families[index] : NULL;
}
