/* gather.h - attributes of GatherND. */
#ifndef SNI_OPS_GATHER_H
#define SNI_OPS_GATHER_H

#include <stdint.h>

typedef struct sni_gather_nd_params {
    int64_t batch_dims;
} sni_gather_nd_params;

#endif
