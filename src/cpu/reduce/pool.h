/* pool.h - pools of float32: the kernels of one tier, for the drivers of ops/nn/pool.h. */
#ifndef SNI_CPU_REDUCE_POOL_H
#define SNI_CPU_REDUCE_POOL_H

#include "cpu/core/dispatch.h"
#include "ops/nn/pool.h"

struct sni_pool_kernels {
    sni_pool_rows_fn max, average;
    sni_pool_fn global_max, global_average;
};

#endif
