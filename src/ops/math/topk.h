/* topk.h - attributes of TopK. */
#ifndef SNI_OPS_MATH_TOPK_H
#define SNI_OPS_MATH_TOPK_H

#include <stdint.h>

typedef struct sni_topk_params {
    int64_t axis, largest, sorted;
} sni_topk_params;

#endif
