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

/* Adds "GROUP,...=FILE" (or "FILE" for all groups but health): the lines of the file are tokens
 * that open the groups, which are closed to everybody else. */
sn_status srv_auth_add(const char *rule, sn_error *err);
/* Switches the admin group on; it is off otherwise. */
void srv_auth_enable_admin(void);

/* SRV_OK, SRV_UNAUTHENTICATED or SRV_FORBIDDEN. `authorization` is the header's value ("Bearer x"),
 * `key` that of X-API-Key; either may be empty. */
srv_code srv_auth_check(srv_group group, sni_str authorization, sni_str key, const char **why);

#endif
