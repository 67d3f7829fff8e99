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

/* Where one server's lines are filtered. Every function may be called in any thread. */
typedef struct srv_logger {
    pthread_mutex_t lock;
    srv_log_settings settings;
} srv_logger;

void srv_logger_init(srv_logger *logger, const srv_log_settings *settings);
void srv_logger_destroy(srv_logger *logger);

void srv_log_set(srv_logger *logger, const srv_log_settings *settings);
srv_log_settings srv_log_get(srv_logger *logger);
bool srv_log_wanted(srv_logger *logger, srv_log_level level);

/* Writes one line unless its level is switched off: what happened, then pairs of name and value
 * (strings) up to a NULL name. Values may hold anything: they are escaped. */
void srv_log(srv_logger *logger, srv_log_level level, const char *what, ...)
    __attribute__((sentinel));

#endif
