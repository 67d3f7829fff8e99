/* long_work.h - loops that a model can make long although its tensors are small: windows as large
 * as the picture, many samples of one place. They end soon after the run's time limit. */
#ifndef SNI_OPS_CORE_LONG_WORK_H
#define SNI_OPS_CORE_LONG_WORK_H

#include "ops/core/op.h"

/* As sni_parallel_for with the kernel's threads. An element takes about `work` simple operations;
 * if all of them take long the kernel polls between parts, and fails as sni_poll() does. */
sn_status sni_long_for(sni_kernel *k, int64_t n, int64_t grain, double work,
                       void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx);

/* Whether an element of so many operations is long by itself: then its function should ask
 * sni_stopping() on the way and return at once if so; sni_long_for() fails in that case. */
bool sni_long_work(double work);

#endif
