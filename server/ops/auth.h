/* auth.h - who may do what: tokens for groups of endpoints. */
#ifndef SRV_OPS_AUTH_H
#define SRV_OPS_AUTH_H

#include "server/api/codes.h"

typedef enum srv_group {
    SRV_GROUP_HEALTH,
    SRV_GROUP_METADATA,
    SRV_GROUP_INFER,
    SRV_GROUP_ADMIN,
    SRV_GROUP_METRICS,
    SRV_GROUP_COUNT
} srv_group;

#define SRV_MAX_TOKENS 256

/* Who may do what at one server: set up before it listens, read only after that. */
typedef struct srv_auth {
    char *tokens[SRV_MAX_TOKENS];
    unsigned groups[SRV_MAX_TOKENS]; /* that the token opens, a bit each */
    size_t count;
    unsigned closed; /* groups that need a token */
    bool admin;      /* the admin group is on; it is off by default */
} srv_auth;

void srv_auth_destroy(srv_auth *auth); /* one that is all zeros is fine */

/* Adds "GROUP,...=FILE" (or "FILE" for all groups but health): the lines of the file are tokens
 * that open the groups, which are closed to everybody else. */
sn_status srv_auth_add(srv_auth *auth, const char *rule, sn_error *err);

/* SRV_OK, SRV_UNAUTHENTICATED or SRV_FORBIDDEN. `authorization` is the header's value ("Bearer x"),
 * `key` that of X-API-Key; either may be empty. `*why` is a static text, set on refusal. */
srv_code srv_auth_check(const srv_auth *auth, srv_group group, sni_str authorization, sni_str key,
                        const char **why);

#endif
