/* client.h - what the client programs share: the library by path, and checks. */
#ifndef CLIENT_H
#define CLIENT_H

#include "ort_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const OrtApi *ort;
static const OrtApiBase *base;

static inline void die(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* Stops the program when a call fails. */
static inline void must(OrtStatus *status, const char *what) {
    if (status) die(what, ort->GetErrorMessage(status));
}
#define MUST(call) must(ort->call, #call)
#define CHECK(condition)                                               \
    do {                                                               \
        if (!(condition)) die(__func__, "does not hold: " #condition); \
    } while (0)

/* Prints the code of a call that is to fail. Lines that start with '#' are for people. */
static inline void refused(OrtStatus *status, const char *what) {
    if (!status) die(what, "succeeded");
    printf("%s: code %d\n", what, (int)ort->GetErrorCode(status));
    printf("#   %.*s\n", (int)strcspn(ort->GetErrorMessage(status), "\n"),
           ort->GetErrorMessage(status));
    ort->ReleaseStatus(status);
}

static inline void open_library(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) die(path, dlerror());
    const OrtApiBase *(*get)(void);
    void *symbol = dlsym(library, "OrtGetApiBase");
    memcpy(&get, &symbol, sizeof get);
    if (!get) die(path, "no OrtGetApiBase");
    base = get();
    ort = base->GetApi(ORT_API_VERSION);
    if (!ort) die(path, "no table");
}

#endif
