/* auth.c - who may do what: tokens for groups of endpoints. */
#include "server/ops/auth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define MAX_TOKEN_LENGTH 256

static const char *const group_names[] = {"health", "metadata", "infer", "admin", "metrics"};

void srv_auth_destroy(srv_auth *auth) {
    for (size_t i = 0; i < auth->count; i++) free(auth->tokens[i]);
    *auth = (srv_auth){.count = 0};
}

static sn_status read_groups(const char *list, size_t length, unsigned *out, sn_error *err) {
    unsigned groups = 0;
    for (size_t at = 0; at < length;) {
        size_t size = strcspn(list + at, ",=");
        unsigned found = 0;
        for (unsigned i = 0; i < SRV_GROUP_COUNT; i++) {
            if (strlen(group_names[i]) == size && memcmp(group_names[i], list + at, size) == 0) {
                found = 1u << i;
            }
        }
        if (!found) {
            return sni_fail(err, SN_INVALID_ARGUMENT,
                            "'%.*s' is none of health, metadata, infer, admin, metrics", (int)size,
                            list + at);
        }
        groups |= found;
        at += size + 1;
    }
    *out = groups;
    return SN_OK;
}

static sn_status read_tokens(srv_auth *auth, FILE *file, const char *path, unsigned groups,
                             sn_error *err) {
    char line[MAX_TOKEN_LENGTH + 3];
    size_t before = auth->count;
    while (fgets(line, sizeof line, file)) {
        size_t length = strcspn(line, "\r\n");
        if (line[length] == 0 && !feof(file)) {
            return sni_fail(err, SN_LIMIT, "%s: a token of more than %d characters", path,
                            MAX_TOKEN_LENGTH);
        }
        if (length == 0 || line[0] == '#') continue;
        if (auth->count == SRV_MAX_TOKENS) {
            return sni_fail(err, SN_LIMIT, "more than %d tokens", SRV_MAX_TOKENS);
        }
        auth->tokens[auth->count] = srv_strndup(line, length);
        if (!auth->tokens[auth->count]) return sni_fail_memory(err);
        auth->groups[auth->count++] = groups;
    }
    if (auth->count == before) return sni_fail(err, SN_INVALID_ARGUMENT, "%s: no token", path);
    return SN_OK;
}

sn_status srv_auth_add(srv_auth *auth, const char *rule, sn_error *err) {
    const char *equal = strchr(rule, '=');
    unsigned groups = (1u << SRV_GROUP_COUNT) - 1 - (1u << SRV_GROUP_HEALTH);
    if (equal) SN_TRY(read_groups(rule, (size_t)(equal - rule), &groups, err));
    const char *path = equal ? equal + 1 : rule;
    FILE *file = fopen(path, "re");
    if (!file) return sni_fail(err, SN_IO, "%s: %s", path, strerror(errno));
    sn_status status = read_tokens(auth, file, path, groups, err);
    fclose(file);
    if (status == SN_OK) auth->closed |= groups;
    return status;
}

/* Takes as long for a wrong token as for a right one of its length. */
static bool same(sni_str given, const char *token) {
    size_t length = strlen(token);
    unsigned different = given.n == length ? 0 : 1;
    for (size_t i = 0; i < given.n; i++) {
        different |= (unsigned char)given.p[i] ^ (unsigned char)token[i < length ? i : 0];
    }
    return different == 0;
}

srv_code srv_auth_check(const srv_auth *auth, srv_group group, sni_str authorization, sni_str key,
                        const char **why) {
    if (group == SRV_GROUP_ADMIN && !auth->admin) {
        *why = "this endpoint is not enabled (start the server with --admin)";
        return SRV_FORBIDDEN;
    }
    unsigned bit = 1u << group;
    if (!(auth->closed & bit)) return SRV_OK;
    sni_str given = key;
    if (authorization.n > 7 && strncasecmp(authorization.p, "Bearer ", 7) == 0) {
        given = (sni_str){authorization.p + 7, authorization.n - 7};
    }
    bool known = false, open = false;
    for (size_t i = 0; i < auth->count && given.n; i++) {
        if (!same(given, auth->tokens[i])) continue;
        known = true;
        open = open || (auth->groups[i] & bit);
    }
    if (open) return SRV_OK;
    *why = known ? "this token does not open this endpoint" : "a valid token is needed";
    return known ? SRV_FORBIDDEN : SRV_UNAUTHENTICATED;
}
