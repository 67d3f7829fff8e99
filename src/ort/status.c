/* status.c - statuses: what a failed call gives its caller. */
#include "ort/ort.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct OrtStatus {
    OrtErrorCode code;
    char message[];
};

/* Given when there is no memory for a status: never freed. */
static struct {
    OrtErrorCode code;
    char message[32];
} no_memory = {ORT_RUNTIME_EXCEPTION, "out of memory"};

/* A status with a copy of the text. Without memory it is the one that is never freed. */
static OrtStatus *make(OrtErrorCode code, const char *text, size_t length) {
    OrtStatus *s = malloc(sizeof *s + length + 1);
    if (!s) return (OrtStatus *)&no_memory;
    s->code = code;
    memcpy(s->message, text, length);
    s->message[length] = 0;
    return s;
}

OrtStatus *ort_CreateStatus(OrtErrorCode code, const char *msg) {
    return make(code, msg ? msg : "", msg ? strlen(msg) : 0);
}

OrtErrorCode ort_GetErrorCode(const OrtStatus *status) {
    return status ? status->code : ORT_OK;
}

const char *ort_GetErrorMessage(const OrtStatus *status) {
    return status ? status->message : "";
}

void ort_ReleaseStatus(OrtStatus *input) {
    if (input != (OrtStatus *)&no_memory) free(input);
}

/* Texts longer than the buffer are cut. */
OrtStatus *ort_fail(OrtErrorCode code, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t length = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    return make(code, text, length);
}

OrtStatus *ort_fail_sn(const sn_error *err) {
    static const OrtErrorCode codes[] = {
        [SN_OK] = ORT_FAIL,
        [SN_INVALID_ARGUMENT] = ORT_INVALID_ARGUMENT,
        [SN_NOT_FOUND] = ORT_NO_SUCHFILE,
        [SN_IO] = ORT_FAIL,
        [SN_MALFORMED] = ORT_INVALID_PROTOBUF,
        [SN_INVALID_MODEL] = ORT_INVALID_GRAPH,
        [SN_UNSUPPORTED] = ORT_NOT_IMPLEMENTED,
        [SN_NO_MEMORY] = ORT_RUNTIME_EXCEPTION,
        [SN_LIMIT] = ORT_FAIL,
        [SN_CANCELLED] = ORT_FAIL,
        [SN_TIMEOUT] = ORT_FAIL,
        [SN_BAD_DATA] = ORT_RUNTIME_EXCEPTION,
        [SN_INTERNAL] = ORT_ENGINE_ERROR,
    };
    OrtErrorCode code =
        (size_t)err->status < sizeof codes / sizeof *codes ? codes[err->status] : ORT_FAIL;
    return make(code, err->message, strlen(err->message));
}

/* The name of a slot without the prefix of its function. */
static const char *slot_name(const char *function) {
    return strncmp(function, "ort_", 4) == 0 ? function + 4 : function;
}

OrtStatus *ort_fail_null(const char *function, const char *argument) {
    return ort_fail(ORT_INVALID_ARGUMENT, "%s: %s is NULL", slot_name(function), argument);
}

OrtStatus *ort_fail_memory(void) {
    return (OrtStatus *)&no_memory;
}

OrtStatus *ort_not_implemented(const char *function) {
    return ort_fail(ORT_NOT_IMPLEMENTED, "%s is not implemented by this library",
                    slot_name(function));
}
