/* pack.h - packs answers for clients that ask for it. */
#ifndef SRV_NET_PACK_H
#define SRV_NET_PACK_H

#include "server/net/http.h"

/* Packs http->out (and the tail into it) if the client accepts that and it is worth it; the name of
 * the encoding, or NULL when the answer stays as it is. */
const char *srv_pack_reply(srv_http *http);

#endif
