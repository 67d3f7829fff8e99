/* sites.c - which web pages may ask for something. */
#include "server/ops/sites.h"

#include "server/util.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* "[::1]:8000" -> "::1", "a:8000" -> "a". */
static sni_str without_port(sni_str host) {
    if (host.n && host.p[0] == '[') {
        const char *end = memchr(host.p, ']', host.n);
        return end ? (sni_str){host.p + 1, (size_t)(end - host.p) - 1} : host;
    }
    const char *colon = memchr(host.p, ':', host.n);
    return colon ? (sni_str){host.p, (size_t)(colon - host.p)} : host;
}

static bool is_numeric(sni_str name) {
    char text[INET6_ADDRSTRLEN], out[sizeof(struct in6_addr)];
    if (name.n >= sizeof text) return false;
    memcpy(text, name.p, name.n);
    text[name.n] = 0;
    return inet_pton(AF_INET, text, out) == 1 || inet_pton(AF_INET6, text, out) == 1;
}

static bool is_known(const srv_sites *sites, sni_str name) {
    if (srv_str_equal_nocase(name, "localhost") || is_numeric(name)) return true;
    for (size_t i = 0; i < sites->count; i++)
        if (strcmp(sites->names[i], "*") == 0 || srv_str_equal_nocase(name, sites->names[i]))
            return true;
    return false;
}

/* Whether "http://host:port" is the server itself, as this request calls it. */
static bool is_own(sni_str origin, sni_str host) {
    for (size_t i = 0; i + 3 <= origin.n; i++) {
        if (memcmp(origin.p + i, "://", 3) != 0) continue;
        size_t rest = origin.n - i - 3;
        return rest == host.n && strncasecmp(origin.p + i + 3, host.p, rest) == 0;
    }
    return false;
}

srv_code srv_sites_check(const srv_sites *sites, const srv_head *head, bool changes,
                         const char **why) {
    sni_str site = head->fetch_site;
    if ((sites->count || sites->loopback) && head->host.n &&
        !is_known(sites, without_port(head->host))) {
        *why = "Host is not a name of this server (start it with --allow-host NAME)";
        return SRV_FORBIDDEN;
    }
    if (!changes) return SRV_OK;
    bool foreign =
        site.n && !srv_str_equal_nocase(site, "same-origin") && !srv_str_equal_nocase(site, "none");
    if (foreign || (head->origin.n && !is_own(head->origin, head->host))) {
        *why = "the request comes from a page of another site";
        return SRV_FORBIDDEN;
    }
    return SRV_OK;
}
