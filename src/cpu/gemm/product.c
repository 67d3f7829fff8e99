/* product.c - see product.h. */
#include "cpu/gemm/product.h"

#include <math.h>

bool sni_product_bound(sni_act act, float p0, float p1, sni_product_end *end) {
    if (act == SNI_ACT_NONE) return true;
    if (act != SNI_ACT_RELU && act != SNI_ACT_CLIP) return false;
    end->bounded = true;
    end->low = act == SNI_ACT_CLIP ? p0 : 0;
    end->high = act == SNI_ACT_CLIP ? p1 : INFINITY;
    return true;
}
