/* metrics.h - everything counted, as Prometheus text. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include "server/util.h"

void srv_metrics_write(srv_text *out);

#endif
