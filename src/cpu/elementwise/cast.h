/* cast.h - conversions between element types: the kernels of one tier. */
#ifndef SNI_CPU_ELEMENTWISE_CAST_H
#define SNI_CPU_ELEMENTWISE_CAST_H

#include "cpu/core/dispatch.h"
#include "ops/core/elementwise.h"

struct sni_cast_kernels {
    /* By source and target type; NULL: none. The results are those of sni_convert(): floats out of
     * an integer's range give its nearest end, NaN gives 0, integers keep their low bits. */
    sni_unary_fn fns[SNI_DTYPE_COUNT][SNI_DTYPE_COUNT];
};

#endif
