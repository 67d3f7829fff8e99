/* log.c - structured lines on stderr: JSON objects, or text for people. */
#include "server/ops/log.h"
#include "server/api/json_out.h"

#include <time.h>
#include <unistd.h>

void srv_logger_init(srv_logger *logger, const srv_log_settings *settings) {
    pthread_mutex_init(&logger->lock, NULL);
    logger->settings = *settings;
}

void srv_logger_destroy(srv_logger *logger) {
    pthread_mutex_destroy(&logger->lock);
}

void srv_log_set(srv_logger *logger, const srv_log_settings *settings) {
    pthread_mutex_lock(&logger->lock);
    logger->settings = *settings;
    pthread_mutex_unlock(&logger->lock);
}

srv_log_settings srv_log_get(srv_logger *logger) {
    pthread_mutex_lock(&logger->lock);
    srv_log_settings settings = logger->settings;
    pthread_mutex_unlock(&logger->lock);
    return settings;
}

bool srv_log_wanted(srv_logger *logger, srv_log_level level) {
    srv_log_settings settings = srv_log_get(logger);
    switch (level) {
    case SRV_LOG_ERROR:
        return settings.error;
    case SRV_LOG_WARNING:
        return settings.warning;
    case SRV_LOG_INFO:
        return settings.info;
    default:
        return settings.verbose > 0;
    }
}

static void add_time(srv_text *line) {
    struct timespec now;
    struct tm parts;
    char text[40];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    srv_text_addf(line, "%s.%06ldZ", text, now.tv_nsec / 1000);
}

void srv_log(srv_logger *logger, srv_log_level level, const char *what, ...) {
    static const char *const names[] = {"error", "warning", "info", "verbose"};
    if (!srv_log_wanted(logger, level)) return;
    bool json = srv_log_get(logger).json;
    srv_text line = {0};
    srv_json_out out = {.text = &line};
    if (json) {
        srv_text time_text = {0};
        add_time(&time_text);
        srv_json_begin(&out, '{');
        srv_json_pair_string(&out, "time", time_text.data ? time_text.data : "");
        srv_json_pair_string(&out, "level", names[level]);
        srv_json_pair_string(&out, "message", what);
        srv_text_free(&time_text);
    } else {
        add_time(&line);
        srv_text_addf(&line, " %-7s %s", names[level], what);
    }
    va_list args;
    va_start(args, what);
    for (const char *name; (name = va_arg(args, const char *)) != NULL;) {
        const char *value = va_arg(args, const char *);
        if (json) {
            srv_json_pair_string(&out, name, value ? value : "");
        } else {
            srv_text_addf(&line, " %s=", name);
            out.comma = false;
            srv_json_put_string(&out, value ? value : "");
        }
    }
    va_end(args);
    if (json) srv_json_end(&out, '}');
    srv_text_add(&line, "\n", 1);
    if (!line.failed && write(STDERR_FILENO, line.data, line.length) < 0) {
        /* nowhere to complain */
    }
    srv_text_free(&line);
}
