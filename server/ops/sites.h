/* sites.h - which web pages may ask for something. A browser sends what any page tells it to, also
 * to addresses that the page itself could not reach, and with the user's rights. */
#ifndef SRV_OPS_SITES_H
#define SRV_OPS_SITES_H

#include "server/net/http_head.h"

/* Set up before a server listens, read only after that. */
typedef struct srv_sites {
    const char *const *names; /* by which clients may call this server; "*": by any */
    size_t count;
    bool loopback; /* nobody else's machine reaches the server */
} srv_sites;

/* SRV_OK or SRV_FORBIDDEN with *why, a static text.
 *
 * Host must be a numeric address, localhost or one of the names where names are given or the server
 * is on a loopback address: a page elsewhere that has its own name resolve to this server (DNS
 * rebinding) calls it by that name. A request that `changes` something must not come from a page of
 * another site, as Origin and Sec-Fetch-Site tell; clients that are no browsers send neither. */
srv_code srv_sites_check(const srv_sites *sites, const srv_head *head, bool changes,
                         const char **why);

#endif
