#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {
#define SNI_STATUS(code, text) [code] = text,
#include "base/status.def"
#undef SNI_STATUS
};

const char *sn_status_name(sn_status status) {
    size_t i = (size_t)status;
    return i < sizeof names / sizeof *names ? names[i] : "unknown status";
}

sn_status sni_fail(sn_error *err, sn_status status, const char *format, ...) {
    if (!err) return status;
    err->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return status;
}

sn_status sni_fail_memory(sn_error *err) {
    return sni_fail(err, SN_NO_MEMORY, "out of memory");
}

sn_status sni_fail_context(sn_error *err, sn_status status, const char *format, ...) {
    if (!err) return status;
    char old[SN_ERROR_MESSAGE_SIZE];
    memcpy(old, err->message, sizeof old);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (used < sizeof err->message)
        snprintf(err->message + used, sizeof err->message - used, ": %s", old);
    err->status = status;
    return status;
}
