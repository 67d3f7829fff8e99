/* log.h - structured lines on stderr: JSON objects, or text for people. */
#ifndef SRV_OPS_LOG_H
#define SRV_OPS_LOG_H

#include "server/util.h"

typedef enum srv_log_level {
    SRV_LOG_ERROR,
    SRV_LOG_WARNING,
    SRV_LOG_INFO,
    SRV_LOG_VERBOSE
} srv_log_level;

typedef struct srv_log_settings {
    bool error, warning, info;
    int verbose; /* requests are logged from 1 on */
    bool json;
} srv_log_settings;

void srv_log_set(const srv_log_settings *settings);
srv_log_settings srv_log_get(void);
bool srv_log_wanted(srv_log_level level);

/* One line: what happened, then pairs of name and value (strings) up to a NULL name. Values may
 * hold anything: they are escaped. Any thread. */
void srv_log(srv_log_level level, const char *what, ...) __attribute__((sentinel));

#endif
