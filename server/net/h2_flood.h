/* h2_flood.h - frames that cost a server work and a client nothing, counted by connection. */
#ifndef SRV_NET_H2_FLOOD_H
#define SRV_NET_H2_FLOOD_H

#include "server/util.h"

#include <nghttp2/nghttp2.h>

/* A bucket that leaks: what came lately, beyond what may come all the time. */
typedef struct srv_bucket {
    double level;
    uint64_t ns;
} srv_bucket;

/* All zeros at first. */
typedef struct srv_floods {
    srv_bucket resets, idle;
} srv_floods;

/* A stream was reset. False: there are too many; cut the connection off, as below. */
bool srv_floods_reset(srv_floods *floods);
/* A frame came. Those that bring nothing by themselves are counted: PRIORITY, WINDOW_UPDATE, PING,
 * SETTINGS, DATA without bytes, types that nobody knows. */
bool srv_floods_frame(srv_floods *floods, const nghttp2_frame_hd *head);
/* A frame with something in it came or went; several of the others belong to it. */
void srv_floods_work(srv_floods *floods);

#endif
