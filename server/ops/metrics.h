/* metrics.h - everything counted, as Prometheus text. */
#ifndef SRV_OPS_METRICS_H
#define SRV_OPS_METRICS_H

#include "server/util.h"

void srv_metrics_write(srv_text *out);

#endif
