/* metrics.h - everything counted, as Prometheus text. */
#ifndef SRV_OPS_METRICS_H
#define SRV_OPS_METRICS_H

#include "server/util.h"

/* Any thread. A failure to get memory is in `out->failed`. */
void srv_metrics_write(srv_server *server, srv_text *out);

#endif
