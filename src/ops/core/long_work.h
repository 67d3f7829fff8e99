/* long_work.h - loops that a model can make long although its tensors are small: windows as large
 * as the image, many samples of one place. These functions end them soon after the run's time
 * limit. */
#ifndef SNI_OPS_CORE_LONG_WORK_H
#define SNI_OPS_CORE_LONG_WORK_H

#include "ops/core/op.h"

/* sni_parallel_for() with the kernel's threads. An item takes about `work` simple operations. If
 * all of them take long, this polls between parts and fails as sni_poll() does. */
sn_status sni_long_for(sni_kernel *k, int64_t n, int64_t grain, double work,
                       void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx);

/* True if an item of so many operations is long by itself. Its function must then call
 * sni_stopping() now and then, and return at once when that is true; sni_long_for() fails in that
 * case. */
bool sni_long_work(double work);

#endif
